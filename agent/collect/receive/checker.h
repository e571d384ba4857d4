/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes a growing file and checks the records of its container, on a thread of its own. It reads
 * only the file, so it vouches for what is on the disk (or in the system's cache of it), not for
 * what came over the wire.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_CHECKER_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_CHECKER_H

#include <stdbool.h>

#include "agent/collect/receive/own_file.h"
#include "agent/collect/wire/frames.h"
#include "formats/rsz/rsz_reader.h"

struct checker;

struct checked {
	enum status st; /* not ST_OK: the file could not be read, and `why` says why */
	struct err why;
	enum finding finding;
	uint8_t sha256[SHA256_SIZE]; /* of all bytes */
	struct rsz_scan_result end;  /* for a container, as from container_verify(); else 0 */
};

/* Opens the file itself. ST_INPUT. */
enum status checker_create(const char *path, const struct disk *disk, struct checker **ret,
			   struct err *e);

/* The file now has this many bytes; never fewer than before. */
void checker_advance(struct checker *c, uint64_t written);
/* The file is complete. */
void checker_finish(struct checker *c);

/* Is it done? Waits at most `ms`. */
bool checker_wait(struct checker *c, unsigned ms, struct checked *ret);

/* Stops it if it is not done. NULL is fine. */
void checker_destroy(struct checker *c);

#endif
