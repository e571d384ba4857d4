/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Windows process as a report needs it: its identity, its address ranges by kind, the states of
 * their pages, and its heaps, modules and threads.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_RUN_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_RUN_H

#include "agent/examine/heap/heap.h"
#include "agent/examine/process/states.h"
#include "agent/examine/process/threads.h"
#include "agent/examine/report/process/process_blocks.h"

/*
 * The use of an address range. Heap: it has a segment or a block of a heap, as far as these are
 * known. Stack: a thread's TEB names it.
 */
#define REGION_MAP(X)                                                                              \
	X(REGION_IMAGE, "image")                                                                   \
	X(REGION_FILE, "mapped file")                                                              \
	X(REGION_SHARED, "shared") /* a section without a file */                                  \
	X(REGION_HEAP, "heap")                                                                     \
	X(REGION_STACK, "stack")                                                                   \
	X(REGION_PRIVATE, "private")                                                               \
	X(REGION_OTHER, "other") /* AWE, physical, large pages */

enum region {
#define X(name, text) name,
	REGION_MAP(X)
#undef X
		REGIONS
};

const char *region_name(enum region r);

struct report_region {
	enum region kind;
	uint64_t of; /* REGION_HEAP: which of the heaps, REGION_STACK: the TID; else 0 */
};

/* The sum of several ranges. */
struct report_sum {
	uint64_t vads;
	struct pages_counts pages;
};

struct report_process {
	const char *path;          /* borrowed */
	const char *foot;          /* of printed pages; borrowed */
	struct opened_process *of; /* borrowed */
	const struct process_facts *facts;
	const struct vad_list *vads;
	bool still;       /* from an image: how far its pages belong together is unknown */
	enum copy copy;   /* through which tables its pages were found */
	uint64_t created; /* ns since 1970; 0: not known */
	struct process_start start;
	struct process_pages pages;
	struct modules modules;
	bool know_mapped, know_listed; /* VADs, and the loader's lists, are complete */
	struct threads threads;

	struct memory_view memory; /* what the heaps are read through: it must not move */
	struct range_list ranges;  /* that were searched for heaps */
	struct heaps *heaps;
	size_t n_heaps;
	struct heap_stats *stats;     /* one for each heap */
	struct report_sum *heap_sums; /* the same */

	struct report_region *regions; /* one for each VAD */
	struct report_sum by_region[REGIONS];
	struct pages_counts outside; /* pages in no VAD */
	struct report_blocks blocks; /* by report_process_blocks() */
};

/*
 * `path` and `p` are borrowed. Lost parts are no error: see report_process_is_whole(). ST_NOMEM,
 * ST_INTERRUPTED; call report_process_deinit() even then.
 */
enum status report_process_load(const char *path, struct opened_process *p,
				struct report_process *ret, struct err *e);
/*
 * Looks into the blocks of its heaps, which takes longer: the largest, and what DNS was asked.
 * Leaks are the caller's to find: what may refer to a block is known to the command.
 */
enum status report_process_blocks(struct report_process *r, struct err *e);
void report_process_deinit(struct report_process *r);

/* True if no list or tree of it breaks off, and no heap lost a part. */
bool report_process_is_whole(const struct report_process *r);
/* The lists of modules and threads were followed to their end, or it has none. */
bool report_process_has_lists(const struct report_process *r);

/* What an analyst can read: the process's pages that hold data. */
struct report_data {
	uint64_t pages;              /* .kept + .compressed + .lost + .unknown */
	uint64_t kept;               /* in the container */
	uint64_t compressed;         /* in the compression store, which is not read here */
	uint64_t lost;               /* not captured */
	uint64_t unknown;            /* their page tables are lost */
	uint64_t trust[TRUST_KINDS]; /* of .kept */
	uint64_t empty;              /* pages without data: never touched, or only reserved */
	uint64_t on_disk;            /* pages that only a mapped file has */
};

struct report_data report_data_of(const struct pages_counts *c);

#endif
