/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/outside.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "driver-interface/file_map.h"

/* What a machine with two thousand processes has of tables (tables.c). */
#define PAGES_MAX ((uint64_t)8 << 20)
#define NS_MAX    (60 * NS_PER_SECOND)

/* Below these, what is torn may be all of it: so many, and one of so many; or fewer, more often. */
static const struct {
	uint64_t least;
	uint64_t share;
} wrong[] = { { 64, 500 }, { 8, 10 } };

/* Up to so many times the end of the image, and so much more, may be memory that it lacks. */
#define FAR_TIMES 2
#define FAR_MORE  (UINT64_C(4) << 30)

static void consider(struct outside *o, const struct range_list *ranges, uint64_t address)
{
	o->looked++;
	if (range_list_find(ranges, address))
		return;
	o->entries++;
	/* What is no table says anything; no machine has so much. */
	if (address / FAR_TIMES > ranges->at[ranges->count - 1].last + FAR_MORE)
		return;
	o->first = o->last ? MIN(o->first, address) : address;
	o->last = MAX(o->last, address);
}

static void look_at_entries(struct outside *o, struct walk *w)
{
	const struct range_list *ranges = w->mem->ranges;
	enum walk_event event;

	while ((event = walk_next(w)) != WALK_END) {
		if (event == WALK_TABLE)
			o->looked++;
		else if (event == WALK_SKIP && w->skip.reason == WALK_OUTSIDE)
			consider(o, ranges, w->skip.target);
		else if (event == WALK_LEAF && w->leaf.entry.kind == ENTRY_LEAF &&
			 w->leaf.raw & PTE_USER && !(w->leaf.entry.va >> 63))
			consider(o, ranges, w->leaf.entry.frame);
	}
}

static uint64_t outside_time(void)
{
	return interrupted() ? UINT64_MAX : clock_mono_ns();
}

struct run {
	struct drv *source;
	const struct discovery *found;
	struct outside outside;
	struct physmem_drv mem;
	struct walk walk;
	struct walk_set set;
};

static enum status run_look(void *arg, struct err *e)
{
	struct run *r = arg;
	struct walk_budget budget = { .pages = PAGES_MAX,
				      .deadline = clock_mono_ns() + NS_MAX,
				      .now = outside_time };
	const struct walk_options options = { .mode = r->found->mode,
					      .last = UINT64_MAX,
					      .ignore = r->found->ignore,
					      .budget = &budget };
	struct root_cursor roots = { 0 };
	uint64_t root;
	enum status st;

	physmem_drv_init(&r->mem, r->source, clock_mono_ns);
	st = walk_set_init(&r->set, r->mem.mem.ranges, e);
	while (!st && discovery_next_root(r->found, &roots, &root)) {
		walk_begin(&r->walk, &r->mem.mem, &r->set, &options, root);
		look_at_entries(&r->outside, &r->walk);
	}
	walk_set_deinit(&r->set);
	return st;
}

enum status outside_look(const struct reading *reading, struct drv *source,
			 const struct discovery *d, struct outside *ret, struct err *e)
{
	const bool was_left = drv_is_abandoned(source);
	struct run *r;
	enum status st;

	*ret = (struct outside){ 0 };
	if (!d->n_spaces)
		return ST_OK;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(e);
	r->source = source;
	r->found = d;
	st = reading_run(reading, run_look, r, e);
	if (!was_left && drv_is_abandoned(source)) /* a thread that was left behind is inside */
		return st;
	*ret = r->outside;
	free(r);
	return st;
}

bool outside_is_wrong(const struct outside *o, const struct drv_info *info)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong) && drv_is_raw(info); i++)
		if (o->entries >= wrong[i].least && o->entries >= o->looked / wrong[i].share)
			return true;
	return false;
}

void outside_text(const struct outside *o, struct err *ret)
{
	char where[64] = "";

	if (o->last)
		snprintf(where, sizeof(where), ", from 0x%" PRIx64 " to 0x%" PRIx64, o->first,
			 o->last);
	err_set(ret, ST_UNREADABLE,
		"%" PRIu64 " of %" PRIu64 " entries of page tables refer to memory that the image "
		"does not have%s: it was cut off, its parts are in another order, or its RAM "
		"banks are stored end to end, without the hole below 4 GiB; everything above the "
		"hole then has wrong addresses (use --map to say where it belongs)",
		o->entries, o->looked, where);
}
