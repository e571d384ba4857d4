/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of address space whose bytes were made when the machine was built: what programs and the
 * kernel keep in structures. Their pages live as all others do: valid, in transition, in a page
 * file, or never touched. A frame or a slot names such a page by its owner and address, as it does
 * all pages of processes, and its bytes are looked up here. They do not change in time, so that
 * every copy of such a page is a true one.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_REGIONS_H
#define RAMSEAL_AGENT_SIMULATOR_REGIONS_H

#include "formats/base/err.h"
#include "formats/base/page.h"

struct sim_region {
	uint64_t va; /* of the first page */
	uint32_t pages;
	uint8_t *bytes;     /* of all pages, from malloc() */
	uint8_t *committed; /* a byte for each page, 0: not there; NULL: all are. From malloc() */
	uint32_t before;    /* pages in the regions of the list before it */
};

/*
 * Of one owner, in order of addresses, and never overlapping. `pages` are numbered through: page
 * `before` of the list is the first of a region.
 */
struct sim_regions {
	struct sim_region *at;
	size_t count, room;
	uint32_t pages;
};

/*
 * Takes `bytes` and `committed`, whatever it returns, and clears them in `region`. ST_USAGE: it
 * overlaps another region, or has no pages.
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
