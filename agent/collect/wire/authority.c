/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/authority.h"

#include <string.h>

#include "agent/collect/wire/http.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "formats/proof/timestamp.h"

enum status authority_check(const struct authority *a, struct err *e)
{
	const bool plain = !strncmp(a->url, "http://", strlen("http://"));
	struct http *http;
	enum status st;

	if (!plain && strncmp(a->url, "https://", strlen("https://")) != 0)
		return err_set(e, ST_USAGE,
			       "a time-stamping authority is http://... or https://...");
	if (plain && a->ca)
		return err_set(e, ST_USAGE, "--timestamp-ca is for https://");
	if (!plain && !a->ca)
		return err_set(e, ST_USAGE,
			       "https:// needs --timestamp-ca: this machine's own certificates are "
			       "not trusted");
	/* What is wrong with the certificates shows here, and not when the acquisition is over. */
	st = http_create(&(struct http_options){ .ca = a->ca }, &http, e);
	if (!st)
		http_destroy(http);
	return st;
}

/* One question, and how long there is patience. */
struct question {
	struct http_request request;
	uint64_t deadline; /* ns */
	struct http *http;
};

static bool is_over(void *arg)
{
	const struct question *q = arg;

	return interrupted() || clock__mono_ns() > q->deadline;
}

static enum status judge_authority_answer(const struct http_answer *a, bool *again, struct err *e)
{
	if (a->status == 200)
		return ST_OK;
	*again = http_status_is_passing(a->status);
	return err_set(e, ST_OUTPUT, "the time-stamping authority answered HTTP %u", a->status);
}

static enum status authority_ask_once(struct question *q, char **ret, size_t *ret_len, bool *again,
				      struct err *e)
{
	struct http_answer a = { 0 };
	enum status st = http_ask(q->http, &q->request, &a, again, e);

	if (st == ST_INTERRUPTED && !interrupted())
		err_set(e, ST_OUTPUT, "the time-stamping authority took longer than %u s",
			AUTHORITY_LIMIT_S);
	if (!st)
		st = judge_authority_answer(&a, again, e);
	if (!st) {
		*ret = a.body;
		*ret_len = a.len;
		a.body = NULL;
	}
	http_answer_deinit(&a);
	return st;
}

enum status authority_ask(const struct authority *a, const uint8_t sha256[static SHA256_SIZE],
			  char **ret, size_t *ret_len, struct err *e)
{
	static const struct http_header headers[] = {
		{ "content-type", "application/timestamp-query" },
		{ "accept", "application/timestamp-reply" },
	};
	uint8_t query[TIMESTAMP_REQUEST_SIZE];
	struct question q = { .request = { .method = "POST",
					   .url = a->url,
					   .headers = headers,
					   .n_headers = ARRAY_SIZE(headers),
					   .body = query,
					   .len = sizeof(query) },
			      .deadline = clock__mono_ns() + AUTHORITY_LIMIT_S * NS_PER_SECOND };
	const struct http_options options = { .ca = a->ca, .stop = is_over, .arg = &q };
	enum status st = http_create(&options, &q.http, e);
	bool again = false;

	if (st)
		return st;
	timestamp_request(sha256, query);
	st = authority_ask_once(&q, ret, ret_len, &again, e);
	if (st && again && !is_over(&q))
		st = authority_ask_once(&q, ret, ret_len, &again, e);
	http_destroy(q.http);
	return st;
}
