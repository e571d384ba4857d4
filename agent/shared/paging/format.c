/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/format.h"

#include "formats/base/defs.h"

/*
 * x86
 */

/*
 * In an entry of a large page bit 12 is PAT, and those from there to the frame must be 0 (Intel SDM
 * vol. 3, tables 4-16 and 4-18): the processor would not use it. Few words that are no entry pass
 * as one.
 */
#define PTE_LARGE_PAT UINT64_C(0x1000)

static void read_x86(const struct paging_format *f, unsigned level, uint64_t raw, struct entry *e)
{
	e->frame = raw & f->address;
	if (level == 1) {
		e->kind = ENTRY_LEAF;
	} else if (!(raw & PTE_LARGE)) {
		e->kind = ENTRY_TABLE;
	} else if ((f->large >> level & 1) && !(e->frame & (e->size - 1) & ~PTE_LARGE_PAT)) {
		e->kind = ENTRY_LEAF;
		e->frame &= ~(e->size - 1);
	} else {
		e->kind = ENTRY_RESERVED;
	}
}

/*
 * ARM64: VMSAv8-64 stage 1 (Arm ARM, DDI 0487, D8.3; Linux, arch/arm64/include/asm/pgtable-hwdef.h)
 */

/* Clear: a block, where the level has blocks. Set: a table or, in the last level, a page. */
#define ARM_TABLE    UINT64_C(0x2)

/* FEAT_BBM's nT, in blocks: it is not part of the address. */
#define ARM_BLOCK_NT UINT64_C(0x10000)

static void read_arm64(const struct paging_format *f, unsigned level, uint64_t raw, struct entry *e)
{
	const bool table = raw & ARM_TABLE;
	uint64_t frame = raw & f->address;

	e->kind = ENTRY_RESERVED;
	if ((raw & f->zero) || (level == 1 && !table))
		return;
	if (level > 1 && !table) {
		if (!(f->large >> level & 1) || (frame & (e->size - 1) & ~ARM_BLOCK_NT))
			return;
		frame &= ~(e->size - 1);
	}
	e->kind = level > 1 && table ? ENTRY_TABLE : ENTRY_LEAF;
	e->frame = frame | (raw & f->high) << f->high_shift;
}

#define BITS(last, first) ((UINT64_MAX >> (63 - (last))) & (UINT64_MAX << (first)))

#define X86(the_levels, the_root_bits, the_va_bits, the_large)                                     \
	.arch = ARCH_X86_64, .levels = (the_levels), .page_shift = 12, .index_bits = 9,            \
	.root_bits = (the_root_bits), .va_bits = (the_va_bits), .large = (the_large),              \
	.address = PTE_FRAME, .read = read_x86

/*
 * Of the address 47:12 are in place, whatever the granule: what lies between them and the granule
 * must be 0. 49:48 must be, too, but for LPA2; 64 KiB granules have 51:48 of the address in 15:12.
 */
#define ARM(the_levels, the_shift, the_root_bits, the_va_bits, the_large)                          \
	.arch = ARCH_ARM64, .levels = (the_levels), .page_shift = (the_shift),                     \
	.index_bits = (the_shift) - 3, .root_bits = (the_root_bits), .va_bits = (the_va_bits),     \
	.pair = true, .large = (the_large), .read = read_arm64
#define ARM_4K  .address = BITS(47, 12), .zero = BITS(49, 48)
#define ARM_16K .address = BITS(47, 14), .zero = BITS(49, 48) | BITS(13, 12)
#define ARM_64K                                                                                    \
	.address = BITS(47, 16), .zero = BITS(49, 48), .high = BITS(15, 12), .high_shift = 36
#define ARM_LPA2(first, must_be_zero)                                                              \
	.address = BITS(49, first), .zero = (must_be_zero), .high = BITS(9, 8), .high_shift = 42

/* 1 GiB pages need four levels or more; a PAE level 3 entry has no large bit at all. */
static const struct paging_format formats[PAGING_MODES] = {
	[PAGING_PAE] = { "pae", X86(3, 2, 32, 1 << 2) },
	[PAGING_4_LEVEL] = { "4-level", X86(4, 9, 48, 1 << 2 | 1 << 3) },
	[PAGING_5_LEVEL] = { "5-level", X86(5, 9, 57, 1 << 2 | 1 << 3) },
	[PAGING_ARM64_4K_39] = { "arm64-4k-39", ARM(3, 12, 9, 39, 1 << 2 | 1 << 3), ARM_4K },
	[PAGING_ARM64_4K_48] = { "arm64-4k-48", ARM(4, 12, 9, 48, 1 << 2 | 1 << 3), ARM_4K },
	[PAGING_ARM64_4K_52] = { "arm64-4k-52", ARM(5, 12, 4, 52, 1 << 2 | 1 << 3 | 1 << 4),
				 ARM_LPA2(12, 0) },
	[PAGING_ARM64_16K_36] = { "arm64-16k-36", ARM(2, 14, 11, 36, 1 << 2), ARM_16K },
	[PAGING_ARM64_16K_47] = { "arm64-16k-47", ARM(3, 14, 11, 47, 1 << 2), ARM_16K },
	[PAGING_ARM64_16K_48] = { "arm64-16k-48", ARM(4, 14, 1, 48, 1 << 2), ARM_16K },
	[PAGING_ARM64_16K_52] = { "arm64-16k-52", ARM(4, 14, 5, 52, 1 << 2 | 1 << 3),
				  ARM_LPA2(14, BITS(13, 12)) },
	[PAGING_ARM64_64K_42] = { "arm64-64k-42", ARM(2, 16, 13, 42, 1 << 2), ARM_64K },
	[PAGING_ARM64_64K_48] = { "arm64-64k-48", ARM(3, 16, 6, 48, 1 << 2 | 1 << 3), ARM_64K },
	[PAGING_ARM64_64K_52] = { "arm64-64k-52", ARM(3, 16, 10, 52, 1 << 2 | 1 << 3), ARM_64K },
};

const struct paging_format *paging_format(enum paging_mode mode)
{
	return &formats[mode];
}

const struct paging_format *paging_format_find(enum paging_mode mode)
{
	return (unsigned)mode < PAGING_MODES && formats[mode].levels ? &formats[mode] : NULL;
}

bool paging_mode_of_arm64(uint64_t page_size, unsigned va_bits, enum paging_mode *ret)
{
	for (unsigned i = 0; i < PAGING_MODES; i++) {
		const struct paging_format *f = &formats[i];

		if (!f->levels || f->arch != ARCH_ARM64 || f->va_bits != va_bits ||
		    UINT64_C(1) << f->page_shift != page_size)
			continue;
		*ret = (enum paging_mode)i;
		return true;
	}
	return false;
}

#define ARM_UPPER_BIT 55 /* selects the root (Arm ARM, D8.2) */

uint64_t paging_canonical(enum paging_mode mode, uint64_t va)
{
	const struct paging_format *f = paging_format(mode);
	const unsigned spare = 64U - f->va_bits;

	if (mode == PAGING_PAE)
		return va & UINT32_MAX;
	if (!f->pair)
		return (uint64_t)((int64_t)(va << spare) >> spare);
	return va >> ARM_UPPER_BIT & 1 ? va | UINT64_MAX << f->va_bits : va << spare >> spare;
}

/* Linux 32-bit gives programs 3 GiB, Windows 2 or 3. */
#define PAE_USER_LAST UINT64_C(0xbfffffff)

uint64_t paging_user_last(enum paging_mode mode)
{
	const struct paging_format *f = paging_format(mode);

	return mode == PAGING_PAE ? PAE_USER_LAST : UINT64_MAX >> (64U - f->va_bits) >> !f->pair;
}

uint64_t paging_kernel_first(enum paging_mode mode)
{
	return mode == PAGING_PAE ? PAE_USER_LAST + 1 : ~paging_user_last(mode);
}

/*
 * ARM64: a root is aligned to its size, or with 52 bits of physical addresses to 64 bytes at least,
 * since bits 5:2 are used then. Bit 1 is reserved (TTBR0_EL1).
 */
#define TTBR_HIGH       BITS(5, 2)
#define TTBR_HIGH_SHIFT 46

uint64_t paging_root(enum paging_mode mode, uint64_t dtb)
{
	const struct paging_format *f = paging_format(mode);
	const uint64_t size = 8 * paging_entries(f, f->levels);

	if (f->pair && f->high)
		return (dtb & BITS(47, 6) & ~(size - 1)) | (dtb & TTBR_HIGH) << TTBR_HIGH_SHIFT;
	if (f->pair)
		return dtb & BITS(47, 1) & ~(size - 1);
	/* PAE: a 32-byte aligned address below 4 GiB (Intel SDM vol. 3, table 4-7). */
	return mode == PAGING_PAE ? dtb & 0xffffffe0 : dtb & PTE_FRAME;
}

struct entry entry_judge(enum paging_mode mode, unsigned level, uint64_t va, size_t i, uint64_t raw,
			 uint64_t ignore)
{
	const struct paging_format *f = paging_format(mode);
	const unsigned shift = paging_shift(f, level);
	struct entry e = { .kind = ENTRY_ZERO, .size = UINT64_C(1) << shift };

	e.va = paging_canonical(mode, va + ((uint64_t)i << shift));
	if (!raw)
		return e;
	e.kind = ENTRY_ABSENT;
	if (raw & PTE_PRESENT)
		f->read(f, level, raw & ~(ignore & PTE_FRAME), &e);
	return e;
}
