/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the order of the page tables: read some tables, read the frames that they name at once,
 * read the tables again, as one reads under a sequence lock. What changed in between is read once
 * more, up to a bound. So an entry and its frame lie milliseconds apart, however large the memory
 * is. What no table names follows in order of address.
 *
 * Both readings of a table go into the stream of the memory, which it is a part of: the first, and as
 * a later capture of the same page the last, so that the image's own tables are the ones that fit
 * it. With the two, whoever judges the image knows that an entry was the same before its frame was
 * read and after (smear/METHOD.md). A frame that several tables name is read once, behind the first,
 * as long as the others name it as the pass before the memory saw them do: then it is theirs, too. An
 * entry that is another one by now, and a table that was not there, have their frames captured again,
 * between the table's own two readings. Each capture is kept, and a mapping has its own.
 *
 * Tables are taken in groups: as many as name about a chunk full of frames, which are sorted, and
 * read with one request for each run of neighbours. A table above the lowest level joins a group
 * when everything below it has been read; so on the way from a root to a frame, every table was read
 * before the frame and again after it.
 *
 * Costs, beside the pipeline's buffers: five bits for each page of memory (how often it was captured,
 * tables that were visited), some 7 MiB for the group in hand, and 144 bytes for each table of the pass
 * before, up to 38 MiB (smear/prints.h). Every table is read twice, those that change up to
 * GUIDED_ROUNDS times more. Every page is taken for a table once at most, is captured CAPTURES times at
 * most, and not more than a part of the memory is captured again, which bounds the whole on hostile
 * tables, too.
 */
#include <string.h>

#include "agent/acquire/tables.h"
#include "agent/order/order.h"
#include "agent/order/slots.h"
#include "agent/order/stage.h"
#include "agent/order/sweep.h"
#include "agent/program/clock.h"
#include "agent/smear/prints.h"
#include "formats/base/bytes.h"

/* How often tables that change are taken again. A busy process changes some entries every time. */
#define GUIDED_ROUNDS  3

/* Tables in one group. Sparse ones name few frames each, and a piece should be worth its record. */
#define GROUP_TABLES   64
/* A group is read when it has named so many pages: a chunk's worth. */
#define GROUP_PAGES    (STREAM_CHUNK / PAGE_SIZE)
/* The last table of a group adds up to 512 runs, and all of them may change meanwhile. */
#define GROUP_RUNS     (GROUP_PAGES + (size_t)TABLE_ENTRIES * GROUP_TABLES)

/*
 * What may be captured again: a part of the memory, and each page so often. Whoever changes his entries
 * all the time does not fill the container, nor the time.
 */
#define AGAIN_SHARE    8
#define AGAIN_MIN      ((uint64_t)64 << 20 >> PAGE_SHIFT)
#define CAPTURES       4

/* Table pages that the walk may read for one group: the last ones may be on the way to the next. */
#define GROUP_READS    (GROUP_TABLES + WALK_LEVELS)

/*
 * Tables whose slots are being read, to be read again behind them. When there are more, the oldest are
 * not: a disk that is too slow does not hold up the memory. Each waits so often, while it goes on to
 * name other slots.
 */
#define WAITING        256
#define WAITS          2

/* Tables that appeared in a table which had been gone through already. */
#define SUBTREES       64

/* Pages that one entry of a level maps. */
#define LEVEL_PAGES(l) (UINT64_C(1) << 9 * ((l)-1))

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

struct run {
	uint64_t pa;
	uint64_t pages;
	bool again; /* also if it was captured before: its entry is another one than then */
};

struct group {
	struct table *tables;
	size_t n_tables;
	struct run *runs;
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
	const struct table_prints *prints; /* NULL: nobody knows what the pass before saw */
	uint64_t again_left;               /* pages */

	/* The walk, and the tables from its root to where it is, by level. */
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
	bool walked;     /* all tables have been */
	bool group_full; /* it is read before the walk goes on */
	struct group group;
	struct stage stage;
	struct batch before; /* first readings, */
	struct batch after;  /* and last ones: they go out behind the first */
	bool emitting;
	struct slots *slots;   /* NULL: page files have their own time */
	struct table *waiting; /* for slots, in the order of their batches */
	size_t n_waiting;
	uint32_t batches;
	uint64_t slots_seen; /* when somebody last looked whether they wait for anything */
};

static void add_reading(struct batch *b, const struct table *t, const struct physmem_page *when,
			enum rsz_reason reason)
{
	const struct rsz_extent x = {
		.address = t->pa,
		.length = PAGE_SIZE,
		.pass = t->pass,
		.reason = (uint16_t)reason,
		.start = when->start,
		.end = when->end,
	};

	batch_add(b, &x, t->bytes);
}

/*
 * Makes a piece of what is to go out next: of a page that was captured twice, the first capture goes
 * first. False: there is nothing.
 */
static bool emit(struct guided_feed *f, struct stream_piece *p)
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
 * The group
 */

/* How often a page was captured; CAPTURES: so often, or more. */
static unsigned captures_of(const struct guided_feed *f, uint64_t pa)
{
	unsigned n = 0;

	while (n < CAPTURES && walk_set_has(&f->captured[n], pa))
		n++;
	return n;
}

/* Once more. Returns how often it had been. */
static unsigned count_capture(struct guided_feed *f, uint64_t pa)
{
	const unsigned n = captures_of(f, pa);

	if (n < CAPTURES)
		walk_set_mark(&f->captured[n], pa);
	return n;
}

static bool is_captured(const struct guided_feed *f, uint64_t pa)
{
	return walk_set_has(&f->captured[0], pa);
}

/*
 * Linux maps all of memory a second time, with large pages: to follow that map would be to read
 * memory in order of address. Where the map is not known, no large page of the kernel's is followed
 * but those of its own image.
 */
static bool is_direct_map(const struct guided_feed *f, uint64_t va, uint64_t pa, uint64_t pages)
{
	const struct drv_info *info = &f->sweep.source->info;

	if (!(va >> 63) || f->spaces->os != OS_LINUX)
		return false;
	if (info->has_direct_map)
		return va - pa == info->direct_map;
	return pages > 1 && va < UINT64_C(0xffffffff80000000); /* __START_KERNEL_map */
}

static void group_add_run(struct guided_feed *f, uint64_t va, uint64_t pa, uint64_t pages,
			  bool again)
{
	struct group *g = &f->group;

	if (g->n_runs == GROUP_RUNS || is_direct_map(f, va, pa, pages))
		return;
	if (!again && pages == 1 && is_captured(f, pa))
		return;
	g->runs[g->n_runs++] = (struct run){ pa, pages, again };
	g->pages += pages;
}

/*
 * Frames that only the operating system sees: a transition page of Windows (bit 11, and not bit 10:
 * prototype), a page of Linux that is kept from its process (PROT_NONE, NUMA balancing: bit 8). Since
 * the L1TF changes the former may have a bit of InvalidPteMask in it (mostly 45), the latter is
 * inverted. Which holds is told by evidence, later; here whatever lies in RAM will do, since a guess
 * that is wrong reads a page somewhat earlier, and no more.
 */
static uint64_t soft_frame(const struct guided_feed *f, uint64_t raw)
{
	const struct range_list *ram = f->sweep.ranges;
	const bool windows = f->spaces->os == OS_WINDOWS;
	const uint64_t frame = raw & PTE_FRAME;
	const uint64_t other = windows ? frame ^ UINT64_C(1) << 45 : ~raw & PTE_FRAME;

	if (!(windows ? (raw & 0xc00) == 0x800 : f->spaces->os == OS_LINUX && (raw & 0x100)))
		return 0;
	if (range_list_find(ram, frame))
		return frame;
	return range_list_find(ram, other) ? other : 0;
}

static struct entry judge(const struct guided_feed *f, const struct table *t, size_t i,
			  const uint8_t *bytes)
{
	const struct discovery *d = f->spaces;
	const uint64_t raw = get_le64(bytes + 8 * i);
	struct entry e = entry_judge(d->mode, t->level, t->va, i, raw, d->ignore);

	if (e.kind == ENTRY_ABSENT && t->level == 1)
		e.frame = soft_frame(f, raw);
	if (e.kind == ENTRY_ABSENT && e.frame)
		e.kind = ENTRY_LEAF;
	return e;
}

/* PAE roots share their page with the roots of others, and map nothing by themselves. */
static size_t own_entries(const struct guided_feed *f, const struct table *t)
{
	return f->spaces->mode == PAGING_PAE && t->level == 3 ? 0 : TABLE_ENTRIES;
}

/*
 * Which of a table's entries, 8 for each bit, are others than when the pass before read them. What they
 * name, and was captured already, may have been something else's then. Of the kernel's half, which maps
 * much, changes all the time and is in no measure, and of 1 GiB pages nothing is captured again.
 */
static uint64_t changed_entries(const struct guided_feed *f, const struct table *t)
{
	const struct printed_table now = { t->level, t->pa, t->va, t->bytes };

	if (!f->prints || t->va >> 63 || t->level > 2)
		return 0;
	return table_prints_changed(f->prints, &now);
}

/* Everything that a table maps by itself. */
static void group_add_leaves(struct guided_feed *f, struct table *t)
{
	t->changed = changed_entries(f, t);
	for (size_t i = 0; i < own_entries(f, t); i++) {
		const struct entry e = judge(f, t, i, t->bytes);

		if (e.kind == ENTRY_LEAF)
			group_add_run(f, e.va, e.frame, LEVEL_PAGES(t->level),
				      t->changed >> i / 8 & 1);
	}
}

static void group_add_table(struct guided_feed *f, const struct table *t)
{
	struct table *at = &f->group.tables[f->group.n_tables++];

	*at = *t;
	at->open = true;
}

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->pa != y->pa)
		return x->pa < y->pa ? -1 : 1;
	if (x->pages != y->pages)
		return x->pages < y->pages ? -1 : 1;
	return y->again - x->again;
}

static void group_sort(struct group *g)
{
	qsort(g->runs, g->n_runs, sizeof(*g->runs), compare_runs);
	g->run = 0;
	g->page = 0;
}

static void group_clear_runs(struct group *g)
{
	g->n_runs = 0;
	g->pages = 0;
	g->run = 0;
	g->page = 0;
}

/* A group's worth is in it, or what one more table could add would not fit. */
static bool group_is_full(const struct guided_feed *f)
{
	const struct group *g = &f->group;

	return f->group_full || g->pages >= GROUP_PAGES ||
	       g->n_tables + WALK_LEVELS + 1 >= GROUP_TABLES;
}

/*
 * Frames
 */

/* Several entries of a group may name the same, which is then captured in the bracket of each. */
static bool is_repeated(const struct group *g)
{
	const struct run *r = &g->runs[g->run];

	return g->run && r[-1].pa == r->pa && r[-1].pages == r->pages;
}

/*
 * Within what may be captured again. A page that is a table and has not gone out yet cannot: its
 * captures go out in the order in which they were made.
 */
static bool may_again(const struct guided_feed *f, uint64_t pa)
{
	return f->again_left && !walk_set_has(&f->captured[CAPTURES - 1], pa) &&
	       !(walk_set_has(&f->visited, pa) &&
		 (batch_has(&f->before, pa) || batch_has(&f->after, pa)));
}

static bool is_wanted(struct guided_feed *f, const struct run *r, uint64_t pa)
{
	if (!range_list_find(f->sweep.ranges, pa))
		return false;
	if (!is_captured(f, pa) || (r->again && may_again(f, pa)))
		return true;
	f->result->not_retaken += r->again;
	return false;
}

/* The next page of the runs that is to be read; false behind the last. */
static bool next_page(struct guided_feed *f, uint64_t *pa)
{
	struct group *g = &f->group;

	for (; g->run < g->n_runs; g->run++, g->page = 0) {
		const struct run *r = &g->runs[g->run];

		for (; g->page < r->pages && !is_repeated(g); g->page++) {
			*pa = r->pa + g->page * PAGE_SIZE;
			if (is_wanted(f, r, *pa))
				return true;
		}
	}
	return false;
}

/* A run of neighbours that were captured `*pass` times, at most `most` pages. */
static size_t next_run(struct guided_feed *f, size_t most, uint64_t *ret, unsigned *pass)
{
	uint64_t pa;
	size_t n = 0;

	for (; n < most && next_page(f, &pa); n++, f->group.page++) {
		const unsigned times = captures_of(f, pa);

		if (!n) {
			*ret = pa;
			*pass = times;
		} else if (pa != *ret + n * PAGE_SIZE || times != *pass) {
			break;
		}
		count_capture(f, pa);
		f->again_left -= times > 0;
	}
	return n;
}

/* As many as there is room for on the stage. */
static void read_frames(struct guided_feed *f)
{
	struct stage *stage = &f->stage;
	struct stream_piece *p = &stage->piece;
	uint64_t address = 0;
	unsigned pass = 0;
	size_t n;

	while (p->n_extents < STAGE_PAGES && !f->sweep.skip &&
	       (n = next_run(f, STAGE_PAGES - stage->pages, &address, &pass))) {
		sweep_read(&f->sweep, p, stage->pages, address, n);
		stage->pages += n;
		if (pass) {
			p->extents[p->n_extents - 1].pass = (uint16_t)pass;
			p->extents[p->n_extents - 1].reason = RSZ_TABLE_CHANGED;
			f->result->retaken_pages += n;
		} else {
			f->result->guided_pages += n;
		}
	}
}

/*
 * Tables, again
 */

static void add_subtree(struct guided_feed *f, unsigned level, uint64_t pa, uint64_t va)
{
	if (f->n_subtrees < SUBTREES && !walk_set_has(&f->visited, pa))
		f->subtrees[f->n_subtrees++] = (struct subtree){ level, pa, va };
}

/*
 * What the new bytes of a table name that the old ones did not: frames to be taken (again), tables
 * to be walked. Rights, accessed and dirty bits do not matter here. True if there are frames.
 */
static bool compare(struct guided_feed *f, struct table *t, const uint8_t *now)
{
	bool frames = false;

	for (size_t i = 0; i < own_entries(f, t); i++) {
		const struct entry was = judge(f, t, i, t->bytes);
		const struct entry is = judge(f, t, i, now);

		if (is.kind == ENTRY_ABSENT && memcmp(t->bytes + 8 * i, now + 8 * i, 8))
			t->changed |= UINT64_C(1) << i / 8;
		if (is.kind == was.kind && is.frame == was.frame)
			continue;
		frames |= is.kind == ENTRY_LEAF;
		if (is.kind == ENTRY_LEAF)
			group_add_run(f, is.va, is.frame, LEVEL_PAGES(t->level), true);
		else if (is.kind == ENTRY_TABLE)
			add_subtree(f, t->level - 1, is.frame, is.va);
	}
	return frames;
}

/* Reads one table again. It stays open if something new is to be read for it. */
static void check_table(struct guided_feed *f, struct table *t)
{
	struct group *g = &f->group;
	struct physmem_page when;
	uint8_t now[PAGE_SIZE];
	bool changed;

	t->open = false;
	/* It was readable a moment ago; what is gone now keeps its first copy. */
	if (!physmem_read_page(&f->mem.mem, t->pa, now, &when))
		return;
	changed = compare(f, t, now);
	memcpy(t->bytes, now, PAGE_SIZE);
	f->result->tables_changed += changed && !g->round && !t->waits;
	t->open = changed && g->round < GUIDED_ROUNDS;
	f->result->tables_unsettled += changed && !t->open;
	/* What comes behind it begins its bracket; room for the last ones is kept. */
	if (t->open && !batch_has_room(&f->after, GROUP_TABLES + 1))
		return;
	t->pass++;
	count_capture(f, t->pa);
	add_reading(&f->after, t, &when, RSZ_TABLE_AGAIN);
}

static bool check_tables(struct guided_feed *f)
{
	struct group *g = &f->group;
	bool open = false;

	group_clear_runs(g);
	for (size_t i = 0; i < g->n_tables; i++) {
		if (g->tables[i].open)
			check_table(f, &g->tables[i]);
		open |= g->tables[i].open;
	}
	group_sort(g);
	return open;
}

/*
 * The walk
 */

/* Tables of `level` and below it on the path are done with: they join the group. */
static void leave_path(struct guided_feed *f, unsigned level)
{
	for (unsigned l = 2; l <= level; l++) {
		if (f->on_path[l])
			group_add_table(f, &f->path[l]);
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
	t->pass = (uint16_t)count_capture(f, w->pa);
	add_reading(&f->before, t, &w->when, t->pass ? RSZ_TABLE_AGAIN : RSZ_FIRST);
	f->on_path[w->level] = !lowest;
	f->result->guided_pages++;
	if (f->sweep.watch)
		root_watch_page(f->sweep.watch, t->bytes, t->pa);
	group_add_leaves(f, t);
	f->group.pages += lowest ? slots_count(f->slots, t->bytes) : 0;
	if (lowest)
		group_add_table(f, t);
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

	while (!group_is_full(f)) {
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
static enum status look_again(struct guided_feed *f, bool *ret, struct err *e)
{
	enum status st;

	*ret = f->spaces == f->first;
	if (!*ret)
		return ST_OK;
	st = tables_find_again(f->sweep.source, f->first, &f->again, e);
	f->spaces = &f->again;
	f->roots = (struct root_cursor){ 0 };
	return st;
}

/*
 * Slots
 *
 * They are read behind their tables, since frames do not wait for a disk, and then the tables are read once
 * more: all of the group, so that the way to them is read again, too. What is the same around its slot has a
 * bracket like a frame's; what is not is taken again like any change (smear/METHOD.md, section 6).
 */

/* False: the group names none that are to come. */
static bool want_slots(struct guided_feed *f)
{
	const struct group *g = &f->group;
	size_t due = 0;

	for (size_t i = 0; i < g->n_tables; i++)
		if (g->tables[i].level == 1 && g->tables[i].waits < WAITS)
			due += slots_want(f->slots, g->tables[i].bytes, g->tables[i].changed);
	return due > 0;
}

static void drop_waiting(struct guided_feed *f, size_t first, size_t n)
{
	f->n_waiting -= n;
	memmove(f->waiting + first, f->waiting + first + n,
		(f->n_waiting - first) * sizeof(*f->waiting));
}

/* How many tables wait together from `first` on, and whether for nothing any more. */
static size_t waiting_batch(const struct guided_feed *f, size_t first, bool *ready)
{
	size_t n = 0;

	*ready = true;
	for (; first + n < f->n_waiting; n++) {
		const struct table *t = &f->waiting[first + n];

		if (t->batch != f->waiting[first].batch)
			break;
		*ready = *ready && !(t->level == 1 && slots_due(f->slots, t->bytes));
	}
	return n;
}

/* All of the group. */
static void wait_for_slots(struct guided_feed *f)
{
	const struct group *g = &f->group;
	bool ready;

	while (WAITING - f->n_waiting < g->n_tables)
		drop_waiting(f, 0, waiting_batch(f, 0, &ready));
	f->batches++;
	for (size_t i = 0; i < g->n_tables; i++) {
		struct table *t = &f->waiting[f->n_waiting++];

		*t = g->tables[i];
		t->batch = f->batches;
		t->waits++;
		t->changed = 0; /* what changes from now on counts */
	}
	f->slots_seen = UINT64_MAX;
}

/* The empty group becomes the first whose slots have been read. False: there is none. */
static bool take_waiting(struct guided_feed *f)
{
	const struct slots_counts counts = slots_counts(f->slots);
	const uint64_t seen = counts.read + counts.failed + counts.dropped;
	struct group *g = &f->group;
	bool ready = false;
	size_t n;

	if (f->slots_seen == seen || sweep_stopped(&f->sweep))
		return false;
	for (size_t i = 0; i < f->n_waiting && !ready; i += n) {
		n = waiting_batch(f, i, &ready);
		if (!ready)
			continue;
		for (size_t k = 0; k < n; k++)
			group_add_table(f, &f->waiting[i + k]);
		drop_waiting(f, i, n);
	}
	if (!ready)
		f->slots_seen = seen;
	g->round = 0;
	f->step = ready ? STEP_CHECK : f->step;
	return ready;
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

	if (take_waiting(f))
		return ST_OK;
	if (fill_group(f) || f->group.n_tables || f->group.n_runs) {
		f->group_full = false;
		f->group.round = 0;
		group_sort(&f->group);
		f->step = STEP_FRAMES;
		return ST_OK;
	}
	st = look_again(f, &more, e);
	if (!more)
		begin_rest(f);
	return st;
}

static void step_frames(struct guided_feed *f)
{
	read_frames(f);
	/* Large pages: what is on the stage has to go out before the rest can come. */
	if (f->stage.pages < STAGE_PAGES)
		f->step = STEP_CHECK;
}

static void step_check(struct guided_feed *f)
{
	struct group *g = &f->group;

	f->step = STEP_FRAMES;
	if (check_tables(f)) {
		g->round++;
		return;
	}
	group_clear_runs(g);
	if (want_slots(f))
		wait_for_slots(f);
	g->n_tables = 0;
	f->step = f->walked ? STEP_REST : STEP_TABLES;
	f->emitting = f->walked || !batch_has_room(&f->before, GROUP_READS) ||
		      !batch_has_room(&f->after, GROUP_TABLES);
}

/*
 * A group is gone through in one call, and only then there is something to go out, unless it is too
 * large for the stage.
 */
static enum status go_on(struct guided_feed *f, struct err *e)
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
	const enum status st = sweep_next(&f->sweep, p);

	for (size_t i = 0; i < p->n_extents; i++)
		for (size_t k = 0; k < rsz_extent_pages(&p->extents[i]); k++)
			count_capture(f, p->extents[i].address + k * PAGE_SIZE);
	if (st != ST_END || slots_end(f->slots, p))
		return st == ST_END ? ST_OK : st;
	/* From now on the files are not ours. */
	f->slots = NULL;
	f->slots_seen = UINT64_MAX;
	return ST_END;
}

static enum status next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct guided_feed *f = (struct guided_feed *)feed;
	enum status st = ST_OK;

	while (!st && !emit(f, p)) {
		if (f->step == STEP_REST && !take_waiting(f)) {
			st = next_rest(f, p);
			if (st != ST_END || !take_waiting(f))
				return st;
		}
		st = go_on(f, e);
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
	stage_deinit(&f->stage);
	batch_deinit(&f->before);
	batch_deinit(&f->after);
	free(f);
}

static bool allocate(struct guided_feed *f)
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
	f->feed.next = next;
	f->result = result;
	f->slots = plan->slots;
	f->first = f->spaces = plan->spaces;
	f->step = f->first ? STEP_TABLES : STEP_REST;
	f->budget = (struct walk_budget)WALK_UNLIMITED;
	f->sweep = (struct sweep){
		.source = plan->source,
		.result = result,
		.ranges = &plan->source->info.maps[0].ranges,
		.watch = plan->watch,
		.set = &f->captured[0],
	};
	physmem_drv_init(&f->mem, plan->source, clock_mono_ns);
	st = allocate(f) ? ST_OK : err_nomem(e);
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
	.open = open_guided,
	.close = close_guided,
};
