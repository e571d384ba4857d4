/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swap caches of made-up Linux machines: trees of every kind of node, trees that lie, and trees
 * that change at each moment while they are read.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "tests/unit/swap_machine.h"

static uint8_t bytes[PAGE_SIZE];

static struct swap_lookup look(uint64_t slot)
{
	struct swap_lookup l = { .file = AREA, .slot = slot };
	struct err e = ERR_INIT;

	memset(bytes, 0, sizeof(bytes));
	CHECK_OK(swap_cache_lookup(cache, &l, 1, bytes, &e), &e);
	return l;
}

static void check(uint64_t slot, enum swap_cache_state state)
{
	const struct swap_lookup l = look(slot);

	assert_int_equal(l.state, state);
}

/* Held by frame n, whose bytes came. */
static void check_held(uint64_t slot, unsigned n)
{
	const struct swap_lookup l = look(slot);

	assert_int_equal(l.state, SWAP_CACHE_HELD);
	assert_true(l.readable);
	assert_int_equal(l.frame, FRAME(n));
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(bytes[i], 'A' + n);
}

TEST(what_is_not_there_is_absent)
{
	set_up_swap();
	machine_u64(&m, place_of(20, 20, 6, 0), VALUE(77));
	begin_swap();
	check(5, SWAP_CACHE_ABSENT);             /* nothing in its leaf */
	check(20, SWAP_CACHE_ABSENT);            /* a shadow */
	check(64, SWAP_CACHE_ABSENT);            /* no leaf */
	check(5000, SWAP_CACHE_ABSENT);          /* behind the last of the tree */
	check((1 << 14) + 5, SWAP_CACHE_ABSENT); /* an empty tree */
	end_swap();
}

TEST(a_page_is_held_and_its_frame_read)
{
	set_up_swap();
	machine_u64(&m, place_of(70, 70, 12, 0), PAGE(2));
	put_page(2, UPTODATE, entry_of(70));
	machine_u64(&m, place_of(71, 71, 12, 0), PAGE(3));
	put_page(3, 0, entry_of(71)); /* still being read from the slot */
	machine_u64(&m, head_at(1 << 14), 0);
	begin_swap();
	check_held(70, 2);
	check(71, SWAP_CACHE_BUSY);
	end_swap();
}

TEST(a_frame_that_cannot_be_read_is_held_without_its_bytes)
{
	struct swap_lookup l;

	set_up_swap();
	machine_u64(&m, place_of(70, 70, 12, 0), PAGE(2));
	put_page(2, UPTODATE, entry_of(70));
	machine_forget(&m, FRAME(2));
	begin_swap();
	l = look(70);
	assert_int_equal(l.state, SWAP_CACHE_HELD);
	assert_false(l.readable);
	end_swap();
}

TEST(nodes_lie_across_pages)
{
	for (unsigned at = PAGE_SIZE - 0x240; at < PAGE_SIZE; at += 8) {
		set_up_swap();
		node_in_page = at;
		machine_u64(&m, place_of(4095, 4095, 6, 0), PAGE(2));
		put_page(2, UPTODATE, entry_of(4095));
		begin_swap();
		check_held(4095, 2);
		check(4094, SWAP_CACHE_ABSENT);
		end_swap();
	}
}

TEST(a_tree_of_one_page_has_no_node)
{
	set_up_swap();
	machine_u64(&m, head_at(0), PAGE(1));
	put_page(1, UPTODATE, entry_of(0));
	begin_swap();
	check_held(0, 1);
	check(1, SWAP_CACHE_ABSENT);
	machine_u64(&m, head_at(0), VALUE(1));
	check(0, SWAP_CACHE_ABSENT);
	machine_u64(&m, head_at(0), RETRY);
	check(0, SWAP_CACHE_UNKNOWN);
	check(1, SWAP_CACHE_UNKNOWN);
	end_swap();
}

/* Up to 6.10 the index is the slot; since 6.11 it is the slot modulo 2^14. */
TEST(slots_of_later_spaces_are_found_by_both_indexes)
{
	const uint64_t a = (UINT64_C(2) << 14) + 100, b = (UINT64_C(3) << 14) + 100;

	set_up_swap();
	machine_u64(&m, place_of(a, a, 12, 0), PAGE(1));
	put_page(1, UPTODATE, entry_of(a));
	machine_u64(&m, place_of(b, 100, 12, 0), PAGE(2));
	put_page(2, UPTODATE, entry_of(b));
	begin_swap();
	check_held(a, 1);
	check_held(b, 2);
	check(100, SWAP_CACHE_ABSENT);
	end_swap();
}

TEST(pages_of_a_large_folio_are_found_by_its_first)
{
	set_up_swap();
	for (uint64_t i = 0; i < 4; i++) {
		machine_u64(&m, place_of(128 + i, 128 + i, 12, 0), PAGE(4));
		machine_u64(&m, place_of(192 + i, 192 + i, 12, 0), PAGE(8));
		put_page((unsigned)(8 + i), UPTODATE, entry_of(192 + i));
	}
	put_page(4, UPTODATE | HEAD, entry_of(128)); /* since 6.6: only the first names the slot */
	begin_swap();
	for (unsigned i = 0; i < 4; i++) {
		check_held(128 + i, 4 + i);
		check_held(192 + i, 8 + i);
	}
	put_page(10, UPTODATE, entry_of(5)); /* one that does not belong to it */
	check(194, SWAP_CACHE_UNKNOWN);
	end_swap();
}

/* One entry for many indexes: above the lowest level, and as siblings in one node. */
TEST(entries_for_many_indexes_are_followed)
{
	uint64_t leaf;

	set_up_swap();
	machine_u64(&m, place_of(64, 64, 12, 6), PAGE(4)); /* 64 to 127 */
	put_page(4, UPTODATE | HEAD, entry_of(64));
	leaf = place_of(256, 256, 12, 0);
	machine_u64(&m, leaf, PAGE(12));
	put_page(12, UPTODATE | HEAD, entry_of(256));
	for (unsigned i = 1; i < 4; i++)
		machine_u64(&m, leaf + 8 * i, SIBLING(0));
	machine_u64(&m, leaf + 8 * 5, SIBLING(9)); /* forwards: there is no such thing */
	machine_u64(&m, leaf + 8 * 9, PAGE(13));
	machine_u64(&m, leaf + 8 * 11, SIBLING(10)); /* to a sibling */
	machine_u64(&m, leaf + 8 * 10, SIBLING(9));
	machine_u64(&m, place_of(320, 320, 12, 6), VALUE(9));
	begin_swap();
	check_held(64, 4);
	check_held(69, 9);
	check_held(258, 14);
	check(261, SWAP_CACHE_UNKNOWN);
	check(267, SWAP_CACHE_UNKNOWN);
	check(325, SWAP_CACHE_ABSENT);
	end_swap();
}

/* Each of these makes it impossible to tell, and nothing else. */
TEST(trees_that_lie_tell_nothing)
{
	uint64_t leaf, node, root, was;

	set_up_swap();
	leaf = place_of(70, 70, 12, 0);
	machine_u64(&m, leaf, PAGE(2));
	put_page(2, UPTODATE, entry_of(70));
	begin_swap();
	node = leaf & ~(uint64_t)(PAGE_SIZE - 1);
	root = machine_get(&m, head_at(70)) - 2 - DIRECT;

#define LIE(at, v)                                                                                 \
	do {                                                                                       \
		was = machine_get(&m, at);                                                         \
		machine_u64(&m, at, v);                                                            \
		check(70, SWAP_CACHE_UNKNOWN);                                                     \
		machine_u64(&m, at, was);                                                          \
		check_held(70, 2);                                                                 \
	} while (0)

	LIE(node, 0 | 2 << 8);                        /* another place in its parent */
	LIE(node, 6 | 1 << 8);                        /* another level */
	LIE(node + 8, DIRECT + node);                 /* another parent */
	LIE(node + 0x10, DIRECT + space_at(1 << 14)); /* another tree */
	LIE(root, 7);                                 /* no level */
	LIE(root, 36);                                /* too high */
	LIE(root + 8, DIRECT + node);                 /* a root with a parent */
	LIE(node_slot(root, 0), NODE(DIRECT + root)); /* a circle */
	LIE(leaf, NODE(DIRECT + node));               /* a node below the lowest */
	LIE(leaf, NODE(UINT64_C(0x7000)));            /* no pointer of the kernel's */
	LIE(leaf, NODE(DIRECT + 0x3000000));          /* memory that cannot be read */
	LIE(leaf, RETRY);
	LIE(leaf, ZERO);
	LIE(leaf, PAGE(2) + 8);
	LIE(leaf, VMEMMAP - MACHINE_PAGE_SIZE);
	LIE(leaf, VMEMMAP + (PHYS_LIMIT >> PAGE_SHIFT) * MACHINE_PAGE_SIZE);
	LIE(leaf, PAGE(3)); /* a page that names nothing */
	LIE(PAGES_AT + FRAME(2) / PAGE_SIZE * MACHINE_PAGE_SIZE + MACHINE_PAGE_PRIVATE,
	    entry_of(70) + (UINT64_C(1) << 58)); /* another area's */
	LIE(PAGES_AT + FRAME(2) / PAGE_SIZE * MACHINE_PAGE_SIZE + MACHINE_PAGE_PRIVATE,
	    entry_of(71));
	LIE(PAGES_AT + FRAME(2) / PAGE_SIZE * MACHINE_PAGE_SIZE + MACHINE_PAGE_PRIVATE,
	    entry_of(69));
	LIE(space_at(70) + MACHINE_SPACE_OPS, OPS + 8); /* no space of swapping */
	LIE(IMAGE_AT + 8 * AREA, 0);                    /* no such area */
	LIE(IMAGE_AT + 8 * AREA, DIRECT + SPACES_AT + 1);
#undef LIE
	end_swap();
}

TEST(numbers_beyond_all_areas_tell_nothing)
{
	struct swap_lookup l[] = { { .file = 32, .slot = 1 },
				   { .file = 4, .slot = 1 },
				   { .file = AREA, .slot = UINT64_MAX },
				   { .file = AREA, .slot = UINT64_C(1) << 36 } };
	uint8_t room[ARRAY_SIZE(l) * PAGE_SIZE];
	struct err e = ERR_INIT;

	set_up_swap();
	begin_swap();
	CHECK_OK(swap_cache_lookup(cache, l, ARRAY_SIZE(l), room, &e), &e);
	for (size_t i = 0; i < ARRAY_SIZE(l); i++)
		assert_int_equal(l[i].state, SWAP_CACHE_UNKNOWN);
	end_swap();
}

/*
 * One change at each moment
 */

static uint64_t changed_leaf;

/* The page goes, and its frame is somebody else's. */
static void remove_page(void)
{
	machine_u64(&m, changed_leaf, VALUE(5));
	put_page(2, UPTODATE, 0);
	memset(machine_page(&m, FRAME(2)), 'x', PAGE_SIZE);
}

/*
 * Migration (folio_migrate_mapping()): another frame has the same page, and then the old one is
 * reused.
 */
static void move_page(void)
{
	memset(machine_page(&m, FRAME(3)), 'A' + 2, PAGE_SIZE);
	put_page(3, UPTODATE, entry_of(70));
	machine_u64(&m, changed_leaf, PAGE(3));
	put_page(2, UPTODATE, 0);
	memset(machine_page(&m, FRAME(2)), 'x', PAGE_SIZE);
}

static void add_page(void)
{
	put_page(2, UPTODATE, entry_of(70));
	machine_u64(&m, changed_leaf, PAGE(2));
}

/* The tree grows (xas_expand()): the page stays where it is, below another root. */
static void grow_tree(void)
{
	const uint64_t old = machine_get(&m, head_at(70)) - 2 - DIRECT;
	const uint64_t root = NODES_AT + 20 * PAGE_SIZE;

	machine_u64(&m, root, 18);
	machine_u64(&m, root + 8, 0);
	machine_u64(&m, root + 0x10, machine_get(&m, old + 0x10));
	machine_u64(&m, node_slot(root, 0), NODE(DIRECT + old));
	machine_u64(&m, old + 8, DIRECT + root);
	machine_u64(&m, old, 12);
	machine_u64(&m, head_at(70), NODE(DIRECT + root));
}

/* The leaf is freed, and what has its memory looks like an empty one of another tree. */
static void reuse_leaf(void)
{
	const uint64_t node = changed_leaf & ~(uint64_t)(PAGE_SIZE - 1);
	const uint64_t parent = machine_get(&m, node + 8) - DIRECT;

	machine_u64(&m, node_slot(parent, 1), 0);
	memset(machine_page(&m, node), 0, PAGE_SIZE);
	machine_u64(&m, node, 0 | 1 << 8);
	put_page(2, UPTODATE, 0);
	memset(machine_page(&m, FRAME(2)), 'x', PAGE_SIZE);
}

struct outcomes {
	unsigned held, absent, unknown;
};

static struct outcomes change_at_each_moment(void (*what)(void), bool there_before)
{
	struct outcomes ret = { 0 };

	for (unsigned at = 0;; at++) {
		struct swap_lookup l;

		set_up_swap();
		changed_leaf = place_of(70, 70, 12, 0);
		machine_page(&m, NODES_AT + 20 * PAGE_SIZE);
		if (there_before) {
			machine_u64(&m, changed_leaf, PAGE(2));
			put_page(2, UPTODATE, entry_of(70));
		}
		begin_swap();
		changing.reads = 0;
		changing.at = at;
		changing.what = what;
		l = look(70);
		ret.held += l.state == SWAP_CACHE_HELD;
		ret.absent += l.state == SWAP_CACHE_ABSENT;
		ret.unknown += l.state == SWAP_CACHE_UNKNOWN;
		for (size_t i = 0; l.state == SWAP_CACHE_HELD && i < PAGE_SIZE; i++)
			assert_int_equal(bytes[i], 'A' + 2);
		end_swap();
		if (changing.reads <= at)
			return ret;
	}
}

TEST(a_page_that_goes_was_held_or_is_absent)
{
	const struct outcomes o = change_at_each_moment(remove_page, true);

	assert_int_not_equal(o.held, 0);
	assert_int_not_equal(o.absent, 0);
}

TEST(a_page_that_moves_is_never_absent)
{
	const struct outcomes o = change_at_each_moment(move_page, true);

	assert_int_not_equal(o.held, 0);
	assert_int_equal(o.absent, 0);
}

TEST(a_page_that_comes_is_held_behind_that)
{
	const struct outcomes o = change_at_each_moment(add_page, false);

	assert_int_not_equal(o.held, 0);
	assert_int_not_equal(o.absent, 0);
}

TEST(a_tree_that_grows_has_its_pages_all_the_time)
{
	const struct outcomes o = change_at_each_moment(grow_tree, true);

	assert_int_not_equal(o.held, 0);
	assert_int_equal(o.absent, 0);
}

TEST(a_node_that_is_used_for_something_else_tells_nothing)
{
	const struct outcomes o = change_at_each_moment(reuse_leaf, true);

	assert_int_not_equal(o.held, 0);
	assert_int_not_equal(o.absent, 0); /* behind it, by the tree that is left */
}

/*
 * Where it cannot be done
 */

static void check_lack(const char *part)
{
	struct err e = ERR_INIT;
	const char *why;

	CHECK_OK(swap_cache_create(&mem.pieces.mem, &kernel, &cache, &why, &e), &e);
	assert_null(cache);
	assert_non_null(strstr(why, part));
}

TEST(without_symbols_or_layout_there_is_a_reason)
{
	struct discovery whole;

	set_up_swap();
	machine_mem_init(&mem, &m, RAM_LAST);
	whole = kernel;
	kernel.swapper_spaces = 0;
	check_lack("swapper_spaces");
	kernel = whole;
	kernel.vmemmap = 0;
	check_lack("struct pages");
	kernel = whole;
	kernel.linux_offsets.swap.known = false;
	check_lack("BTF");
	kernel = whole;
	kernel.linux_offsets.swap.slots = 4096;
	check_lack("BTF");
	kernel = whole;
	kernel.linux_offsets.swap.page = 0;
	check_lack("BTF");
	kernel = whole;
	kernel.os = OS_WINDOWS;
	check_lack("not Linux");
	end_swap();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_there_is_absent),
		cmocka_unit_test(a_page_is_held_and_its_frame_read),
		cmocka_unit_test(a_frame_that_cannot_be_read_is_held_without_its_bytes),
		cmocka_unit_test(nodes_lie_across_pages),
		cmocka_unit_test(a_tree_of_one_page_has_no_node),
		cmocka_unit_test(slots_of_later_spaces_are_found_by_both_indexes),
		cmocka_unit_test(pages_of_a_large_folio_are_found_by_its_first),
		cmocka_unit_test(entries_for_many_indexes_are_followed),
		cmocka_unit_test(trees_that_lie_tell_nothing),
		cmocka_unit_test(numbers_beyond_all_areas_tell_nothing),
		cmocka_unit_test(a_page_that_goes_was_held_or_is_absent),
		cmocka_unit_test(a_page_that_moves_is_never_absent),
		cmocka_unit_test(a_page_that_comes_is_held_behind_that),
		cmocka_unit_test(a_tree_that_grows_has_its_pages_all_the_time),
		cmocka_unit_test(a_node_that_is_used_for_something_else_tells_nothing),
		cmocka_unit_test(without_symbols_or_layout_there_is_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
