/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user half of one address space in one copy of its tables: table pages, and the entries at
 * which a walk ends, both in order of virtual address. A walk goes slice by slice, so only one
 * slice's entries are in memory. The tables take 1/512 of the entries' space and are kept.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_LEAVES_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_LEAVES_H

#include "agent/shared/paging/walk.h"
#include "agent/shared/container/captures.h"
#include "agent/shared/kernel/entry_reader.h"

#define NO_TABLE UINT32_MAX

/* When the reading was certainly over; never, if its time is unknown. */
static inline uint64_t times_known_by(const struct rsz_times *t)
{
	return t->end ? t->end : UINT64_MAX;
}

struct leaf_table {
	uint64_t pa;
	uint64_t va;
	uint64_t start; /* when this copy of it was captured, monotonic ns */
	uint64_t end;
	uint64_t since; /* the last end, and */
	uint64_t until; /* the first start, of all tables from the root to this */
	/*
	 * Where the same copy has this table more than once: earlier readings of its page, at
	 * leaves.readings[first_reading], in order. `held`: the way from the root to here was the
	 * same in the later of them, page for page, from `held_since` on: the last end of the
	 * earliest of those readings. `broken`: it was another one in a reading before that, or
	 * this is unknown.
	 */
	uint64_t held_since;
	uint32_t first_reading;
	uint8_t n_readings;
	bool held;
	bool broken;
	uint32_t parent; /* NO_TABLE: it is the root */
	uint8_t level;
	bool known; /* set by leaves_mark_known() */
	bool same;  /* set by leaves_compare(): the other copy has this path, page for page */
};

struct leaf {
	uint64_t va;
	uint64_t raw;
	uint32_t table;
	uint8_t level;
	/* how many of its table's earlier readings, from the latest back, have the same entry */
	uint8_t same;
};

/* Earlier readings of a table that are used, latest first: a walk makes two or three. */
#define READINGS_MAX 4

/* Tables that were read more than once: in the memory, if it was read by its tables. */
struct earlier_readings {
	const struct captures *captures;
	const struct entry_reader *entries; /* what makes two entries the same */
	struct rsz_cursor *cursor;
	/* The tables on the walk's current path, by level. */
	uint8_t bytes[WALK_LEVELS + 1][READINGS_MAX][PAGE_SIZE];
	uint8_t count[WALK_LEVELS + 1];
	/*
	 * The table whose readings are all in `bytes`, because short walks in a row pass through
	 * the same tables. 0: none.
	 */
	uint64_t whole[WALK_LEVELS + 1];
};

/* Zero-initialise. Its memory is reused from one space to the next. */
struct leaves {
	struct leaf *at;
	size_t count;
	size_t room;
	struct leaf_table *tables;
	size_t n_tables;
	size_t tables_room;
	struct rsz_times *readings; /* when tables were read before; see struct leaf_table */
	size_t n_readings;
	size_t readings_room;
	size_t first_table; /* the first table that this slice added */
	enum walk_stop stop;
	uint64_t not_followed; /* entries that name a table which could not be followed */

	/* The walk, and where it stands: `event` comes next. */
	struct walk walk;
	enum walk_event event;
	struct earlier_readings *earlier;
	uint32_t current[WALK_LEVELS + 2]; /* the table of each level on the way to here */
};

void leaves_deinit(struct leaves *l);
void leaves_clear(struct leaves *l);

/*
 * Begins a walk; the leaves are empty until leaves_take(). `options` bounds addresses and cost. The
 * set is cleared; it may be NULL, as in walk_begin(). `earlier`: NULL if no table was read more
 * than once. Everything that is pointed to has to stay valid until the walk is over.
 */
void leaves_begin(struct leaves *l, struct physmem *mem, struct walk_set *set,
		  const struct walk_options *options, uint64_t dtb,
		  struct earlier_readings *earlier);

/* The address of the next table or entry; UINT64_MAX: the walk is over, or none was begun. */
uint64_t leaves_next_va(const struct leaves *l);

/* Drops the entries and keeps the tables. What is taken next is another slice. */
void leaves_next_slice(struct leaves *l);

/* Appends what begins at `last` or before. All addresses have to be in the same half. */
enum status leaves_take(struct leaves *l, uint64_t last, struct err *e);

static inline uint64_t leaf_size(const struct leaf *l)
{
	return (uint64_t)PAGE_SIZE << 9 * (l->level - 1);
}

/*
 * True if the paths from the root to these tables, in two copies, go through the same pages. NULL:
 * no table.
 */
bool leaves_same_way(const struct leaves *x, const struct leaf_table *a, const struct leaves *y,
		     const struct leaf_table *b);

/*
 * Marks the tables of `image` that `pass` has in the same place, as leaves_same_way() says: only
 * those of this slice, which both must have taken up to the same address.
 */
void leaves_mark_known(struct leaves *image, const struct leaves *pass);

/*
 * How many table pages two copies of one space have in the same place, and how many only one has.
 */
struct table_changes {
	uint64_t kept;
	uint64_t freed;
	uint64_t created;
};

/* Adds those of this slice to *ret. Both must have taken it up to the same address. */
void leaves_compare(struct leaves *before, struct leaves *after, struct table_changes *ret);

#endif
