/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that may identify the system or be roots of its address spaces. They are collected while
 * all memory is read, and the kernel is found among them later (discover.h), so that an image is
 * read only once.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_CANDIDATES_H
#define RAMSEAL_AGENT_SHARED_KERNEL_CANDIDATES_H

#include "agent/shared/paging/roots.h"
#include "formats/base/page.h"

/*
 * 32 MiB of addresses. Every root is a candidate, and so are page tables of higher levels: some
 * hundreds per process.
 */
#define CANDIDATES_MAX ((size_t)4 << 20)

/* Zero-initialise. */
struct candidates {
	uint64_t *at; /* addresses */
	size_t count, room;
	uint64_t pages;      /* pages shown */
	uint64_t unreadable; /* pages that could not be read */
	bool complete;       /* all memory was shown; set by the caller */
	bool full;           /* there were more, or memory ran out */
};

void candidates_deinit(struct candidates *c);

/*
 * Examines `pages` pages from `pa` on; only those with status PAGE_DATA have bytes. Any number of
 * threads at once.
 */
void candidates_show(struct candidates *c, const uint8_t *bytes, const struct page_status *status,
		     size_t pages, uint64_t pa);

/* Call at the end: sorts by address and removes duplicates. */
void candidates_sort(struct candidates *c);

/*
 * May the page be VMCOREINFO, a root of Windows, which refers to itself, or one of Linux? It
 * accepts every root that is_root() (roots.c) would, as long as Linux fills its half as it does
 * now.
 */
bool candidate_page(const uint8_t *page, uint64_t pa);

#endif
