/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the order of the page tables: read some tables, read the frames that they name at once,
 * read the tables again, as one reads under a sequence lock. What changed in between is read once
 * more, up to a bound. So an entry and its frame lie milliseconds apart, however large the memory
 * is. What no table names follows in order of address.
 *
 * Both readings of a table go into the stream of the memory, which it is a part of: the first, and
 * as a later capture of the same page the last, so that the image's own tables are the ones that
 * fit it. With the two, whoever judges the image knows that an entry was the same before its frame
 * was read and after (examine/smear/METHOD.md). A frame that several tables name is read once,
 * behind the first, as long as the others name it as the pass before the memory saw them do: then
 * it is theirs, too. An entry that is another one by now, and a table that was not there, have
 * their frames captured again, between the table's own two readings. Each capture is kept, and a
 * mapping has its own.
 *
 * Where slots of page files are read by the tables, a group waits for those that it names, while
 * the walk goes on, and its tables are read once more behind them.
 *
 * Tables are taken in groups: as many as name about a chunk full of frames, which are sorted, and
 * read with one request for each run of neighbours. A table above the lowest level joins a group
 * when everything below it has been read; so on the way from a root to a frame, every table was
 * read before the frame and again after it. In the rest, which has no bracket that could get
 * longer, what was captured before is read along, and dropped, where that takes no longer than
 * another request (sweep.c).
 *
 * Where several may read, they read a group's frames side by side (stage_read.h), and no thread but
 * this one its tables.
 *
 * Costs, beside the pipeline's buffers: five bits for each page of memory (how often it was
 * captured, tables that were visited), some 8 MiB for the group in hand and for those that wait,
 * and 144 bytes for each table of the pass before, up to 38 MiB (shared/kernel/prints.h). Every
 * table is read twice, once more behind its slots, and those that change up to GUIDED_ROUNDS times
 * more. Every page is taken for a table once at most, is captured CAPTURES times at most but for
 * tables, and not more than a part of the memory is captured again, which bounds the whole on
 * hostile tables, too.
 */
#include <string.h>

#include "agent/collect/order/guided_internal.h"
#include "agent/collect/order/order.h"
#include "agent/shared/program/clock.h"

/*
 * What may be captured again: a part of the memory, and each page so often. Whoever changes his
 * entries all the time does not fill the container, nor the time.
 */
#define AGAIN_SHARE 8
#define AGAIN_MIN   ((uint64_t)64 << 20 >> PAGE_SHIFT)

/* Table pages that the walk may read for one group: the last ones may be on the way to the next. */
#define GROUP_READS (GROUP_TABLES + WALK_LEVELS)

/*
 * Makes a piece of what is to go out next: of a page that was captured twice, the first capture
 * goes first. False: there is nothing.
 */
static bool emit_piece(struct guided_feed *f, struct stream_piece *p)
{
	if (slots_next(f->slots, p))
		return true;
	if (f->emitting && f->before.n)
		batch_emit(&f->before, p);
	else if (f->stage.pages)
		stage_emit(&f->stage, p);
	else if (f->emitting && f->after.n)
		batch_emit(&f->after, p);
	else
		f->emitting = false;
	return p->n_extents > 0;
}

/*
 * The walk
 */

/* Tables of `level` and below it on the path are done with: they join the group. */
static void leave_path(struct guided_feed *f, unsigned level)
{
	for (unsigned l = 2; l <= level; l++) {
		if (f->on_path[l])
			guided__group_add_table(f, &f->path[l]);
		f->on_path[l] = false;
	}
}

static void enter_table(struct guided_feed *f)
{
	const struct walk_table *w = &f->walk.table;
	const bool lowest = w->level == 1;
	const size_t runs = f->group.n_runs;
	struct table *t = &f->path[w->level];

	leave_path(f, w->level);
	*t = (struct table){ .level = w->level, .pa = w->pa, .va = w->va };
	memcpy(t->bytes, w->bytes, PAGE_SIZE);
	t->pass = (uint16_t)guided__count_capture(f, w->pa);
	guided__add_reading(&f->before, t, &w->when, t->pass ? RSZ_TABLE_AGAIN : RSZ_FIRST);
	f->on_path[w->level] = !lowest;
	f->result->guided_pages++;
	if (f->sweep.watch)
		root_watch_page(f->sweep.watch, t->bytes, t->pa);
	guided__group_add_leaves(f, t);
	f->group.pages += lowest ? slots_count(f->slots, t->bytes) : 0;
	if (lowest)
		guided__group_add_table(f, t);
	else
		/* Large pages do not wait for everything that lies below the same table. */
		f->group_full = f->group.n_runs > runs;
}

static bool begin_walk(struct guided_feed *f)
{
	const struct discovery *d = f->spaces;
	const struct walk_options options = {
		.mode = d->mode,
		.last = UINT64_MAX,
		.ignore = d->ignore,
		.budget = &f->budget,
		.tables_only = true,
	};
	uint64_t root;

	if (f->n_subtrees) {
		const struct subtree *s = &f->subtrees[--f->n_subtrees];

		walk_begin_at(&f->walk, &f->mem.mem, &f->visited, &options, s->level, s->pa, s->va);
		return true;
	}
	if (!discovery_next_root(d, &f->roots, &root))
		return false;
	walk_begin(&f->walk, &f->mem.mem, &f->visited, &options, root);
	return true;
}

/* Goes on until the group is full. False when there is nothing more to walk. */
static bool fill_group(struct guided_feed *f)
{
	enum walk_event event;

	while (!guided__group_is_full(f)) {
		if (!f->walking) {
			f->walking = begin_walk(f);
			if (!f->walking)
				return false;
		}
		event = walk_next(&f->walk);
		if (event == WALK_TABLE)
			enter_table(f);
		if (event != WALK_END)
			continue;
		leave_path(f, WALK_LEVELS);
		f->walking = false;
	}
	return true;
}

/* Behind the last space: those that began meanwhile. False if they have been walked, too. */
static enum status find_later_spaces(struct guided_feed *f, bool *ret, struct err *e)
{
	enum status st;

	*ret = f->find_again && f->spaces == f->first;
	if (!*ret)
		return ST_OK;
	st = f->find_again(f->sweep.source, f->first, &f->again, e);
	f->spaces = &f->again;
	f->roots = (struct root_cursor){ 0 };
	return st;
}

/*
 * The feed
 */

static void begin_rest(struct guided_feed *f)
{
	f->emitting = true;
	f->walked = true;
	f->step = STEP_REST;
}

static enum status step_tables(struct guided_feed *f, struct err *e)
{
	enum status st;
	bool more;

	if (guided__take_waiting(f))
		return ST_OK;
	if (fill_group(f) || f->group.n_tables || f->group.n_runs) {
		f->group_full = false;
		f->group.round = 0;
		guided__group_sort(&f->group);
		f->step = STEP_FRAMES;
		return ST_OK;
	}
	st = find_later_spaces(f, &more, e);
	if (!more)
		begin_rest(f);
	return st;
}

static void step_frames(struct guided_feed *f)
{
	guided__read_frames(f);
	/* Large pages: what is on the stage has to go out before the rest can come. */
	if (f->stage.pages < STAGE_PAGES)
		f->step = STEP_CHECK;
}

static void step_check(struct guided_feed *f)
{
	struct group *g = &f->group;

	f->step = STEP_FRAMES;
	if (guided__check_tables(f)) {
		g->round++;
		return;
	}
	guided__group_clear_runs(g);
	if (guided__want_slots(f))
		guided__wait_for_slots(f);
	g->n_tables = 0;
	f->step = f->walked ? STEP_REST : STEP_TABLES;
	f->emitting = f->walked || !batch_has_room(&f->before, GROUP_READS) ||
		      !batch_has_room(&f->after, GROUP_TABLES);
}

/*
 * A group is gone through in one call, and only then there is something to go out, unless it is too
 * large for the stage.
 */
static enum status run_guided_step(struct guided_feed *f, struct err *e)
{
	enum status st = ST_OK;

	do {
		if (sweep_stopped(&f->sweep))
			begin_rest(f);
		switch (f->step) {
		case STEP_TABLES:
			st = step_tables(f, e);
			break;
		case STEP_FRAMES:
			step_frames(f);
			break;
		case STEP_CHECK:
			step_check(f);
			break;
		case STEP_REST:
			return ST_OK;
		}
	} while (!st && f->step != STEP_TABLES && f->stage.pages < STAGE_PAGES);
	return st;
}

/* What no table names, and then the slots that are still being read. */
static enum status next_rest(struct guided_feed *f, struct stream_piece *p)
{
	enum status st;

	/* As long as tables wait, which may name some of it, every capture is counted below. */
	f->sweep.later = f->rest_beside && !f->n_waiting;
	st = sweep_next(&f->sweep, p);

	/* Tables that still wait may name it. */
	for (size_t i = 0; f->n_waiting && i < p->n_extents; i++)
		for (size_t k = 0; k < rsz_extent_pages(&p->extents[i]); k++)
			guided__count_capture(f, p->extents[i].address + k * PAGE_SIZE);
	if (st != ST_END || slots_end(f->slots, p))
		return st == ST_END ? ST_OK : st;
	/* From now on the files are not ours. */
	f->slots = NULL;
	f->slots_seen = UINT64_MAX;
	return ST_END;
}

static void guided_read(struct stream_feed *feed, struct stream_piece *p, unsigned worker)
{
	sweep_read_later(&((struct guided_feed *)feed)->sweep, p, worker);
}

static enum status guided_next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct guided_feed *f = (struct guided_feed *)feed;
	enum status st = ST_OK;

	while (!st && !emit_piece(f, p)) {
		if (f->step == STEP_REST && !guided__take_waiting(f)) {
			st = next_rest(f, p);
			if (st != ST_END || !guided__take_waiting(f))
				return st;
		}
		st = run_guided_step(f, e);
	}
	return st;
}

static void close_guided(struct stream_feed *feed)
{
	struct guided_feed *f = (struct guided_feed *)feed;

	if (!f)
		return;
	for (size_t i = 0; i < CAPTURES; i++)
		walk_set_deinit(&f->captured[i]);
	walk_set_deinit(&f->visited);
	discovery_deinit(&f->again);
	free(f->group.tables);
	free(f->group.runs);
	free(f->waiting);
	stage_readers_destroy(f->readers);
	stage_deinit(&f->stage);
	batch_deinit(&f->before);
	batch_deinit(&f->after);
	free(f);
}

static bool allocate_guided_feed(struct guided_feed *f)
{
	f->group.tables = malloc(GROUP_TABLES * sizeof(*f->group.tables));
	f->group.runs = malloc(GROUP_RUNS * sizeof(*f->group.runs));
	f->waiting = malloc(WAITING * sizeof(*f->waiting));
	return f->group.tables && f->group.runs && f->waiting && stage_init(&f->stage) &&
	       batch_init(&f->before) && batch_init(&f->after);
}

static enum status open_guided(const struct memory_plan *plan, struct memory_result *result,
			       struct stream_feed **ret, struct err *e)
{
	struct guided_feed *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return err_nomem(e);
	f->feed.next = guided_next;
	f->feed.read = guided_read;
	f->rest_beside = sweep_reads_beside(plan);
	f->readers = stage_readers_create(plan);
	f->result = result;
	f->slots = plan->slots;
	f->find_again = plan->find_again;
	f->first = f->spaces = plan->spaces;
	f->step = f->first ? STEP_TABLES : STEP_REST;
	f->budget = (struct walk_budget)WALK_UNLIMITED;
	f->sweep = (struct sweep){
		.source = plan->source,
		.result = result,
		.ranges = &plan->source->info.maps[0].ranges,
		.watch = plan->watch,
		.candidates = plan->candidates,
		.set = &f->captured[0],
	};
	physmem_drv_init(&f->mem, plan->source, clock_mono_ns);
	st = allocate_guided_feed(f) ? ST_OK : err_nomem(e);
	for (size_t i = 0; i < CAPTURES && !st; i++)
		st = walk_set_init(&f->captured[i], f->sweep.ranges, e);
	if (!st)
		st = walk_set_init(&f->visited, f->sweep.ranges, e);
	if (st) {
		close_guided(&f->feed);
		return st;
	}
	f->prints = plan->prints;
	f->again_left =
		plan->again_max ? plan->again_max : MAX(f->visited.pages / AGAIN_SHARE, AGAIN_MIN);
	*ret = &f->feed;
	return ST_OK;
}

const struct order guided_order = {
	.name = "guided",
	.summary = "each page table, what it names at once, and the table again; then the rest",
	.wants_spaces = true,
	.takes_slots = true,
	.open = open_guided,
	.close = close_guided,
};
