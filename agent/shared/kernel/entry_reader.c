/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/entry_reader.h"

#include "agent/shared/paging/walk.h"

/* Intel SDM vol. 3, 4.8: what the processor sets. */
#define ACCESSED_DIRTY UINT64_C(0x60)

/*
 * arch/x86/include/asm/pgtable_types.h, Linux 6.6: _PAGE_BIT_SOFT_DIRTY is SOFTW3 (11) and
 * _PAGE_BIT_SAVED_DIRTY is SOFTW5 (58; nothing else in older versions).
 */
#define LINUX_SOFT     (UINT64_C(1) << 11 | UINT64_C(1) << 58)

/*
 * _MMPTE_HARDWARE (ntdiff/headers): Dirty1 (1) follows the dirty bit, and 52-59 are reserved for
 * software and WsleAge, which the working-set manager counts up.
 */
#define WINDOWS_SOFT   (UINT64_C(1) << 1 | UINT64_C(0xff) << 52)

static struct pte decode_present(const struct entry_reader *r, unsigned level, uint64_t raw)
{
	const uint64_t size = (uint64_t)PAGE_SIZE << 9 * (level - 1);

	return (struct pte){
		.state = PTE_VALID,
		.raw = raw,
		.has_frame = true,
		.frame = raw & PTE_FRAME & ~r->ignore & ~(size - 1),
	};
}

struct pte entry_decode(const struct entry_reader *r, unsigned level, uint64_t raw)
{
	if (!raw)
		return (struct pte){ .state = PTE_EMPTY };
	if (raw & PTE_PRESENT)
		return decode_present(r, level, raw);
	if (r->os == OS_LINUX && r->linux_.layout)
		return linux_pte_decode(&r->linux_, level, raw);
	if (r->os == OS_WINDOWS && r->windows.layout)
		return win_pte_decode(&r->windows, raw);
	return (struct pte){ .state = PTE_UNKNOWN, .raw = raw };
}

enum place pte_place(const struct pte *p)
{
	switch (p->state) {
	case PTE_VALID:
	case PTE_TRANSITION:
	case PTE_PROT_NONE:
	case PTE_MIGRATION:
		return PLACE_FRAME;
	case PTE_PAGE_FILE:
	case PTE_SWAP:
	case PTE_COMPRESSED:
		return PLACE_SLOT;
	default:
		return PLACE_NONE;
	}
}

static uint64_t soft_bits(const struct entry_reader *r, uint64_t raw)
{
	const bool frame = (raw & PTE_PRESENT) != 0;

	if (r->os == OS_WINDOWS)
		return frame ? ACCESSED_DIRTY | WINDOWS_SOFT : 0;
	if (frame)
		return ACCESSED_DIRTY | (r->os == OS_LINUX ? LINUX_SOFT : 0);
	/* PROT_NONE entries keep the bits of a present one. */
	if (r->os == OS_LINUX && r->linux_.layout && (raw & UINT64_C(0x100)) == 0)
		return UINT64_C(1) << r->linux_.layout->soft_dirty_bit;
	return 0;
}

bool entry_same_rights(const struct entry_reader *r, uint64_t a, uint64_t b)
{
	return !((a ^ b) & ~(soft_bits(r, a) & soft_bits(r, b)));
}

uint64_t entry_hard_bits(const struct entry_reader *r, uint64_t raw)
{
	return raw & ~soft_bits(r, raw);
}
