/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After an acquisition that failed on the way: every page of memory that the container does not hold
 * is named in it, as skipped, as it is after a signal. What it holds is not remembered (that would take
 * memory all the time), but read from the container itself.
 *
 *	missing_find();                  before anything else is written
 *	sealer_recover();
 *	missing_record();
 */
#ifndef RAMSEAL_AGENT_ACQUIRE_MISSING_H
#define RAMSEAL_AGENT_ACQUIRE_MISSING_H

#include "agent/acquire/stream_pass.h"
#include "agent/paging/walk.h"

struct missing {
	struct walk_set captured;
	uint64_t pages; /* that no record has */
};

/*
 * Room that the records take, beside the end itself: one for each 16 MiB of memory (200 bytes), and
 * some thousands for pages that lie here and there. If that is not enough, the rest is not named.
 */
static inline uint64_t missing_room(uint64_t memory_bytes)
{
	return ((uint64_t)256 << 10) + memory_bytes / 16384;
}

/*
 * Which pages of `ranges` (borrowed) does the stream not have? `written` is the container so far;
 * UINT32_MAX: the stream is not declared yet. ST_NOMEM, or what reading said.
 */
enum status missing_find(struct missing *m, struct blob *written, const struct range_list *ranges,
			 uint32_t stream, struct err *e);
void missing_deinit(struct missing *m);

/*
 * Writes the records, which count in `result`, and no more than missing_room() of them; *ret_left pages
 * are not named then. `plan` is without feed, label and total.
 */
enum status missing_record(const struct missing *m, const struct stream_plan *plan,
			   struct stream_result *result, uint64_t *ret_left, struct err *e);

#endif
