/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What smear.c, which judges, and analysis.c, which adds up, share with copies.c, which opens the
 * container, with chosen_layout.c, with walks.c, which walks its tables, and with virtual.c, which
 * reads.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_SMEAR_INTERNAL_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_SMEAR_INTERNAL_H

#include "agent/examine/smear/smear.h"
#include "agent/shared/container/captures.h"

/* A page file or swap area, by the number that entries use for it. */
struct slot_file {
	const struct captures *captures; /* NULL: there is none */
	uint32_t stream;
	const struct captures *lookups; /* what the swap cache held of it; NULL: nobody looked */
	uint32_t lookups_stream;
	bool tells_zeros; /* they say whether a page is zeros that were not written */
	bool zram;        /* which gives zeros for what it has freed */
	bool assumed;     /* its number was not the kernel's own word */
	uint64_t slots;   /* Linux swap files: so many, at the front of the stream; 0: unknown */
	const char
		*doubt; /* of them: why nobody knows which is which (struct file_doubt); or NULL */
	struct range_list ranges;
	struct walk_set named;
	struct walk_set several;
};

/* One copy of the tables, to be walked space by space. */
struct source {
	struct physmem_rsz mem;
	struct physmem_cache tables; /* the same: walks of a few pages each begin at the root */
	uint32_t stream;
	struct rsz_cursor *cursor;
	struct walk_set set;
	struct leaves leaves;
	struct walk_budget budget;
	struct walk_budget share; /* the image's: what the space at hand may take of it */
	/* Frames and slots separately: page files are read at another time and in another order. */
	struct windows windows[WINDOW_KINDS]; /* of the space at hand */
	struct windows all[WINDOW_KINDS];
};

/* For reading one address space instead of measuring all of them; virtual.c. */
struct space_request {
	enum copy copy; /* whose mappings are read */
	/*
	 * The tables that are asked for, and what the source's ELF notes say. They are used where
	 * the manifest lists none.
	 */
	bool by_dtb;
	uint64_t dtb;
	const void *notes;
	size_t notes_size;
};

/* The newest capture from an address on, and the older ones. */
struct found_captures {
	const struct captures *captures; /* which were asked; NULL: none yet */
	uint64_t at;
	uint64_t last;
	bool found; /* as captures_from() */
	struct capture newest;
	const struct older_page *older; /* as captures_older_from(), if `found` */
	size_t n_older;
};

struct stored_space {
	size_t index;    /* in ret->spaces */
	uint64_t extent; /* that has its root: the higher, the later; UINT64_MAX: none */
};

/* Linux's direct map in those copies of the tables that have it; holes.c. */
struct direct_copies {
	uint64_t root; /* the kernel's own tables */
	uint64_t base; /* virtual address of physical address 0 */
	bool has[COPIES];
};

/* Everything that a measurement needs while it runs. */
struct analysis {
	const struct space_request *request; /* NULL: all is measured */
	bool one_pass;                       /* of two, at most; only with `request` */
	bool image_only;  /* no pass is open: the tables in the memory are all there is */
	uint32_t version; /* of the system; see pte_facts */
	const struct smear_plan *plan;
	uint32_t row_pid; /* the plan's, or of its name */
	struct smear *ret;
	struct source copy[COPIES];
	struct stored_space *order; /* in which ret->spaces are walked; set with the layout */
	struct stream_captures captures;
	const struct captures *memory;
	struct earlier_readings earlier; /* of the image's tables, where its order was by tables */
	uint32_t memory_stream;
	struct range_list ram;
	struct walk_set named;
	struct walk_set several;
	struct slot_file files[PTE_FILES_MAX];
	struct entry_reader entries; /* without a layout until it is asked for: */
	bool asked_layout;
	enum status layout_status; /* what came of it, and */
	struct err layout_why;
	struct direct_copies direct;
	struct found_captures found; /* last: the copies of a mapping mostly name the same page */
	uint64_t work;               /* steps that judging may still take */
	uint64_t states[PAIRS][PTE_STATES][PTE_STATES]; /* of the space at hand */
};

/* Opens what the plan names without walking it. Call smear__tear_down() in any case. */
enum status smear__set_up(struct analysis *m, struct err *e);
void smear__tear_down(struct analysis *m);

/*
 * To be called before decoding entries for which entry_needs_layout() is true. Chooses the layout
 * and finds out which page file each number means. The first call walks all spaces. A walk that the
 * caller has begun is not disturbed. After ST_NOMEM or ST_INTERRUPTED each further call returns the
 * same.
 */
enum status smear__need_layout(struct analysis *m, struct err *e);

/* entry_decode(), after choosing the layout if the entry needs one. */
enum status smear__decode(struct analysis *m, unsigned level, uint64_t raw, struct pte *ret,
			  struct err *e);

/*
 * Sets m->ret->store and how it is known, and tells the entry reader. To be called after
 * layout_choose(), with the same evidence.
 */
void smear__find_store(struct analysis *m, const struct win_pte_evidence *ev);

/* Sets m->direct; ST_OK also where there is none. ST_NOMEM. */
enum status smear__find_direct_map(struct analysis *m, struct err *e);

/*
 * True if a copy of the direct map lacks the page at `frame`, or has another one in its place. The
 * answer is the same for all frames up to *last, which is lowered accordingly.
 */
bool smear__is_hole(struct analysis *m, uint64_t frame, uint64_t *last);

/* The smallest budget of a walk, in table pages, however few tables there are. */
#define SMEAR__BUDGET_LEAST 65536

/* Resets the budgets of all copies, before all spaces are walked. */
void smear__begin_budget(struct analysis *m);

/*
 * Makes m->order, the order in which the roots are stored. A pass stores one space after the other,
 * so that walks in that order decode each of its chunks once, and not once for each space.
 */
enum status smear__order_spaces(struct analysis *m, struct err *e);

/* True if the space has tables to walk in that copy. */
bool smear__has_copy(const struct smear_id *id, enum copy copy);

/*
 * Goes through a space slice by slice, because everything that a process on a large machine maps
 * would not fit into memory:
 *
 *	smear__begin_walks(m, id, image);
 *	while (smear__next_slice(m, &last))
 *		st = smear__take_slice(m, last, e);
 *	smear__end_walks(m);
 *
 * Begins with every copy that the space has; the image's only if `image`.
 */
void smear__begin_walks(struct analysis *m, const struct smear_id *id, bool image);

/*
 * The end of the slice with the next table or entry of any copy. The leaves of all copies then hold
 * no entries. False if nothing is left.
 */
bool smear__next_slice(struct analysis *m, uint64_t *last);

/*
 * Fills in the leaves of every copy up to `last`. May be called again for more of the same slice.
 */
enum status smear__take_slice(struct analysis *m, uint64_t last, struct err *e);

/* Settles the budgets. */
void smear__end_walks(struct analysis *m);

/*
 * The leaves of [first, last] alone, tables as the processor follows them; the image's in any
 * case.
 */
enum status smear__walk_range(struct analysis *m, const struct smear_id *id, uint64_t first,
			      uint64_t last, struct err *e);

/* Fills in ret->cohorts from its spaces; headline.c. */
void smear__divide(struct smear *ret);

/*
 * Appends the addresses for which this copy of the space has entries, in order, neighbours joined.
 * *ret_cut: the walk's budget ended it. Call smear__need_layout() first: it counts the tables,
 * which the budget depends on. `s` as for mapping_walk_range().
 */
enum status smear__mapped(struct analysis *m, struct smear_space *s, enum copy copy,
			  struct range_list *ret, bool *ret_cut, struct err *e);

#endif
