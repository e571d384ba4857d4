/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After an acquisition that failed midway, every page of memory that the container lacks is
 * recorded in it as skipped, as after a signal. What the container holds is read back from it;
 * remembering that would take memory all the time.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_MISSING_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_MISSING_H

#include "agent/collect/capture/stream_pass.h"

/*
 * Space for these records, besides the container's end: one for each 16 MiB of memory (200 bytes),
 * and some thousands for scattered pages. If that is not enough, the rest is not recorded.
 */
static inline uint64_t missing_room(uint64_t memory_bytes)
{
	return ((uint64_t)256 << 10) + memory_bytes / 16384;
}

struct missing_plan {
	const struct range_list *ranges; /* everything to be acquired */
	json_t *meta;                    /* of the stream, for that case; borrowed */
	/* Without feed, label and total; its stream is UINT32_MAX if that is not declared yet. */
	struct stream_plan stream;
	struct stream_result *result; /* skipped pages are counted here */
	uint32_t reason;              /* SKIP_... of pages that are missing */
};

/*
 * Removes an unfinished record from the output (after ST_OUTPUT, `full`) and records what is
 * missing as far as there is space. *ret_pages: how many pages are missing; UINT64_MAX if the
 * output cannot be read back. If this fails, the container cannot be closed.
 */
enum status missing_settle(const struct missing_plan *plan, bool full, uint64_t *ret_pages,
			   struct err *e);

#endif
