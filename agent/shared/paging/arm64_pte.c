/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arch/arm64/include/asm/pgtable.h ("Encode and decode a swap entry") and pgtable-prot.h of the
 * versions named below. Between the versions that were read nobody looked, and nothing is decoded.
 */
#include "agent/shared/paging/arm64_pte.h"

#define BIT(n) (UINT64_C(1) << (n))

static const struct arm64_pte_layout layouts[] = {
	{
		.name = "arm64-4.0",
		.source = "to 5.18: type of six bits at 2, offset at 8, PTE_PROT_NONE 58",
		.since = 400,
		.until = 518,
		.type_shift = 2,
		.type_bits = 6,
		.offset_shift = 8,
		.kept = BIT(58),
		.kept_large = BIT(59), /* PMD_PRESENT_INVALID */
		.unused = BIT(1) | BIT(58) | BIT(59) | BIT(60) | BIT(61) | BIT(62) | BIT(63),
	},
	{
		.name = "arm64-5.19",
		.source = "5.19-6.1 (read in 6.1): exclusive at 2, type at 3, offset at 8",
		.since = 519,
		.until = 601,
		.type_shift = 3,
		.type_bits = 5,
		.offset_shift = 8,
		.kept = BIT(58),
		.kept_large = BIT(59),
		.exclusive_bit = 2,
		.unused = BIT(1) | BIT(58) | BIT(59) | BIT(60) | BIT(61) | BIT(62) | BIT(63),
	},
	{
		.name = "arm64-6.12",
		.source = "6.12: PTE_PRESENT_INVALID 11, type at 6, offset at 12, uffd-wp at 3",
		.since = 612,
		.until = 612,
		.type_shift = 6,
		.type_bits = 5,
		.offset_shift = 12,
		.kept = BIT(11),
		.exclusive_bit = 2,
		.uffd_bit = 3,
		.unused = BIT(1) | BIT(4) | BIT(5) | BIT(11) | BIT(62) | BIT(63),
	},
};

const struct arm64_pte_layout *arm64_pte_layout_find(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].since <= version && version <= layouts[i].until)
			return &layouts[i];
	return NULL;
}

static bool has_bit(uint64_t raw, unsigned bit)
{
	return bit && (raw >> bit & 1);
}

/* A frame where a present entry has it: PROT_NONE, or a block that is being changed. */
static struct pte decode_kept(const struct arm64_pte_context *c, unsigned level, uint64_t raw)
{
	const struct entry e = entry_judge(c->mode, level, 0, 0, raw | PTE_PRESENT, 0);

	if (e.kind != ENTRY_LEAF)
		return (struct pte){ .state = PTE_UNKNOWN, .raw = raw };
	return (struct pte){
		.state = PTE_PROT_NONE, .raw = raw, .has_frame = true, .frame = e.frame
	};
}

/* Frames in special entries are numbers of the kernel's pages. */
static void decode_special(const struct arm64_pte_context *c, struct pte *p)
{
	const unsigned shift = paging_format(c->mode)->page_shift;
	const unsigned bits = c->physical_bits;

	if (p->state == PTE_MARKER && (!p->slot || p->slot > UINT8_MAX))
		p->state = PTE_UNKNOWN;
	if (p->state == PTE_MARKER)
		p->marker = (uint8_t)p->slot;
	if (p->state != PTE_MIGRATION && p->state != PTE_POISONED)
		return;
	if (bits <= shift || bits > 52) {
		p->state = PTE_UNKNOWN;
		return;
	}
	p->frame = (p->slot & (BIT(bits - shift) - 1)) << shift;
	p->has_frame = true;
}

static struct pte decode_swap_entry(const struct arm64_pte_context *c, uint64_t raw)
{
	const struct arm64_pte_layout *l = c->layout;
	struct pte p = {
		.state = PTE_UNKNOWN,
		.raw = raw,
		.file = (uint32_t)(raw >> l->type_shift & (BIT(l->type_bits) - 1)),
		.slot = raw >> l->offset_shift & (BIT(50) - 1),
		.uffd_wp = has_bit(raw, l->uffd_bit),
		.exclusive = has_bit(raw, l->exclusive_bit),
	};

	/* The common code has five bits for types, whatever there is room for. */
	if ((raw & l->unused) || p.file >= LINUX_PTE_TYPES)
		return p;
	p.state = linux_pte_state_of_type(c->kinds, c->device_private, p.file);
	decode_special(c, &p);
	return p;
}

struct pte arm64_pte_decode(const struct arm64_pte_context *c, unsigned level, uint64_t raw)
{
	const uint64_t kept = c->layout->kept | (level > 1 ? c->layout->kept_large : 0);
	const struct entry e = entry_judge(c->mode, level, 0, 0, raw, 0);

	if (!raw)
		return (struct pte){ .state = PTE_EMPTY };
	if (e.kind == ENTRY_LEAF)
		return (struct pte){
			.state = PTE_VALID, .raw = raw, .has_frame = true, .frame = e.frame
		};
	if (raw & PTE_PRESENT)
		return (struct pte){ .state = PTE_UNKNOWN, .raw = raw };
	return raw & kept ? decode_kept(c, level, raw) : decode_swap_entry(c, raw);
}
