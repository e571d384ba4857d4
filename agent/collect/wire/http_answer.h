/* SPDX-License-Identifier: Apache-2.0 */
/* How http.c makes an answer of the lines and bytes that come. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_HTTP_ANSWER_H
#define RAMSEAL_AGENT_COLLECT_WIRE_HTTP_ANSWER_H

#include "agent/collect/wire/http.h"

struct http_answer_builder {
	struct http_answer answer; /* owned */
	size_t headers_len, headers_room, body_room;
	size_t body_max; /* set before the first line; 0: HTTP_BODY_MAX */
	bool headed;     /* the empty line behind the headers has come */
	/* What was wrong with it, if anything: then nothing more is taken. */
	enum status st;
	const char *why;
};

/*
 * One line of the head, with or without its line end. A status line begins the answer anew: what
 * came before was an interim one (RFC 9110, 15.2), or the proxy's. False: b->st says why.
 */
bool http_answer_line(struct http_answer_builder *b, const char *line, size_t len);
bool http_answer_body(struct http_answer_builder *b, const void *p, size_t len);

/*
 * All has come; `wall_s`: now, for a Retry-After that is a date where the answer has no Date. The
 * answer is the caller's, and the builder empty.
 */
enum status http_answer_finish(struct http_answer_builder *b, uint64_t wall_s,
			       struct http_answer *ret, struct err *e);
void http_answer_builder_deinit(struct http_answer_builder *b);

#endif
