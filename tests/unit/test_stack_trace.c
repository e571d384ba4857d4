/* SPDX-License-Identifier: Apache-2.0 */
/* Stack traces of blocks: entries of the database, and headers with something behind them. */
#include "tests/unit/test.h"

#include "agent/examine/heap/base/heap_internal.h"
#include "agent/examine/heap/base/stack_trace.h"
#include "agent/examine/heap/nt/nt.h"
#include "tests/unit/sparse_view.h"

#define ENTRY UINT64_C(0x500010)
#define CODE  UINT64_C(0x7ff600000000)
#define BLOCK UINT64_C(0x201230)

static struct sparse s;
static struct memory_view m;
static struct range_list code;
static struct heap_pages pages;
static struct heap_stats stats;
static struct heap_walk walk;
static struct stack_trace t;

static void set_up(bool wide)
{
	struct err e = ERR_INIT;

	m = sparse_view(&s);
	CHECK_OK(range_list_add(&code, 0x401000, 0x40ffff, &e), &e);
	CHECK_OK(range_list_add(&code, CODE, CODE + 0xffff, &e), &e);
	pages = (struct heap_pages){ .m = &m, .left = 1000 };
	stats = (struct heap_stats){ 0 };
	walk = (struct heap_walk){
		.l = heap__layout(wide),
		.p = &pages,
		.stats = &stats,
	};
}

static void tear_down(void)
{
	range_list_deinit(&code);
	sparse_deinit(&s);
}

/* An entry of 64 bits with `n` frames, and what lies behind it in the database. */
static void put_entry(uint16_t index, uint16_t depth, size_t n)
{
	sparse_u64(&s, ENTRY, ENTRY + 0x400);
	sparse_u16(&s, ENTRY + 0xc, index);
	sparse_u16(&s, ENTRY + 0xe, depth);
	for (size_t i = 0; i < n; i++)
		sparse_u64(&s, ENTRY + 0x10 + 8 * i, CODE + 0x100 * i);
	sparse_u64(&s, ENTRY + 0x10 + 8 * n, ENTRY + 0x800);
}

static bool read_entry(void)
{
	return stack_trace_read(&m, &code, true, ENTRY, 0, &t);
}

TEST(number_of_frames_is_in_either_field)
{
	set_up(true);
	put_entry(3, 7, 7);
	assert_true(read_entry());
	assert_int_equal(t.count, 7);
	assert_int_equal(t.at[0], CODE);
	assert_int_equal(t.at[6], CODE + 0x600);
	put_entry(7, 3, 7);
	assert_true(read_entry());
	assert_int_equal(t.count, 7);
	put_entry(5000, 4, 7); /* code behind it, by chance */
	assert_true(read_entry());
	assert_int_equal(t.count, 4);
	put_entry(32, 0, 32);
	assert_true(read_entry());
	assert_int_equal(t.count, 32);
	tear_down();
}

TEST(entry_that_leads_elsewhere_is_none)
{
	set_up(true);
	put_entry(9, 8, 7);
	assert_false(read_entry());
	put_entry(0, 0, 7);
	assert_false(read_entry());
	put_entry(UINT16_MAX, UINT16_MAX, 32);
	assert_false(read_entry());
	put_entry(7, 7, 0);
	assert_false(read_entry());
	put_entry(7, 7, 7);
	sparse_u64(&s, ENTRY + 0x10 + 8 * 3, CODE + 0x10000);
	assert_false(read_entry());
	assert_false(stack_trace_read(&m, &code, true, 0, 0, &t));
	assert_false(stack_trace_read(&m, &code, true, UINT64_MAX - 8, 0, &t));
	sparse_lose(&s, ENTRY, true);
	assert_false(read_entry());
	tear_down();
}

TEST(entry_of_32_bits)
{
	set_up(false);
	sparse_u16(&s, ENTRY + 8, 900);
	sparse_u16(&s, ENTRY + 0xa, 2);
	sparse_u32(&s, ENTRY + 0xc, 0x401234);
	sparse_u32(&s, ENTRY + 0x10, 0x402345);
	assert_true(stack_trace_read(&m, &code, false, ENTRY, 0, &t));
	assert_int_equal(t.count, 2);
	assert_int_equal(t.at[0], 0x401234);
	assert_int_equal(t.at[1], 0x402345);
	tear_down();
}

/* What lies before the data of a block of 10, of 7 with an entry, and of 7 with frames. */
static void put_end(uint64_t at, uint16_t kind, uint16_t frames, uint16_t unused, uint8_t units)
{
	sparse_u16(&s, at, kind);
	sparse_u16(&s, at + 2, frames);
	sparse_u16(&s, at + 4, unused);
	sparse_u16(&s, at + 6, (uint16_t)(units | 5 << 8));
}

/* Of 0x90 bytes, header included. */
static struct heap_allocation extend_by(enum heap_place place, uint8_t unused, uint8_t offset)
{
	const uint64_t head = walk.l->unit;
	const struct chunk c = { .at = BLOCK, .offset = offset, .unused = unused };
	struct heap_allocation a = {
		.address = BLOCK + head,
		.size = 0x88,
		.place = place,
	};

	heap__extend(&walk, &c, &a);
	return a;
}

/* Of others than virtual blocks, SegmentOffset says nothing of it. */
static struct heap_allocation extend(enum heap_place place, uint8_t unused)
{
	return extend_by(place, unused, 7);
}

static struct heap_allocation extend_virtual(uint8_t units)
{
	return extend_by(PLACE_VIRTUAL, 4, units);
}

TEST(pointer_of_10)
{
	struct heap_allocation a;

	set_up(true);
	sparse_u64(&s, BLOCK + 0x10, ENTRY);
	put_end(BLOCK + 0x28, 1, 0, 0x28 + 7, 2);
	a = extend(PLACE_BACK_END, 0x42);
	assert_int_equal(a.address, BLOCK + 0x30);
	assert_int_equal(a.size, 0x68);
	assert_true(a.has_requested);
	assert_int_equal(a.requested, 0x90 - 0x2f);
	assert_int_equal(a.trace, ENTRY);
	assert_int_equal(a.frames, 0);
	a = extend(PLACE_LFH, 0xc2);
	assert_int_equal(a.trace, ENTRY);
	a = extend_virtual(2);
	assert_int_equal(a.address, BLOCK + 0x30);
	assert_false(a.has_requested); /* it has another way to say it */
	assert_int_equal(extend_virtual(0).address, BLOCK + 0x10);
	put_end(BLOCK + 0x48, 2, 0, 0, 4);
	assert_int_equal(extend_virtual(4).address, BLOCK + 0x50);
	assert_int_equal(extend_virtual(4).trace, ENTRY);
	tear_down();
}

TEST(forms_of_7)
{
	struct heap_allocation a;

	set_up(true);
	sparse_u64(&s, BLOCK + 0x10, ENTRY);
	put_end(BLOCK + 0x28, 2, 0, 0x28, 2);
	a = extend(PLACE_BACK_END, 0x42);
	assert_int_equal(a.trace, ENTRY);
	assert_int_equal(a.requested, 0x68);
	for (size_t i = 0; i < 5; i++)
		sparse_u64(&s, BLOCK + 0x20 + 8 * i, CODE + i);
	put_end(BLOCK + 0x48, 1, 5, 0x48 + 1, 4);
	a = extend(PLACE_BACK_END, 0x44);
	assert_int_equal(a.address, BLOCK + 0x50);
	assert_int_equal(a.trace, BLOCK + 0x20);
	assert_int_equal(a.frames, 5);
	assert_true(stack_trace_read(&m, &code, true, a.trace, a.frames, &t));
	assert_int_equal(t.count, 5);
	assert_int_equal(t.at[4], CODE + 4);
	sparse_u64(&s, BLOCK + 0x28, 1); /* no code */
	assert_false(stack_trace_read(&m, &code, true, a.trace, a.frames, &t));
	put_end(BLOCK + 0x48, 1, 6, 0x48 + 1, 4); /* more than there is room for */
	assert_int_equal(extend(PLACE_BACK_END, 0x44).trace, 0);
	tear_down();
}

TEST(pointer_of_32_bits)
{
	struct heap_allocation a;

	set_up(false);
	sparse_u32(&s, BLOCK + 8, (uint32_t)ENTRY);
	put_end(BLOCK + 0x10, 1, 0, 0x18, 2);
	a = extend(PLACE_BACK_END, 0x42);
	assert_int_equal(a.address, BLOCK + 0x18);
	assert_int_equal(a.requested, 0x90 - 0x18);
	assert_int_equal(a.trace, ENTRY);
	tear_down();
}

TEST(plain_and_broken_blocks_stay)
{
	struct heap_allocation a;

	set_up(true);
	sparse_u64(&s, BLOCK + 0x10, ENTRY);
	a = extend(PLACE_BACK_END, 0x12);
	assert_int_equal(a.address, BLOCK + 0x10);
	assert_int_equal(stats.contradictions, 0);
	put_end(BLOCK + 0x28, 1, 0, 0x28, 3); /* of another number of units */
	a = extend(PLACE_BACK_END, 0x42);
	assert_int_equal(a.address, BLOCK + 0x10);
	assert_int_equal(a.trace, 0);
	assert_int_equal(stats.contradictions, 1);
	a = extend_virtual(2);
	assert_int_equal(a.address, BLOCK + 0x10);
	assert_int_equal(stats.contradictions, 2);
	a = extend(PLACE_BACK_END, 0x7f); /* behind the block's end */
	assert_int_equal(a.address, BLOCK + 0x10);
	put_end(BLOCK + 0x28, 1, 0, 0x91, 2); /* more unused than it has */
	a = extend(PLACE_BACK_END, 0x42);
	assert_int_equal(a.address, BLOCK + 0x30);
	assert_false(a.has_requested);
	sparse_u64(&s, BLOCK + 0x10, 0); /* the database was full */
	put_end(BLOCK + 0x28, 1, 0, 0x28, 2);
	a = extend(PLACE_BACK_END, 0x42);
	assert_true(a.has_requested);
	assert_int_equal(a.trace, 0);
	sparse_lose(&s, BLOCK, true);
	pages.has = false;
	a = extend(PLACE_BACK_END, 0x42);
	assert_int_equal(a.address, BLOCK + 0x30);
	assert_false(a.has_requested);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_of_frames_is_in_either_field),
		cmocka_unit_test(entry_that_leads_elsewhere_is_none),
		cmocka_unit_test(entry_of_32_bits),
		cmocka_unit_test(pointer_of_10),
		cmocka_unit_test(forms_of_7),
		cmocka_unit_test(pointer_of_32_bits),
		cmocka_unit_test(plain_and_broken_blocks_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
