/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of one machine's page tables, read by the layout that was found for it.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_ENTRY_READER_H
#define RAMSEAL_AGENT_SHARED_KERNEL_ENTRY_READER_H

#include "agent/shared/kernel/discover.h"
#include "agent/shared/paging/pte.h"

/* How a machine's entries are to be read; from evidence. */
struct entry_reader {
	enum discover_os os;
	uint64_t ignore; /* see struct walk_options */
	struct win_pte_context windows;
	struct linux_pte_context linux_;
};

/* Only then does it matter which layout there is. */
static inline bool entry_needs_layout(uint64_t raw)
{
	return raw && !(raw & PTE_PRESENT);
}

/* `level` is the table's. Without a layout, what is not present is PTE_UNKNOWN. */
struct pte entry_decode(const struct entry_reader *r, unsigned level, uint64_t raw);

/* In a frame that the entry names, in a slot, or nowhere that it says. */
enum place { PLACE_NONE, PLACE_FRAME, PLACE_SLOT };

enum place pte_place(const struct pte *p);

/* True if they differ in nothing but what the processor or an ageing scan changes by itself. */
bool entry_same_rights(const struct entry_reader *r, uint64_t a, uint64_t b);

/*
 * The entry without those bits. Two entries that are the same by entry_same_rights() are the same
 * here; the reverse holds, too, where both are present, or neither.
 */
uint64_t entry_hard_bits(const struct entry_reader *r, uint64_t raw);

#endif
