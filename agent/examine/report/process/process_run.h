/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of Windows as a report needs it: who it is, its address ranges by what is in them,
 * where their pages are, and its heaps, modules and threads.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_RUN_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_RUN_H

#include "agent/examine/heap/heap.h"
#include "agent/examine/process/states.h"
#include "agent/examine/process/threads.h"

/*
 * What an address range is for. A heap's: its segments and wherever one of its blocks is, as far as
 * they are known. A stack's: a thread's TEB names it.
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

/* Some ranges together. */
struct report_sum {
	uint64_t vads;
	struct pages_counts pages;
};

struct report_process {
	const char *path;          /* borrowed */
	struct opened_process *of; /* borrowed */
	const struct process_facts *facts;
	const struct vad_list *vads;
	bool still;       /* an image's: nobody can say how far its pages belong together */
	enum copy copy;   /* through which tables its pages were found */
	uint64_t created; /* ns since 1970; 0: not known */
	struct process_start start;
	struct process_pages pages;
	struct modules modules;
	bool know_mapped, know_listed; /* VADs and the loader's lists are whole */
	struct threads threads;

	struct range_list ranges; /* in which heaps were looked for */
	struct heaps *heaps;
	size_t n_heaps;
	struct heap_stats *stats;     /* one for each heap */
	struct report_sum *heap_sums; /* the same */

	struct report_region *regions; /* one for each VAD */
	struct report_sum by_region[REGIONS];
	struct pages_counts outside; /* pages in no VAD */
};

/*
 * `path` and `p` are borrowed. ST_OK also where parts of it are lost: report_process_is_whole().
 * ST_NOMEM, ST_INTERRUPTED; `ret` is to be freed in any case.
 */
enum status report_process_load(const char *path, struct opened_process *p,
				struct report_process *ret, struct err *e);
void report_process_deinit(struct report_process *r);

/* True if no list or tree of it breaks off, and no heap lost a part. */
bool report_process_is_whole(const struct report_process *r);
/* The lists of modules and threads were followed to their end, or it has none. */
bool report_process_has_lists(const struct report_process *r);

/* What an analyst of it has. Pages that hold data, as the process knew them. */
struct report_data {
	uint64_t pages;              /* .kept + .compressed + .lost + .unknown */
	uint64_t kept;               /* in the container */
	uint64_t compressed;         /* in the store, which is not looked into here */
	uint64_t lost;               /* not captured */
	uint64_t unknown;            /* the tables that knew them are lost */
	uint64_t trust[TRUST_KINDS]; /* of .kept */
	uint64_t empty;              /* pages without data: never touched, or only reserved */
	uint64_t on_disk;            /* pages that only a mapped file has */
};

struct report_data report_data_of(const struct pages_counts *c);

#endif
