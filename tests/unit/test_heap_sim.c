/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated heaps of every layout, whole and with pages missing, against what their programs know:
 * nothing is ever listed that is not there, and with all pages all that is there.
 */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "agent/examine/heap/heap_checks.h"
#include "agent/shared/program/interrupt.h"
#include "agent/simulator/heap.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "tests/gen/heap_regions.h"
#include "tests/gen/swept_heaps.h"

#define PEB        UINT64_C(0x7ffde000)
#define BASE       UINT64_C(0x2a0000)
#define REGION_MAX 2048

static const uint32_t percents[] = { 0, 1, 10, 30, 50, 90 };

static uint64_t right[ARRAY_SIZE(percents)], there[ARRAY_SIZE(percents)];

struct memory {
	const struct sim_heap *heap;
	uint8_t peb[PAGE_SIZE];
	uint32_t missing; /* percent */
	uint64_t seed;
	uint64_t without; /* this page is missing, too */
};

/* Of a page, whether it is missing: of its address and the seed alone. */
static bool is_missing(const struct memory *m, uint64_t va)
{
	uint64_t x = (va >> PAGE_SHIFT) * UINT64_C(0x9e3779b97f4a7c15) + m->seed;

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 32;
	return x % 100 < m->missing;
}

static const uint8_t *page_of(void *context, uint64_t va)
{
	struct memory *m = context;
	const uint8_t *page;
	bool committed;

	if (va == PEB)
		return m->peb;
	if (is_missing(m, va) || (m->without && va == m->without))
		return NULL;
	page = heap_region_byte(m->heap, va, &committed);
	return page && committed ? page : NULL;
}

static void make_peb(struct memory *m, bool wide)
{
	memset(m->peb, 0, sizeof(m->peb));
	if (wide) {
		put_le64(m->peb + 0x30, m->heap->address);
		put_le32(m->peb + 0xe8, 1);
		put_le64(m->peb + 0xf0, PEB + 0x800);
		put_le64(m->peb + 0x800, m->heap->address);
	} else {
		put_le32(m->peb + 0x18, (uint32_t)m->heap->address);
		put_le32(m->peb + 0x88, 1);
		put_le32(m->peb + 0x90, (uint32_t)PEB + 0x800);
		put_le32(m->peb + 0x800, (uint32_t)m->heap->address);
	}
}

struct listing {
	struct heap_allocation *at;
	size_t count, room;
};

static enum status take_block(void *context, const struct heap_allocation *a, struct err *e)
{
	struct listing *l = context;

	(void)e;
	if (a->state != BLOCK_BUSY)
		return ST_OK;
	if (l->count == l->room)
		l->at = array_grow(l->at, &l->room, sizeof(*l->at));
	assert_non_null(l->at);
	l->at[l->count++] = *a;
	return ST_OK;
}

struct score {
	uint64_t right, wrong, wrong_size, twice, there;
	struct heap_stats stats;
	struct heap_info info;
};

static int by_address(const void *a, const void *b)
{
	const struct heap_allocation *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void compare(const struct sim_heap *s, struct listing *l, struct score *ret)
{
	size_t k = 0;

	array_sort(l->at, l->count, sizeof(*l->at), by_address);
	for (size_t i = 1; i < l->count; i++)
		ret->twice += l->at[i].address == l->at[i - 1].address;
	for (size_t i = 0; i < s->count; i++) {
		const struct sim_allocation *t = &s->allocations[i];

		if (!t->busy || t->kind == SIM_HEAP_OWN)
			continue;
		ret->there++;
		while (k < l->count && l->at[k].address < t->address) {
			if (ret->wrong++ < 3)
				print_message("no such block: %" PRIx64 " %s\n", l->at[k].address,
					      heap_place_name(l->at[k].place));
			k++;
		}
		if (k == l->count || l->at[k].address != t->address)
			continue;
		ret->right++;
		if (l->at[k].has_requested && l->at[k].requested != t->requested &&
		    ret->wrong_size++ < 3)
			print_message("%" PRIx64 " %s: %" PRIu64 " instead of %" PRIu64 " bytes\n",
				      t->address, heap_place_name(l->at[k].place),
				      l->at[k].requested, t->requested);
		k++;
	}
	ret->wrong += l->count - k;
}

/* Of a heap with a key, most of what the walk asks is in the notes of one sweep. */
static void check_notes(const struct memory *m, const struct heap_sources *s, const struct score *x)
{
	const bool keyed = x->info.key_from == KEY_READ || x->info.key_from == KEY_RECOVERED;
	struct swept_heaps swept;
	uint64_t asked;

	assert_true(swept_heaps_agree(s, &swept, &asked));
	assert_int_equal(swept.sweeps, keyed);
	if (keyed && !m->missing && !m->without)
		assert_true(swept.asked < asked / 3);
}

static void list(struct memory *m, bool wide, struct score *ret)
{
	static struct range at[REGION_MAX];
	struct range_list ranges = { .at = at };
	const struct memory_view view = { page_of, m };
	struct heap_sources s = { .memory = &view, .ranges = &ranges };
	struct listing l = { 0 };
	const struct heap_visitor v = { take_block, &l };
	struct heaps *h;
	struct err e = ERR_INIT;

	memset(ret, 0, sizeof(*ret));
	make_peb(m, wide);
	*(wide ? &s.peb : &s.peb32) = PEB;
	assert_true(m->heap->region_count <= REGION_MAX);
	heap_region_ranges(m->heap, &ranges);
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), 1);
	ret->info = *heaps_at(h, 0);
	CHECK_OK(heaps_walk(h, 0, &v, &ret->stats, &e), &e);
	compare(m->heap, &l, ret);
	heaps_close(h);
	/* A sample: it takes longer than the rest. */
	if (!m->seed && (!m->missing || m->missing == 30))
		check_notes(m, &s, ret);
	free(l.at);
}

static void check_whole(const struct sim_heap *heap, const struct score *s, bool plain)
{
	const struct heap_stats *t = &s->stats;

	assert_int_equal(s->right, s->there);
	assert_int_equal(t->lost + t->unlinked + t->contradictions + t->containers_lost, 0);
	assert_int_equal(s->info.key_from, plain ? KEY_PLAIN : KEY_READ);
	assert_memory_equal(s->info.key, heap->encoding, sizeof(heap->encoding));
	assert_int_equal(t->free_chunks, s->info.total_free);
	assert_int_equal(s->info.front_end, heap->front_end);
	if (s->info.counted) {
		assert_int_equal(s->info.counted_reserved, heap->reserved);
		assert_int_equal(s->info.counted_committed, heap->committed);
	}
}

/* Blocks of which some lead to a stack trace, whose sizes and traces are told by what is noted. */
static void try_traces(enum sim_heap_layout layout, bool x86)
{
	static const uint64_t traces[] = { 0x10001000, 0x10001080 };
	const struct sim_heap_plan plan = {
		.layout = layout,
		.x86 = x86,
		.seed = 3 + layout,
		.base = BASE,
		.segments = 3,
		.allocations = 2000,
		.churn = 35,
		.lfh = 40,
		.virtual_blocks = 2,
		.traces = traces,
		.trace_count = ARRAY_SIZE(traces),
	};
	struct sim_heap heap;
	struct memory m = { .heap = &heap };
	struct score s;
	struct err e = ERR_INIT;

	CHECK_OK(sim__heap_build(&plan, &heap, &e), &e);
	list(&m, !x86, &s);
	assert_int_equal(s.wrong + s.wrong_size + s.twice, 0);
	check_whole(&heap, &s, false);
	sim__heap_deinit(&heap);
}

TEST(blocks_with_stack_traces)
{
	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int x86 = 0; x86 < 2; x86++)
			try_traces((enum sim_heap_layout)layout, x86);
}

static void try_layout(enum sim_heap_layout layout, bool x86, bool plain, bool wiped)
{
	const struct sim_heap_plan plan = {
		.layout = layout,
		.x86 = x86,
		.plain = plain,
		.wiped = wiped,
		.seed = 7 + layout,
		.base = BASE,
		.segments = 3,
		.allocations = 2000,
		.churn = 35,
		.lfh = 40,
		.holes = 3,
		.virtual_blocks = 5,
	};
	struct sim_heap heap;
	struct err e = ERR_INIT;

	CHECK_OK(sim__heap_build(&plan, &heap, &e), &e);
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++)
		for (uint64_t seed = 0; seed < (percents[i] ? 3 : 1); seed++) {
			struct memory m = { .heap = &heap, .missing = percents[i], .seed = seed };
			struct score s;

			list(&m, !x86, &s);
			if (s.wrong + s.wrong_size + s.twice)
				print_message("layout %d%s%s%s, %u %% missing, seed %" PRIu64 "\n",
					      layout, x86 ? " x86" : "", plain ? " plain" : "",
					      wiped ? " wiped" : "", percents[i], seed);
			assert_int_equal(s.wrong + s.wrong_size + s.twice, 0);
			right[i] += s.right;
			there[i] += s.there;
			if (!percents[i])
				check_whole(&heap, &s, plain);
		}
	sim__heap_deinit(&heap);
}

TEST(every_layout)
{
	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int how = 0; how < 8; how += test_step())
			try_layout(layout, how & 1, how & 2, how & 4);
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++)
		print_message("%u %% of the pages missing: %" PRIu64 " of %" PRIu64
			      " allocations, none that is not there\n",
			      percents[i], right[i], there[i]);
	assert_int_equal(right[0], there[0]);
	assert_true(right[1] > there[1] * 8 / 10);
	assert_true(right[2] > there[2] / 2);
}

/* Its list leads to it, so that it is known that there is one. */
TEST(a_large_block_of_which_the_header_is_lost_is_missed)
{
	const struct sim_heap_plan plan = {
		.layout = SIM_HEAP_17763,
		.seed = 3,
		.base = BASE,
		.allocations = 200,
		.virtual_blocks = 3,
	};
	struct sim_heap heap;
	struct memory m = { .heap = &heap };
	size_t tried = 0;
	struct err e = ERR_INIT;

	CHECK_OK(sim__heap_build(&plan, &heap, &e), &e);
	for (size_t i = 0; i < heap.count; i++) {
		const struct sim_allocation *a = &heap.allocations[i];
		struct score s;

		if (a->kind != SIM_HEAP_VIRTUAL)
			continue;
		tried++;
		m.without = a->address & ~(uint64_t)(PAGE_SIZE - 1);
		list(&m, true, &s);
		assert_int_equal(s.wrong + s.wrong_size + s.twice, 0);
		assert_int_equal(s.right, s.there - 1);
		assert_true(s.stats.lost >= a->requested);
		assert_false(heap_is_had(&s.info, &s.stats));
	}
	assert_int_equal(tried, 3);
	m.without = 0;
	sim__heap_deinit(&heap);
}

/* Memory that was made to take long can be given up. */
TEST(a_signal_ends_the_search)
{
	struct range range = { BASE, BASE + (UINT64_C(1) << 40) - 1 };
	const struct range_list ranges = { .at = &range, .count = 1 };
	struct sim_heap none = { .region_count = 0 };
	struct memory m = { .heap = &none };
	const struct memory_view view = { page_of, &m };
	const struct heap_sources s = { .memory = &view, .ranges = &ranges, .not_vads = true };
	struct heaps *h;
	struct err e = ERR_INIT;

	interrupt_ask("the test");
	assert_int_equal(heaps_open(&s, &h, &e), ST_INTERRUPTED);
	assert_null(h);
	interrupt_forget();
}

/*
 * 24H2: the PEB has the first heap alone, and a circle of descriptors the others; and a heap that
 * neither names
 */

#define DESCRIPTORS UINT64_C(0x7ffd0000)
#define HEAPS       3

struct many {
	struct memory of[HEAPS];
	uint8_t peb[PAGE_SIZE];
	uint8_t descriptors[PAGE_SIZE];
};

static const uint8_t *page_of_many(void *context, uint64_t va)
{
	struct many *m = context;
	const uint8_t *page = NULL;

	if (va == PEB || va == DESCRIPTORS)
		return va == PEB ? m->peb : m->descriptors;
	for (size_t i = 0; i < HEAPS && !page; i++)
		page = page_of(&m->of[i], va);
	return page;
}

static void put_word(uint8_t *at, bool wide, uint64_t v)
{
	if (wide)
		put_le64(at, v);
	else
		put_le32(at, (uint32_t)v);
}

static void make_descriptors(struct many *m, const struct sim_heap *heaps, bool wide)
{
	const uint64_t word = wide ? 8 : 4;

	m->of[0].heap = &heaps[0];
	make_peb(&m->of[0], wide);
	memcpy(m->peb, m->of[0].peb, sizeof(m->peb));
	for (size_t i = 0; i < 2; i++) {
		uint8_t *d = m->descriptors + 0x40 * i;

		put_word(d, wide, DESCRIPTORS + 0x40 * !i);
		put_word(d + word, wide, DESCRIPTORS + 0x40 * !i);
		put_word(d + 2 * word, wide, heaps[i].address);
	}
}

static void try_chain(bool wide)
{
	static struct many m;
	struct sim_heap heaps[HEAPS];
	struct range at[64];
	struct range_list ranges = { .at = at };
	const struct memory_view view = { page_of_many, &m };
	struct heap_sources s = { .memory = &view, .ranges = &ranges };
	struct heaps *h;
	struct err e = ERR_INIT;

	memset(&m, 0, sizeof(m));
	for (size_t i = 0; i < HEAPS; i++) {
		const struct sim_heap_plan plan = {
			.layout = SIM_HEAP_26100,
			.x86 = !wide,
			.seed = i + 1,
			.base = BASE + i * (UINT64_C(64) << 20),
			.index = (uint32_t)i + 1,
			.allocations = 100,
			.user_context = i < 2 ? DESCRIPTORS + 0x40 * i : 0,
		};

		CHECK_OK(sim__heap_build(&plan, &heaps[i], &e), &e);
		m.of[i].heap = &heaps[i];
		assert_true(ranges.count + heaps[i].region_count <= ARRAY_SIZE(at));
		heap_region_ranges(&heaps[i], &ranges);
	}
	make_descriptors(&m, heaps, wide);
	*(wide ? &s.peb : &s.peb32) = PEB;
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), HEAPS);
	assert_false(heaps_list_lost(h));
	for (size_t i = 0; i < HEAPS; i++) {
		const struct heap_info *x = heaps_at(h, i);

		assert_int_equal(x->address, heaps[i].address);
		assert_int_equal(x->kind, HEAP_NT);
		assert_int_equal(x->listed, i == 0);
		assert_int_equal(x->chained, i < 2);
		assert_true(x->found);
	}
	heaps_close(h);
	/* Without ranges the chain alone finds the second, and nothing the third. */
	s.ranges = NULL;
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), 2);
	assert_false(heaps_at(h, 1)->found);
	heaps_close(h);
	for (size_t i = 0; i < HEAPS; i++)
		sim__heap_deinit(&heaps[i]);
}

TEST(chain_of_24h2_and_a_heap_that_no_list_names)
{
	try_chain(true);
	try_chain(false);
}

/* A heap of several segments that is listed, and two without first pages that nothing names. */
struct unnamed {
	struct many m;
	struct sim_heap heaps[HEAPS];
	struct range at[64];
	struct range_list ranges;
};

/* All of a segment but its first page in another heap's, of which nothing else stays. */
static void copy_segment(const struct sim_heap *from, const struct sim_heap *to)
{
	const struct sim_heap_region *of = &from->regions[0];

	assert_int_equal(of->pages, to->regions[0].pages);
	memcpy(to->regions[0].bytes, of->bytes, of->pages * PAGE_SIZE);
	for (size_t k = 0; k < to->region_count; k++)
		for (size_t i = 0; i < to->regions[k].pages; i++)
			to->regions[k].committed[i] = !k && i && of->committed[i];
}

/* `copy`: the second's memory is a copy of the first's, and the first is whole. */
static void build_unnamed(struct unnamed *u, bool wide, bool copy)
{
	struct err e = ERR_INIT;

	memset(u, 0, sizeof(*u));
	u->ranges.at = u->at;
	for (size_t i = 0; i < HEAPS; i++) {
		const struct sim_heap_plan plan = {
			.layout = SIM_HEAP_17763,
			.x86 = !wide,
			.seed = i + 7,
			.base = BASE + i * (UINT64_C(128) << 20),
			.index = (uint32_t)i + 1,
			.allocations = 2000,
			.segments = i ? 1 : 5,
		};

		CHECK_OK(sim__heap_build(&plan, &u->heaps[i], &e), &e);
		u->m.of[i].heap = &u->heaps[i];
		assert_true(u->ranges.count + u->heaps[i].region_count <= ARRAY_SIZE(u->at));
		heap_region_ranges(&u->heaps[i], &u->ranges);
		/* Of the first heap the first segment's stays: links break behind. */
		for (size_t k = i || copy ? 0 : 1; k < u->heaps[i].region_count; k++)
			u->heaps[i].regions[k].committed[0] = copy && !i;
		if (copy && i == 1)
			copy_segment(&u->heaps[0], &u->heaps[1]);
	}
	make_peb(&u->m.of[0], wide);
	memcpy(u->m.peb, u->m.of[0].peb, sizeof(u->m.peb));
}

static void drop_unnamed(struct unnamed *u)
{
	for (size_t i = 0; i < HEAPS; i++)
		sim__heap_deinit(&u->heaps[i]);
}

static void check_unnamed(struct unnamed *u, struct heaps *h, size_t i)
{
	struct listing l = { 0 };
	const struct heap_visitor v = { take_block, &l };
	struct score x = { 0 };
	struct err e = ERR_INIT;

	assert_int_equal(heaps_at(h, i)->address, u->heaps[i].address);
	assert_int_equal(heaps_at(h, i)->kind, HEAP_NT);
	assert_int_equal(heaps_at(h, i)->key_from, i ? KEY_RECOVERED : KEY_READ);
	assert_int_equal(heaps_at(h, i)->unnamed, i > 0);
	assert_int_equal(heaps_at(h, i)->found, i == 0);
	assert_int_equal(heap_finding(h, heaps_at(h, i)) != NULL, i > 0);
	assert_memory_equal(heaps_at(h, i)->key, u->heaps[i].encoding, 6);
	CHECK_OK(heaps_walk(h, i, &v, &x.stats, &e), &e);
	compare(&u->heaps[i], &l, &x);
	free(l.at);
	assert_int_equal(x.wrong + x.wrong_size + x.twice, 0);
	/* Of the five segments of the first, those that nothing but their key ties to it, too. */
	assert_true(x.right * 10 > x.there * 9);
}

static void try_unnamed(bool wide)
{
	static struct unnamed u;
	const struct memory_view view = { page_of_many, &u.m };
	struct heap_sources s = { .memory = &view, .ranges = &u.ranges };
	struct err e = ERR_INIT;
	struct heaps *h;

	build_unnamed(&u, wide, false);
	/* A list that is whole names all heaps: what looks like one is none. */
	*(wide ? &s.peb : &s.peb32) = PEB;
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_false(heaps_list_lost(h));
	assert_int_equal(heaps_count(h), 1);
	heaps_close(h);
	/* Without it they are found, each with its own key. */
	*(wide ? &s.peb : &s.peb32) = PEB + PAGE_SIZE;
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_true(heaps_list_lost(h));
	assert_int_equal(heaps_count(h), HEAPS);
	for (size_t i = 0; i < HEAPS; i++)
		check_unnamed(&u, h, i);
	heaps_close(h);
	/* Nobody looks for heaps of 32 bits in a process that has none. */
	if (!wide) {
		s.peb32 = 0;
		s.peb = PEB + PAGE_SIZE;
		CHECK_OK(heaps_open(&s, &h, &e), &e);
		assert_int_equal(heaps_count(h), 1);
		heaps_close(h);
	}
	drop_unnamed(&u);
}

TEST(heaps_that_nothing_names_and_that_have_lost_their_heads)
{
	try_unnamed(true);
	try_unnamed(false);
}

/* What has the key of a heap whose segments are all known is no segment, and no heap. */
TEST(a_copy_of_a_heap_that_is_whole_is_left_alone)
{
	static struct unnamed u;
	const struct memory_view view = { page_of_many, &u.m };
	const struct heap_sources s = { .memory = &view,
					.ranges = &u.ranges,
					.peb = PEB + PAGE_SIZE };
	struct err e = ERR_INIT;
	struct heaps *h;

	build_unnamed(&u, true, true);
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), 2);
	assert_int_equal(heaps_at(h, 0)->address, u.heaps[0].address);
	assert_int_equal(heaps_at(h, 1)->address, u.heaps[2].address);
	for (size_t i = 0; i < 2; i++) {
		struct listing l = { 0 };
		struct score x = { 0 };

		CHECK_OK(heaps_walk(h, i, &(const struct heap_visitor){ take_block, &l }, &x.stats,
				    &e),
			 &e);
		compare(&u.heaps[2 * i], &l, &x);
		assert_int_equal(x.wrong + x.wrong_size + x.twice, 0);
		free(l.at);
	}
	heaps_close(h);
	drop_unnamed(&u);
}

/*
 * One heap's key makes sense of the other's headers: the bytes that headers are checked by cancel
 * out, and the bit that says busy is the same. What VirtualAlloc made hangs on its own heap's list.
 */
static bool keys_agree(const uint8_t *a, const uint8_t *b)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < 4; i++)
		sum ^= a[i] ^ b[i];
	return !sum && !((a[2] ^ b[2]) & 1);
}

static void build_pair(struct sim_heap pair[static 2], bool wide)
{
	struct sim_heap_plan plan = {
		.layout = SIM_HEAP_17763,
		.x86 = !wide,
		.seed = 1,
		.base = BASE,
		.index = 1,
		.allocations = 20,
		.virtual_blocks = 4,
	};
	struct err e = ERR_INIT;

	CHECK_OK(sim__heap_build(&plan, &pair[0], &e), &e);
	plan.base += UINT64_C(64) << 20;
	plan.virtual_blocks = 0;
	do {
		plan.seed++;
		if (plan.seed > 2)
			sim__heap_deinit(&pair[1]);
		CHECK_OK(sim__heap_build(&plan, &pair[1], &e), &e);
	} while (!keys_agree(pair[0].encoding, pair[1].encoding));
}

/* `torn`: neither end of the list leads from its blocks to a heap. */
static void try_pair(bool wide, bool torn)
{
	static struct many m;
	struct sim_heap pair[2] = { 0 };
	struct range at[64];
	struct range_list ranges = { .at = at };
	const struct memory_view view = { page_of_many, &m };
	struct heap_sources s = { .memory = &view, .ranges = &ranges };
	struct err e = ERR_INIT;
	struct heaps *h;
	size_t found = 0;

	memset(&m, 0, sizeof(m));
	build_pair(pair, wide);
	m.of[2].heap = &pair[1]; /* once more */
	for (size_t i = 0; i < 2; i++) {
		m.of[i].heap = &pair[i];
		assert_true(ranges.count + pair[i].region_count <= ARRAY_SIZE(at));
		heap_region_ranges(&pair[i], &ranges);
		for (size_t k = 0; k < pair[i].region_count; k++) {
			const struct sim_heap_region *r = &pair[i].regions[k];
			const uint8_t *first = memchr(r->committed, 1, r->pages);
			uint8_t *block = r->bytes + (size_t)(first - r->committed) * PAGE_SIZE;

			/* Of the four in a ring the first and the last lead nowhere. */
			if (torn && !i && r->pages > 1 && (k == 1 || k == 4))
				put_word(block + (k == 1) * (wide ? 8 : 4), wide, BASE - 0x1000);
		}
	}
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), 2);
	for (size_t i = 0; i < 2; i++) {
		struct listing l = { 0 };
		const struct heap_visitor v = { take_block, &l };
		struct heap_stats stats;

		CHECK_OK(heaps_walk(h, i, &v, &stats, &e), &e);
		assert_int_equal(stats.contradictions > 0, torn);
		for (size_t k = 0; k < l.count; k++) {
			assert_true(l.at[k].place != PLACE_VIRTUAL || i == 0);
			found += l.at[k].place == PLACE_VIRTUAL;
		}
		free(l.at);
	}
	assert_int_equal(found, torn ? 0 : 4);
	heaps_close(h);
	sim__heap_deinit(&pair[0]);
	sim__heap_deinit(&pair[1]);
}

TEST(a_block_of_another_heap_whose_header_fits)
{
	for (int how = 0; how < 4; how++)
		try_pair(how & 1, how & 2);
}

/*
 * What notes are made of, made hostile: the first heap's first segment says that it goes on through
 * all of the second one, or on through pages that are full of what is noted.
 */
struct claimed {
	struct sim_heap pair[2];
	uint64_t end; /* of the first segment, as it says */
	bool full;
	uint8_t page[PAGE_SIZE];
};

static const uint8_t *page_of_claimed(void *context, uint64_t va)
{
	struct claimed *c = context;
	struct memory m = { 0 };
	const uint8_t *page = NULL;

	for (size_t i = 0; i < 2 && !page; i++) {
		m.heap = &c->pair[i];
		page = page_of(&m, va);
	}
	return page || !c->full || va < c->pair[0].regions[0].va || va >= c->end ? page : c->page;
}

static void put_header(uint8_t *at, const uint8_t *key, uint16_t size, uint16_t prev, uint8_t flags)
{
	uint8_t b[HEAP_KEY_SIZE] = { 0 };

	put_le16(b, size);
	b[2] = flags;
	b[3] = b[0] ^ b[1] ^ b[2];
	put_le16(b + 4, prev);
	for (size_t i = 0; i < sizeof(b); i++)
		at[i] = b[i] ^ key[i];
}

/*
 * A block of the heap's own, and another one: nearly all of the page is noted, in spans, of which
 * one that took all that it can have would end inside of the second header.
 */
static void fill(struct claimed *c, bool wide)
{
	const size_t unit = wide ? 16 : 8, own = 3776 / unit, rest = PAGE_SIZE / unit - own;

	memset(c->page, 0x11, sizeof(c->page));
	put_header(c->page + wide * 8, c->pair[0].encoding, (uint16_t)own, (uint16_t)rest, 9);
	put_header(c->page + own * unit + wide * 8, c->pair[0].encoding, (uint16_t)rest,
		   (uint16_t)own, 1);
}

static void try_claim(bool wide, bool full)
{
	static struct claimed c;
	const struct memory_view view = { page_of_claimed, &c };
	struct range at = { 0 };
	const struct range_list ranges = { .at = &at, .count = 1 };
	const struct heap_sources s = { .memory = &view, .ranges = &ranges, .not_vads = true };
	const struct sim_heap_region *first, *second;
	struct swept_heaps swept;
	uint64_t asked;

	build_pair(c.pair, wide);
	first = &c.pair[0].regions[0];
	second = &c.pair[1].regions[0];
	assert_true(first->va < second->va);
	c.full = full;
	c.end = second->va + second->pages * PAGE_SIZE;
	at = (struct range){ first->va, c.end - 1 };
	put_le32(first->bytes + (wide ? 0x38 : 0x20), (uint32_t)((c.end - first->va) / PAGE_SIZE));
	put_word(first->bytes + (wide ? 0x48 : 0x28), wide, c.end);
	fill(&c, wide);
	assert_true(swept_heaps_agree(&s, &swept, &asked));
	/* There is no room for so many notes: they are made anew, of less at a time. */
	assert_int_equal(swept.sweeps > 1, full);
	sim__heap_deinit(&c.pair[0]);
	sim__heap_deinit(&c.pair[1]);
}

TEST(pages_that_two_heaps_claim)
{
	try_claim(true, false);
	try_claim(false, false);
}

TEST(pages_full_of_what_is_noted)
{
	try_claim(true, true);
	try_claim(false, true);
}

/* A segment heap is named, whoever knows of it, and nothing of it is told. */
static const uint8_t *segment_heap_page(void *context, uint64_t va)
{
	static uint8_t page[PAGE_SIZE];

	put_le32(page + 0x10, 0xddeeddee);
	return va == BASE ? page : NULL;
}

TEST(segment_heap_is_named)
{
	struct range range = { BASE, BASE + 0xfffff };
	const struct range_list ranges = { .at = &range, .count = 1 };
	const struct memory_view view = { segment_heap_page, NULL };
	const struct heap_sources s = { .memory = &view, .ranges = &ranges };
	struct listing l = { 0 };
	const struct heap_visitor v = { take_block, &l };
	struct heap_stats stats;
	struct heaps *h;
	struct err e = ERR_INIT;

	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), 1);
	assert_int_equal(heaps_at(h, 0)->kind, HEAP_SEGMENT);
	assert_true(heaps_at(h, 0)->wide && heaps_at(h, 0)->found && !heaps_at(h, 0)->listed);
	CHECK_OK(heaps_walk(h, 0, &v, &stats, &e), &e);
	assert_int_equal(l.count, 0);
	heaps_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout),
		cmocka_unit_test(a_large_block_of_which_the_header_is_lost_is_missed),
		cmocka_unit_test(a_signal_ends_the_search),
		cmocka_unit_test(chain_of_24h2_and_a_heap_that_no_list_names),
		cmocka_unit_test(heaps_that_nothing_names_and_that_have_lost_their_heads),
		cmocka_unit_test(a_copy_of_a_heap_that_is_whole_is_left_alone),
		cmocka_unit_test(a_block_of_another_heap_whose_header_fits),
		cmocka_unit_test(blocks_with_stack_traces),
		cmocka_unit_test(pages_that_two_heaps_claim),
		cmocka_unit_test(pages_full_of_what_is_noted),
		cmocka_unit_test(segment_heap_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
