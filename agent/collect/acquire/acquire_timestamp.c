/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/collect/acquire/acquire_internal.h"
#include "agent/collect/wire/authority.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "formats/proof/timestamp.h"

/* PEM: many certificates, but no more than that. */
#define CA_MAX ((size_t)1 << 20)

static struct authority authority_of(const struct acquisition *a)
{
	return (struct authority){ .url = a->o->timestamp_url, .ca = a->timestamp_ca };
}

static enum status load_ca(struct acquisition *a, struct err *e)
{
	size_t len;

	if (!a->o->timestamp_ca)
		return ST_OK;
	return file_load(a->o->timestamp_ca, CA_MAX, &a->timestamp_ca, &len, e);
}

enum status acquire__begin_timestamp(struct acquisition *a, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	struct authority authority;
	enum status st;

	if (!a->o->timestamp_url)
		return ST_OK;
	st = load_ca(a, e);
	if (st)
		return st;
	authority = authority_of(a);
	st = authority_check(&authority, e);
	if (st)
		return err_add(e, st, "--timestamp-url");
	if (asprintf(&path, "%s.tsr", a->o->statement) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	st = output_open(&(struct output_options){ .path = path,
						   .force = a->o->force,
						   .inputs = a->base.inputs },
			 &a->timestamp_out, e);
	if (!st && output_is_at(a->timestamp_out, a->base.output))
		return err_set(e, ST_OUTPUT, "%s: container and time stamp name the same file",
			       path);
	return st;
}

/* It has to be about these bytes; whether it is to be believed is judged elsewhere. */
static enum status take_answer(struct acquisition *a, const char *answer, size_t len,
			       struct timestamp *ret, struct err *e)
{
	enum status st = timestamp_parse(answer, len, ret, e);

	if (!st)
		st = timestamp_check(ret, a->statement, strlen(a->statement), e);
	if (!st)
		st = sink_write(output_sink(a->timestamp_out), answer, len, e);
	return st ? st : output_commit(a->timestamp_out, e);
}

static enum status request_timestamp(struct acquisition *a, struct timestamp *ret, struct err *e)
{
	const struct authority authority = authority_of(a);
	_cleanup_free_ char *answer = NULL;
	uint8_t digest[SHA256_SIZE];
	struct sha256 *h = NULL;
	size_t len = 0;
	enum status st = sha256_create(&h, e);

	if (st)
		return st;
	sha256_of(h, a->statement, strlen(a->statement), digest);
	st = authority_ask(&authority, digest, &answer, &len, e);
	if (!st)
		st = take_answer(a, answer, len, ret, e);
	if (!st) {
		sha256_of(h, answer, len, digest);
		sha256_hex(digest, a->timestamp_sha256);
	}
	sha256_destroy(h);
	return st;
}

void acquire__end_timestamp(struct acquisition *a)
{
	struct err e = ERR_INIT;
	char time[UTC_RFC3339_SIZE];
	struct timestamp t;

	if (!a->timestamp_out || !a->statement)
		return;
	if (request_timestamp(a, &t, &e)) {
		log_warning("timestamp-missing", "no time stamp: %s", e.message);
		a->timestamp_problem = strdup(e.message);
		output_discard(a->timestamp_out);
		return;
	}
	utc_rfc3339(t.time, time);
	log_info_with(JSON_FIELDS(field_text("path", output_where(a->timestamp_out)),
				  field_text("stamped", time)),
		      "timestamp", "%s: time stamp of %s", output_where(a->timestamp_out), time);
}

json_t *acquire__timestamp_json(const struct acquisition *a)
{
	if (!a->timestamp_out)
		return json_null();
	return json_fields(JSON_FIELDS(
		field_text("file", a->timestamp_problem ? NULL : output_where(a->timestamp_out)),
		field_text("problem", a->timestamp_problem)));
}
