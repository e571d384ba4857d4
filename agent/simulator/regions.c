/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/regions.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/defs.h"

/* As SIM_VPN() in machine.h: virtual addresses have 48 bits. */
#define VPN(va) ((va) >> PAGE_SHIFT & ((UINT64_C(1) << 36) - 1))

/* The first region that does not end before a page. */
static size_t find_region_place(const struct sim_regions *r, uint64_t vpn)
{
	return FIRST_WHERE(i, r->count, VPN(r->at[i].va) + r->at[i].pages > vpn);
}

static void free_region_bytes(struct sim_region *region)
{
	free(region->bytes);
	free(region->committed);
	region->bytes = NULL;
	region->committed = NULL;
}

static void number_region_pages(struct sim_regions *r)
{
	r->pages = 0;
	for (size_t i = 0; i < r->count; i++) {
		r->at[i].before = r->pages;
		r->pages += r->at[i].pages;
	}
}

enum status sim__regions_add(struct sim_regions *r, struct sim_region *region, struct err *e)
{
	const uint64_t vpn = VPN(region->va);
	const size_t at = find_region_place(r, vpn);
	const bool room = ARRAY_ROOM(r->at, r->count, r->room);

	if (!room || !region->pages || !region->bytes ||
	    (at < r->count && VPN(r->at[at].va) < vpn + region->pages)) {
		free_region_bytes(region);
		return room ? err_set(e, ST_USAGE, "two pieces of address space overlap")
			    : err_nomem(e);
	}
	memmove(&r->at[at + 1], &r->at[at], (r->count - at) * sizeof(*r->at));
	r->at[at] = *region;
	r->count++;
	number_region_pages(r);
	region->bytes = NULL;
	region->committed = NULL;
	return ST_OK;
}

void sim__regions_deinit(struct sim_regions *r)
{
	for (size_t i = 0; i < r->count; i++)
		free_region_bytes(&r->at[i]);
	free(r->at);
	*r = (struct sim_regions){ 0 };
}

const struct sim_region *sim__regions_find(const struct sim_regions *r, uint64_t vpn)
{
	const size_t i = find_region_place(r, vpn);

	return i < r->count && VPN(r->at[i].va) <= vpn ? &r->at[i] : NULL;
}

const uint8_t *sim__regions_page(const struct sim_regions *r, uint64_t vpn)
{
	const struct sim_region *at = sim__regions_find(r, vpn);

	return at ? at->bytes + (vpn - VPN(at->va)) * PAGE_SIZE : NULL;
}

uint64_t sim__regions_vpn(const struct sim_regions *r, uint32_t page)
{
	const struct sim_region *at = &r->at[FIRST_WHERE(i, r->count, r->at[i].before > page) - 1];

	return VPN(at->va) + page - at->before;
}

uint32_t sim__regions_number(const struct sim_regions *r, uint64_t vpn)
{
	const struct sim_region *at = sim__regions_find(r, vpn);

	return at ? at->before + (uint32_t)(vpn - VPN(at->va)) : UINT32_MAX;
}
