/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/arm64.h"

/* Access flag, inner shareable, user, not global: what a program's page has. */
#define LEAF_FLAGS UINT64_C(0xf40)

static unsigned bits_of_level(const struct arm64 *a)
{
	return a->shift - 3;
}

unsigned arm64_levels(const struct arm64 *a)
{
	return (a->va - a->shift + bits_of_level(a) - 1) / bits_of_level(a);
}

static unsigned level_at(const struct arm64 *a, unsigned level)
{
	return a->shift + bits_of_level(a) * (level - 1);
}

static uint64_t entries_of(const struct arm64 *a, unsigned level)
{
	const unsigned top = a->va - level_at(a, level);

	return UINT64_C(1) << (top < bits_of_level(a) ? top : bits_of_level(a));
}

uint64_t arm64_new_table(const struct arm64 *a, unsigned level)
{
	const uint64_t bytes = 8 * entries_of(a, level);
	const uint64_t size = bytes < MACHINE_PAGE ? MACHINE_PAGE : bytes;
	const uint64_t at = (a->m->next + size - 1) & ~(size - 1);

	for (uint64_t i = 0; i < size; i += MACHINE_PAGE)
		machine_page(a->m, at + i);
	a->m->next = at + size;
	return at;
}

/* 64 KiB: bits 51:48 in 15:12. With 52 bits of addresses, others: bits 51:50 in 9:8. */
static uint64_t address_bits(const struct arm64 *a, uint64_t pa)
{
	if (a->shift == 16)
		return (pa & UINT64_C(0xffffffff0000)) | (pa >> 48 & 15) << 12;
	if (a->va == 52)
		return (pa & UINT64_C(0x3ffffffffffff)) | (pa >> 50 & 3) << 8;
	return pa;
}

uint64_t arm64_table_entry(const struct arm64 *a, uint64_t pa)
{
	return address_bits(a, pa) | 3;
}

uint64_t arm64_leaf_entry(const struct arm64 *a, uint64_t pa, unsigned level)
{
	const bool lpa2 = a->shift != 16 && a->va == 52;
	const uint64_t flags = lpa2 ? LEAF_FLAGS & ~UINT64_C(0x300) : LEAF_FLAGS;

	return address_bits(a, pa) | flags | (level == 1 ? 3 : 1);
}

uint64_t arm64_entry(const struct arm64 *a, uint64_t root, uint64_t va, unsigned level)
{
	const uint64_t in_place = a->shift == 16 ? UINT64_C(0xffffffff0000)
				  : a->va == 52  ? UINT64_C(0x3fffffffff000)
						 : UINT64_C(0xfffffffff000);
	uint64_t table = root;

	for (unsigned l = arm64_levels(a);; l--) {
		const uint64_t at = table + 8 * (va >> level_at(a, l) & (entries_of(a, l) - 1));

		if (l == level)
			return at;
		if (!machine_get(a->m, at))
			machine_u64(a->m, at, arm64_table_entry(a, arm64_new_table(a, l - 1)));
		table = machine_get(a->m, at) & in_place;
	}
}

void arm64_map(const struct arm64 *a, uint64_t root, uint64_t va, uint64_t pa, unsigned level)
{
	machine_u64(a->m, arm64_entry(a, root, va, level), arm64_leaf_entry(a, pa, level));
}
