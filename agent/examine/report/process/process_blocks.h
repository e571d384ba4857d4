/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an analyst looks for in the blocks of a process's heaps: the largest allocations, names that
 * it asked DNS for, and blocks that nothing refers to.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_BLOCKS_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_BLOCKS_H

#include "agent/examine/heap/dns/records.h"
#include "agent/examine/heap/heap.h"

/* How many of each the page has; the rest is counted. */
#define REPORT_LARGEST 20
#define REPORT_NAMES   200
#define REPORT_LEAKS   20

struct report_block {
	struct heap_allocation of;
	uint64_t pages, kept; /* that it touches; of them, with content here */
};

struct report_name {
	uint64_t address; /* of the record, or of the entry without one */
	bool has_record, in_table, freed;
	struct dns_record record; /* its name alone if there is none */
	const char *trust;        /* of the page at `address`: "safe", …; NULL: not judged */
};

/* Blocks of one heap and size that the same place in a program allocated. */
struct report_leak {
	uint64_t heap, size, blocks, first;
	char place[200]; /* what they point to, or where they were allocated; "": not known */
};

struct report_leaks {
	bool searched, whole; /* everything that can refer to a block could be read */
	uint64_t blocks, bytes, busy;
	struct report_leak at[REPORT_LEAKS];
	size_t count, all; /* groups: here, and in all */
};

struct report_blocks {
	struct report_block largest[REPORT_LARGEST];
	size_t n_largest;
	struct report_name *names; /* owned */
	size_t n_names, records, unanswered;
	bool has_table;
	struct report_leaks leaks;
};

#endif
