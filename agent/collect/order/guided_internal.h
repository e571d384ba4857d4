/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by guided.c, which walks, guided_frames.c, which captures what a group of tables refers
 * to, and guided_tables.c, which reads the tables again.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_GUIDED_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_ORDER_GUIDED_INTERNAL_H

#include "agent/collect/order/slots.h"
#include "agent/collect/order/stage_read.h"
#include "agent/shared/kernel/discover.h"
#include "agent/shared/kernel/prints.h"
#include "agent/shared/paging/physmem.h"

/* The most captures of a page, except tables. */
#define CAPTURES       4

/*
 * Tables in one group. Sparse tables refer to few frames each, and a piece should be worth its
 * record.
 */
#define GROUP_TABLES   64
/* A group is read when it refers to this many pages: a chunk's worth. */
#define GROUP_PAGES    (STREAM_CHUNK / PAGE_SIZE)
/* The last table of a group adds up to 512 runs, and all of them may change meanwhile. */
#define GROUP_RUNS     (GROUP_PAGES + (size_t)TABLE_ENTRIES * GROUP_TABLES)

/*
 * Tables that wait for their slots, to be read again after them. If there are more, the oldest no
 * longer wait, so that a slow disk does not delay the memory.
 */
#define WAITING        256

/* Tables that appeared in a table already walked. */
#define SUBTREES       64

/* Pages that one entry of a level maps. */
#define LEVEL_PAGES(l) (UINT64_C(1) << 9 * ((l) - 1))

enum step {
	STEP_TABLES, /* fill the group */
	STEP_FRAMES, /* read what it names */
	STEP_CHECK,  /* read its tables again */
	STEP_REST,   /* what no table refers to */
};

/* A table between its first reading and its last. */
struct table {
	unsigned level;
	uint64_t pa;
	uint64_t va;
	uint16_t pass;    /* of its newest capture */
	bool open;        /* it must be read again */
	unsigned waits;   /* how often it waited for slots */
	uint32_t batch;   /* the batch it waits with */
	uint64_t changed; /* entries (8 per bit) that differ from the pass before */
	uint8_t bytes[PAGE_SIZE];
};

struct frame_run {
	uint64_t pa;
	uint64_t pages;
	bool again; /* even if it was captured before, because its entry has changed */
};

struct group {
	struct table *tables;
	size_t n_tables;
	struct frame_run *runs;
	size_t n_runs;
	uint64_t pages; /* of all runs, and slots */
	size_t run;     /* the one being read */
	uint64_t page;  /* its next page */
	unsigned round;
};

struct subtree {
	unsigned level;
	uint64_t pa;
	uint64_t va;
};

struct guided_feed {
	struct stream_feed feed;
	struct memory_result *result;
	struct sweep sweep;
	struct physmem_drv mem;
	struct walk_set captured[CAPTURES]; /* captured at least once, at least twice, and so on */
	struct walk_set visited;
	const struct table_prints *prints; /* from the pass before; NULL: unknown */
	uint64_t again_left;               /* pages */

	/* The walk, and the tables on its current path, by level. */
	enum status (*find_again)(struct drv *source, const struct discovery *earlier,
				  struct discovery *ret, struct err *e);
	const struct discovery *first;  /* of the pass before */
	struct discovery again;         /* found after the first ones were walked */
	const struct discovery *spaces; /* the one being walked */
	struct root_cursor roots;
	struct walk_budget budget;
	struct walk walk;
	bool walking;
	struct table path[WALK_LEVELS + 1];
	bool on_path[WALK_LEVELS + 1];
	struct subtree subtrees[SUBTREES];
	size_t n_subtrees;

	enum step step;
	bool walked;      /* all tables are done */
	bool rest_beside; /* workers read the rest */
	bool group_full;  /* it must be read before the walk goes on */
	struct group group;
	struct stage stage;
	struct stage_readers *readers; /* NULL: one thread reads */
	struct batch before;           /* first readings */
	struct batch after;            /* last readings, which are emitted after the first */
	bool emitting;
	struct slots *slots;   /* NULL: page files have their own time */
	struct table *waiting; /* for slots, in the order of their batches */
	size_t n_waiting;
	uint32_t batches;
	uint64_t slots_seen; /* when that was last checked */
};

/*
 * guided_frames.c
 */

/* Counts one more capture of a page. Returns the number of earlier ones, as far as counted. */
unsigned guided__count_capture(struct guided_feed *f, uint64_t pa);

/* Entry `i` of a table's page, including frames that only the operating system sees. */
struct entry guided__judge(const struct guided_feed *f, const struct table *t, size_t i,
			   const uint8_t *bytes);
/* How many of its entries map something themselves. */
size_t guided__own_entries(const struct guided_feed *f, const struct table *t);

/* `again`: even if it was captured before. */
void guided__group_add_run(struct guided_feed *f, uint64_t va, uint64_t pa, uint64_t pages,
			   bool again);
void guided__group_add_leaves(struct guided_feed *f, struct table *t);
void guided__group_add_table(struct guided_feed *f, const struct table *t);
void guided__group_sort(struct group *g);
void guided__group_clear_runs(struct group *g);
bool guided__group_is_full(const struct guided_feed *f);

/* Captures what the group refers to, as far as it fits on the stage. */
void guided__read_frames(struct guided_feed *f);

/*
 * guided_tables.c
 */

void guided__add_reading(struct batch *b, const struct table *t, const struct physmem_page *when,
			 enum rsz_reason reason);
/* Reads the group's open tables again. True if they now need something new. */
bool guided__check_tables(struct guided_feed *f);

/* Asks for the slots that the group refers to. False: none will come. */
bool guided__want_slots(struct guided_feed *f);
/* Puts the group aside until they have come. */
void guided__wait_for_slots(struct guided_feed *f);
/* Fills the empty group with one whose slots have come. False: there is none. */
bool guided__take_waiting(struct guided_feed *f);

#endif
