/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a manifest, from its text as it comes. A container may hold gigabytes of text in a
 * few kilobytes: what is kept is bounded, and only the lines that are asked for are parsed.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_LINES_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_LINES_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

/* The events of which every command wants the first line. */
#define MANIFEST_EVENTS 3
extern const char *const manifest_event_names[MANIFEST_EVENTS]; /* "begin", "end", "sealed_later" */

/* Set one of the first two; the rest is zero. */
struct manifest_lines {
	/* MANIFEST_EVENTS places: the first line of each event, which the caller owns; or */
	json_t **events;
	/* an array that gets all lines of these events (ended by NULL). */
	json_t *list;
	const char *const *names;

	uint64_t taken; /* bytes of text so far */
	char *text;     /* the line that was begun */
	size_t len;
	size_t room;
	bool lost; /* it is too long, or damaged */
};

/* The next piece. ST_END: there is more text than any manifest has, and no more is wanted. */
enum status manifest_lines_take(struct manifest_lines *l, const char *text, size_t len,
				struct err *e);
/*
 * Instead of a piece of `len` bytes that is damaged. It costs the lines that it has a part of, and
 * no others: behind it a line is taken to begin, because a rest of one is no JSON object.
 */
enum status manifest_lines_miss(struct manifest_lines *l, size_t len);
/* Behind the last one: what has no line feed is a line, too. */
void manifest_lines_end(struct manifest_lines *l);
void manifest_lines_deinit(struct manifest_lines *l); /* not of what it was given */

#endif
