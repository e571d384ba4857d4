/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages may say what system a memory has, or be roots of its address spaces: for who reads
 * all of it before the kernel is known, and finds that afterwards (discover.h). So an image is read
 * once.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_CANDIDATES_H
#define RAMSEAL_AGENT_SHARED_KERNEL_CANDIDATES_H

#include "agent/shared/paging/roots.h"
#include "formats/base/page.h"

/*
 * 32 MiB of addresses. Every root is one, and page tables of the higher levels: some hundreds per
 * process.
 */
#define CANDIDATES_MAX ((size_t)4 << 20)

/* Zero-initialise. */
struct candidates {
	uint64_t *at; /* addresses */
	size_t count, room;
	uint64_t pages;      /* that were shown */
	uint64_t unreadable; /* and that could not be */
	bool complete;       /* all of memory was shown; for who shows it */
	bool full;           /* there were more, or there was no memory for them */
};

void candidates_deinit(struct candidates *c);

/*
 * Shows `pages` pages from `pa` on; of those whose status is not PAGE_DATA there are no bytes. Any
 * thread, several at once.
 */
void candidates_show(struct candidates *c, const uint8_t *bytes, const struct page_status *status,
		     size_t pages, uint64_t pa);

/* Once nothing is shown any more: in order of address, each once. */
void candidates_sort(struct candidates *c);

/*
 * The page may be VMCOREINFO, a root of Windows, which names itself, or one of Linux. No root that
 * is_root() (roots.c) would take is left out, as long as Linux fills its half as it does.
 */
bool candidate_page(const uint8_t *page, uint64_t pa);

#endif
