/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of one machine's page tables, read by the layout that was found for it.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_ENTRY_READER_H
#define RAMSEAL_AGENT_SHARED_KERNEL_ENTRY_READER_H

#include "agent/shared/kernel/discover.h"
#include "agent/shared/paging/pte.h"

/* How to read a machine's entries; found from evidence. */
struct entry_reader {
	enum discover_os os;
	uint64_t ignore; /* see struct walk_options */
	struct win_pte_context windows;
	struct linux_pte_context linux_;
};

/* The layout matters only for these entries. */
static inline bool entry_needs_layout(uint64_t raw)
{
	return raw && !(raw & PTE_PRESENT);
}

/* `level` is the table's. Without a layout, entries that are not present are PTE_UNKNOWN. */
struct pte entry_decode(const struct entry_reader *r, unsigned level, uint64_t raw);

/* In a frame, in a slot, or nowhere that the entry says. */
enum place { PLACE_NONE, PLACE_FRAME, PLACE_SLOT };

enum place pte_place(const struct pte *p);

/* True if they differ only in bits that the processor or an ageing scan changes. */
bool entry_same_rights(const struct entry_reader *r, uint64_t a, uint64_t b);

/*
 * The entry without those bits. Entries that are equal by entry_same_rights() are equal here; the
 * reverse holds too if both are present, or neither is.
 */
uint64_t entry_hard_bits(const struct entry_reader *r, uint64_t raw);

#endif
