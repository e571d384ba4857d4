/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux x86-64 entries that are not present (arch/x86/include/asm/pgtable_64.h and
 * include/linux/swap.h of the versions named below).
 */
#include <stdio.h>

#include "agent/shared/paging/pte.h"
#include "agent/shared/paging/walk.h"

/* _PAGE_PROTNONE is _PAGE_GLOBAL (pgtable_types.h), in every version here. */
#define PROT_NONE   UINT64_C(0x100)

/*
 * The kernel keeps the first 64 KiB of memory for itself (CONFIG_X86_RESERVE_LOW, since 5.13 the
 * first MiB: arch/x86/kernel/setup.c). A special entry with such a frame is something else: the
 * markers of a newer kernel, read as migrations, look like this.
 */
#define FIRST_FRAME UINT64_C(0x10000)

/* Where nothing else is known: few areas, and none of more than 16 TiB. */
#define FEW_AREAS   4
#define SLOTS_BITS  32

/*
 * Special entries have a frame number and, since 6.1, the young and the dirty bit right above it
 * (swapops.h, SWP_PFN_BITS is MAX_PHYSMEM_BITS less PAGE_SHIFT; sparsemem.h: 52 with five levels,
 * 46 with four).
 */
static unsigned frame_bits(const struct linux_pte_context *c)
{
	return (c->five_levels ? 52 : 46) - PAGE_SHIFT;
}

static uint64_t special_frame(const struct linux_pte_context *c, uint64_t offset)
{
	return (offset & ((UINT64_C(1) << frame_bits(c)) - 1)) << PAGE_SHIFT;
}

const struct linux_pte_layout linux_pte_layouts[] = {
	{
		.name = "4.0",
		.source = "4.0-4.7: type at 1, offset at _PAGE_BIT_PROTNONE + 1",
		.since = 400,
		.type_shift = 1,
		.offset_shift = 9,
		.offset_bits = 55,
		.soft_dirty_bit = 7,
		.unused = 0x40,
		.poisoned = 1,
		.migration = 2,
	},
	{
		.name = "4.8",
		.source = "4.8: commit 00839ee3b299, type at 9, offset at 15",
		.since = 408,
		.type_shift = 9,
		.offset_shift = 15,
		.offset_bits = 49,
		.soft_dirty_bit = 7,
		.unused = 0x407e,
		.poisoned = 1,
		.migration = 2,
	},
	{
		.name = "4.9",
		.source = "4.9-4.13: commit ace7fab7a6cd, offset at 14",
		.since = 409,
		.type_shift = 9,
		.offset_shift = 14,
		.offset_bits = 50,
		.soft_dirty_bit = 7,
		.unused = 0x7e,
		.poisoned = 1,
		.migration = 2,
	},
	{
		.name = "4.14",
		.source = "4.14-4.18 before L1TF: commit eee4818baac0, soft dirty at 1",
		.since = 414,
		.type_shift = 9,
		.offset_shift = 14,
		.offset_bits = 50,
		.soft_dirty_bit = 1,
		.unused = 0xfc,
		.poisoned = 1,
		.migration = 2,
		.device = 2,
	},
	{
		.name = "l1tf",
		.source =
			"4.19-5.6 and older stable kernels: commits bcd11afa7ade and 2f22b4cd45b6",
		.since = 419,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.soft_dirty_bit = 1,
		.unused = 0xfc,
		.poisoned = 1,
		.migration = 2,
		.device = 2,
	},
	{
		.name = "5.7",
		.source = "5.7-5.13: _PAGE_SWP_UFFD_WP is _PAGE_USER",
		.since = 507,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.unused = 0xf8,
		.poisoned = 1,
		.migration = 2,
		.device = 2,
	},
	{
		.name = "5.14",
		.source = "5.14-5.18: SWP_DEVICE_NUM is 4",
		.since = 514,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.unused = 0xf8,
		.poisoned = 1,
		.migration = 2,
		.device = 4,
	},
	{
		.name = "5.19",
		.source = "5.19-6.1 (read in 6.1.192): markers, SWP_SWAPIN_ERROR, exclusive at 3",
		.since = 519,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.ages = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.marker_bits = LINUX_MARKER_UFFD_WP,
		.poisoned = 1,
		.migration = 3,
		.device = 4,
		.marker = 1,
		.error = 1,
	},
	{
		.name = "6.2",
		.source = "6.2-6.12 (read in 6.12.117): swap errors became markers",
		.since = 602,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.ages = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.marker_bits = LINUX_MARKER_UFFD_WP | LINUX_MARKER_POISONED,
		.poisoned = 1,
		.migration = 3,
		.device = 4,
		.marker = 1,
	},
	{
		.name = "6.13",
		.source = "6.13-6.14: guard markers; of it the patch was read",
		.since = 613,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.ages = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.marker_bits = LINUX_MARKER_UFFD_WP | LINUX_MARKER_POISONED | LINUX_MARKER_GUARD,
		.poisoned = 1,
		.migration = 3,
		.device = 4,
		.marker = 1,
	},
	{
		.name = "6.15",
		.source = "6.15-7.3 (read in 7.2.13 and 7.3.4): one SWP_DEVICE_EXCLUSIVE",
		.since = 615,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.ages = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.marker_bits = LINUX_MARKER_UFFD_WP | LINUX_MARKER_POISONED | LINUX_MARKER_GUARD,
		.poisoned = 1,
		.migration = 3,
		.device = 3,
		.marker = 1,
	},
};
const size_t linux_pte_layout_count = ARRAY_SIZE(linux_pte_layouts);
_Static_assert(ARRAY_SIZE(linux_pte_layouts) <= LINUX_LAYOUTS_MAX, "LINUX_LAYOUTS_MAX");

unsigned linux_pte_areas(const struct linux_pte_layout *l, bool device_private)
{
	return LINUX_PTE_TYPES - (l->error + l->marker + (device_private ? l->device : 0U) +
				  l->migration + l->poisoned);
}

/* The special types lie above the swap areas. *ret_from: the first type of that kind. */
static enum pte_state find_type(const struct linux_pte_layout *l, bool device_private,
				unsigned type, unsigned *ret_from)
{
	const struct {
		enum pte_state state;
		unsigned count;
	} kinds[] = {
		{ PTE_SWAP, linux_pte_areas(l, device_private) },
		{ PTE_POISONED, l->poisoned },
		{ PTE_MIGRATION, l->migration },
		{ PTE_DEVICE, device_private ? l->device : 0U },
		{ PTE_MARKER, l->marker },
		{ PTE_SWAP_ERROR, l->error },
	};
	unsigned end = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		*ret_from = end;
		end += kinds[i].count;
		if (type < end)
			return kinds[i].state;
	}
	return PTE_UNKNOWN; /* there are no more types */
}

enum pte_state linux_pte_state_of_type(const struct linux_pte_layout *l, bool device_private,
				       unsigned type)
{
	unsigned from;

	return find_type(l, device_private, type, &from);
}

/* What is above MAXPHYADDR is protection keys and NX, not frame. */
static uint64_t frame_of(unsigned level, uint64_t bits)
{
	const uint64_t frame = bits & PTE_FRAME;

	if (level < 2)
		return frame;
	return frame & ~((UINT64_C(1) << (PAGE_SHIFT + 9 * (level - 1))) - 1);
}

static bool bit_set(uint64_t raw, unsigned bit)
{
	return bit && (raw >> bit & 1);
}

/* A type and an offset, before anybody asks what they are. */
static struct pte split_swap(const struct linux_pte_layout *l, uint64_t raw)
{
	const uint64_t bits = l->inverted ? ~raw : raw;

	return (struct pte){
		.raw = raw,
		.file = (uint32_t)(raw >> l->type_shift & (LINUX_PTE_TYPES - 1)),
		.slot = bits >> l->offset_shift & ((UINT64_C(1) << l->offset_bits) - 1),
		.soft_dirty = bit_set(raw, l->soft_dirty_bit),
		.uffd_wp = bit_set(raw, l->uffd_bit),
		.exclusive = bit_set(raw, l->exclusive_bit),
	};
}

static struct pte decode_swap(const struct linux_pte_context *c, uint64_t raw)
{
	struct pte p = split_swap(c->layout, raw);

	p.state = c->unsure >> p.file & 1
			  ? PTE_UNKNOWN
			  : linux_pte_state_of_type(c->layout, c->device_private, p.file);
	/* The bits are all that a marker has, and one without any is none. */
	if (p.state == PTE_MARKER && (!p.slot || p.slot > UINT8_MAX))
		p.state = PTE_UNKNOWN;
	if (p.state == PTE_MARKER)
		p.marker = (uint8_t)p.slot;
	if (p.state == PTE_MIGRATION || p.state == PTE_POISONED || p.state == PTE_UNKNOWN)
		p.frame = special_frame(c, p.slot);
	if ((p.state == PTE_MIGRATION || p.state == PTE_POISONED) && p.frame < FIRST_FRAME)
		p.state = PTE_UNKNOWN;
	p.has_frame = p.state == PTE_MIGRATION || p.state == PTE_POISONED;
	return p;
}

/*
 * pmd_present() and pte_present() also take PROT_NONE for present, and a large entry whose present
 * bit was taken away for a moment (pmd_mkinvalid()). Such frames are inverted as a whole since the
 * L1TF change (pgtable-invert.h).
 */
bool linux_pte_keeps_frame(unsigned level, uint64_t raw)
{
	return (raw & PROT_NONE) || (level > 1 && (raw & PTE_LARGE));
}

uint64_t linux_pte_kept_frame(unsigned level, uint64_t raw, bool inverted)
{
	return frame_of(level, inverted ? ~raw : raw);
}

struct pte linux_pte_decode(const struct linux_pte_context *c, unsigned level, uint64_t raw)
{
	struct pte p = { .state = PTE_EMPTY, .raw = raw };

	if (!raw)
		return p;
	if (!(raw & PTE_PRESENT) && !linux_pte_keeps_frame(level, raw))
		return decode_swap(c, raw);
	p.state = raw & PTE_PRESENT ? PTE_VALID : PTE_PROT_NONE;
	p.has_frame = true;
	p.frame = linux_pte_kept_frame(level, raw, p.state == PTE_PROT_NONE && c->layout->inverted);
	return p;
}

void pte_marker_name(uint8_t marker, char ret[static PTE_MARKER_NAME_MAX])
{
	static const char *const names[] = { "uffd-wp", "poisoned", "guard", "unknown" };
	size_t len = 0;

	if (marker >> 3)
		marker = (uint8_t)((marker & 7) | 8);
	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (marker >> i & 1)
			len += (size_t)snprintf(ret + len, PTE_MARKER_NAME_MAX - len, "%s%s",
						len ? "+" : "", names[i]);
}

/*
 * How well a reading fits
 */

static bool is_frame_in_ram(const struct pte_facts *f, uint64_t pa)
{
	return f->ranges && range_list_find(f->ranges, pa);
}

/* Page tables alone have swap entries; slot 0 is the area's header. */
static bool fits_swap(const struct pte_facts *f, unsigned level, const struct pte *p)
{
	const uint64_t pages = p->file < f->files ? f->file_pages[p->file] : 0;

	return level == 1 && p->file < MAX(f->files, (size_t)FEW_AREAS) && p->slot &&
	       (pages ? p->slot < pages : !(p->slot >> SLOTS_BITS));
}

/* `above`: bits that may be set above the frame. */
static bool fits_frame(const struct linux_pte_context *c, const struct pte_facts *f, uint64_t slot,
		       uint64_t above, bool ram)
{
	const uint64_t frame = special_frame(c, slot);

	return !(slot >> frame_bits(c) & ~above) && frame >= FIRST_FRAME &&
	       is_frame_in_ram(f, frame) == ram;
}

/*
 * Memory that is a device's own lies where there is no RAM; what a device has for itself alone
 * stays in RAM (include/linux/swap.h: the first two types are the former, others are
 * SWP_DEVICE_EXCLUSIVE).
 */
#define DEVICE_PRIVATE_TYPES 2

static enum pte_fit fit_marker(const struct linux_pte_layout *l, uint64_t bits)
{
	if (!bits || bits > UINT8_MAX)
		return FIT_NONE;
	return bits & ~(uint64_t)l->marker_bits ? FIT_POSSIBLE : FIT_GOOD;
}

enum pte_fit linux_pte_fit(const struct linux_pte_context *c, const struct pte_facts *f,
			   unsigned level, uint64_t raw)
{
	const struct linux_pte_layout *l = c->layout;
	const struct pte p = split_swap(l, raw);
	bool fits;
	unsigned from;
	const enum pte_state state = find_type(l, c->device_private, p.file, &from);

	if (raw & l->unused)
		return FIT_NONE;
	if (state == PTE_MARKER)
		return fit_marker(l, p.slot);
	if (state == PTE_SWAP)
		fits = fits_swap(f, level, &p);
	else if (state == PTE_DEVICE)
		fits = fits_frame(c, f, p.slot, 0, p.file - from >= DEVICE_PRIVATE_TYPES);
	else
		fits = fits_frame(c, f, p.slot, state == PTE_MIGRATION && l->ages ? 3 : 0, true);
	return fits ? FIT_GOOD : FIT_NONE;
}
