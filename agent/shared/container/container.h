/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An existing container as commands want it: the file, its reader, its manifest.
 */
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
	struct outline *outline; /* of what could only be read forward; else NULL */
	struct blob *blob;       /* the container itself, or that */
	struct rsz_reader *reader;
	struct rsz_scan_result end;      /* as rsz_reader_end() */
	struct rsz_identity identity;    /* what BEGIN says */
	bool has_memory;                 /* a stream of it was declared */
	json_t *events[MANIFEST_EVENTS]; /* lines of the manifest, see container_event() */
};

/*
 * ST_INPUT if it is no container; one that is not whole opens, see rsz_reader_end(). `x` is whose
 * containers can be read if they are encrypted, and can be NULL.
 */
enum status container_open(const char *path, const struct age_identities *x, struct container *ret,
			   struct err *e);
void container_close(struct container *c);

/*
 * What a command returns that has read a container and would return `st`: ST_NOMEM if memory ever
 * ran out while a page of it was decoded, because whatever was found, or was not, may be wrong
 * then. ST_INTERRUPTED and ST_OUTPUT stay as they are.
 */
enum status container_answer(const struct container *c, enum status st, struct err *e);

/*
 * As container_open(), for who wants headers, manifest and page tables alone: also from stdin
 * ("-"), which is read to its end then. `sums`, empty, gets what the headers add up to (sums.h);
 * the caller lets go of it, also after a failure. ST_INTERRUPTED, too.
 */
enum status container_open_outline(const char *path, const struct age_identities *x,
				   struct container *ret, struct container_sums *sums,
				   struct err *e);

/* The manifest's first line of that event: "begin", "end" or "sealed_later". Borrowed, or NULL. */
json_t *container_event(const struct container *c, const char *event);

/*
 * All lines of these events (ended by NULL), in their order, as a JSON array that the caller owns.
 * Bounded; read again from the container at each call.
 */
enum status container_lines(struct container *c, const char *const *names, json_t **ret,
			    struct err *e);

/* True if it is sealed, and the acquisition came to its end. */
bool container_is_complete(const struct container *c);

/*
 * Is all there that was to be acquired? ST_PARTIAL, and why not, of one that was stopped on the
 * way, or holds no memory. Pages that could not be read are recorded gaps of one that is complete.
 */
enum status container_outcome(const struct container *c, struct err *e);

/*
 * How the acquisition ended, by its own account: {"exit_code":, "outcome":, "message":, "sleeps":,
 * "clock_steps":}; null if it did not finish. NULL if out of memory.
 */
json_t *container_acquisition_json(const struct container *c);

/*
 * {"end": "sealed", "sealed later", "unsealed", …, "reason":, "acquisition":}; NULL if out of
 * memory.
 */
json_t *container_end_json(const struct container *c);

/*
 * What the acquisition's map of RAM names and no record has, not even as skipped: it was cut off,
 * or its output was too full to say so. Zero-initialise `ret`.
 */
enum status container_missing(const struct container *c, struct range_list *ret, struct err *e);

/* The first stream of that kind, or with that name; ST_INPUT if there is none. */
enum status container_find_kind(const struct container *c, enum rsz_kind kind, uint32_t *ret,
				struct err *e);
enum status container_find_name(const struct container *c, const char *name, uint32_t *ret,
				struct err *e);

#endif
