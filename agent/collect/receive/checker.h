/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes a file while it grows, and checks the records of the container that it is, on a thread of
 * its own. All that it finds is read from the file: what it vouches for is what is on the disk (or
 * in the system's cache of it), not what came over the wire.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_CHECKER_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_CHECKER_H

#include <stdbool.h>

#include "agent/collect/receive/own_file.h"
#include "agent/collect/wire/frames.h"
#include "formats/rsz/rsz_reader.h"

struct checker;

struct checked {
	enum status st; /* ST_OK; else the file could not be read, and `why` says why */
	struct err why;
	enum finding finding;
	uint8_t sha256[SHA256_SIZE]; /* of all bytes */
	struct rsz_scan_result end;  /* of a container, as container_verify() gives it; else 0 */
};

/* Opens the file for itself. ST_INPUT. */
enum status checker_create(const char *path, const struct disk *disk, struct checker **ret,
			   struct err *e);

/* So many bytes are in the file now; never less than before. */
void checker_advance(struct checker *c, uint64_t written);
/* And that is all. */
void checker_finish(struct checker *c);

/* Has it come to the end? Waits for `ms` at most. */
bool checker_wait(struct checker *c, unsigned ms, struct checked *ret);

/* Gives up if it has not. NULL is fine. */
void checker_destroy(struct checker *c);

#endif
