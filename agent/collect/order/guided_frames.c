/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/collect/order/guided_internal.h"
#include "formats/base/bytes.h"

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
unsigned guided__count_capture(struct guided_feed *f, uint64_t pa)
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

void guided__group_add_run(struct guided_feed *f, uint64_t va, uint64_t pa, uint64_t pages,
			   bool again)
{
	struct group *g = &f->group;

	if (g->n_runs == GROUP_RUNS || is_direct_map(f, va, pa, pages))
		return;
	if (!again && pages == 1 && is_captured(f, pa))
		return;
	g->runs[g->n_runs++] = (struct frame_run){ pa, pages, again };
	g->pages += pages;
}

/*
 * Frames that only the operating system sees: a transition page of Windows (bit 11, and not bit 10:
 * prototype), a page of Linux that is kept from its process (PROT_NONE, NUMA balancing: bit 8).
 * Since the L1TF changes the former may have a bit of InvalidPteMask in it (mostly 45), the latter
 * is inverted. Which holds is told by evidence, later; here whatever lies in RAM will do, since a
 * guess that is wrong reads a page somewhat earlier, and no more.
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

struct entry guided__judge(const struct guided_feed *f, const struct table *t, size_t i,
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
size_t guided__own_entries(const struct guided_feed *f, const struct table *t)
{
	return f->spaces->mode == PAGING_PAE && t->level == 3 ? 0 : TABLE_ENTRIES;
}

/*
 * Which of a table's entries, 8 for each bit, are others than when the pass before read them. What
 * they name, and was captured already, may have been something else's then. Of the kernel's half,
 * which maps much, changes all the time and is in no measure, and of 1 GiB pages nothing is
 * captured again.
 */
static uint64_t changed_entries(const struct guided_feed *f, const struct table *t)
{
	const struct printed_table now = { t->level, t->pa, t->va, t->bytes };

	if (!f->prints || t->va >> 63 || t->level > 2)
		return 0;
	return table_prints_changed(f->prints, &now);
}

/* Everything that a table maps by itself. */
void guided__group_add_leaves(struct guided_feed *f, struct table *t)
{
	t->changed = changed_entries(f, t);
	for (size_t i = 0; i < guided__own_entries(f, t); i++) {
		const struct entry e = guided__judge(f, t, i, t->bytes);

		if (e.kind == ENTRY_LEAF)
			guided__group_add_run(f, e.va, e.frame, LEVEL_PAGES(t->level),
					      t->changed >> i / 8 & 1);
	}
}

void guided__group_add_table(struct guided_feed *f, const struct table *t)
{
	struct table *at = &f->group.tables[f->group.n_tables++];

	*at = *t;
	at->open = true;
}

static int compare_runs(const void *a, const void *b)
{
	const struct frame_run *x = a, *y = b;

	if (x->pa != y->pa)
		return x->pa < y->pa ? -1 : 1;
	if (x->pages != y->pages)
		return x->pages < y->pages ? -1 : 1;
	return y->again - x->again;
}

void guided__group_sort(struct group *g)
{
	qsort(g->runs, g->n_runs, sizeof(*g->runs), compare_runs);
	g->run = 0;
	g->page = 0;
}

void guided__group_clear_runs(struct group *g)
{
	g->n_runs = 0;
	g->pages = 0;
	g->run = 0;
	g->page = 0;
}

/* A group's worth is in it, or what one more table could add would not fit. */
bool guided__group_is_full(const struct guided_feed *f)
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
	const struct frame_run *r = &g->runs[g->run];

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

static bool is_frame_wanted(struct guided_feed *f, const struct frame_run *r, uint64_t pa)
{
	if (!range_list_find(f->sweep.ranges, pa))
		return false;
	if (!is_captured(f, pa) || (r->again && may_again(f, pa)))
		return true;
	f->result->not_retaken += r->again;
	return false;
}

/* The next page of the runs that is to be read; false behind the last. */
static bool next_group_page(struct guided_feed *f, uint64_t *pa)
{
	struct group *g = &f->group;

	for (; g->run < g->n_runs; g->run++, g->page = 0) {
		const struct frame_run *r = &g->runs[g->run];

		for (; g->page < r->pages && !is_repeated(g); g->page++) {
			*pa = r->pa + g->page * PAGE_SIZE;
			if (is_frame_wanted(f, r, *pa))
				return true;
		}
	}
	return false;
}

/* A run of neighbours that were captured `*pass` times, at most `most` pages. */
static size_t next_group_run(struct guided_feed *f, size_t most, uint64_t *ret, unsigned *pass)
{
	uint64_t pa;
	size_t n = 0;

	for (; n < most && next_group_page(f, &pa); n++, f->group.page++) {
		const unsigned times = captures_of(f, pa);

		if (!n) {
			*ret = pa;
			*pass = times;
		} else if (pa != *ret + n * PAGE_SIZE || times != *pass) {
			break;
		}
		guided__count_capture(f, pa);
		f->again_left -= times > 0;
	}
	return n;
}

/* As many as there is room for on the stage. */
void guided__read_frames(struct guided_feed *f)
{
	struct stage *stage = &f->stage;
	struct stream_piece *p = &stage->piece;
	const size_t extents = p->n_extents, pages = stage->pages;
	uint64_t address = 0;
	unsigned pass = 0;
	size_t n;

	while (p->n_extents < STAGE_PAGES && !f->sweep.skip &&
	       (n = next_group_run(f, STAGE_PAGES - stage->pages, &address, &pass))) {
		struct rsz_extent *x = &p->extents[p->n_extents++];

		*x = (struct rsz_extent){ .address = address, .length = (uint32_t)(n * PAGE_SIZE) };
		stage->pages += n;
		if (pass) {
			x->pass = (uint16_t)pass;
			x->reason = RSZ_TABLE_CHANGED;
			f->result->retaken_pages += n;
		} else {
			f->result->guided_pages += n;
		}
	}
	stage_read(f->readers, &f->sweep, stage, extents, pages);
}
