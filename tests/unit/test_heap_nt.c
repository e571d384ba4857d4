/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One NT heap of Windows 10, in bytes made here: a segment of 16 pages with a chain of chunks, a
 * container of LFH blocks in it, and what can be wrong with each.
 */
#include "tests/unit/test.h"

#include "agent/examine/heap/heap.h"
#include "tests/unit/sparse_view.h"

#define PEB        UINT64_C(0x7ff0000)
#define HEAP       UINT64_C(0x150000)
#define PAGES      16
#define END        (HEAP + PAGES * PAGE_SIZE)
#define FIRST      (HEAP + 0x800)
#define SUBSEGMENT (HEAP + 0x600) /* within the head, like all that is not a chunk */
#define DESCRIPTOR (HEAP + 0x700) /* of a hole */
#define LISTED_MAX 1024

#define BUSY       0x01
#define INTERNAL   0x08

static const uint8_t key[8] = { 0x31, 0x41, 0x59, 0x26, 0x53, 0x58, 0, 0 };

static struct sparse memory;
static struct range range = { HEAP, END - 1 };
static const struct range_list ranges = { .at = &range, .count = 1 };
static struct heap_allocation found[LISTED_MAX];
static size_t n_found;
static struct heap_stats stats;

/* The chunk that is put next, and the size of the one before it, in bytes. */
static uint64_t next;
static uint32_t before;

static void put_chunk(uint64_t at, uint32_t bytes, uint32_t previous, uint8_t flags, uint8_t unused)
{
	uint8_t h[8] = { 0 };

	put_le16(h, (uint16_t)(bytes / 16));
	h[2] = flags;
	h[3] = h[0] ^ h[1] ^ h[2];
	put_le16(h + 4, (uint16_t)(previous / 16));
	h[7] = unused;
	for (size_t i = 0; i < sizeof(h); i++)
		h[i] ^= key[i];
	sparse_put(&memory, at + 8, h, sizeof(h));
}

/* Returns what the program has of it. */
static uint64_t add(uint32_t bytes, uint8_t flags, uint8_t unused)
{
	const uint64_t at = next;

	put_chunk(at, bytes, before, flags, unused);
	before = bytes;
	next += bytes;
	return at + 16;
}

static void put_list(uint64_t at, uint64_t entry)
{
	sparse_u64(&memory, at, entry);
	sparse_u64(&memory, at + 8, entry);
}

/* _HEAP, whose first part is its first segment's head. */
static void set_up(void)
{
	memset(&memory, 0, sizeof(memory));
	for (uint64_t va = HEAP; va < END; va += PAGE_SIZE)
		sparse_page(&memory, va);
	sparse_u64(&memory, PEB + 0x30, HEAP);
	sparse_u32(&memory, PEB + 0xe8, 1);
	sparse_u64(&memory, PEB + 0xf0, PEB + 0x800);
	sparse_u64(&memory, PEB + 0x800, HEAP);
	put_chunk(HEAP, 0x800, 0, BUSY, 1);
	sparse_u32(&memory, HEAP + 0x10, 0xffeeffee);
	put_list(HEAP + 0x18, HEAP + 0x120);
	sparse_u64(&memory, HEAP + 0x28, HEAP);
	sparse_u32(&memory, HEAP + 0x38, PAGES);
	sparse_u64(&memory, HEAP + 0x40, FIRST);
	sparse_u64(&memory, HEAP + 0x48, END);
	put_list(HEAP + 0x60, HEAP + 0x60);
	sparse_u32(&memory, HEAP + 0x7c, 0x100000);
	sparse_put(&memory, HEAP + 0x88, key, sizeof(key));
	sparse_u32(&memory, HEAP + 0x98, 0xeeffeeff);
	put_list(HEAP + 0x110, HEAP + 0x110);
	put_list(HEAP + 0x120, HEAP + 0x18);
	next = FIRST;
	before = 0x800;
	n_found = 0;
}

static enum status take(void *context, const struct heap_allocation *a, struct err *e)
{
	(void)context;
	(void)e;
	assert_true(n_found < LISTED_MAX);
	found[n_found++] = *a;
	return ST_OK;
}

static void walk_ranges(struct range_list of)
{
	const struct memory_view m = sparse_view(&memory);
	const struct heap_sources sources = { .memory = &m, .peb = PEB, .ranges = &of };
	const struct heap_visitor v = { take, NULL };
	struct heaps *h;
	struct err e = ERR_INIT;

	CHECK_OK(heaps_open(&sources, &h, &e), &e);
	assert_int_equal(heaps_count(h), 1);
	assert_int_equal(heaps_at(h, 0)->kind, HEAP_NT);
	assert_int_equal(heaps_at(h, 0)->key_from, KEY_READ);
	CHECK_OK(heaps_walk(h, 0, &v, &stats, &e), &e);
	heaps_close(h);
}

static void walk(void)
{
	walk_ranges(ranges);
}

/* What is left of the segment, in chunks of 0x8000 bytes at most. */
static void fill(void)
{
	while (next < END)
		add(next + 0x8000 < END ? 0x8000 : (uint32_t)(END - next), 0, 0);
}

static bool is_told(uint64_t address)
{
	for (size_t i = 0; i < n_found; i++)
		if (found[i].address == address)
			return true;
	return false;
}

static struct heap_allocation block_at(uint64_t address)
{
	for (size_t i = 0; i < n_found; i++)
		if (found[i].address == address)
			return found[i];
	fail_msg("nothing was told of 0x%llx", (unsigned long long)address);
	return found[0];
}

static void check_requested(uint64_t address, uint64_t requested)
{
	const struct heap_allocation a = block_at(address);

	assert_int_equal(a.state, BLOCK_BUSY);
	assert_int_equal(a.has_requested, requested != 0);
	assert_int_equal(a.requested, requested);
}

/*
 * UnusedBytes counts the header's 8, up to 3e; 3f says that a word at the block's end does, and
 * where that is no such number nothing is known; 5 is no chunk of the heap's own.
 */
TEST(a_chunk_says_how_much_of_it_was_asked_for)
{
	uint64_t all, most, least, end, none, less, lie, header, own;

	set_up();
	all = add(0x40, BUSY, 8);
	most = add(0x40, BUSY, 0x3e);
	least = add(0x60, BUSY, 0x3f);
	sparse_u64(&memory, next, 0x3f);
	end = add(0x200, BUSY, 0x3f);
	sparse_u64(&memory, next, 0x1fe);
	none = add(0x40, BUSY, 0x3f);
	less = add(0x60, BUSY, 0x3f);
	sparse_u64(&memory, next, 0x3e);
	lie = add(0x60, BUSY, 0x3f);
	sparse_u64(&memory, next, 0x61);
	header = add(0x40, BUSY, 5);
	own = add(0x40, BUSY, 1);
	fill();
	walk();
	check_requested(all, 0x38);
	check_requested(most, 2);
	check_requested(least, 0x21);
	check_requested(end, 2);
	check_requested(none, 0);
	check_requested(less, 0);
	check_requested(lie, 0);
	check_requested(header, 0);
	assert_int_equal(block_at(own).state, BLOCK_INTERNAL);
	assert_int_equal(block_at(all).size, 0x38);
	assert_int_equal(stats.contradictions + stats.lost + stats.unlinked, 0);
	sparse_deinit(&memory);
}

/* A heap that starts as one does, and whose headers no key makes right. */
TEST(a_heap_whose_headers_no_key_explains_is_refused)
{
	const struct memory_view m = sparse_view(&memory);
	const struct heap_sources sources = { .memory = &m, .peb = PEB, .ranges = &ranges };
	struct heaps *h;
	struct err e = ERR_INIT;

	set_up();
	sparse_u16(&memory, PEB + 0x120, 32768 + 12345);
	sparse_u64(&memory, HEAP + 8, UINT64_C(0x0123456789abcdef));
	CHECK_OK(heaps_open(&sources, &h, &e), &e);
	assert_int_equal(heaps_count(h), 1);
	assert_int_equal(heaps_at(h, 0)->key_from, KEY_NONE);
	assert_int_equal(heaps_at(h, 0)->refused, REFUSED_HEADERS);
	assert_int_equal(heaps_build(h, true), 32768 + 12345);
	assert_int_equal(heaps_build(h, false), 0);
	heaps_close(h);
	sparse_u32(&memory, HEAP + 0x10, 0xffeeffed);
	CHECK_OK(heaps_open(&sources, &h, &e), &e);
	assert_int_equal(heaps_at(h, 0)->kind, HEAP_OTHER);
	assert_int_equal(heaps_at(h, 0)->refused, REFUSED_SIGNATURE);
	heaps_close(h);
	sparse_deinit(&memory);
}

/* The chain is taken up again behind it. */
TEST(a_header_whose_sum_is_wrong_is_none)
{
	uint64_t blocks[64];

	set_up();
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		blocks[i] = add(0x40, BUSY, 8);
	fill();
	sparse_page(&memory, blocks[20])->bytes[(blocks[20] - 8 + 3) % PAGE_SIZE] ^= 1;
	/* In it there is still one that was merged into it, and leads where it leads. */
	put_chunk(blocks[20] + 0x10, 0x20, 0x20, BUSY, 8);
	walk();
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		assert_int_equal(is_told(blocks[i]), i != 20);
	assert_false(is_told(blocks[20] + 0x20));
	assert_true(stats.contradictions > 0);
	assert_int_equal(stats.unlinked, 0x40);
	assert_int_equal(stats.resynchronised, 1);
	sparse_deinit(&memory);
}

/* From the first byte that can't be read to the next chain: all of it is lost, and counted. */
TEST(what_lies_in_a_lost_page_is_counted)
{
	uint64_t at[600];
	size_t told = 0;

	set_up();
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		at[i] = add(0x40, BUSY, 8);
	fill();
	sparse_lose(&memory, HEAP + 2 * PAGE_SIZE, true);
	walk();
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		const bool there = (at[i] - 8) / PAGE_SIZE != HEAP / PAGE_SIZE + 2;

		assert_int_equal(is_told(at[i]), there);
		told += there;
	}
	assert_int_equal(told, ARRAY_SIZE(at) - PAGE_SIZE / 0x40);
	assert_int_equal(stats.lost, PAGE_SIZE);
	assert_int_equal(stats.contradictions, 0);
	sparse_deinit(&memory);
}

/* What is not committed there was never anything: not lost, and no contradiction. */
TEST(a_segment_may_end_with_pages_that_are_not_committed)
{
	const uint64_t hole = END - 4 * PAGE_SIZE;

	set_up();
	put_list(HEAP + 0x60, DESCRIPTOR + 0x10);
	put_list(DESCRIPTOR + 0x10, HEAP + 0x60);
	sparse_u64(&memory, DESCRIPTOR + 0x20, hole);
	sparse_u64(&memory, DESCRIPTOR + 0x28, END - hole);
	for (uint64_t va = hole; va < END; va += PAGE_SIZE)
		sparse_lose(&memory, va, true);
	add((uint32_t)(hole - FIRST) / 2, BUSY, 8);
	add((uint32_t)(hole - next), 0, 0);
	walk();
	assert_int_equal(n_found, 2);
	assert_int_equal(stats.holes, 1);
	assert_int_equal(stats.lost + stats.unlinked + stats.contradictions, 0);
	sparse_deinit(&memory);
}

/*
 * From 8 on it begins some pages behind the start of its range. Here the list leads to another one,
 * whose page can't be had.
 */
TEST(a_virtual_block_is_found_where_it_begins)
{
	static const uint64_t lead[] = { 0, 1, 15, 16 };
	const uint64_t own = UINT64_C(0x400000), lost = UINT64_C(0x300000);

	for (size_t i = 0; i < ARRAY_SIZE(lead); i++) {
		const uint64_t at = own + lead[i] * PAGE_SIZE;
		struct range all[] = { range,
				       { lost, lost + PAGE_SIZE - 1 },
				       { own, at + 3 * PAGE_SIZE - 1 } };

		set_up();
		fill();
		put_list(HEAP + 0x110, lost);
		sparse_lose(&memory, lost, true);
		put_chunk(at + 0x30, 0x123 * 16, 0, BUSY | 2, 4);
		put_list(at, lost);
		sparse_u64(&memory, at + 0x20, 2 * PAGE_SIZE);
		sparse_u64(&memory, at + 0x28, 2 * PAGE_SIZE);
		walk_ranges((struct range_list){ .at = all, .count = ARRAY_SIZE(all) });
		assert_int_equal(is_told(at + 0x40), lead[i] < 16);
		if (lead[i] < 16)
			check_requested(at + 0x40, 2 * PAGE_SIZE - 0x123);
		sparse_deinit(&memory);
	}
}

/* Of a small heap the front end has nearly all, so that its containers are most of the chunks. */
TEST(containers_vote_for_the_key_of_the_flags)
{
	const struct memory_view m = sparse_view(&memory);
	const struct heap_sources sources = { .memory = &m, .peb = PEB, .ranges = &ranges };
	struct heaps *h;
	struct err e = ERR_INIT;

	set_up();
	for (uint32_t i = 0; i < 24; i++) {
		const uint64_t at = add(0x210 + 0x100 * (i % 7), BUSY | INTERNAL, 0x10);

		sparse_u32(&memory, at + 0x14, 0xf0e0d0c0);
		if (i % 8 == 7)
			add(0x40 + 0x10 * i, BUSY, 8);
	}
	fill();
	sparse_lose(&memory, HEAP, true);
	CHECK_OK(heaps_open(&sources, &h, &e), &e);
	assert_int_equal(heaps_count(h), 1);
	assert_int_equal(heaps_at(h, 0)->key_from, KEY_RECOVERED);
	assert_memory_equal(heaps_at(h, 0)->key, key, sizeof(key));
	heaps_close(h);
	sparse_deinit(&memory);
}

/*
 * The low-fragmentation heap
 */

#define BLOCKS 32
#define STRIDE 0x40

/* A container of blocks, every third of which is free. Returns where it begins. */
static uint64_t add_container(void)
{
	const uint32_t first = 0x40, size = first + BLOCKS * STRIDE + 16;
	const uint64_t at = add(size, BUSY | INTERNAL, 8);
	uint64_t bits = 0;
	uint16_t free_blocks = 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		const uint8_t last = i % 3 ? 0x80 | 8 : 0x80;

		sparse_put(&memory, at + first + i * STRIDE + 15, &last, 1);
		bits |= (uint64_t)(i % 3 != 0) << i;
		if (!(i % 3))
			free_blocks++;
	}
	sparse_u64(&memory, at, SUBSEGMENT);
	sparse_u32(&memory, at + 0x14, 0xf0e0d0c0);
	sparse_u32(&memory, at + 0x18, (uint32_t)at ^ 0x1badcafe ^ (first | STRIDE << 16));
	sparse_u32(&memory, at + 0x20, BLOCKS);
	sparse_u64(&memory, at + 0x28, at + 0x30);
	sparse_u64(&memory, at + 0x30, bits);
	sparse_u64(&memory, SUBSEGMENT + 8, at);
	sparse_u16(&memory, SUBSEGMENT + 0x20, free_blocks);
	sparse_u16(&memory, SUBSEGMENT + 0x24, STRIDE / 16);
	sparse_u16(&memory, SUBSEGMENT + 0x28, BLOCKS);
	return at;
}

TEST(blocks_of_a_container_reach_into_the_next_header)
{
	uint64_t at;

	set_up();
	at = add_container();
	fill();
	walk();
	assert_int_equal(stats.containers, 1);
	assert_int_equal(stats.containers_lost + stats.contradictions, 0);
	for (size_t i = 0; i < BLOCKS; i++) {
		const struct heap_allocation a = block_at(at + 0x40 + i * STRIDE + 16);

		assert_int_equal(a.place, PLACE_LFH);
		assert_int_equal(a.size, STRIDE - 8);
		assert_int_equal(a.state, i % 3 ? BLOCK_BUSY : BLOCK_FREE);
		assert_int_equal(a.requested, i % 3 ? STRIDE - 8 : 0);
	}
	sparse_deinit(&memory);
}

/* A free block whose header says that it is busy, or the other way round: who knows what it is. */
TEST(a_container_whose_headers_deny_its_bitmap_is_lost)
{
	for (size_t i = 3; i < 5; i++) {
		const uint8_t last = i % 3 ? 0x80 : 0x80 | 8;
		uint64_t at;

		set_up();
		at = add_container();
		fill();
		sparse_put(&memory, at + 0x40 + i * STRIDE + 15, &last, 1);
		walk();
		assert_int_equal(stats.containers_lost, 1);
		assert_true(stats.containers_lost_bytes >= BLOCKS * STRIDE);
		assert_int_equal(stats.contradictions, 1);
		assert_int_equal(stats.blocks[PLACE_LFH][BLOCK_BUSY].blocks, 0);
		sparse_deinit(&memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_says_how_much_of_it_was_asked_for),
		cmocka_unit_test(a_heap_whose_headers_no_key_explains_is_refused),
		cmocka_unit_test(a_header_whose_sum_is_wrong_is_none),
		cmocka_unit_test(what_lies_in_a_lost_page_is_counted),
		cmocka_unit_test(a_segment_may_end_with_pages_that_are_not_committed),
		cmocka_unit_test(a_virtual_block_is_found_where_it_begins),
		cmocka_unit_test(containers_vote_for_the_key_of_the_flags),
		cmocka_unit_test(blocks_of_a_container_reach_into_the_next_header),
		cmocka_unit_test(a_container_whose_headers_deny_its_bitmap_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
