/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/leaves.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

void leaves_deinit(struct leaves *l)
{
	free(l->at);
	free(l->tables);
	free(l->readings);
	*l = (struct leaves){ 0 };
}

void leaves_clear(struct leaves *l)
{
	l->count = 0;
	l->n_tables = 0;
	l->first_table = 0;
	l->n_readings = 0;
	l->not_followed = 0;
	l->stop = WALK_COMPLETE;
	l->event = WALK_END;
}

static enum status add_reading(struct leaves *l, struct rsz_times when, struct err *e)
{
	if (l->n_readings == l->readings_room) {
		struct rsz_times *at = array_grow(l->readings, &l->readings_room, sizeof(*at));

		if (!at)
			return err_nomem(e);
		l->readings = at;
	}
	l->readings[l->n_readings++] = when;
	return ST_OK;
}

static bool load_earlier(struct earlier_readings *earlier, const struct older_page *o, uint8_t *ret)
{
	const struct rsz_chunk *c;

	if (rsz_cursor_load(earlier->cursor, o->record, &c, NULL) ||
	    o->data + PAGE_SIZE > c->length)
		return false;
	memcpy(ret, c->data + o->data, PAGE_SIZE);
	return true;
}

/*
 * The earlier readings of a table become those of its level. One that cannot be read may have said
 * anything, and so may those that are too many: then the way is broken before the rest.
 */
static enum status read_earlier(struct leaves *l, struct leaf_table *x, unsigned level,
				struct earlier_readings *earlier, struct err *e)
{
	size_t n;
	const struct older_page *o = captures_older(earlier->captures, x->pa, &n);
	const size_t skipped = n > READINGS_MAX ? n - READINGS_MAX : 0;
	uint8_t *count = &earlier->count[level];
	const bool known = x->pa && earlier->whole[level] == x->pa;
	bool whole = true;
	enum status st = ST_OK;

	*count = 0;
	x->broken = skipped > 0 || earlier->captures->older_untold;
	x->first_reading = (uint32_t)l->n_readings;
	for (size_t i = skipped; i < n && !st; i++) {
		if (!known && !load_earlier(earlier, &o[i], earlier->bytes[level][*count])) {
			*count = 0;
			x->broken = true;
			whole = false;
			x->first_reading = (uint32_t)l->n_readings;
			continue;
		}
		++*count;
		st = add_reading(l, (struct rsz_times){ o[i].start, o[i].end }, e);
	}
	earlier->whole[level] = whole ? x->pa : 0;
	x->n_readings = *count;
	return st;
}

/* In how many of the readings above, the latest of them, this table was named. */
static unsigned times_named(const struct earlier_readings *earlier, const struct walk_table *t)
{
	const size_t i = t->va >> (PAGE_SHIFT + 9 * t->level) & (TABLE_ENTRIES - 1);
	unsigned n = 0;

	for (unsigned k = earlier->count[t->level + 1]; k-- > 0; n++) {
		const uint64_t raw = get_le64(earlier->bytes[t->level + 1][k] + 8 * i);

		if (!(raw & PTE_PRESENT) || (raw & PTE_FRAME) != t->pa)
			break;
	}
	return n;
}

static enum status read_older_tables(struct leaves *l, struct leaf_table *x,
				     const struct leaf_table *above, const struct walk_table *t,
				     struct earlier_readings *earlier, struct err *e)
{
	const enum status st = read_earlier(l, x, t->level, earlier, e);
	unsigned named;

	x->held = !above;
	if (st || !above)
		return st;
	named = times_named(earlier, t);
	x->held = above->held && named;
	x->broken |= above->broken || named < above->n_readings;
	if (x->held)
		x->held_since = MAX(
			above->held_since,
			times_known_by(
				&l->readings[above->first_reading + above->n_readings - named]));
	return ST_OK;
}

static enum status add_table(struct leaves *l, const struct walk_table *t, uint32_t parent,
			     struct earlier_readings *earlier, struct err *e)
{
	const struct leaf_table *above;
	struct leaf_table x = {
		.pa = t->pa,
		.va = t->va,
		.start = t->when.start,
		.end = t->when.end,
		.since = times_known_by(&(struct rsz_times){ t->when.start, t->when.end }),
		.until = t->when.start,
		.parent = parent,
		.level = (uint8_t)t->level,
	};
	enum status st = ST_OK;

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
	if (earlier)
		st = read_older_tables(l, &x, above, t, earlier, e);
	l->tables[l->n_tables++] = x;
	return st;
}

static uint8_t times_same(const struct earlier_readings *earlier, const struct walk_leaf *leaf)
{
	uint8_t n = 0;

	for (unsigned k = earlier ? earlier->count[leaf->level] : 0; k-- > 0; n++) {
		const uint8_t *bytes = earlier->bytes[leaf->level][k];

		if (!entry_same_rights(earlier->entries, get_le64(bytes + leaf->pa % PAGE_SIZE),
				       leaf->raw))
			break;
	}
	return n;
}

static enum status append_leaf(struct leaves *l, const struct walk_leaf *leaf, uint32_t table,
			       const struct earlier_readings *earlier, struct err *e)
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
		.same = times_same(earlier, leaf),
	};
	return ST_OK;
}

void leaves_begin(struct leaves *l, struct physmem *mem, struct walk_set *set,
		  const struct walk_options *options, uint64_t dtb,
		  struct earlier_readings *earlier)
{
	leaves_clear(l);
	memset(l->current, 0xff, sizeof(l->current));
	if (set)
		walk_set_clear(set);
	l->earlier = earlier;
	walk_begin(&l->walk, mem, set, options, dtb);
	l->event = walk_next(&l->walk);
	l->stop = l->walk.stop;
}

uint64_t leaves_next_va(const struct leaves *l)
{
	switch (l->event) {
	case WALK_TABLE:
		return l->walk.table.va;
	case WALK_LEAF:
		return l->walk.leaf.entry.va;
	case WALK_SKIP:
		return l->walk.skip.va;
	default:
		return UINT64_MAX;
	}
}

void leaves_next_slice(struct leaves *l)
{
	l->count = 0;
	l->first_table = l->n_tables;
}

static enum status take_table(struct leaves *l, struct err *e)
{
	const struct walk_table *t = &l->walk.table;
	const bool root = t->level == (unsigned)l->walk.options.mode;
	const enum status st =
		add_table(l, t, root ? NO_TABLE : l->current[t->level + 1], l->earlier, e);

	l->current[t->level] = (uint32_t)(l->n_tables - 1);
	return st;
}

enum status leaves_take(struct leaves *l, uint64_t last, struct err *e)
{
	enum status st = ST_OK;

	while (!st && l->event != WALK_END && leaves_next_va(l) <= last) {
		if (l->event == WALK_TABLE)
			st = take_table(l, e);
		else if (l->event == WALK_LEAF)
			st = append_leaf(l, &l->walk.leaf, l->current[l->walk.leaf.level],
					 l->earlier, e);
		else
			l->not_followed++;
		l->event = walk_next(&l->walk);
		l->stop = l->walk.stop;
	}
	return st;
}

/* In the order in which a walk comes to them: by address, and from the root down. */
static int compare_tables(const struct leaf_table *a, const struct leaf_table *b)
{
	if (a->va != b->va)
		return a->va < b->va ? -1 : 1;
	return a->level > b->level ? -1 : a->level < b->level;
}

bool leaves_same_way(const struct leaves *x, const struct leaf_table *a, const struct leaves *y,
		     const struct leaf_table *b)
{
	while (a && b && a->pa == b->pa && a->level == b->level) {
		if (a->parent == NO_TABLE || b->parent == NO_TABLE)
			return a->parent == b->parent;
		a = &x->tables[a->parent];
		b = &y->tables[b->parent];
	}
	return false;
}

/* A table is at the same place if its page is, and all above it are. */
static void match_tables(struct leaves *x, struct leaf_table *a, struct leaves *y,
			 struct leaf_table *b, struct table_changes *ret)
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
	size_t i = before->first_table, j = after->first_table;

	while (i < before->n_tables || j < after->n_tables) {
		const int order = i == before->n_tables ? 1
				  : j == after->n_tables
					  ? -1
					  : compare_tables(&before->tables[i], &after->tables[j]);

		if (!order) {
			match_tables(before, &before->tables[i++], after, &after->tables[j++], ret);
		} else if (order < 0) {
			before->tables[i++].same = false;
			ret->freed++;
		} else {
			after->tables[j++].same = false;
			ret->created++;
		}
	}
}

void leaves_mark_known(struct leaves *image, const struct leaves *pass)
{
	size_t i = image->first_table, j = pass->first_table;

	while (i < image->n_tables && j < pass->n_tables) {
		const int order = compare_tables(&image->tables[i], &pass->tables[j]);

		if (!order)
			image->tables[i].known |=
				leaves_same_way(image, &image->tables[i], pass, &pass->tables[j]);
		i += order <= 0;
		j += order >= 0;
	}
}
