/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fingerprints of page tables: what the pass before the memory saw, for a later look at the same
 * table when memory is read in guided order. If an entry has not changed since, a frame captured in
 * between was captured while the entry was valid (METHOD.md, section 5, from a pass to the image).
 *
 * 16 bits for each 8 entries, a cache line: one change in 65,536 is missed, and seven unchanged
 * entries count as changed along with a changed one. Neither makes an unsafe page look safe,
 * because smear uses the tables themselves; a missed page is not captured again, and may be at risk
 * or wrong.
 *
 * Memory: 144 bytes for each table, at most 36 MiB, and 2 MiB for an index. Further tables are
 * unknown.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PRINTS_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PRINTS_H

#include "agent/shared/kernel/entry_reader.h"

/* 512 GiB of mapped memory, if all tables are full. */
#define PRINTS_MAX ((size_t)1 << 18)

struct printed_table {
	unsigned level;
	uint64_t pa;
	uint64_t va; /* the start of its part of the address space */
	const uint8_t *bytes;
};

struct print;

/* Zero-initialise except the first. */
struct table_prints {
	struct entry_reader entries; /* for comparing entries; does not need a layout */
	struct print **blocks;
	size_t count;
	uint32_t *index; /* open addressing: a print's number + 1, or 0 */
	size_t room;     /* of the index; a power of two */
};

void table_prints_deinit(struct table_prints *p);

/* The newest for each address counts. Unknown if out of memory or beyond the bound. */
void table_prints_add(struct table_prints *p, const struct printed_table *t);

/*
 * Bit n: entries 8n to 8n+7 may have changed (METHOD.md, section 3). All bits are set for an
 * unknown table, or one with another level or address. `p` may be NULL: nothing is known.
 */
uint64_t table_prints_changed(const struct table_prints *p, const struct printed_table *t);

#endif
