/* SPDX-License-Identifier: Apache-2.0 */
/* Where image_kernel.h and image_windows.h look for the kernel, and for how long. */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_SEARCH_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_SEARCH_H

#include "agent/image/image_pass.h"
#include "agent/shared/container/container.h"
#include "agent/shared/kernel/candidates.h"
#include "agent/shared/paging/physmem.h"
#include "agent/shared/paging/walk.h"

/*
 * A container's physical memory: first the page tables as they were read by themselves, if there
 * are any, then the stream `memory`. Not to be moved. image_streams_deinit() in any case, before
 * the container is closed.
 */
struct image_streams {
	struct physmem_rsz mem;
	struct rsz_cursor *cursor;
};

enum status image_streams_init(struct image_streams *s, struct container *in, uint32_t memory,
			       struct err *e);
void image_streams_deinit(struct image_streams *s);
#define _cleanup_image_streams_ CLEANUP(image_streams_deinit)

/*
 * Which pages of these ranges may tell of a kernel, sorted; all of them are read, by `threads`
 * threads. What is damaged or unreadable tells nothing. ST_OK also when interrupted. `ret` is
 * zero-initialised; candidates_deinit() in any case.
 */
enum status image_search_collect(struct image_pages *from, const struct range_list *ranges,
				 unsigned threads, struct candidates *ret, struct err *e);

/*
 * For `passes` over all pages of `ranges`, and what any kernel has of tables. It is over when we
 * are interrupted, and on a `live` machine after as long as its page tables may take.
 */
struct walk_budget image_search_budget(const struct range_list *ranges, unsigned passes, bool live);

#endif
