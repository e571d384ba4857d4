/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fingerprints of page tables: what the pass before the memory saw, for whoever reads the memory by
 * its tables and comes to the same table later. Has an entry changed since? If it has not, a frame
 * that was captured since then was captured while the entry stood (METHOD.md, section 5, from a
 * pass to the image).
 *
 * 16 bits for each 8 entries, a cache line: a change is missed once in 65,536 times, and seven
 * unchanged entries count as changed with it. Neither makes anything be called safe that is not,
 * because smear measures by the tables themselves; what is missed is not captured again, and may be
 * at risk or wrong.
 *
 * Memory: 144 bytes for each table, at most 36 MiB, and 2 MiB for an index. Tables beyond that are
 * unknown.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PRINTS_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PRINTS_H

#include "agent/shared/kernel/entry_reader.h"

/* 512 GiB of mapped memory, if each maps all it can. */
#define PRINTS_MAX ((size_t)1 << 18)

struct printed_table {
	unsigned level;
	uint64_t pa;
	uint64_t va; /* where its part of the address space begins */
	const uint8_t *bytes;
};

struct print;

/* Zero-initialise but for the first. */
struct table_prints {
	struct entry_reader
		entries; /* says what makes two entries the same; a layout is not needed */
	struct print **blocks;
	size_t count;
	uint32_t *index; /* open addressing: a print's number + 1, or 0 */
	size_t room;     /* of the index; a power of two */
};

void table_prints_deinit(struct table_prints *p);

/* The newest of one address counts. Without memory, or beyond the bound, it stays unknown. */
void table_prints_add(struct table_prints *p, const struct printed_table *t);

/*
 * Bit n: entries 8n to 8n+7 are not known to be the same (METHOD.md, section 3) as they were. All
 * bits for a table that is unknown, or was another level's or address's. `p` may be NULL: nothing
 * is known.
 */
uint64_t table_prints_changed(const struct table_prints *p, const struct printed_table *t);

#endif
