/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of `ramseal receive`: lines of JSON, each with "time" and "event".
 *
 *	{"time":"2026-11-22T13:45:00.000000000Z","event":"began","id":"<32 digits>",
 *	 "peer":"sha256//…","address":"192.0.2.7:50412","file":"<time>-<id>.rsz","name":"host.rsz",
 *	 "expected":1048576}
 *	{…,"event":"broke_off","id":…,"bytes":1024}
 *	{…,"event":"complete","id":…,"peer":…,"address":…,"name":…,"file":…,"bytes":4096,
 *	 "sha256":"<64 digits>","sealed":true,"verified":"sealed","whole_bytes":4096,"records":9,
 *	 "root":"<64 digits>","container":"<32 digits>"}
 *
 * "sealed" is what the sender said, "verified" what the receiver found: finding_name(). An upload
 * that is "encrypted" or "no container" was only hashed, not verified, so "root" and "container"
 * are null. "root" is also null if a payload is damaged. "name" is the sender's suggestion.
 *
 * Anyone who may send can send a container with an id that was seen before. So a line speaks only
 * for its peer, and lines may contradict each other.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_WITNESS_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_WITNESS_H

#include <jansson.h>

#include "formats/base/io.h"
#include "formats/base/sha256.h"
#include "formats/rsz/rsz_reader.h"

/* Longer lines are not ours. */
#define WITNESS_LINE_MAX 8192

/*
 * Calls `fn` for each line that is a JSON object, in their order; `line` is borrowed. *ret_strange
 * is how many are something else: the last one may have been cut off. *ret_ends: the file is empty,
 * or ends with a line feed. Anything but ST_OK from `fn` ends it.
 */
enum status witness_read(struct blob *in, enum status (*fn)(void *arg, json_t *line, struct err *e),
			 void *arg, uint64_t *ret_strange, bool *ret_ends, struct err *e);

/* Of a container, as it was at one time at the receiver. */
struct witness_line {
	char container[2 * RSZ_ID_SIZE + 1];
	char time[64], peer[64], root[SHA256_HEX_SIZE];
	uint64_t whole;  /* bytes: the root is over the records in these */
	uint64_t number; /* of the line */
};

/* All that a log says of containers. */
struct witness_log;

/*
 * Reads it, once for as many containers as there are: a log grows for years. ST_INPUT if it cannot
 * be read, or is none.
 */
enum status witness_log_open(const char *path, struct witness_log **ret, struct err *e);
void witness_log_close(struct witness_log *l); /* NULL is fine */

struct witnessed {
	const struct witness_line *lines; /* of that container, in their order; the log's */
	size_t n;
	size_t without_root; /* lines that say that its payloads are damaged */

	/* Of witness_compare(). */
	const struct witness_line *same;  /* the first with its root, else the longest part of it */
	const struct witness_line *other; /* the first with a root that it never had */
	size_t others;                    /* how many there are of these */
	size_t unknown;                   /* and of those that could not be compared */
};

/* `id` in hex. */
void witness_find(const struct witness_log *l, const char *id, struct witnessed *ret);

/*
 * With what container_verify() has found in `in`. A container that was received before it was
 * sealed had another root then: that of its first records. `again`: `in` can be read once more,
 * else such lines are `unknown`. ST_INPUT and so on if it cannot be read.
 */
enum status witness_compare(struct witnessed *w, struct blob *in, bool again,
			    const struct rsz_scan_result *end, struct err *e);

#endif
