/* SPDX-License-Identifier: Apache-2.0 */
/* Where image_kernel.h and image_windows.h search for the kernel, and for how long. */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_SEARCH_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_SEARCH_H

#include "agent/image/image_pass.h"
#include "agent/shared/container/container.h"
#include "agent/shared/kernel/candidates.h"
#include "agent/shared/paging/physmem.h"
#include "agent/shared/paging/walk.h"

/*
 * A container's physical memory: first the separately read page tables, if there are any, then the
 * stream `memory`. Must not be moved. image_streams_deinit() in any case, before the container is
 * closed.
 */
struct image_streams {
	struct physmem_rsz mem;
	struct rsz_cursor *cursor;
};

enum status image_streams_init(struct image_streams *s, struct container *in, uint32_t memory,
			       struct err *e);
void image_streams_deinit(struct image_streams *s);
#define _cleanup_image_streams_ CLEANUP(image_streams_deinit)

/* All pages of a memory that does not change, and how many threads may read them. */
struct image_search_all {
	struct image_pages *pages;
	unsigned threads;
};

/*
 * Finds pages in these ranges that may identify a kernel, sorted; all pages are read.
 * Damaged and unreadable pages are skipped. ST_OK even when interrupted. `ret`
 * is zero-initialised; candidates_deinit() in any case.
 */
enum status image_search_collect(struct image_search_all all, const struct range_list *ranges,
				 struct candidates *ret, struct err *e);

/*
 * Enough for `passes` over all pages of `ranges` and the tables of any kernel. It ends when we are
 * interrupted and, on a `live` machine, after the time limit for its page tables.
 */
struct walk_budget image_search_budget(const struct range_list *ranges, unsigned passes, bool live);

#endif
