/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process keeps the pointers to its blocks: stacks, writable sections of modules, and all
 * other writable memory that belongs to no heap.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_ROOTS_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_ROOTS_H

#include "agent/examine/show/heap_session.h"

struct heap_roots {
	struct range_list ranges; /* sorted and joined, except the kernel's at the end */
	/*
	 * Where blocks of full page heap are, sorted and joined; those in missing pages are not
	 * known.
	 */
	struct range_list page_heap;
	/*
	 * How many images have unreadable headers. All of their pages count as writable, except
	 * those known to be as in the file.
	 */
	uint64_t images_whole;
	uint64_t image_pages; /* that were checked for this */
	bool whole;           /* all threads' stacks are among them */
};

/* `l` holds all busy blocks. Call heap_roots_deinit() in any case. */
enum status heap_roots_find(const struct heap_session *s, const struct block_list *l,
			    struct heap_roots *ret, struct err *e);
/*
 * The same with the heaps and without the kernel's stacks: everything that the process can write
 * to.
 */
enum status heap_writable_find(const struct heap_session *s, struct heap_roots *ret, struct err *e);
void heap_roots_deinit(struct heap_roots *r);

#endif
