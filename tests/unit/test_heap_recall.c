/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of heaps (agent/examine/heap) against simulated heaps, whose truth is known: with
 * pages missing, what is listed has to be there, and how much of what is there is listed is
 * printed.
 */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "agent/simulator/heap.h"
#include "agent/simulator/heap_build.h"
#include "agent/simulator/page.h"
#include "tests/gen/swept_heaps.h"

#define BASE  UINT64_C(0x236c0350000)
#define BASE4 UINT64_C(0x02d40000)
#define COPY  0x40000

static const char *const layouts[] = { "7", "8", "14393", "17763", "26100" };
_Static_assert(ARRAY_SIZE(layouts) == SIM_HEAP_LAYOUTS, "a name for each layout");

/* A process that has a heap and nothing else, some of its pages lost. */
struct process {
	struct sim_heap h;
	uint8_t **lost; /* by region: 1 for each page that can't be had */
	uint8_t page[PAGE_SIZE];
};

static const uint8_t *page_of(void *context, uint64_t va)
{
	const struct process *p = context;

	for (size_t i = 0; i < p->h.region_count; i++) {
		const struct sim_heap_region *r = &p->h.regions[i];
		const uint64_t at = (va - r->va) >> PAGE_SHIFT;

		if (va >= r->va && at < r->pages)
			return r->committed[at] && !p->lost[i][at] ? r->bytes + (at << PAGE_SHIFT)
								   : NULL;
	}
	return NULL;
}

/*
 * One block of the heap holds a copy of other parts of the heap, as a program
 * has that writes a dump of itself: headers, right in all but their place.
 */
static void build_with_copy(const struct sim_heap_plan *plan, struct sim_heap *ret)
{
	struct sim_heap_builder *b = NULL;
	struct err e = ERR_INIT;
	uint32_t copy, first;

	CHECK_OK(sim__heap_create(plan, &b, &e), &e);
	first = sim__heap_alloc(b, 64);
	CHECK_OK(sim__heap_work(b, &e), &e);
	copy = sim__heap_alloc(b, COPY);
	assert_true(copy != SIM_HEAP_NO_BLOCK);
	/* The first segment has so much behind its first block. */
	memcpy(sim__heap_bytes(b, copy), sim__heap_bytes(b, first), COPY);
	CHECK_OK(sim__heap_finish(b, ret, &e), &e);
}

static void process_init(struct process *p, const struct sim_heap_plan *plan, unsigned percent,
			 bool with_copy)
{
	uint64_t random = plan->seed + percent;
	struct err e = ERR_INIT;

	if (with_copy)
		build_with_copy(plan, &p->h);
	else
		CHECK_OK(sim__heap_build(plan, &p->h, &e), &e);
	p->lost = calloc(p->h.region_count, sizeof(*p->lost));
	assert_non_null(p->lost);
	for (size_t i = 0; i < p->h.region_count; i++) {
		p->lost[i] = calloc(p->h.regions[i].pages, 1);
		assert_non_null(p->lost[i]);
		for (uint32_t k = 0; k < p->h.regions[i].pages; k++)
			p->lost[i][k] = sim_below(&random, 100) < percent;
	}
}

static void process_deinit(struct process *p)
{
	for (size_t i = 0; i < p->h.region_count; i++)
		free(p->lost[i]);
	free(p->lost);
	sim__heap_deinit(&p->h);
}

/* What of the truth was listed, and what was listed beside it. */
struct score {
	const struct process *process;
	uint8_t *seen;        /* by number in the truth */
	uint64_t listed[3];   /* by state */
	uint64_t invented[3]; /* not there, or something else */
	uint64_t islands;     /* of the invented ones, those that the reader is not sure of */
};

static const struct sim_allocation *find(const struct sim_heap *h, uint64_t address,
					 enum sim_heap_kind kind)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (h->allocations[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < h->count && h->allocations[low].address == address; low++)
		if (h->allocations[low].kind == kind)
			return &h->allocations[low];
	return NULL;
}

static enum sim_heap_kind kind_of(enum heap_place place)
{
	return place == PLACE_LFH       ? SIM_HEAP_LFH
	       : place == PLACE_VIRTUAL ? SIM_HEAP_VIRTUAL
					: SIM_HEAP_BACK_END;
}

static enum status judge(void *context, const struct heap_allocation *a, struct err *e)
{
	struct score *s = context;
	const struct sim_heap *h = &s->process->h;
	const struct sim_allocation *t = find(h, a->address, kind_of(a->place));
	const struct sim_allocation *own = find(h, a->address, SIM_HEAP_OWN);
	bool right;

	(void)e;
	s->listed[a->state]++;
	if (a->state == BLOCK_INTERNAL)
		right = own != NULL;
	else if (a->state == BLOCK_FREE)
		right = t && !t->busy && t->requested == a->size;
	else
		right = t && t->busy && (!a->has_requested || t->requested == a->requested);
	if (right && t && a->state != BLOCK_INTERNAL)
		s->seen[t - h->allocations] = 1;
	if (right)
		return ST_OK;
	s->invented[a->state]++;
	s->islands += a->island;
	if (!a->island)
		print_message("wrong: 0x%" PRIx64 ", %" PRIu64 " bytes, %s %s\n", a->address,
			      a->size, heap_place_name(a->place), heap_state_name(a->state));
	return ST_OK;
}

/* The heap of a plan, listed; added to `s`, and what is busy (by kind) to `found` and `all`. */
static void measure(const struct sim_heap_plan *plan, unsigned percent, bool with_copy,
		    struct score *s, uint64_t found[static 3], uint64_t all[static 3])
{
	struct process p = { 0 };
	const struct memory_view m = { page_of, &p };
	struct range_list ranges = { 0 };
	const struct heap_sources sources = { .memory = &m, .ranges = &ranges };
	const struct heap_visitor v = { judge, s };
	struct err e = ERR_INIT;
	struct heap_stats stats;
	struct heaps *heaps;

	process_init(&p, plan, percent, with_copy);
	s->process = &p;
	s->seen = calloc(p.h.count, 1);
	ranges.at = calloc(p.h.region_count, sizeof(*ranges.at));
	assert_non_null(s->seen);
	assert_non_null(ranges.at);
	for (ranges.count = 0; ranges.count < p.h.region_count; ranges.count++) {
		const struct sim_heap_region *r = &p.h.regions[ranges.count];

		ranges.at[ranges.count] =
			(struct range){ r->va, r->va + ((uint64_t)r->pages << PAGE_SHIFT) - 1 };
	}
	CHECK_OK(heaps_open(&sources, &heaps, &e), &e);
	for (size_t i = 0; i < heaps_count(heaps); i++)
		CHECK_OK(heaps_walk(heaps, i, &v, &stats, &e), &e);
	heaps_close(heaps);
	/* A sample: it takes longer than the rest. */
	if (with_copy || percent == 10)
		assert_true(swept_heaps_agree(&sources, NULL, NULL));
	for (size_t i = 0; i < p.h.count; i++) {
		const struct sim_allocation *a = &p.h.allocations[i];

		if (!a->busy || a->kind == SIM_HEAP_OWN)
			continue;
		all[a->kind]++;
		found[a->kind] += s->seen[i];
	}
	free(ranges.at);
	free(s->seen);
	process_deinit(&p);
}

static double percent_of(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 100.0;
}

static struct sim_heap_plan plan_of(int layout, bool x86, uint64_t seed)
{
	return (struct sim_heap_plan){ .layout = (enum sim_heap_layout)layout,
				       .x86 = x86,
				       .base = x86 ? BASE4 : BASE,
				       .seed = seed,
				       .allocations = 1500,
				       .churn = 30,
				       .released = 100,
				       .lfh = 60,
				       .holes = 2,
				       .segments = 2,
				       .virtual_blocks = 2 };
}

/* Several heaps of a layout, each with other pages missing. */
static void measure_layout(int layout, bool x86, unsigned missing, uint64_t seeds)
{
	uint64_t found[3] = { 0 }, all[3] = { 0 };
	struct score s = { 0 };

	for (uint64_t seed = 1; seed <= seeds; seed += test_step()) {
		const struct sim_heap_plan plan =
			plan_of(layout, x86, seed + 100 * (uint64_t)layout);

		measure(&plan, missing, false, &s, found, all);
	}
	print_message("%-5s %s %2u %% missing: %5.1f %% listed (back end %5.1f, front end "
		      "%5.1f, "
		      "virtual %5.1f), %" PRIu64 " of %" PRIu64 " wrong, free %" PRIu64
		      " of %" PRIu64 "\n",
		      layouts[layout], x86 ? "x86" : "x64", missing,
		      percent_of(found[0] + found[1] + found[2], all[0] + all[1] + all[2]),
		      percent_of(found[0], all[0]), percent_of(found[1], all[1]),
		      percent_of(found[2], all[2]), s.invented[BLOCK_BUSY], s.listed[BLOCK_BUSY],
		      s.invented[BLOCK_FREE], s.listed[BLOCK_FREE]);
	assert_int_equal(s.invented[BLOCK_BUSY], 0);
	assert_int_equal(s.invented[BLOCK_FREE], 0);
	assert_int_equal(s.invented[BLOCK_INTERNAL], 0);
	for (size_t i = 0; i < ARRAY_SIZE(all) && !missing; i++)
		assert_int_equal(found[i], all[i]);
}

TEST(all_is_listed_of_a_whole_heap)
{
	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int x86 = 0; x86 < 2; x86++)
			measure_layout(layout, x86, 0, 2);
}

TEST(nothing_is_invented_where_pages_are_missing)
{
	static const unsigned missing[] = { 10, 30, 50, 90 };

	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int x86 = 0; x86 < 2; x86++)
			for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
				measure_layout(layout, x86, missing[i], 4);
}

/*
 * Whoever sees headers that confirm each other, and not that of the block that they lie in, can't
 * know better: what is wrong then has to be marked as an island. Where no page is missing, nothing
 * is. (What was freed is no such danger: merging two chunks changes the header of one, or what the
 * next one says of it, so that nothing of before is linked any more.)
 */
TEST(what_a_copy_of_a_heap_seems_to_hold_is_marked)
{
	static const unsigned missing[] = { 0, 10, 30, 50 };
	uint64_t islands = 0;

	for (int x86 = 0; x86 < 2; x86++)
		for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
			for (uint64_t seed = 1; seed <= 3; seed += test_step()) {
				const struct sim_heap_plan plan =
					plan_of(SIM_HEAP_17763, x86, seed);
				uint64_t found[3] = { 0 }, all[3] = { 0 };
				struct score s = { 0 };

				measure(&plan, missing[i], true, &s, found, all);
				assert_int_equal(s.invented[BLOCK_BUSY] + s.invented[BLOCK_FREE] +
							 s.invented[BLOCK_INTERNAL],
						 s.islands);
				assert_true(missing[i] || !s.islands);
				islands += s.islands;
			}
	print_message("%" PRIu64 " blocks of copies, marked\n", islands);
}

/*
 * A heap that goes on: after many steps its bytes say what its account says, as the reader sees it.
 */

#define STEPS 3000

struct going {
	struct sim_heap_builder *b;
	uint64_t listed, wrong;
};

static const uint8_t *page_of_builder(void *context, uint64_t va)
{
	const struct going *g = context;

	for (size_t i = 0; i < g->b->region_count; i++) {
		const struct sim_heap_region *r = &g->b->regions[i];
		const uint64_t at = (va - r->va) >> PAGE_SHIFT;

		if (va >= r->va && at < r->pages)
			return r->committed[at] ? r->bytes + (at << PAGE_SHIFT) : NULL;
	}
	return NULL;
}

static enum status take_going(void *context, const struct heap_allocation *a, struct err *e)
{
	struct going *g = context;
	bool there = false;

	(void)e;
	if (a->state != BLOCK_BUSY)
		return ST_OK;
	for (size_t i = 0; i < g->b->block_count && !there; i++)
		there = g->b->blocks[i].busy && g->b->blocks[i].address == a->address &&
			g->b->blocks[i].requested == a->requested;
	g->listed++;
	g->wrong += !there;
	return ST_OK;
}

TEST(heap_that_goes_on_stays_a_heap)
{
	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++) {
		const struct sim_heap_plan plan = plan_of(layout, false, 7);
		struct going g = { 0 };
		const struct memory_view m = { page_of_builder, &g };
		struct range_list ranges = { 0 };
		const struct heap_sources sources = { .memory = &m, .ranges = &ranges };
		const struct heap_visitor v = { take_going, &g };
		struct sim_heap_event event;
		struct heap_stats stats;
		struct sim_heap built;
		struct err e = ERR_INIT;
		struct heaps *heaps;
		int64_t busy = 0;

		CHECK_OK(sim__heap_build_live(&plan, &built, &g.b, &e), &e);
		for (size_t i = 0; i < built.count; i++)
			busy += built.allocations[i].busy &&
				built.allocations[i].kind != SIM_HEAP_OWN;
		for (unsigned i = 0; i < STEPS; i++) {
			assert_true(sim__heap_step(g.b, &event));
			busy += event.freed ? -1 : 1;
		}
		for (size_t i = 0; i < g.b->region_count; i++) {
			const struct sim_heap_region *r = &g.b->regions[i];
			const uint64_t bytes = (uint64_t)r->pages << PAGE_SHIFT;

			CHECK_OK(range_list_add(&ranges, r->va, r->va + bytes - 1, &e), &e);
		}
		range_list_tidy(&ranges, NULL);
		CHECK_OK(heaps_open(&sources, &heaps, &e), &e);
		for (size_t i = 0; i < heaps_count(heaps); i++) {
			CHECK_OK(heaps_walk(heaps, i, &v, &stats, &e), &e);
			assert_int_equal(stats.contradictions, 0);
			assert_int_equal(stats.lost + stats.unlinked, 0);
			assert_int_equal(stats.free_chunks, heaps_at(heaps, i)->total_free);
		}
		assert_int_equal(g.wrong, 0);
		assert_int_equal(g.listed, busy);
		heaps_close(heaps);
		range_list_deinit(&ranges);
		sim__heap_deinit(&built);
		sim__heap_destroy(g.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_listed_of_a_whole_heap),
		cmocka_unit_test(nothing_is_invented_where_pages_are_missing),
		cmocka_unit_test(what_a_copy_of_a_heap_seems_to_hold_is_marked),
		cmocka_unit_test(heap_that_goes_on_stays_a_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
