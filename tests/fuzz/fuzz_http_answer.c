/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a head as libcurl hands them over, then what follows the empty one as the body. */
#include <string.h>

#include "agent/collect/wire/http_answer.h"
#include "tests/fuzz/fuzz.h"

static size_t feed_head(struct http_answer_builder *b, const char *at, size_t size)
{
	size_t used = 0;

	while (used < size) {
		const char *end = memchr(at + used, '\n', size - used);
		const size_t len = end ? (size_t)(end + 1 - at) - used : size - used;
		const bool last = len <= 2 && at[used + len - 1] == '\n';

		http_answer_line(b, at + used, len);
		used += len;
		if (last)
			break;
	}
	return used;
}

/* Each header is a line of its own with a name in lower case, and is found by it. */
static void check_headers(const struct http_answer *a)
{
	for (const char *at = a->headers; at && *at;) {
		const char *end = strchr(at, '\n'), *colon = strstr(at, ": ");
		char name[64];
		size_t len;

		MUST(end && colon && colon < end && colon > at);
		MUST(!memchr(at, '\r', (size_t)(end - at)));
		for (const char *c = at; c < colon; c++)
			MUST(*c < 'A' || *c > 'Z');
		if ((size_t)(colon - at) < sizeof(name)) {
			memcpy(name, at, (size_t)(colon - at));
			name[colon - at] = '\0';
			MUST(http_answer_header(a, name, &len));
			MUST(len < HTTP_HEADERS_MAX);
		}
		at = end + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_answer_builder b = { .st = ST_OK };
	struct http_answer a = { .body = NULL };
	struct err e = ERR_INIT;
	const size_t used = feed_head(&b, (const char *)data, size);
	enum status st;

	http_answer_body(&b, data + used, size - used);
	st = http_answer_finish(&b, 1000000000, &a, &e);
	MUST(st == ST_OK || st == ST_CORRUPT || st == ST_OUTPUT);
	MUST(!st == !e.message[0]);
	if (!st) {
		MUST(a.status >= 100 && a.status <= 599);
		MUST(a.len == size - used && a.body && a.body[a.len] == '\0');
		MUST(!a.headers || strlen(a.headers) <= HTTP_HEADERS_MAX);
		MUST(a.retry_after_s >= -1);
		check_headers(&a);
	}
	http_answer_deinit(&a);
	http_answer_builder_deinit(&b);
	return 0;
}
