/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user half of one address space as one copy of its tables shows it: table pages and the entries
 * that end there, both in order of virtual address.
 */
#ifndef RAMSEAL_AGENT_SMEAR_LEAVES_H
#define RAMSEAL_AGENT_SMEAR_LEAVES_H

#include "agent/paging/walk.h"
#include "agent/smear/captures.h"

#define NO_TABLE UINT32_MAX

struct leaf_table {
	uint64_t pa;
	uint64_t va;
	uint64_t start; /* when this copy of it was captured, monotonic ns */
	uint64_t end;
	uint64_t since; /* the last end, and */
	uint64_t until; /* the first start, of all tables from the root to this */
	/*
	 * Where the same copy has each table twice, read before its frames and behind them: the last
	 * end of the first readings, and the first start of the second ones, from the root to this.
	 * `around`: it has, and every entry on the way named the same table both times.
	 */
	uint64_t first_start; /* of the first reading of this one */
	uint64_t first_end;
	uint64_t around_since;
	uint64_t around_until;
	uint32_t parent; /* NO_TABLE: it is the root */
	uint8_t level;
	bool around;
	bool same; /* set by leaves_compare(): the other copy has this path, page for page */
};

struct leaf {
	uint64_t va;
	uint64_t raw;
	uint32_t table;
	uint8_t level;
	bool around; /* the entry was the same in both readings of its table; see there */
};

/* First readings of tables that were read again: in the memory, if it was read by its tables. */
struct first_readings {
	const struct captures *captures;
	struct rsz_cursor *cursor;
	/* Of the tables on the way to where a walk is, by level. */
	uint8_t bytes[WALK_LEVELS + 1][PAGE_SIZE];
	bool known[WALK_LEVELS + 1];
};

/* Zero-initialise; the memory is kept from one space to the next. */
struct leaves {
	struct leaf *at;
	size_t count;
	size_t room;
	struct leaf_table *tables;
	size_t n_tables;
	size_t tables_room;
	enum walk_stop stop;
	uint64_t not_followed; /* entries that name a table which could not be followed */
};

void leaves_deinit(struct leaves *l);
void leaves_clear(struct leaves *l);

/*
 * Appends to empty leaves. `options` bounds addresses and cost. The set is cleared first; it may be
 * NULL as walk_begin()'s. `first`: NULL if no table was read twice.
 */
enum status leaves_walk(struct leaves *l, struct walk *w, struct physmem *mem, struct walk_set *set,
			const struct walk_options *options, uint64_t dtb,
			struct first_readings *first, struct err *e);

static inline uint64_t leaf_size(const struct leaf *l)
{
	return (uint64_t)PAGE_SIZE << 9 * (l->level - 1);
}

/* Table pages of two copies of one space: in both at the same place, in the first only, or not. */
struct table_changes {
	uint64_t kept;
	uint64_t freed;
	uint64_t created;
};

void leaves_compare(struct leaves *before, struct leaves *after, struct table_changes *ret);

#endif
