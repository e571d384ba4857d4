/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of address space whose bytes were made when the machine was built: structures of programs
 * and of the kernel. Their pages have the same states as all others: valid, in transition, in a
 * page file, or never touched. A frame or slot names such a page by owner and address, and its
 * bytes are looked up here. They never change, so every copy of such a page is true.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_REGIONS_H
#define RAMSEAL_AGENT_SIMULATOR_REGIONS_H

#include "formats/base/err.h"
#include "formats/base/page.h"

struct sim_region {
	uint64_t va; /* of the first page */
	uint32_t pages;
	uint8_t *bytes;     /* of all pages, from malloc() */
	uint8_t *committed; /* a byte for each page, 0: not committed; NULL: all are. malloc() */
	uint32_t before;    /* pages in all regions before it in the list */
};

/*
 * The regions of one owner, by address, never overlapping. Pages are numbered through the whole
 * list: .before is the number of a region's first page.
 */
struct sim_regions {
	struct sim_region *at;
	size_t count, room;
	uint32_t pages;
};

/*
 * Takes ownership of `bytes` and `committed`, even after an error, and clears them in `region`.
 * ST_USAGE: it overlaps another region, or has no pages.
 */
enum status sim__regions_add(struct sim_regions *r, struct sim_region *region, struct err *e);
void sim__regions_deinit(struct sim_regions *r);

/* NULL: no region has the page. `vpn` as SIM_VPN() makes it. */
const struct sim_region *sim__regions_find(const struct sim_regions *r, uint64_t vpn);
/* The bytes of a page; NULL: no region has it. */
const uint8_t *sim__regions_page(const struct sim_regions *r, uint64_t vpn);
/* From the number of a page, below `pages`, to its address. */
uint64_t sim__regions_vpn(const struct sim_regions *r, uint32_t page);
/* And back. UINT32_MAX: no region has it. */
uint32_t sim__regions_number(const struct sim_regions *r, uint64_t vpn);

#endif
