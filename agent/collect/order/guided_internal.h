/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What guided.c, which walks, shares with guided_frames.c, which captures what a group of tables
 * names, and with guided_tables.c, which reads the tables again.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_GUIDED_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_ORDER_GUIDED_INTERNAL_H

#include "agent/collect/order/slots.h"
#include "agent/collect/order/stage_read.h"
#include "agent/shared/kernel/discover.h"
#include "agent/shared/kernel/prints.h"
#include "agent/shared/paging/physmem.h"

/* A page is captured so often at most, but for tables. */
#define CAPTURES       4

/* Tables in one group. Sparse ones name few frames each, and a piece should be worth its record. */
#define GROUP_TABLES   64
/* A group is read when it has named so many pages: a chunk's worth. */
#define GROUP_PAGES    (STREAM_CHUNK / PAGE_SIZE)
/* The last table of a group adds up to 512 runs, and all of them may change meanwhile. */
#define GROUP_RUNS     (GROUP_PAGES + (size_t)TABLE_ENTRIES * GROUP_TABLES)

/*
 * Tables whose slots are being read, to be read again behind them. When there are more, the oldest
 * are not: a disk that is too slow does not hold up the memory.
 */
#define WAITING        256

/* Tables that appeared in a table which had been gone through already. */
#define SUBTREES       64

/* Pages that one entry of a level maps. */
#define LEVEL_PAGES(l) (UINT64_C(1) << 9 * ((l) - 1))

enum step {
	STEP_TABLES, /* fill the group */
	STEP_FRAMES, /* read what it names */
	STEP_CHECK,  /* read its tables again */
	STEP_REST,   /* what no table names */
};

/* A table between its first reading and its last. */
struct table {
	unsigned level;
	uint64_t pa;
	uint64_t va;
	uint16_t pass;    /* of its newest capture */
	bool open;        /* it is to be read again */
	unsigned waits;   /* how often it waited for slots */
	uint32_t batch;   /* then: with whom */
	uint64_t changed; /* entries, 8 for each bit, that are others than in the pass before */
	uint8_t bytes[PAGE_SIZE];
};

struct frame_run {
	uint64_t pa;
	uint64_t pages;
	bool again; /* also if it was captured before: its entry is another one than then */
};

struct group {
	struct table *tables;
	size_t n_tables;
	struct frame_run *runs;
	size_t n_runs;
	uint64_t pages; /* of all runs, and slots */
	size_t run;     /* the one that is being read, */
	uint64_t page;  /* and the next page of it */
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
	struct walk_set captured[CAPTURES]; /* at least once, twice, and so on */
	struct walk_set visited;
	const struct table_prints *prints; /* NULL: what the pass before saw is unknown */
	uint64_t again_left;               /* pages */

	/* The walk, and the tables from its root to where it is, by level. */
	enum status (*find_again)(struct drv *source, const struct discovery *earlier,
				  struct discovery *ret, struct err *e);
	const struct discovery *first;  /* of the pass before */
	struct discovery again;         /* when those had been walked */
	const struct discovery *spaces; /* whose turn it is */
	struct root_cursor roots;
	struct walk_budget budget;
	struct walk walk;
	bool walking;
	struct table path[WALK_LEVELS + 1];
	bool on_path[WALK_LEVELS + 1];
	struct subtree subtrees[SUBTREES];
	size_t n_subtrees;

	enum step step;
	bool walked;      /* all tables have been */
	bool rest_beside; /* workers read what is left */
	bool group_full;  /* it is read before the walk goes on */
	struct group group;
	struct stage stage;
	struct stage_readers *readers; /* NULL: one thread reads */
	struct batch before;           /* first readings, */
	struct batch after;            /* and last ones: they go out behind the first */
	bool emitting;
	struct slots *slots;   /* NULL: page files have their own time */
	struct table *waiting; /* for slots, in the order of their batches */
	size_t n_waiting;
	uint32_t batches;
	uint64_t slots_seen; /* when somebody last looked whether they wait for anything */
};

/*
 * guided_frames.c
 */

/* One capture more of a page. Returns how many there were, as far as they are counted. */
unsigned guided__count_capture(struct guided_feed *f, uint64_t pa);

/* Entry `i` of a table's page, with the frames that only the operating system sees. */
struct entry guided__judge(const struct guided_feed *f, const struct table *t, size_t i,
			   const uint8_t *bytes);
/* How many of its entries map something by themselves. */
size_t guided__own_entries(const struct guided_feed *f, const struct table *t);

/* `again`: also if it was captured before. */
void guided__group_add_run(struct guided_feed *f, uint64_t va, uint64_t pa, uint64_t pages,
			   bool again);
void guided__group_add_leaves(struct guided_feed *f, struct table *t);
void guided__group_add_table(struct guided_feed *f, const struct table *t);
void guided__group_sort(struct group *g);
void guided__group_clear_runs(struct group *g);
bool guided__group_is_full(const struct guided_feed *f);

/* Captures what the group names, as far as it fits on the stage. */
void guided__read_frames(struct guided_feed *f);

/*
 * guided_tables.c
 */

void guided__add_reading(struct batch *b, const struct table *t, const struct physmem_page *when,
			 enum rsz_reason reason);
/* Reads the group's open tables again. True if there is something new to be read for them. */
bool guided__check_tables(struct guided_feed *f);

/* Asks for the slots that the group names. False: none are to come. */
bool guided__want_slots(struct guided_feed *f);
/* Puts the group aside until they have come. */
void guided__wait_for_slots(struct guided_feed *f);
/* The empty group becomes one whose slots have come. False: there is none. */
bool guided__take_waiting(struct guided_feed *f);

#endif
