/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much space a container needs, for both `check` and `acquire`. An acquisition may have only
 * one chance, so it is refused only if there is certainly no space, not on an estimate.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_ROOM_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_ROOM_H

#include "agent/collect/acquire/files.h"
#include "agent/shared/output/output.h"

/*
 * Reserved for what must be written even to a full disk: the manifest's last lines, the log, an
 * index, and the records of what is missing.
 */
uint64_t room_reserve(uint64_t memory_bytes);

/* The space for a container with this much memory and page files, without an estimate. */
struct output_need room_need(uint64_t memory_bytes, uint64_t file_bytes);

/*
 * How well a sample compresses, as chunks of a container:
 *
 *	room_sample_create();  room_sample_see() each piece;  room_estimate();
 */
struct room_sample;

enum status room_sample_create(int level, struct room_sample **ret, struct err *e);
void room_sample_destroy(struct room_sample *s); /* NULL is fine */

/* One piece: at most PROBE_BYTES, which are used up. A probe_fn of preflight.h. */
void room_sample_see(void *sample, uint8_t *data, const struct page_status *status, size_t pages);

/* Samples a file that will be copied. Unreadable parts are left out. */
void room_sample_file(struct room_sample *s, struct disk *d, const struct pagefile *p);

uint64_t room_sample_bytes(const struct room_sample *s); /* seen so far; of NULL 0 */

/*
 * With an estimate from samples of the memory and of the files; without one if there was no memory.
 */
struct output_need room_estimate(const struct room_sample *memory, uint64_t memory_bytes,
				 const struct room_sample *files, uint64_t file_bytes);

#endif
