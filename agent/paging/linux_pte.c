/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux x86-64 entries that are not present (arch/x86/include/asm/pgtable_64.h and
 * include/linux/swap.h of the versions named below).
 */
#include <inttypes.h>

#include "agent/paging/pte.h"
#include "agent/paging/walk.h"

/* _PAGE_PROTNONE is _PAGE_GLOBAL (pgtable_types.h), in every version here. */
#define PROT_NONE UINT64_C(0x100)
#define TYPES     32 /* MAX_SWAPFILES_SHIFT is 5 */

/*
 * Special entries have a frame number and, since 6.1, the young and the dirty bit right above it
 * (swapops.h, SWP_PFN_BITS is MAX_PHYSMEM_BITS less PAGE_SHIFT; sparsemem.h: 52 with five levels,
 * 46 with four).
 */
static uint64_t special_frame(const struct linux_pte_context *c, uint64_t offset)
{
	const unsigned bits = (c->five_levels ? 52 : 46) - PAGE_SHIFT;

	return (offset & ((UINT64_C(1) << bits) - 1)) << PAGE_SHIFT;
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
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.poisoned = 1,
		.migration = 3,
		.device = 4,
		.marker = 1,
		.error = 1,
	},
	{
		.name = "6.2",
		.source = "6.2-6.14: swap errors became markers",
		.since = 602,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.poisoned = 1,
		.migration = 3,
		.device = 4,
		.marker = 1,
	},
	{
		.name = "6.15",
		.source = "6.15: one SWP_DEVICE_EXCLUSIVE",
		.since = 615,
		.type_shift = 59,
		.offset_shift = 9,
		.offset_bits = 50,
		.inverted = true,
		.soft_dirty_bit = 1,
		.uffd_bit = 2,
		.exclusive_bit = 3,
		.unused = 0xf0,
		.poisoned = 1,
		.migration = 3,
		.device = 3,
		.marker = 1,
	},
};
const size_t linux_pte_layout_count = ARRAY_SIZE(linux_pte_layouts);
_Static_assert(ARRAY_SIZE(linux_pte_layouts) <= LINUX_LAYOUTS_MAX, "LINUX_LAYOUTS_MAX");

/* What a type number is. The special ones lie above the swap areas, in the order of the struct. */
static enum pte_state state_of_type(const struct linux_pte_context *c, unsigned type)
{
	const struct linux_pte_layout *l = c->layout;
	const struct {
		enum pte_state state;
		unsigned count;
	} special[] = {
		{ PTE_SWAP_ERROR, l->error },
		{ PTE_MARKER, l->marker },
		{ PTE_DEVICE, c->device_private ? l->device : 0U },
		{ PTE_MIGRATION, l->migration },
		{ PTE_POISONED, l->poisoned },
	};
	unsigned from = TYPES;

	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		from -= special[i].count;
		if (type >= from)
			return special[i].state;
	}
	return PTE_SWAP;
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

static struct pte decode_swap(const struct linux_pte_context *c, uint64_t raw)
{
	const struct linux_pte_layout *l = c->layout;
	const uint64_t bits = l->inverted ? ~raw : raw;
	struct pte p = {
		.raw = raw,
		.file = (uint32_t)(raw >> l->type_shift & (TYPES - 1)),
		.slot = bits >> l->offset_shift & ((UINT64_C(1) << l->offset_bits) - 1),
		.soft_dirty = bit_set(raw, l->soft_dirty_bit),
		.uffd_wp = bit_set(raw, l->uffd_bit),
		.exclusive = bit_set(raw, l->exclusive_bit),
	};

	p.state = state_of_type(c, p.file);
	if (p.state == PTE_MIGRATION || p.state == PTE_POISONED) {
		p.has_frame = true;
		p.frame = special_frame(c, p.slot);
	}
	return p;
}

/*
 * pmd_present() and pte_present() also take PROT_NONE for present, and a large entry whose present
 * bit was taken away for a moment (pmd_mkinvalid()). Such frames are inverted as a whole since the
 * L1TF change (pgtable-invert.h).
 */
static bool keeps_frame(unsigned level, uint64_t raw)
{
	return (raw & PROT_NONE) || (level > 1 && (raw & PTE_LARGE));
}

struct pte linux_pte_decode(const struct linux_pte_context *c, unsigned level, uint64_t raw)
{
	struct pte p = { .state = PTE_EMPTY, .raw = raw };

	if (!raw)
		return p;
	if (!(raw & PTE_PRESENT) && !keeps_frame(level, raw))
		return decode_swap(c, raw);
	p.state = raw & PTE_PRESENT ? PTE_VALID : PTE_PROT_NONE;
	p.has_frame = true;
	p.frame = frame_of(level, p.state == PTE_PROT_NONE && c->layout->inverted ? ~raw : raw);
	return p;
}

/*
 * The choice
 */

static bool in_ram(const struct pte_facts *f, uint64_t pa)
{
	return f->ranges && range_list_find(f->ranges, pa);
}

static void tally_swap(struct pte_tally *t, const struct pte_facts *f, const struct pte *p)
{
	if (p->has_frame)
		t->other += in_ram(f, p->frame);
	if (p->state != PTE_SWAP)
		return;
	t->files |= UINT32_C(1) << p->file;
	if (p->file < f->files) {
		t->file_known++;
		t->slot_fits +=
			p->slot && (!f->file_pages[p->file] || p->slot < f->file_pages[p->file]);
	} else if (!f->files) {
		/* Nothing is known: few areas, and none of more than 16 TiB. */
		t->file_known += p->file < 4;
		t->slot_fits += p->slot && p->slot >> 32 == 0;
	}
}

void linux_pte_evidence_add(struct linux_pte_evidence *ev, unsigned level, uint64_t raw)
{
	if (!raw || (raw & PTE_PRESENT))
		return;
	ev->entries++;
	if (keeps_frame(level, raw)) {
		ev->prot_none++;
		ev->plain_in_ram += in_ram(&ev->facts, frame_of(level, raw));
		ev->inverted_in_ram += in_ram(&ev->facts, frame_of(level, ~raw));
		return;
	}
	ev->swap++;
	for (size_t i = 0; i < 2 * linux_pte_layout_count; i++) {
		const struct linux_pte_context c = { .layout = &linux_pte_layouts[i / 2],
						     .device_private = i % 2,
						     .five_levels = ev->facts.five_levels };
		const struct pte p = decode_swap(&c, raw);

		tally_swap(&ev->tally[i / 2][i % 2], &ev->facts, &p);
		ev->tally[i / 2][i % 2].tidy += !(raw & c.layout->unused);
	}
}

/*
 * Up to 1000 points for unused bits that are clear (so that a flag which a version did not have yet
 * speaks against it), as many for entries that name a swap area that exists or a frame of RAM, for
 * slots that fit, and for PROT_NONE frames that are RAM the way the layout reads them.
 */
static int score(const struct linux_pte_evidence *ev, size_t i, bool device)
{
	const struct pte_tally *t = &ev->tally[i][device];
	int points = 0;

	if (ev->swap) {
		points += (int)(t->tidy * 1000 / ev->swap);
		points += (int)((t->file_known + t->other) * 1000 / ev->swap);
		points += (int)((t->slot_fits + t->other) * 1000 / ev->swap);
	}
	if (ev->prot_none)
		points += (int)((linux_pte_layouts[i].inverted ? ev->inverted_in_ram
							       : ev->plain_in_ram) *
				1000 / ev->prot_none);
	return points;
}

/* The newest row that is not newer than the kernel. */
static size_t by_version(uint32_t version)
{
	size_t row = 0;

	for (size_t i = 0; i < linux_pte_layout_count; i++)
		if (linux_pte_layouts[i].since <= version)
			row = i;
	return row;
}

/* Most distributions build without CONFIG_DEVICE_PRIVATE: where nothing tells, it is not there. */
void linux_pte_choose(const struct linux_pte_evidence *ev, struct linux_pte_choice *ret)
{
	const size_t hint = by_version(ev->facts.version);
	size_t best = 0;

	*ret = (struct linux_pte_choice){ 0 };
	for (size_t i = 0; i < 2 * linux_pte_layout_count; i++) {
		int *s = &ret->scores[i / 2][i % 2];

		*s = score(ev, i / 2, i % 2) * 2 + (ev->facts.version && i / 2 == hint);
		if (*s > ret->scores[best / 2][best % 2])
			best = i;
	}
	ret->by_version_only = !ev->swap && !(ev->plain_in_ram + ev->inverted_in_ram);
	if (ret->by_version_only && !ev->facts.version) {
		snprintf(ret->reason, sizeof(ret->reason), "no entry tells the layouts apart");
		return;
	}
	ret->context.layout = &linux_pte_layouts[best / 2];
	ret->context.device_private = best % 2;
	ret->context.five_levels = ev->facts.five_levels;
	snprintf(ret->reason, sizeof(ret->reason),
		 "%" PRIu64 " absent entries, %" PRIu64 " of them PROT_NONE (%" PRIu64
		 " name RAM as they stand, %" PRIu64 " inverted), %" PRIu64 " swap or special%s",
		 ev->entries, ev->prot_none, ev->plain_in_ram, ev->inverted_in_ram, ev->swap,
		 ret->by_version_only ? "; the kernel's version decided" : "");
}
