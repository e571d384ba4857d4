/* SPDX-License-Identifier: Apache-2.0 */
/* Builds an answer from the lines and bytes that http.c receives. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_HTTP_ANSWER_H
#define RAMSEAL_AGENT_COLLECT_WIRE_HTTP_ANSWER_H

#include "agent/collect/wire/http.h"

struct http_answer_builder {
	struct http_answer answer; /* owned */
	size_t headers_len, headers_room, body_room;
	size_t body_max; /* set before the first line; 0: HTTP_BODY_MAX */
	bool headed;     /* the empty line after the headers has come */
	/* Why it is invalid, if so: then nothing more is accepted. */
	enum status st;
	const char *why;
};

/*
 * One line of the head, with or without its line end. A status line starts a new answer: the one
 * before was interim (RFC 9110, 15.2), or the proxy's. False: b->st says why.
 */
bool http_answer_line(struct http_answer_builder *b, const char *line, size_t len);
bool http_answer_body(struct http_answer_builder *b, const void *p, size_t len);

/*
 * The answer is complete. `wall_s`: now, for a Retry-After with a date in an answer without Date.
 * The answer becomes the caller's, and the builder is empty.
 */
enum status http_answer_finish(struct http_answer_builder *b, uint64_t wall_s,
			       struct http_answer *ret, struct err *e);
void http_answer_builder_deinit(struct http_answer_builder *b);

#endif
