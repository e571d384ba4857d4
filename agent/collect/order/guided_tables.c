/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/collect/order/guided_internal.h"

/* How often tables that change are taken again. A busy process changes some entries every time. */
#define GUIDED_ROUNDS 3

/* Each waits for slots so often, while it goes on to name others. */
#define WAITS         2

void guided__add_reading(struct batch *b, const struct table *t, const struct physmem_page *when,
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
static bool compare_table(struct guided_feed *f, struct table *t, const uint8_t *now)
{
	bool frames = false;

	for (size_t i = 0; i < guided__own_entries(f, t); i++) {
		const struct entry was = guided__judge(f, t, i, t->bytes);
		const struct entry is = guided__judge(f, t, i, now);

		if (is.kind == ENTRY_ABSENT && memcmp(t->bytes + 8 * i, now + 8 * i, 8))
			t->changed |= UINT64_C(1) << i / 8;
		if (is.kind == was.kind && is.frame == was.frame)
			continue;
		frames |= is.kind == ENTRY_LEAF;
		if (is.kind == ENTRY_LEAF)
			guided__group_add_run(f, is.va, is.frame, LEVEL_PAGES(t->level), true);
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
	changed = compare_table(f, t, now);
	memcpy(t->bytes, now, PAGE_SIZE);
	f->result->tables_changed += changed && !g->round && !t->waits;
	t->open = changed && g->round < GUIDED_ROUNDS;
	f->result->tables_unsettled += changed && !t->open;
	/* What comes behind it begins its bracket; room for the last ones is kept. */
	if (t->open && !batch_has_room(&f->after, GROUP_TABLES + 1))
		return;
	t->pass++;
	guided__count_capture(f, t->pa);
	guided__add_reading(&f->after, t, &when, RSZ_TABLE_AGAIN);
}

bool guided__check_tables(struct guided_feed *f)
{
	struct group *g = &f->group;
	bool open = false;

	guided__group_clear_runs(g);
	for (size_t i = 0; i < g->n_tables; i++) {
		if (g->tables[i].open)
			check_table(f, &g->tables[i]);
		open |= g->tables[i].open;
	}
	guided__group_sort(g);
	return open;
}

/*
 * Slots
 *
 * They are read behind their tables, since frames do not wait for a disk, and then the tables are
 * read once more: all of the group, so that the way to them is read again, too. What is the same
 * around its slot has a bracket like a frame's; what is not is taken again like any change
 * (examine/smear/METHOD.md, section 6).
 */

/* False: the group names none that are to come. */
bool guided__want_slots(struct guided_feed *f)
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
void guided__wait_for_slots(struct guided_feed *f)
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
bool guided__take_waiting(struct guided_feed *f)
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
			guided__group_add_table(f, &f->waiting[i + k]);
		drop_waiting(f, i, n);
	}
	if (!ready)
		f->slots_seen = seen;
	g->round = 0;
	f->step = ready ? STEP_CHECK : f->step;
	return ready;
}
