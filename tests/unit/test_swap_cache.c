/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swap caches of made-up Linux machines: trees of every kind of node, and tables of every layout,
 * such as lie, and such as change at each moment while they are read.
 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/swap_machine.h"

static uint8_t bytes[PAGE_SIZE];

static struct swap_lookup look(uint64_t slot)
{
	struct swap_lookup l = { .file = AREA, .slot = slot };
	struct err e = ERR_INIT;

	memset(bytes, 'x', sizeof(bytes));
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
	unsigned held, absent, zeros, unknown;
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
 * Tables
 */

/* What tells kernels apart that have them. */
struct layout {
	unsigned version, parts, slots;
	bool pointers; /* entries are pointers, and not numbers */
};

#define TABLES  (MACHINE_BTF_AREAS | MACHINE_BTF_TABLES)
#define ZEROMAP (TABLES | MACHINE_BTF_ZEROMAP)

static const struct layout layouts[] = {
	{ 618, ZEROMAP, 512, true },
	{ 618, ZEROMAP, 256, true },
	{ 701, ZEROMAP, 512, false },
	{ 702, TABLES, 512, false },
	{ 703, TABLES | MACHINE_BTF_MEMCG, 256, false },
};

#define FOR_EACH_LAYOUT(l)                                                                         \
	for (const struct layout *l = layouts; l < layouts + ARRAY_SIZE(layouts); l++)

static void set_up_layout(const struct layout *l)
{
	set_up_tables(l->version, l->parts, l->slots);
}

#define NUMBER(n) (FRAME(n) >> PAGE_SHIFT << 2 | 2)
#define USERS(n)  ((uint64_t)(n) << 60)
#define ZERO_FLAG (UINT64_C(1) << 59)
#define SHADOW    UINT64_C(0x12345) /* of an entry without users */
#define BAD       (UINT64_MAX << 3)

static uint64_t cached_entry(const struct layout *l, unsigned n)
{
	return l->pointers ? PAGE(n) : NUMBER(n) | USERS(1);
}

static uint64_t shadow_entry(const struct layout *l)
{
	return l->pointers ? SHADOW : SHADOW | USERS(1);
}

static bool has_flag(const struct layout *l)
{
	return !(l->parts & MACHINE_BTF_ZEROMAP);
}

static void note_zeros(const struct layout *l, uint64_t slot)
{
	if (has_flag(l))
		machine_u64(&m, entry_at(slot), machine_get(&m, entry_at(slot)) | ZERO_FLAG);
	else
		machine_u64(&m, zeros_at(slot), UINT64_C(1) << slot % 64);
}

static void check_zeros(uint64_t slot)
{
	const struct swap_lookup l = look(slot);

	assert_int_equal(l.state, SWAP_CACHE_ZEROS);
	assert_true(l.readable);
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(bytes[i], 0);
}

/* Slots in the first cluster, in the last, and in those on both sides of a page of clusters. */
static const uint64_t table_slots[] = {
	1, 255, 256, 511, 512, 128 * 256 - 1, 128 * 256, SLOTS - 1
};

TEST(a_page_in_a_table_is_held)
{
	FOR_EACH_LAYOUT(l)
	{
		for (size_t i = 0; i < ARRAY_SIZE(table_slots); i++) {
			const uint64_t slot = table_slots[i];

			set_up_layout(l);
			machine_u64(&m, entry_at(slot), cached_entry(l, 2));
			put_page(2, UPTODATE | IN_CACHE, entry_of(slot));
			begin_swap();
			assert_true(swap_cache_tells_zeros(cache));
			check_held(slot, 2);
			check(slot ^ 1, SWAP_CACHE_UNKNOWN); /* free: no entry names it */
			end_swap();
		}
	}
}

TEST(a_page_that_a_table_lacks_is_absent)
{
	FOR_EACH_LAYOUT(l)
	{
		set_up_layout(l);
		machine_u64(&m, entry_at(70), shadow_entry(l));
		machine_u64(&m, entry_at(71), cached_entry(l, 3));
		put_page(3, IN_CACHE, entry_of(71)); /* still being read from the slot */
		machine_u64(&m, entry_at(72), BAD);
		begin_swap();
		check(70, SWAP_CACHE_ABSENT);
		check(71, SWAP_CACHE_BUSY);
		check(72, SWAP_CACHE_UNKNOWN);
		check(3 * l->slots, SWAP_CACHE_UNKNOWN); /* a cluster without a table */
		check(SLOTS, SWAP_CACHE_UNKNOWN);        /* behind the last */
		end_swap();
	}
}

TEST(pages_of_zeros_are_told_from_those_that_are_written)
{
	FOR_EACH_LAYOUT(l)
	{
		set_up_layout(l);
		machine_u64(&m, entry_at(70), shadow_entry(l));
		machine_u64(&m, entry_at(71), cached_entry(l, 3));
		put_page(3, IN_CACHE, entry_of(71));
		machine_u64(&m, entry_at(200), cached_entry(l, 4));
		put_page(4, UPTODATE | IN_CACHE, entry_of(200));
		note_zeros(l,
			   200); /* as it was written last; since then it may be something else */
		note_zeros(l, 70);
		begin_swap();
		check_zeros(70);
		check(71, SWAP_CACHE_BUSY);
		check_held(200, 4);
		end_swap();
		set_up_layout(l);
		machine_u64(&m, entry_at(71), cached_entry(l, 3));
		put_page(3, IN_CACHE, entry_of(71));
		note_zeros(l, 71);
		begin_swap();
		check_zeros(71);
		end_swap();
	}
}

TEST(pages_of_a_large_folio_have_its_first_in_their_entries)
{
	FOR_EACH_LAYOUT(l)
	{
		set_up_layout(l);
		for (uint64_t i = 0; i < 4; i++)
			machine_u64(&m, entry_at(128 + i), cached_entry(l, 4));
		put_page(4, UPTODATE | IN_CACHE | HEAD, entry_of(128));
		begin_swap();
		for (unsigned i = 0; i < 4; i++)
			check_held(128 + i, 4 + i);
		put_page(4, UPTODATE | IN_CACHE, entry_of(128)); /* no large one */
		check_held(128, 4);
		check(130, SWAP_CACHE_UNKNOWN);
		end_swap();
	}
}

/* Each of these makes it impossible to tell, and nothing else. */
TEST(tables_that_lie_tell_nothing)
{
	FOR_EACH_LAYOUT(l)
	{
		const uint64_t page = PAGES_AT + FRAME(2) / PAGE_SIZE * MACHINE_PAGE_SIZE;
		uint64_t was;

		set_up_layout(l);
		machine_u64(&m, entry_at(70), cached_entry(l, 2));
		machine_u64(&m, entry_at(71), shadow_entry(l));
		put_page(2, UPTODATE | IN_CACHE, entry_of(70));
		begin_swap();

#define LIE_OF(slot, state, at, v)                                                                 \
	do {                                                                                       \
		was = machine_get(&m, at);                                                         \
		machine_u64(&m, at, v);                                                            \
		check(slot, SWAP_CACHE_UNKNOWN);                                                   \
		machine_u64(&m, at, was);                                                          \
		check(slot, state);                                                                \
	} while (0)
/* On the way to both. */
#define LIE(at, v)                                                                                 \
	do {                                                                                       \
		LIE_OF(70, SWAP_CACHE_HELD, at, v);                                                \
		LIE_OF(71, SWAP_CACHE_ABSENT, at, v);                                              \
	} while (0)

		LIE(IMAGE_AT + 0x2000 + 8 * AREA, 0);                     /* no such area */
		LIE(IMAGE_AT + 0x2000 + 8 * AREA, DIRECT + AREAS_AT + 4); /* no pointer */
		LIE(IMAGE_AT + 0x2000 + 8 * AREA, DIRECT + 0x3000000);    /* cannot be read */
		LIE(AREAS_AT + MACHINE_AREA_TYPE,
		    AREA + 1 + ((uint64_t)SLOTS << 32));                        /* another's */
		LIE(AREAS_AT + MACHINE_AREA_TYPE, AREA + (UINT64_C(70) << 32)); /* too small */
		LIE(AREAS_AT + MACHINE_AREA_TABLES, 0);
		LIE(AREAS_AT + MACHINE_AREA_TABLES, CLUSTERS + 1);
		LIE(AREAS_AT + MACHINE_AREA_TABLES, CLUSTERS + 0x100000); /* not mapped */
		LIE(AREAS_AT + MACHINE_AREA_TABLES, UINT64_C(0x7000));
		LIE(AREAS_AT + MACHINE_AREA_TABLES, UINT64_MAX - 7);
		LIE(AREAS_AT + MACHINE_AREA_TABLES, DIRECT + FRAME(0)); /* something else's */
		LIE(cluster_at(70), 0);
		LIE(cluster_at(70), DIRECT + TABLES_AT + 4);
		LIE(cluster_at(70), DIRECT + 0x3000000);
		LIE(cluster_at(70), UINT64_MAX - 0x100);
		if (!has_flag(l))
			LIE_OF(71, SWAP_CACHE_ABSENT, AREAS_AT + MACHINE_AREA_ZEROMAP, 0);
		if (!has_flag(l))
			LIE_OF(71, SWAP_CACHE_ABSENT, AREAS_AT + MACHINE_AREA_ZEROMAP,
			       DIRECT + 0x3000000);
#undef LIE
#define LIE(at, v) LIE_OF(70, SWAP_CACHE_HELD, at, v)
		LIE(entry_at(70), PAGE(2) + 8);
		LIE(entry_at(70), PAGE(2) + 4);
		LIE(entry_at(70), VMEMMAP - MACHINE_PAGE_SIZE);
		LIE(entry_at(70), VMEMMAP + (PHYS_LIMIT >> PAGE_SHIFT) * MACHINE_PAGE_SIZE);
		LIE(entry_at(70), PAGE(3)); /* a page that names nothing */
		LIE(entry_at(70), NUMBER(3));
		LIE(entry_at(70), NUMBER(2) | UINT64_C(1) << 42); /* more than a number can be */
		LIE(entry_at(70), NUMBER(2) | UINT64_C(1) << 58);
		LIE(entry_at(70), (((UINT64_C(1) << 40) - 1) << 2 | 2)); /* behind all memory */
		LIE(entry_at(70), BAD);
		LIE(page + MACHINE_PAGE_PRIVATE, entry_of(70) + (UINT64_C(1) << 58));
		LIE(page + MACHINE_PAGE_PRIVATE, entry_of(71));
		LIE(page + MACHINE_PAGE_PRIVATE, entry_of(69));
		LIE(page, UPTODATE); /* out of the cache */
#undef LIE
#undef LIE_OF
		end_swap();
	}
}

/* Where the frame is memory that cannot be read, the page was there all the same. */
TEST(a_frame_behind_all_memory_is_held_without_its_bytes)
{
	FOR_EACH_LAYOUT(l)
	{
		struct swap_lookup found;

		set_up_layout(l);
		machine_u64(&m, entry_at(70), cached_entry(l, 2));
		put_page(2, UPTODATE | IN_CACHE, entry_of(70));
		machine_forget(&m, FRAME(2));
		begin_swap();
		found = look(70);
		assert_int_equal(found.state, SWAP_CACHE_HELD);
		assert_false(found.readable);
		end_swap();
	}
}

/*
 * One change at each moment, of tables
 */

static const struct layout *changed;

static void remove_from_table(void)
{
	machine_u64(&m, entry_at(70), shadow_entry(changed));
	put_page(2, UPTODATE, 0);
	memset(machine_page(&m, FRAME(2)), 'x', PAGE_SIZE);
}

/* It was zeros: that is noted before it goes. */
static void remove_zeros(void)
{
	note_zeros(changed, 70);
	remove_from_table();
	if (has_flag(changed))
		note_zeros(changed, 70);
}

static void move_in_table(void)
{
	memset(machine_page(&m, FRAME(3)), 'A' + 2, PAGE_SIZE);
	put_page(3, UPTODATE | IN_CACHE, entry_of(70));
	machine_u64(&m, entry_at(70), cached_entry(changed, 3));
	put_page(2, UPTODATE, 0);
	memset(machine_page(&m, FRAME(2)), 'x', PAGE_SIZE);
}

/* The cluster is freed, and its table is somebody else's: all of it looks like shadows. */
static void free_table(void)
{
	machine_u64(&m, cluster_at(70), 0);
	memset(machine_page(&m, TABLES_AT), 0x11, PAGE_SIZE);
	put_page(2, UPTODATE, 0);
	memset(machine_page(&m, FRAME(2)), 'x', PAGE_SIZE);
}

/*
 * The area is turned off and another one on: its clusters lie at the same address, in other pages,
 * and the old ones are somebody else's, who has a table of shadows.
 */
static void remap_clusters(void)
{
	const uint64_t entry = machine_entry(&m, kernel.walk_dtb, CLUSTERS, 1);

	machine_u64(&m, FRAME(20) + MACHINE_CLUSTER_TABLE, DIRECT + TABLES_AT + PAGE_SIZE);
	memset(machine_page(&m, TABLES_AT), 0x11, PAGE_SIZE);
	machine_u64(&m, TABLES_AT + PAGE_SIZE + 70 * 8, cached_entry(changed, 2));
	machine_u64(&m, entry, FRAME(20) | (machine_get(&m, entry) & 0xfff));
}

static struct outcomes change_table_at_each_moment(const struct layout *l, void (*what)(void))
{
	struct outcomes ret = { 0 };

	changed = l;
	for (unsigned at = 0;; at++) {
		struct swap_lookup found;

		set_up_layout(l);
		entry_at(l->slots); /* the second table */
		machine_u64(&m, entry_at(70), cached_entry(l, 2));
		put_page(2, UPTODATE | IN_CACHE, entry_of(70));
		begin_swap();
		changing.reads = 0;
		changing.at = at;
		changing.what = what;
		found = look(70);
		ret.held += found.state == SWAP_CACHE_HELD;
		ret.absent += found.state == SWAP_CACHE_ABSENT;
		ret.zeros += found.state == SWAP_CACHE_ZEROS;
		ret.unknown += found.state == SWAP_CACHE_UNKNOWN;
		for (size_t i = 0; found.state == SWAP_CACHE_HELD && i < PAGE_SIZE; i++)
			assert_int_equal(bytes[i], 'A' + 2);
		end_swap();
		if (changing.reads <= at)
			return ret;
	}
}

TEST(a_page_that_goes_from_a_table_was_held_or_is_absent)
{
	FOR_EACH_LAYOUT(l)
	{
		const struct outcomes o = change_table_at_each_moment(l, remove_from_table);

		assert_int_not_equal(o.held, 0);
		assert_int_not_equal(o.absent, 0);
		assert_int_equal(o.zeros + o.unknown, 0);
	}
}

TEST(a_page_of_zeros_that_goes_is_never_one_that_was_written)
{
	FOR_EACH_LAYOUT(l)
	{
		const struct outcomes o = change_table_at_each_moment(l, remove_zeros);

		assert_int_not_equal(o.held, 0);
		assert_int_not_equal(o.zeros, 0);
		assert_int_equal(o.absent + o.unknown, 0);
	}
}

TEST(a_page_that_moves_is_never_absent_from_its_table)
{
	FOR_EACH_LAYOUT(l)
	{
		const struct outcomes o = change_table_at_each_moment(l, move_in_table);

		assert_int_not_equal(o.held, 0);
		assert_int_equal(o.absent + o.zeros, 0);
	}
}

TEST(a_table_that_is_used_for_something_else_tells_nothing)
{
	FOR_EACH_LAYOUT(l)
	{
		const struct outcomes o = change_table_at_each_moment(l, free_table);

		assert_int_not_equal(o.held, 0);
		assert_int_not_equal(o.unknown, 0);
		assert_int_equal(o.absent + o.zeros, 0);
	}
}

TEST(clusters_that_are_mapped_elsewhere_tell_nothing_of_before)
{
	FOR_EACH_LAYOUT(l)
	{
		const struct outcomes o = change_table_at_each_moment(l, remap_clusters);

		assert_int_not_equal(o.held, 0);
		assert_int_equal(o.absent + o.zeros, 0);
	}
}

/* What a table says is believed of the versions that were read; a page says for itself. */
TEST(of_a_newer_kernel_only_pages_are_believed)
{
	static const unsigned versions[] = { 704, 800, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const struct layout l = { versions[i], TABLES, 512, false };

		set_up_layout(&l);
		machine_u64(&m, entry_at(70), cached_entry(&l, 2));
		put_page(2, UPTODATE | IN_CACHE, entry_of(70));
		machine_u64(&m, entry_at(71), shadow_entry(&l));
		machine_u64(&m, entry_at(72), shadow_entry(&l));
		note_zeros(&l, 72);
		if (!versions[i])
			kernel.vmcoreinfo = NULL;
		begin_swap();
		assert_false(swap_cache_tells_zeros(cache));
		check_held(70, 2);
		check(71, SWAP_CACHE_UNKNOWN);
		check(72, SWAP_CACHE_UNKNOWN);
		end_swap();
	}
}

/* Since 6.12, with trees. */
TEST(a_bitmap_of_zeros_is_read_beside_a_tree)
{
	set_up_swap();
	take_layout(MACHINE_BTF_AREAS | MACHINE_BTF_ZEROMAP, 0);
	cluster_slots = 512;
	machine_map_fresh(&m, kernel.walk_dtb, CLUSTERS, 2 * PAGE_SIZE);
	put_area(MACHINE_BTF_ZEROMAP);
	machine_u64(&m, place_of(70, 70, 12, 0), VALUE(77));
	machine_u64(&m, place_of(71, 71, 12, 0), PAGE(2));
	put_page(2, UPTODATE, entry_of(71));
	machine_u64(&m, place_of(72, 72, 12, 0), PAGE(3));
	put_page(3, 0, entry_of(72));
	machine_u64(&m, zeros_at(64), UINT64_C(7) << (73 - 64)); /* of 73 to 75 */
	begin_swap();
	assert_true(swap_cache_tells_zeros(cache));
	check(70, SWAP_CACHE_ABSENT);
	check_held(71, 2);
	check(72, SWAP_CACHE_BUSY);
	check_zeros(73);
	machine_u64(&m, zeros_at(64), UINT64_MAX);
	check_zeros(70);
	check_held(71, 2);
	check_zeros(72);
	machine_u64(&m, AREAS_AT + MACHINE_AREA_ZEROMAP, 0);
	check(70, SWAP_CACHE_UNKNOWN);
	check_held(71, 2);
	end_swap();
}

/* Nobody may take zeros for written that are not, so it has to be known where they are noted. */
TEST(where_zeros_are_noted_is_known_or_said_not_to_be)
{
	static const struct {
		unsigned version, parts;
		bool areas, tells;
	} cases[] = {
		{ 601, 0, true, false }, /* nothing is known of areas */
		{ 611, MACHINE_BTF_AREAS, false, true },
		{ 612, MACHINE_BTF_AREAS | MACHINE_BTF_ZEROMAP, true, true },
		{ 612, MACHINE_BTF_AREAS | MACHINE_BTF_ZEROMAP, false, false },
		{ 703, TABLES | MACHINE_BTF_BITMAP, true, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up_tables(cases[i].version, cases[i].parts, 512);
		kernel.swapper_spaces = IMAGE;
		kernel.swap_ops = OPS;
		if (!cases[i].areas)
			kernel.swap_areas = 0;
		begin_swap();
		assert_int_equal(swap_cache_tells_zeros(cache), cases[i].tells);
		end_swap();
	}
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
	check_lack("symbol swapper_spaces was");
	kernel.swap_ops = 0;
	check_lack("symbols swapper_spaces and swap_aops were");
	kernel = whole;
	kernel.swap_ops = 0;
	check_lack("symbol swap_aops was");
	kernel = whole;
	kernel.vmemmap = 0;
	check_lack("struct pages");
	kernel = whole;
	kernel.linux_offsets.swap.trees = false;
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

TEST(without_what_tables_need_there_is_a_reason)
{
	struct discovery whole;
	struct linux_swap_layout *const l = &kernel.linux_offsets.swap;

	set_up_tables(703, TABLES, 512);
	machine_mem_init(&mem, &m, RAM_LAST);
	whole = kernel;
	kernel.swap_areas = 0;
	check_lack("symbol swap_info was");
	kernel = whole;
	kernel.vmemmap = 0;
	check_lack("struct pages");
	kernel = whole;
	l->cluster_slots = 0;
	check_lack("how many slots");
	l->cluster_slots = 1024;
	check_lack("BTF");
	kernel = whole;
	l->cluster = 0;
	check_lack("BTF");
	l->cluster = 1 << 20;
	check_lack("BTF");
	kernel = whole;
	l->table = l->cluster;
	check_lack("BTF");
	kernel = whole;
	l->areas = false;
	check_lack("BTF");
	kernel = whole;
	l->pages = false;
	check_lack("BTF");
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
		cmocka_unit_test(a_page_in_a_table_is_held),
		cmocka_unit_test(a_page_that_a_table_lacks_is_absent),
		cmocka_unit_test(pages_of_zeros_are_told_from_those_that_are_written),
		cmocka_unit_test(pages_of_a_large_folio_have_its_first_in_their_entries),
		cmocka_unit_test(tables_that_lie_tell_nothing),
		cmocka_unit_test(a_frame_behind_all_memory_is_held_without_its_bytes),
		cmocka_unit_test(a_page_that_goes_from_a_table_was_held_or_is_absent),
		cmocka_unit_test(a_page_of_zeros_that_goes_is_never_one_that_was_written),
		cmocka_unit_test(a_page_that_moves_is_never_absent_from_its_table),
		cmocka_unit_test(a_table_that_is_used_for_something_else_tells_nothing),
		cmocka_unit_test(clusters_that_are_mapped_elsewhere_tell_nothing_of_before),
		cmocka_unit_test(of_a_newer_kernel_only_pages_are_believed),
		cmocka_unit_test(a_bitmap_of_zeros_is_read_beside_a_tree),
		cmocka_unit_test(where_zeros_are_noted_is_known_or_said_not_to_be),
		cmocka_unit_test(without_symbols_or_layout_there_is_a_reason),
		cmocka_unit_test(without_what_tables_need_there_is_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
