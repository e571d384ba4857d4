/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What page tables map, one mapping after the other, and how certain it is. Measuring goes through
 * a whole space in all its copies; reading goes through a range of one copy:
 *
 *	mapping_walk_range(&w, m, space, copy, first, last, e);
 *	while (!(st = mapping_next(&w, &x, e)))
 *		while (mapping_judge(&x, &span))
 *			… mapping_row(&x, &span) …
 *
 * ST_END: that was all.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_MAPPING_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_MAPPING_H

#include "agent/examine/smear/mapping_run.h"
#include "agent/examine/smear/stand.h"

/* How many steps judging may take, for one measurement or for each range that is read. */
#define MAPPING_WORK_MAX (UINT64_C(1) << 32)

struct mapping_walk {
	struct analysis *m;
	struct smear_space *space; /* its sums count what is passed */
	struct mapping_run run;
	size_t at[COPIES]; /* for mapping_run_next() */
	uint64_t va;       /* where the next run may begin */
	uint64_t last;     /* of a range */
	unsigned copy;     /* of the run, the next; COPIES: the run is over */
	bool one_copy;     /* reading: `only` is wanted */
	enum copy only;
	bool over; /* there is no more in the leaves */
};

/* Neighbouring pages of a mapping whose content was captured together, or is missing together. */
struct verdict_span {
	uint64_t offset; /* in the mapping, in pages */
	uint64_t pages;
	enum verdict verdict;
	uint64_t window;
	bool has_window;
	bool captured;   /* and is readable, */
	uint32_t stream; /* in this */
	struct content content;
	uint64_t captures; /* that can be read */
};

/* One entry of one copy, or several that are alike, with what it is judged by. */
struct mapping {
	struct analysis *m;
	struct smear_space *space;
	struct mapping_run run;
	enum copy copy;
	/* Where a prototype entry was followed: the pte in its view is what that came to. */
	bool followed;
	uint64_t proto;         /* its address, and */
	struct rsz_times times; /* when it was captured */

	/* The rest is for mapping_judge(). */
	bool begun, over;
	uint64_t first;  /* where the content of the first page is, in the stream */
	uint64_t judged; /* pages */
	const struct captures *captures;
	uint32_t stream;
	const struct captures *lookups; /* in the swap cache, of the slots; or NULL */
	uint32_t lookups_stream;
	const struct range_list *ranges; /* where there can be content */
	enum verdict entry;              /* the verdict where no content shows that it is in time */
	struct stand stand;              /* of the entry; unless it is an image's */
	bool slot;
	bool map_doubt;
	bool slot_doubt;
	bool zeros_doubt; /* of a slot that holds zeros */
	bool look_needed; /* the slot counts only if the swap cache was asked about it */
};

/* All of the space, slice by slice; end with mapping_walk_end(). */
void mapping_walk_space(struct mapping_walk *w, struct analysis *m, struct smear_space *s);
void mapping_walk_end(struct mapping_walk *w);

/*
 * What `copy` maps in [first, last], whole pages, in order. `s` has its id, and must not be used
 * for anything else.
 */
enum status mapping_walk_range(struct mapping_walk *w, struct analysis *m, struct smear_space *s,
			       enum copy copy, uint64_t first, uint64_t last, struct err *e);

/* ST_END behind the last. *ret and what it points to are valid until the next call. */
enum status mapping_next(struct mapping_walk *w, struct mapping *ret, struct err *e);

/*
 * The next pages of it that are alike; false after the last, or when the allowed work is used up.
 */
bool mapping_judge(struct mapping *x, struct verdict_span *ret);

/* The row that a reader gets. */
struct smear_row mapping_row(const struct mapping *x, const struct verdict_span *span);

/* To be called before its entry is replaced by what a prototype leads to; smear.c. */
void smear__begin_judging(struct mapping *x);
/* False if the allowed work is used up; the result then says so. smear.c. */
bool smear__take_work(struct analysis *m, uint64_t steps);

#endif
