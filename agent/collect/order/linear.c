/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three orders that are sweeps over the map, in order of address: once over everything, or first
 * the page tables and then the rest, or the other way round.
 */
#include "agent/collect/order/order.h"
#include "agent/collect/order/sweep.h"

struct linear_feed {
	struct stream_feed feed;
	struct sweep sweep;
	const struct walk_set *tables;
	bool last_half;
	bool tables_first;
};

static enum status linear_next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct linear_feed *f = (struct linear_feed *)feed;
	enum status st = sweep_next(&f->sweep, p);

	if (st != ST_END || !f->sweep.set || f->last_half)
		return st;
	f->last_half = true;
	sweep_restart(&f->sweep, f->tables, !f->tables_first);
	return sweep_next(&f->sweep, p);
}

static void linear_read(struct stream_feed *feed, struct stream_piece *p, unsigned worker)
{
	sweep_read_later(&((struct linear_feed *)feed)->sweep, p, worker);
}

static enum status open_sweeps(const struct memory_plan *plan, struct memory_result *result,
			       bool split, bool tables_first, struct stream_feed **ret,
			       struct err *e)
{
	struct linear_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return err_nomem(e);
	*f = (struct linear_feed){
		.feed = { .next = linear_next, .read = linear_read },
		.sweep = { .source = plan->source,
			   .result = result,
			   .ranges = memory_ranges(plan),
			   .watch = plan->watch,
			   .candidates = plan->candidates,
			   .later = sweep_reads_beside(plan) },
		.tables = split ? plan->table_pages : NULL,
		.tables_first = tables_first,
	};
	sweep_restart(&f->sweep, f->tables, tables_first);
	*ret = &f->feed;
	return ST_OK;
}

static enum status open_linear(const struct memory_plan *plan, struct memory_result *result,
			       struct stream_feed **ret, struct err *e)
{
	return open_sweeps(plan, result, false, false, ret, e);
}

static enum status open_tables_first(const struct memory_plan *plan, struct memory_result *result,
				     struct stream_feed **ret, struct err *e)
{
	return open_sweeps(plan, result, true, true, ret, e);
}

static enum status open_tables_last(const struct memory_plan *plan, struct memory_result *result,
				    struct stream_feed **ret, struct err *e)
{
	return open_sweeps(plan, result, true, false, ret, e);
}

static void close_feed(struct stream_feed *f)
{
	free(f);
}

const struct order linear_order = {
	.name = "linear",
	.summary = "in order of address",
	.open = open_linear,
	.close = close_feed,
};

const struct order tables_first_order = {
	.name = "tables-first",
	.summary = "the page tables first, then the rest in order of address",
	.wants_tables = true,
	.open = open_tables_first,
	.close = close_feed,
};

const struct order tables_last_order = {
	.name = "tables-last",
	.summary = "the page tables last, behind the rest",
	.wants_tables = true,
	.open = open_tables_last,
	.close = close_feed,
};
