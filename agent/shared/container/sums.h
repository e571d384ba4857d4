/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the headers of a container's chunks, by stream, for `info` and `report`. */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_SUMS_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_SUMS_H

#include "agent/shared/container/tally.h"
#include "formats/rsz/rsz_reader.h"

struct container;

/* Reasons of a capture that is not the first: enum rsz_reason; the last takes the rest. */
#define SUMS_REASONS 8

struct stream_sums {
	char *name;
	uint32_t kind;
	bool paged;
	struct tally tally; /* for a paged stream */
	uint64_t chunks;
	uint64_t captured;            /* bytes of its extents, counted once for each capture */
	uint64_t stored;              /* bytes of payload in the file */
	uint64_t again[SUMS_REASONS]; /* bytes of `captured` that were not the first capture */
	uint64_t start;               /* monotonic ns of the first and last capture; 0: not known */
	uint64_t end;
};

/* All zero is empty. */
struct container_sums {
	struct stream_sums *streams; /* as the reader has them */
	size_t count;
	size_t room;
	struct rsz_scan_result end;
};

/* Called for each chunk; anything but ST_OK ends the walk. */
typedef enum status sums_chunk_fn(void *arg, const struct stream_sums *s, const struct rsz_chunk *c,
				  struct err *e);

/*
 * Walks all headers. `fn` gets each chunk after it was added. Also ST_INTERRUPTED;
 * container_sums_deinit() even after a failure.
 */
enum status container_sums(const struct container *c, sums_chunk_fn *fn, void *arg,
			   struct container_sums *ret, struct err *e);
void container_sums_deinit(struct container_sums *s);

/*
 * As container_sums(), but in the walk that opens the reader: opens `ret` on `in` and adds to empty
 * `sums`.
 */
enum status container_sums_open(struct blob *in, struct rsz_reader **ret,
				struct container_sums *sums, struct err *e);

#endif
