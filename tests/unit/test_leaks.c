/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that nothing refers to, among blocks and roots made by hand. */
#include "tests/unit/test.h"

#include "agent/examine/heap/leaks.h"
#include "agent/shared/program/interrupt.h"
#include "tests/unit/sparse_view.h"

#define ROOT UINT64_C(0x10000)
#define HEAP UINT64_C(0x200000)

static struct sparse s;
static struct range_list roots;
static struct heap_allocation blocks[64];
static struct block_list list;
static struct leak_sources sources;
static struct leak_stats stats;
static uint8_t *marks;

static enum leak_page kind_of(const struct sparse_page *p)
{
	if (!p)
		return LEAK_PAGE_NONE;
	return p->lost ? LEAK_PAGE_LOST : LEAK_PAGE_THERE;
}

/* From the last page to the first: no order is promised. */
static enum status give(void *context, const struct range_list *ranges,
			const struct leak_visitor *v, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = ranges->count; i-- > 0;)
		for (uint64_t va = ranges->at[i].last + 1; va > ranges->at[i].first && !st;) {
			const struct sparse_page *p = sparse_find(context, va -= PAGE_SIZE);

			st = interrupted() ? interrupt_status(e)
					   : v->pages(v->context, va, 1, kind_of(p),
						      p ? p->bytes : NULL, e);
		}
	return st;
}

/* Blocks of 64 bytes, 256 apart. */
static uint64_t block(size_t i)
{
	return HEAP + 256 * i;
}

static void set_up(size_t n)
{
	struct err e = ERR_INIT;

	CHECK_OK(range_list_add(&roots, ROOT, ROOT + 2 * PAGE_SIZE - 1, &e), &e);
	for (size_t i = 0; i < n; i++) {
		blocks[i] = (struct heap_allocation){
			.address = block(i),
			.size = 72,
			.requested = 64,
			.has_requested = true,
		};
		sparse_page(&s, block(i));
	}
	sparse_page(&s, ROOT);
	sparse_page(&s, ROOT + PAGE_SIZE);
	list = (struct block_list){ .at = blocks, .count = n };
	sources = (struct leak_sources){
		.sweep = give,
		.context = &s,
		.blocks = &list,
		.roots = &roots,
	};
}

static void find(void)
{
	struct err e = ERR_INIT;

	free(marks);
	CHECK_OK(leaks_find(&sources, &marks, &stats, &e), &e);
}

static void tear_down(void)
{
	free(marks);
	marks = NULL;
	range_list_deinit(&roots);
	sparse_deinit(&s);
}

TEST(chain_is_reached_from_its_root_and_no_further)
{
	set_up(6);
	sparse_u64(&s, ROOT + 0x100, block(0));
	sparse_u64(&s, block(0) + 56, block(1)); /* its last word */
	sparse_u64(&s, block(1) + 64, block(2)); /* behind what was asked for */
	sparse_u64(&s, block(3), block(4));      /* nobody refers to the third */
	sparse_u64(&s, block(5), block(5));      /* itself */
	find();
	assert_int_equal(marks[0], LEAK_REACHED);
	assert_int_equal(marks[1], LEAK_REACHED);
	assert_int_equal(marks[2], LEAK_UNREACHED);
	assert_int_equal(marks[3], LEAK_UNREACHED);
	assert_int_equal(marks[4], LEAK_BY_LEAKED);
	assert_int_equal(marks[5], LEAK_UNREACHED); /* its own word says nothing */
	assert_int_equal(stats.root_pages, 2);
	assert_int_equal(stats.root_pages_lost + stats.blocks_lost, 0);
	tear_down();
}

TEST(circles_end)
{
	set_up(3);
	sparse_u64(&s, ROOT, block(0));
	sparse_u64(&s, block(0), block(1));
	sparse_u64(&s, block(1), block(2));
	sparse_u64(&s, block(2), block(0));
	find();
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(marks[i], LEAK_REACHED);
	tear_down();
}

TEST(circles_of_leaks_refer_to_each_other)
{
	set_up(5);
	sparse_u64(&s, block(0), block(1));
	sparse_u64(&s, block(1), block(0) + 8);
	sparse_u64(&s, block(2), block(0)); /* leads into the circle */
	sparse_u64(&s, ROOT, block(3));
	sparse_u64(&s, block(0) + 8, block(3));
	sparse_u64(&s, block(0) + 16, block(4));
	find();
	assert_int_equal(marks[0], LEAK_BY_LEAKED);
	assert_int_equal(marks[1], LEAK_BY_LEAKED);
	assert_int_equal(marks[2], LEAK_UNREACHED);
	assert_int_equal(marks[3], LEAK_REACHED);
	assert_int_equal(marks[4], LEAK_BY_LEAKED);
	tear_down();
}

TEST(words_into_a_block_reach_it)
{
	set_up(5);
	sparse_u64(&s, ROOT, block(0) + 8);
	sparse_u64(&s, ROOT + 8, block(1) + 64); /* the end of a range that it holds */
	sparse_u64(&s, ROOT + 16, block(2) + 65);
	sparse_u64(&s, ROOT + 24, block(3) + 1);
	sparse_u64(&s, ROOT + 32, block(3)); /* later, and better */
	sparse_u64(&s, ROOT + 44, block(4)); /* no aligned word */
	find();
	assert_int_equal(marks[0], LEAK_INSIDE);
	assert_int_equal(marks[1], LEAK_INSIDE);
	assert_int_equal(marks[2], LEAK_UNREACHED);
	assert_int_equal(marks[3], LEAK_REACHED);
	assert_int_equal(marks[4], LEAK_UNREACHED);
	tear_down();
}

TEST(words_of_32_bits_count_where_there_is_such_code)
{
	set_up(2);
	sparse_u32(&s, ROOT + 4, (uint32_t)block(0));
	sparse_u32(&s, ROOT, 0x12345678);
	find();
	assert_int_equal(marks[0], LEAK_UNREACHED);
	sources.narrow = true;
	find();
	assert_int_equal(marks[0], LEAK_REACHED);
	assert_int_equal(marks[1], LEAK_UNREACHED);
	tear_down();
}

TEST(lost_pages_are_counted)
{
	set_up(40); /* over three pages */
	sparse_u64(&s, ROOT, block(0));
	sparse_u64(&s, ROOT + 8, block(20));
	sparse_lose(&s, ROOT + PAGE_SIZE, true);
	sparse_lose(&s, block(20), true);
	find();
	assert_int_equal(stats.root_pages, 1);
	assert_int_equal(stats.root_pages_lost, 1);
	assert_int_equal(stats.blocks_lost, 1);
	assert_int_equal(marks[20], LEAK_REACHED);
	tear_down();
}

/* Pages are zeros, and counted. */
static enum status give_same(void *context, const struct range_list *ranges,
			     const struct leak_visitor *v, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < ranges->count && !st; i++) {
		const uint64_t n = range_bytes(ranges->at[i]) / PAGE_SIZE;

		*(uint64_t *)context += n;
		st = v->pages(v->context, ranges->at[i].first, n, LEAK_PAGE_NONE, NULL, e);
	}
	return st;
}

TEST(blocks_as_large_as_the_address_space_end)
{
	uint64_t asked = 0;

	set_up(2);
	blocks[1].size = blocks[1].requested = UINT64_C(1) << 46;
	sources.sweep = give_same;
	sources.context = &asked;
	find();
	assert_int_equal(asked, LEAK_PAGES_MAX);
	tear_down();
}

TEST(roots_as_large_as_the_address_space_are_lost_in_part)
{
	struct err e = ERR_INIT;
	uint64_t asked = 0;

	set_up(1);
	CHECK_OK(range_list_add(&roots, UINT64_C(1) << 32, (UINT64_C(1) << 46) - 1, &e), &e);
	sources.sweep = give_same;
	sources.context = &asked;
	find();
	assert_int_equal(asked, LEAK_PAGES_MAX);
	assert_true(stats.root_pages_lost);
	tear_down();
}

TEST(who_asks_to_stop_is_heard)
{
	struct err e = ERR_INIT;

	set_up(1);
	assert_true(interrupt_ask("SIGINT"));
	free(marks);
	assert_int_equal(leaks_find(&sources, &marks, &stats, &e), ST_INTERRUPTED);
	assert_null(marks);
	interrupt_forget();
	tear_down();
}

TEST(nothing_and_too_much)
{
	struct err e = ERR_INIT;

	set_up(0);
	find();
	list.count = LEAK_BLOCKS_MAX + 1;
	free(marks);
	assert_int_equal(leaks_find(&sources, &marks, &stats, &e), ST_INPUT);
	assert_null(marks);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain_is_reached_from_its_root_and_no_further),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(circles_of_leaks_refer_to_each_other),
		cmocka_unit_test(words_into_a_block_reach_it),
		cmocka_unit_test(words_of_32_bits_count_where_there_is_such_code),
		cmocka_unit_test(lost_pages_are_counted),
		cmocka_unit_test(blocks_as_large_as_the_address_space_end),
		cmocka_unit_test(roots_as_large_as_the_address_space_are_lost_in_part),
		cmocka_unit_test(who_asks_to_stop_is_heard),
		cmocka_unit_test(nothing_and_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
