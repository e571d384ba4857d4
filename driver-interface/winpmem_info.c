/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GET_INFO tells, judged.
 */
#include "driver-interface/winpmem_internal.h"

#include <inttypes.h>

#include "formats/base/bytes.h"

/*
 * WINPMEM_MEMORY_INFO; all fields are 64 bits (winpmem_shared.h, pack(2)). x86 has the second too.
 */
#define INFO_CR3         0
#define INFO_BUILD       8
#define INFO_KERNEL_BASE 16

static const struct layout {
	unsigned kpcrs;
	size_t count, ranges; /* offsets */
} layouts[] = {
	{ 64, 2608, 2616 },
	{ 32, 2352, 2360 },
};

#define RANGE_SIZE 16 /* PHYSICAL_MEMORY_RANGE: base, length */

void winpmem_info_deinit(struct winpmem_info *i)
{
	range_list_deinit(&i->ranges);
}

static uint64_t distance_of_bases(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* ST_CORRUPT if the ranges of this layout make no sense. */
static enum status parse_ranges(const uint8_t *p, size_t len, const struct layout *l,
				struct range_list *ret, struct err *e)
{
	uint64_t n, end = 0;
	enum status st = ST_OK;

	if (len < l->ranges)
		return err_set(e, ST_CORRUPT, "%zu bytes are too few", len);
	n = get_le64(p + l->count);
	if (!n || n > (len - l->ranges) / RANGE_SIZE)
		return err_set(e, ST_CORRUPT, "%" PRIu64 " ranges in %zu bytes", n, len);
	for (uint64_t i = 0; i < n && !st; i++) {
		const uint8_t *at = p + l->ranges + i * RANGE_SIZE;
		const uint64_t first = get_le64(at), bytes = get_le64(at + 8);

		if (!bytes || (first | bytes) % PAGE_SIZE || first < end ||
		    !range_fits(first, bytes, PHYS_LIMIT))
			return err_set(e, ST_CORRUPT,
				       "range %" PRIu64 ", 0x%" PRIx64 " of 0x%" PRIx64 " bytes", i,
				       first, bytes);
		end = first + bytes;
		st = range_list_add(ret, first, end - 1, e);
	}
	return st;
}

/* The low bits of CR3 are the PCID, bit 63 keeps the TLB (SDM vol. 3, 4.10.4.1). */
static uint64_t plausible_cr3(uint64_t cr3)
{
	const uint64_t base = cr3 & ~((uint64_t)1 << 63) & ~(uint64_t)(PAGE_SIZE - 1);

	return base < PHYS_LIMIT ? base : 0;
}

/* In the upper half, on a page boundary. */
uint64_t winpmem__plausible_base(uint64_t base)
{
	return base >= DRV_KERNEL_HALF && base % PAGE_SIZE == 0 ? base : 0;
}

static void take_candidate(struct winpmem_info *ret, struct range_list *l, unsigned kpcrs)
{
	range_list_deinit(&ret->ranges);
	ret->ranges = *l;
	*l = (struct range_list){ 0 };
	ret->kpcrs = kpcrs;
}

enum status winpmem_parse_info(const void *p, size_t len, uint64_t ram_bytes,
			       struct winpmem_info *ret, struct err *e)
{
	const uint8_t *at = p;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_ranges_ struct range_list l = { 0 };
		const enum status st =
			parse_ranges(at, len, &layouts[i], &l, ret->kpcrs ? NULL : e);

		if (st == ST_NOMEM)
			return err_nomem(e);
		if (!st && (!ret->kpcrs ||
			    distance_of_bases(range_list_bytes(&l), ram_bytes) <
				    distance_of_bases(range_list_bytes(&ret->ranges), ram_bytes)))
			take_candidate(ret, &l, layouts[i].kpcrs);
	}
	if (!ret->kpcrs)
		return err_add(e, ST_CORRUPT, "the driver's answer about RAM makes no sense");
	ret->cr3 = plausible_cr3(get_le64(at + INFO_CR3));
	ret->kernel_base = winpmem__plausible_base(get_le64(at + INFO_KERNEL_BASE));
	/* The upper half tells checked builds from free ones (NtBuildNumber). */
	ret->build = get_le16(at + INFO_BUILD);
	if (e)
		e->message[0] = '\0';
	return ST_OK;
}
