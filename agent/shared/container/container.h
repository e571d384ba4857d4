/* SPDX-License-Identifier: Apache-2.0 */
/* An existing container for commands: the file, its reader, its manifest. */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_CONTAINER_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_CONTAINER_H

#include <jansson.h>

#include "agent/shared/container/input.h"
#include "agent/shared/container/manifest_lines.h"
#include "agent/shared/container/outline.h"
#include "formats/base/range.h"
#include "formats/rsz/rsz_reader.h"

struct container_sums;

struct container {
	struct input *in;
	struct outline *outline; /* if it could only be read forward; else NULL */
	struct blob *blob;       /* the container itself, or the outline's */
	struct rsz_reader *reader;
	struct rsz_scan_result end;      /* as rsz_reader_end() */
	struct rsz_identity identity;    /* what BEGIN says */
	bool has_memory;                 /* a stream of memory was declared */
	json_t *events[MANIFEST_EVENTS]; /* lines of the manifest, see container_event() */
};

/*
 * ST_INPUT if it is not a container; a damaged one opens, see rsz_reader_end(). `x`: identities for
 * encrypted containers, or NULL.
 */
enum status container_open(const char *path, const struct age_identities *x, struct container *ret,
			   struct err *e);
void container_close(struct container *c);

/*
 * The final status of a command that read a container and would return `st`: ST_NOMEM if memory
 * ever ran out while decoding a page, because the result may then be wrong. ST_INTERRUPTED and
 * ST_OUTPUT stay as they are.
 */
enum status container_answer(const struct container *c, enum status st, struct err *e);

/*
 * As container_open(), but only for headers, manifest and page tables: also from stdin ("-"), which
 * is then read to its end. `sums`, empty, gets the sums over the headers (sums.h); the caller frees
 * it, even after a failure. Also ST_INTERRUPTED.
 */
enum status container_open_outline(const char *path, const struct age_identities *x,
				   struct container *ret, struct container_sums *sums,
				   struct err *e);

/* The manifest's first line for that event: "begin", "end" or "sealed_later". Borrowed, or NULL. */
json_t *container_event(const struct container *c, const char *event);

/*
 * All lines for these events (ended by NULL), in order, as a JSON array owned by the caller.
 * Bounded; each call reads the container again.
 */
enum status container_lines(struct container *c, const char *const *names, json_t **ret,
			    struct err *e);

/* True if it is sealed and the acquisition finished. */
bool container_is_complete(const struct container *c);

/*
 * Is everything to be acquired in it? ST_PARTIAL, with the reason, if it was stopped midway or
 * holds no memory. A complete one may have recorded gaps for unreadable pages.
 */
enum status container_outcome(const struct container *c, struct err *e);

/*
 * How the acquisition ended, as it recorded: {"exit_code":, "outcome":, "message":, "sleeps":,
 * "clock_steps":}; null if it did not finish. NULL if out of memory.
 */
json_t *container_acquisition_json(const struct container *c);

/*
 * {"end": "sealed", "sealed later", "unsealed", …, "reason":, "acquisition":}; NULL if out of
 * memory.
 */
json_t *container_end_json(const struct container *c);

/*
 * Parts of the acquisition's map of RAM without any record, not even as skipped: it was cut off, or
 * its output was full. Zero-initialise `ret`.
 */
enum status container_missing(const struct container *c, struct range_list *ret, struct err *e);

/* The first stream of that kind, or with that name; ST_INPUT if there is none. */
enum status container_find_kind(const struct container *c, enum rsz_kind kind, uint32_t *ret,
				struct err *e);
enum status container_find_name(const struct container *c, const char *name, uint32_t *ret,
				struct err *e);

#endif
