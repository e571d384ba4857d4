/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/smear/leaves.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

void leaves_deinit(struct leaves *l)
{
	free(l->at);
	free(l->tables);
	*l = (struct leaves){ 0 };
}

void leaves_clear(struct leaves *l)
{
	l->count = 0;
	l->n_tables = 0;
	l->not_followed = 0;
	l->stop = WALK_COMPLETE;
}

/* What a processor may change in an entry that is present: accessed and dirty. */
#define ENTRY_TOUCHED UINT64_C(0x60)

static bool same_entry(uint64_t a, uint64_t b)
{
	return a == b || (a & b & PTE_PRESENT && !((a ^ b) & ~ENTRY_TOUCHED));
}

/* The first reading of a table becomes first->bytes of its level. */
static const struct older_page *read_first(struct first_readings *first, const struct walk_table *t)
{
	const struct older_page *o = captures_oldest(first->captures, t->pa);
	const struct rsz_chunk *c;

	first->known[t->level] = o && !rsz_cursor_load(first->cursor, o->record, &c, NULL) &&
				 o->data + PAGE_SIZE <= c->length;
	if (!first->known[t->level])
		return NULL;
	memcpy(first->bytes[t->level], c->data + o->data, PAGE_SIZE);
	return o;
}

/* True if the first reading of the table above named this one, too. */
static bool was_named(const struct first_readings *first, const struct walk_table *t)
{
	const size_t i = t->va >> (PAGE_SHIFT + 9 * t->level) & (TABLE_ENTRIES - 1);
	const uint64_t raw = get_le64(first->bytes[t->level + 1] + 8 * i);

	return (raw & PTE_PRESENT) && (raw & PTE_FRAME) == t->pa;
}

static void look_around(struct leaf_table *x, const struct leaf_table *above,
			const struct walk_table *t, struct first_readings *first)
{
	const struct older_page *o = read_first(first, t);

	x->around = o && (!above || (above->around && was_named(first, t)));
	if (!x->around)
		return;
	x->first_start = o->start;
	x->first_end = o->end;
	x->around_since = MAX(o->end, above ? above->around_since : 0);
	x->around_until = MIN(x->start, above ? above->around_until : UINT64_MAX);
}

static enum status add_table(struct leaves *l, const struct walk_table *t, uint32_t parent,
			     struct first_readings *first, struct err *e)
{
	const struct leaf_table *above;
	struct leaf_table x = {
		.pa = t->pa,
		.va = t->va,
		.start = t->when.start,
		.end = t->when.end,
		.since = t->when.end,
		.until = t->when.start,
		.parent = parent,
		.level = (uint8_t)t->level,
	};

	if (l->n_tables == l->tables_room) {
		struct leaf_table *tables = array_grow(l->tables, &l->tables_room, sizeof(*tables));

		if (!tables)
			return err_nomem(e);
		l->tables = tables;
	}
	above = parent == NO_TABLE ? NULL : &l->tables[parent];
	if (above) {
		x.since = MAX(x.since, above->since);
		x.until = MIN(x.until, above->until);
	}
	if (first)
		look_around(&x, above, t, first);
	l->tables[l->n_tables++] = x;
	return ST_OK;
}

static bool stood_around(const struct first_readings *first, const struct walk_leaf *leaf)
{
	return first && first->known[leaf->level] &&
	       same_entry(get_le64(first->bytes[leaf->level] + leaf->pa % PAGE_SIZE), leaf->raw);
}

static enum status add_leaf(struct leaves *l, const struct walk_leaf *leaf, uint32_t table,
			    const struct first_readings *first, struct err *e)
{
	if (l->count == l->room) {
		struct leaf *at = array_grow(l->at, &l->room, sizeof(*at));

		if (!at)
			return err_nomem(e);
		l->at = at;
	}
	l->at[l->count++] = (struct leaf){
		.va = leaf->entry.va,
		.raw = leaf->raw,
		.table = table,
		.level = (uint8_t)leaf->level,
		.around = stood_around(first, leaf),
	};
	return ST_OK;
}

enum status leaves_walk(struct leaves *l, struct walk *w, struct physmem *mem, struct walk_set *set,
			const struct walk_options *options, uint64_t dtb,
			struct first_readings *first, struct err *e)
{
	uint32_t current[WALK_LEVELS + 2]; /* the table of each level on the way to here */
	enum walk_event event;
	enum status st = ST_OK;

	memset(current, 0xff, sizeof(current));
	if (set)
		walk_set_clear(set);
	walk_begin(w, mem, set, options, dtb);
	while (!st && (event = walk_next(w)) != WALK_END) {
		if (event == WALK_TABLE) {
			const unsigned level = w->table.level;
			const bool root = level == (unsigned)options->mode;

			st = add_table(l, &w->table, root ? NO_TABLE : current[level + 1], first,
				       e);
			current[level] = (uint32_t)(l->n_tables - 1);
		} else if (event == WALK_LEAF) {
			st = add_leaf(l, &w->leaf, current[w->leaf.level], first, e);
		} else {
			l->not_followed++;
		}
	}
	l->stop = w->stop;
	return st;
}

/* In the order in which a walk comes to them: by address, and from the root down. */
static int compare_tables(const struct leaf_table *a, const struct leaf_table *b)
{
	if (a->va != b->va)
		return a->va < b->va ? -1 : 1;
	return a->level > b->level ? -1 : a->level < b->level;
}

/* A table is at the same place if its page is, and all above it are. */
static void match(struct leaves *x, struct leaf_table *a, struct leaves *y, struct leaf_table *b,
		  struct table_changes *ret)
{
	const bool above = a->parent == NO_TABLE || b->parent == NO_TABLE
				   ? a->parent == b->parent
				   : x->tables[a->parent].same && y->tables[b->parent].same;

	a->same = b->same = a->pa == b->pa && above;
	ret->kept += a->pa == b->pa;
	ret->freed += a->pa != b->pa;
	ret->created += a->pa != b->pa;
}

void leaves_compare(struct leaves *before, struct leaves *after, struct table_changes *ret)
{
	size_t i = 0, j = 0;

	*ret = (struct table_changes){ 0 };
	while (i < before->n_tables || j < after->n_tables) {
		const int order = i == before->n_tables ? 1
				  : j == after->n_tables
					  ? -1
					  : compare_tables(&before->tables[i], &after->tables[j]);

		if (!order) {
			match(before, &before->tables[i++], after, &after->tables[j++], ret);
		} else if (order < 0) {
			before->tables[i++].same = false;
			ret->freed++;
		} else {
			after->tables[j++].same = false;
			ret->created++;
		}
	}
}
