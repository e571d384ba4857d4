/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process keeps the pointers that its blocks hang on: stacks, writable sections of modules,
 * and all other memory that can be written to and is no heap's.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_ROOTS_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_ROOTS_H

#include "agent/examine/show/heap_session.h"

struct heap_roots {
	struct range_list ranges; /* tidy but for the last ones, which are the kernel's */
	/* Where blocks of full page heap lie; those in missing pages are not known. Tidy. */
	struct range_list page_heap;
	/*
	 * Whose headers can't be read. Of these all pages count that are not known to be as their
	 * file has them.
	 */
	uint64_t images_whole;
	uint64_t image_pages; /* that were looked at for this */
	bool whole;           /* all threads' stacks are among them */
};

/* `l` is all busy blocks. heap_roots_deinit() in any case. */
enum status heap_roots_find(const struct heap_session *s, const struct block_list *l,
			    struct heap_roots *ret, struct err *e);
/* The same with the heaps, and without the kernel's stacks: all that the process can write to. */
enum status heap_writable_find(const struct heap_session *s, struct heap_roots *ret, struct err *e);
void heap_roots_deinit(struct heap_roots *r);

#endif
