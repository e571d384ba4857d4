/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of what `ramseal receive` has seen: lines of JSON, each with "time" and "event".
 *
 *	{"time":"2026-11-22T13:45:00.000000000Z","event":"began","id":"<32 digits>",
 *	 "peer":"sha256//…","address":"192.0.2.7:50412","file":"<time>-<id>.rsz","name":"host.rsz",
 *	 "expected":1048576}
 *	{…,"event":"broke_off","id":…,"bytes":1024}
 *	{…,"event":"complete","id":…,"peer":…,"address":…,"name":…,"file":…,"bytes":4096,
 *	 "sha256":"<64 digits>","sealed":true,"verified":"sealed","whole_bytes":4096,"records":9,
 *	 "root":"<64 digits>","container":"<32 digits>"}
 *
 * "sealed" is what the sender said, "verified" what the receiver found: finding_name(). "root" and
 * "container" are null of what is encrypted, or no container. "name" is the sender's suggestion.
 */
#ifndef RAMSEAL_AGENT_CONTAINER_WITNESS_H
#define RAMSEAL_AGENT_CONTAINER_WITNESS_H

#include <jansson.h>

#include "formats/base/io.h"

/* Longer lines are not ours. */
#define WITNESS_LINE_MAX 8192

/*
 * Calls `fn` for each line that is a JSON object, in their order; `line` is borrowed. *ret_strange
 * is how many are something else: the last one may have been cut off. *ret_ends: the file is empty,
 * or ends with a line feed. Anything but ST_OK from `fn` ends it.
 */
enum status witness_read(struct blob *in, enum status (*fn)(void *arg, json_t *line, struct err *e),
			 void *arg, uint64_t *ret_strange, bool *ret_ends, struct err *e);

/* What the log says of a container: its "complete" line with that root, or else its last one. */
struct witnessed {
	bool known; /* there is such a line */
	bool same_root;
	char time[64], peer[64], root[72];
	uint64_t whole; /* bytes: the root is over the records in these */
};

/* ST_INPUT if the log cannot be read, or is none. `id` and `root` in hex. */
enum status witness_find(const char *path, const char *id, const char *root, struct witnessed *ret,
			 struct err *e);

#endif
