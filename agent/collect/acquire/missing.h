/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After an acquisition that failed on the way: every page of memory that the container does not
 * hold is named in it, as skipped, as it is after a signal. What it holds is not remembered (that
 * would take memory all the time), but read from the container itself.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_MISSING_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_MISSING_H

#include "agent/collect/capture/stream_pass.h"

/*
 * Room that the records take, beside the end itself: one for each 16 MiB of memory (200 bytes), and
 * some thousands for pages that lie here and there. If that is not enough, the rest is not named.
 */
static inline uint64_t missing_room(uint64_t memory_bytes)
{
	return ((uint64_t)256 << 10) + memory_bytes / 16384;
}

struct missing_plan {
	const struct range_list *ranges; /* all that was to be acquired */
	json_t *meta;                    /* of the stream, for that case; borrowed */
	/* Without feed, label and total; its stream is UINT32_MAX if that is not declared yet. */
	struct stream_plan stream;
	struct stream_result *result; /* what is named counts here */
	uint32_t reason;              /* SKIP_... of pages that are missing */
};

/*
 * Gives back what the output holds of an unfinished record (after ST_OUTPUT, `full`), and names
 * what is missing as far as there is room; that is best effort. *ret_pages: how many are missing;
 * UINT64_MAX if that cannot be told, because the output cannot be read back. Failing, the container
 * cannot be closed.
 */
enum status missing_settle(const struct missing_plan *plan, bool full, uint64_t *ret_pages,
			   struct err *e);

#endif
