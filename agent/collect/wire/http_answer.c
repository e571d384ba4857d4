/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/http_answer.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void http_answer_deinit(struct http_answer *a)
{
	free(a->body);
	free(a->headers);
	*a = (struct http_answer){ .retry_after_s = -1 };
}

void http_answer_builder_deinit(struct http_answer_builder *b)
{
	http_answer_deinit(&b->answer);
	*b = (struct http_answer_builder){ .st = ST_OK, .body_max = b->body_max };
}

static bool answer_failed(struct http_answer_builder *b, enum status st, const char *why)
{
	if (!b->st) {
		b->st = st;
		b->why = why;
	}
	return false;
}

/* Appends, and keeps a NUL behind it. */
static bool append_answer(struct http_answer_builder *b, char **at, size_t *len, size_t *room,
			  const void *p, size_t more)
{
	if (*room - *len <= more) { /* one byte more than the text */
		const size_t want = (*len + more + 1) * 2;
		char *grown = realloc(*at, want);

		if (!grown)
			return answer_failed(b, ST_NOMEM, "out of memory");
		*at = grown;
		*room = want;
	}
	if (more)
		memcpy(*at + *len, p, more);
	*len += more;
	(*at)[*len] = '\0';
	return true;
}

static bool append_header(struct http_answer_builder *b, const char *p, size_t len)
{
	if (len > HTTP_HEADERS_MAX - b->headers_len)
		return answer_failed(b, ST_CORRUPT, "the answer's headers are too long");
	return append_answer(b, &b->answer.headers, &b->headers_len, &b->headers_room, p, len);
}

bool http_answer_body(struct http_answer_builder *b, const void *p, size_t len)
{
	if (b->st)
		return false;
	if (len > (b->body_max ? b->body_max : HTTP_BODY_MAX) - b->answer.len)
		return answer_failed(b, ST_CORRUPT, "the answer is too long");
	return append_answer(b, &b->answer.body, &b->answer.len, &b->body_room, p, len);
}

static void trim_header(const char **p, size_t *len)
{
	while (*len && strchr(" \t\r\n", (*p)[*len - 1]))
		(*len)--;
	while (*len && (**p == ' ' || **p == '\t')) {
		(*p)++;
		(*len)--;
	}
}

/* "HTTP/1.1 200 OK"; libcurl has seen that it is one. */
static bool status_line(struct http_answer_builder *b, const char *line, size_t len)
{
	const char *digits = memchr(line, ' ', len);
	unsigned status = 0;

	http_answer_builder_deinit(b);
	if (digits && (size_t)(line + len - digits) > 3)
		for (int i = 1; i <= 3 && digits[i] >= '0' && digits[i] <= '9'; i++)
			status = status * 10 + (unsigned)(digits[i] - '0');
	if (status < 100 || status > 599)
		return answer_failed(b, ST_CORRUPT, "the answer has no status");
	b->answer.status = status;
	return true;
}

/* A line that begins with a blank goes on with the header before it (RFC 9112, 5.2). */
static bool continue_header(struct http_answer_builder *b, const char *line, size_t len)
{
	trim_header(&line, &len);
	if (!len || !b->headers_len)
		return true;
	b->headers_len--; /* its '\n' */
	return append_header(b, " ", 1) && append_header(b, line, len) && append_header(b, "\n", 1);
}

static bool add_header(struct http_answer_builder *b, const char *line, size_t len)
{
	const char *value = memchr(line, ':', len);
	size_t name_len, value_len;
	const size_t at = b->headers_len;

	if (!value || value == line)
		return true; /* nobody could use it */
	name_len = (size_t)(value - line);
	value_len = len - name_len - 1;
	value++;
	trim_header(&value, &value_len);
	if (!append_header(b, line, name_len) || !append_header(b, ": ", 2) ||
	    !append_header(b, value, value_len) || !append_header(b, "\n", 1))
		return false;
	for (size_t i = at; i < at + name_len; i++)
		if (b->answer.headers[i] >= 'A' && b->answer.headers[i] <= 'Z')
			b->answer.headers[i] = (char)(b->answer.headers[i] - 'A' + 'a');
	return true;
}

bool http_answer_line(struct http_answer_builder *b, const char *line, size_t len)
{
	if (len >= 5 && !memcmp(line, "HTTP/", 5))
		return status_line(b, line, len);
	if (b->st)
		return false;
	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	if (memchr(line, '\0', len) || memchr(line, '\r', len) || memchr(line, '\n', len))
		return answer_failed(b, ST_CORRUPT, "the answer's headers are not text");
	b->headed |= !len;
	if (len && (line[0] == ' ' || line[0] == '\t'))
		return continue_header(b, line, len);
	return add_header(b, line, len);
}

const char *http_answer_header(const struct http_answer *a, const char *name, size_t *ret_len)
{
	const size_t name_len = strlen(name);

	*ret_len = 0;
	for (const char *at = a->headers; at && *at; at = strchr(at, '\n') + 1) {
		if (strncmp(at, name, name_len) || strncmp(at + name_len, ": ", 2))
			continue;
		at += name_len + 2;
		*ret_len = (size_t)(strchr(at, '\n') - at);
		return at;
	}
	return NULL;
}

/* libcurl knows the three forms of a date (RFC 9110, 5.6.7). */
static uint64_t date_of(const char *text, size_t len)
{
	char copy[64];
	time_t t;

	if (!text || len >= sizeof(copy))
		return 0;
	memcpy(copy, text, len);
	copy[len] = '\0';
	t = curl_getdate(copy, NULL);
	return t > 0 ? (uint64_t)t : 0;
}

/* Seconds, or a date (RFC 9110, 10.2.3); what is neither is none. */
static int retry_after(const struct http_answer *a, uint64_t now)
{
	size_t len;
	const char *text = http_answer_header(a, "retry-after", &len);
	uint64_t seconds = 0, date;

	if (!text || !len)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9') {
			date = date_of(text, len);
			if (!date)
				return -1;
			seconds = date > now ? date - now : 0;
			break;
		}
		seconds = MIN(seconds * 10 + (uint64_t)(text[i] - '0'), (uint64_t)INT_MAX);
	}
	return (int)MIN(seconds, (uint64_t)HTTP_RETRY_AFTER_MAX_S);
}

enum status http_answer_finish(struct http_answer_builder *b, uint64_t wall_s,
			       struct http_answer *ret, struct err *e)
{
	struct http_answer *a = &b->answer;
	const char *date;
	size_t len;

	if (!a->status)
		answer_failed(b, ST_CORRUPT, "the answer has no status");
	/* libcurl is content with a connection that ends among the headers. */
	if (!b->headed)
		answer_failed(b, ST_OUTPUT, "the answer is cut short");
	if (!b->st && !a->body)
		append_answer(b, &a->body, &a->len, &b->body_room, "", 0);
	if (b->st)
		return err_set(e, b->st, "%s", b->why);
	date = http_answer_header(a, "date", &len);
	a->date = date_of(date, len);
	a->retry_after_s = retry_after(a, a->date ? a->date : wall_s);
	*ret = *a;
	*b = (struct http_answer_builder){ .st = ST_OK };
	return ST_OK;
}

bool http_status_is_passing(unsigned status)
{
	return status == 408 || status == 425 || status == 429 ||
	       (status >= 500 && status <= 599 && status != 501 && status != 505);
}
