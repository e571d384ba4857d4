/* SPDX-License-Identifier: Apache-2.0 */
/* Page heap, in bytes made here: blocks at the ends of their pages, and what looks like them. */
#include "tests/unit/test.h"

#include "agent/examine/heap/heap.h"
#include "tests/unit/sparse_view.h"

#define PEB        UINT64_C(0x7ff0000)
#define ROOT       UINT64_C(0x161000)
#define REGION     UINT64_C(0x200000)
#define REGION_END UINT64_C(0x240000)
#define TRACE      UINT64_C(0x5550040)
#define LISTED_MAX 64

struct setup {
	bool wide;
	struct sparse memory;
	struct range_list ranges;
	struct heap_allocation at[LISTED_MAX];
	size_t count;
	size_t heaps;
};

static uint64_t head_of(const struct setup *s)
{
	return s->wide ? 0x40 : 0x20;
}

static void put_word(struct setup *s, uint64_t va, uint64_t value)
{
	if (s->wide)
		sparse_u64(&s->memory, va, value);
	else
		sparse_u32(&s->memory, va, (uint32_t)value);
}

static void put_header(struct setup *s, uint64_t at, uint32_t start, uint32_t end, uint64_t size,
		       uint64_t actual)
{
	const uint64_t word = s->wide ? 8 : 4;

	sparse_u32(&s->memory, at, start);
	put_word(s, at + word, ROOT);
	put_word(s, at + 2 * word, size);
	put_word(s, at + 3 * word, actual);
	put_word(s, at + 6 * word, TRACE);
	sparse_u32(&s->memory, at + head_of(s) - 4, end);
}

/* A block of full page heap whose first page is `page`; what it returns is the data's address. */
static uint64_t put_full(struct setup *s, uint64_t page, uint64_t size, bool busy)
{
	const uint64_t unit = s->wide ? 16 : 8;
	const uint64_t rounded = (size + unit - 1) & ~(unit - 1);
	const uint64_t pages = (rounded + head_of(s) + PAGE_SIZE - 1) / PAGE_SIZE;
	const uint64_t end = page + pages * PAGE_SIZE, user = end - rounded;

	for (uint64_t va = page; va < end; va += PAGE_SIZE)
		sparse_page(&s->memory, va);
	for (uint64_t va = user; va < end; va++)
		sparse_put(&s->memory, va, va < user + size ? "\xc0" : "\xd0", 1);
	put_header(s, user - head_of(s), busy ? 0xabcdbbbb : 0xabcdbbba,
		   busy ? 0xdcbabbbb : 0xdcbabbba, size, pages * PAGE_SIZE);
	return user;
}

static enum status take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct setup *s = context;

	(void)e;
	assert_true(s->count < LISTED_MAX);
	s->at[s->count++] = *a;
	return ST_OK;
}

static void list(struct setup *s)
{
	const struct memory_view m = sparse_view(&s->memory);
	const struct heap_sources sources = { .memory = &m,
					      .peb = s->wide ? PEB : 0,
					      .peb32 = s->wide ? 0 : PEB,
					      .ranges = &s->ranges };
	const struct heap_visitor v = { take, s };
	struct heap_stats stats;
	struct heaps *h;
	struct err e = ERR_INIT;

	s->count = 0;
	CHECK_OK(heaps_open(&sources, &h, &e), &e);
	s->heaps = heaps_count(h);
	for (size_t i = 0; i < heaps_count(h); i++)
		CHECK_OK(heaps_walk(h, i, &v, &stats, &e), &e);
	heaps_close(h);
}

static void init(struct setup *s, bool wide, uint32_t flag)
{
	struct err e = ERR_INIT;

	memset(s, 0, sizeof(*s));
	s->wide = wide;
	sparse_page(&s->memory, PEB);
	sparse_u32(&s->memory, PEB + (wide ? 0xbc : 0x68), flag);
	CHECK_OK(range_list_add(&s->ranges, REGION, REGION_END - 1, &e), &e);
}

static void deinit(struct setup *s)
{
	sparse_deinit(&s->memory);
	range_list_deinit(&s->ranges);
}

static void check(const struct heap_allocation *a, uint64_t user, uint64_t size, bool busy)
{
	assert_int_equal(a->address, user);
	assert_int_equal(a->size, size);
	assert_int_equal(a->place, PLACE_PAGE_HEAP);
	assert_int_equal(a->state, busy ? BLOCK_BUSY : BLOCK_FREE);
	assert_int_equal(a->has_requested, busy);
	assert_int_equal(a->trace, TRACE);
}

static void list_some(bool wide)
{
	static const uint64_t sizes[] = { 1, 16, 100, 4000, 4096 - 0x40, 4096, 20000 };
	struct setup s;
	uint64_t page = REGION + 2 * PAGE_SIZE, users[ARRAY_SIZE(sizes)];

	init(&s, wide, GLOBAL_FLAG_PAGE_HEAP);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		users[i] = put_full(&s, page, sizes[i], i % 3 != 2);
		page = (users[i] + sizes[i] + 2 * PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	}
	list(&s);
	assert_int_equal(s.heaps, 1);
	assert_int_equal(s.count, ARRAY_SIZE(sizes));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		check(&s.at[i], users[i], sizes[i], i % 3 != 2);
	deinit(&s);
}

TEST(full_blocks_are_listed_with_sizes_states_and_traces)
{
	list_some(true);
	list_some(false);
}

TEST(without_the_flag_nothing_is_looked_for)
{
	struct setup s;

	init(&s, true, 0x70);
	put_full(&s, REGION, 100, true);
	list(&s);
	assert_int_equal(s.count, 0);
	deinit(&s);
}

/* A program that keeps a copy of another block's page within one of its own. */
TEST(a_header_in_the_data_of_a_block_is_not_a_block)
{
	struct setup s;
	uint64_t outer;

	init(&s, true, GLOBAL_FLAG_PAGE_HEAP);
	outer = put_full(&s, REGION, 3 * PAGE_SIZE, true);
	put_full(&s, REGION + 2 * PAGE_SIZE, 100, true);
	list(&s);
	assert_int_equal(s.count, 1);
	check(&s.at[0], outer, 3 * PAGE_SIZE, true);
	/* Its header is lost: what follows the copy is there, and is no guard page. */
	sparse_lose(&s.memory, REGION, true);
	list(&s);
	assert_int_equal(s.count, 0);
	deinit(&s);
}

TEST(a_block_is_not_listed_whose_numbers_do_not_agree)
{
	struct setup s;
	uint64_t user;

	for (int what = 0; what < 7; what++) {
		init(&s, true, GLOBAL_FLAG_PAGE_HEAP);
		user = put_full(&s, REGION, 100, true);
		switch (what) {
		case 0: /* not to the end of the page */
			sparse_u64(&s.memory, user - 0x30, 200);
			break;
		case 1:
			sparse_u64(&s.memory, user - 0x30, UINT64_MAX - 100);
			break;
		case 2:
			sparse_u64(&s.memory, user - 0x28, 99);
			break;
		case 3:
			sparse_u64(&s.memory, user - 0x28, UINT64_MAX);
			break;
		case 4: /* the stamps of a busy one, and of a freed one */
			sparse_u32(&s.memory, user - 4, 0xdcbabbba);
			break;
		case 5: /* not filled behind */
			sparse_u32(&s.memory, user + 100, 0);
			break;
		default:
			sparse_u64(&s.memory, user - 0x38, 3);
		}
		list(&s);
		assert_int_equal(s.count, 0);
		deinit(&s);
	}
}

TEST(a_lost_header_hides_a_block_and_nothing_is_made_up_for_it)
{
	struct setup s;
	uint64_t second;

	init(&s, true, GLOBAL_FLAG_PAGE_HEAP);
	put_full(&s, REGION, 9000, true);
	second = put_full(&s, REGION + 5 * PAGE_SIZE, 10, false);
	sparse_lose(&s.memory, REGION, true);
	list(&s);
	assert_int_equal(s.count, 1);
	check(&s.at[0], second, 10, false);
	deinit(&s);
}

/*
 * Light page heap: an NT heap of one segment, headers plain, as Vista and later have it where
 * EncodeFlagMask is 0; one chunk with a light block, one without, one with stale stamps within.
 */
#define HEAP UINT64_C(0x300000)

struct chunk_plan {
	uint64_t at;
	uint16_t units, before;
	uint8_t flags, unused;
};

static void put_chunk(struct setup *s, const struct chunk_plan *c)
{
	sparse_u16(&s->memory, c->at + 8, c->units);
	sparse_put(&s->memory, c->at + 10, &c->flags, 1);
	sparse_u16(&s->memory, c->at + 12, c->before);
	sparse_put(&s->memory, c->at + 15, &c->unused, 1);
}

static void put_nt_heap(struct setup *s)
{
	static const struct chunk_plan chunks[] = {
		{ HEAP, 0x80, 0, 1, 8 },
		{ HEAP + 0x800, 0x10, 0x80, 1, 0x10 },
		{ HEAP + 0x900, 0x10, 0x10, 1, 0x10 },
		{ HEAP + 0xa00, 0x60, 0x10, 1, 0x10 },
	};
	struct err e = ERR_INIT;

	CHECK_OK(range_list_add(&s->ranges, HEAP, HEAP + PAGE_SIZE - 1, &e), &e);
	sparse_u32(&s->memory, HEAP + 0x10, 0xffeeffee);
	sparse_u64(&s->memory, HEAP + 0x18, HEAP + 0x120);
	sparse_u64(&s->memory, HEAP + 0x20, HEAP + 0x120);
	sparse_u64(&s->memory, HEAP + 0x28, HEAP);
	sparse_u64(&s->memory, HEAP + 0x30, HEAP);
	sparse_u32(&s->memory, HEAP + 0x38, 1);
	sparse_u64(&s->memory, HEAP + 0x40, HEAP + 0x800);
	sparse_u64(&s->memory, HEAP + 0x48, HEAP + PAGE_SIZE);
	sparse_u64(&s->memory, HEAP + 0x60, HEAP + 0x60);
	sparse_u64(&s->memory, HEAP + 0x68, HEAP + 0x60);
	sparse_u32(&s->memory, HEAP + 0x98, 0xeeffeeff);
	sparse_u64(&s->memory, HEAP + 0x110, HEAP + 0x110);
	sparse_u64(&s->memory, HEAP + 0x118, HEAP + 0x110);
	sparse_u64(&s->memory, HEAP + 0x120, HEAP + 0x18);
	sparse_u64(&s->memory, HEAP + 0x128, HEAP + 0x18);
	for (size_t i = 0; i < ARRAY_SIZE(chunks); i++)
		put_chunk(s, &chunks[i]);
}

TEST(a_light_block_stands_for_the_chunk_that_it_is_in)
{
	const uint64_t first = HEAP + 0x810, second = HEAP + 0x910, third = HEAP + 0xa10;
	struct setup s;

	init(&s, true, GLOBAL_FLAG_PAGE_HEAP);
	put_nt_heap(&s);
	/* Header, 100 bytes, and filling, to which ActualSize comes in one way or another. */
	put_header(&s, first, 0xabcdaaaa, 0xdcbaaaaa, 100, 0xc0);
	for (uint64_t va = first + 0x40 + 100; va < first + 0xf0; va++)
		sparse_put(&s.memory, va, "\xa0", 1);
	put_header(&s, second, 0xabcdaaa9, 0xdcbaaaa9, 32, 0x80);
	/* What was left over in a block lies anywhere but at its begin. */
	put_header(&s, third + 0x100, 0xabcdaaaa, 0xdcbaaaaa, 16, 0x60);
	put_header(&s, third + 0x200, 0xabcdbbbb, 0xdcbabbbb, 0x3b0, 0x1000);
	list(&s);
	assert_int_equal(s.heaps, 1);
	assert_int_equal(s.count, 3);
	check(&s.at[0], first + 0x40, 100, true);
	check(&s.at[1], second + 0x40, 32, false);
	assert_int_equal(s.at[2].address, third);
	assert_int_equal(s.at[2].place, PLACE_BACK_END);
	assert_int_equal(s.at[2].requested, 0x5f0);
	/* Overrun: its filling is not what it was; it is the chunk that is known then. */
	sparse_u32(&s.memory, first + 0x40 + 100, 0);
	list(&s);
	assert_int_equal(s.at[0].address, first);
	assert_int_equal(s.at[0].place, PLACE_BACK_END);
	deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_blocks_are_listed_with_sizes_states_and_traces),
		cmocka_unit_test(without_the_flag_nothing_is_looked_for),
		cmocka_unit_test(a_header_in_the_data_of_a_block_is_not_a_block),
		cmocka_unit_test(a_block_is_not_listed_whose_numbers_do_not_agree),
		cmocka_unit_test(a_lost_header_hides_a_block_and_nothing_is_made_up_for_it),
		cmocka_unit_test(a_light_block_stands_for_the_chunk_that_it_is_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
