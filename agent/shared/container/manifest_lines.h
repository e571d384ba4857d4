/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extracts lines of a manifest from its text, piece by piece. A few kilobytes of a container may
 * hold gigabytes of text, so what is kept is bounded, and only wanted lines are parsed.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_LINES_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_LINES_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

/* Events whose first line every command needs. */
#define MANIFEST_EVENTS 3
extern const char *const manifest_event_names[MANIFEST_EVENTS]; /* "begin", "end", "sealed_later" */

/* Set one of the first two members; the rest is zero. */
struct manifest_lines {
	/* room for MANIFEST_EVENTS: the first line for each event, owned by the caller; or */
	json_t **events;
	/* an array that gets all lines for these events (ended by NULL). */
	json_t *list;
	const char *const *names;

	uint64_t taken; /* bytes of text so far */
	char *text;     /* the current incomplete line */
	size_t len;
	size_t room;
	bool lost; /* it is too long, or damaged */
};

/* The next piece. ST_END: there is more text than any manifest has, and the rest is ignored. */
enum status manifest_lines_take(struct manifest_lines *l, const char *text, size_t len,
				struct err *e);
/*
 * Instead of a damaged piece of `len` bytes. Only the lines in it are lost: what follows is treated
 * as the start of a line, because the rest of one is not a JSON object.
 */
enum status manifest_lines_miss(struct manifest_lines *l, size_t len);
/* After the last piece: text without a line feed is a line too. */
void manifest_lines_end(struct manifest_lines *l);
void manifest_lines_deinit(struct manifest_lines *l); /* does not free `events` or `list` */

#endif
