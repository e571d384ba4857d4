/* SPDX-License-Identifier: Apache-2.0 */
/* The compression store, out of pages that were made by hand. */
#include "tests/unit/test.h"

#include "formats/base/page.h"
#include "tests/gen/store_pages.h"

static struct store_pages m;
static struct pagestore store;
static struct pagestore_plan plan;
static const struct store_form *form;
static const struct range image = { STORE_KERNEL, STORE_KERNEL + STORE_IMAGE_PAGES *PAGE_SIZE - 1 };
static uint8_t page[PAGE_SIZE];

static void set_up(uint32_t build)
{
	form = NULL;
	for (size_t i = 0; i < STORE_FORMS; i++)
		if (store_forms[i].build == build)
			form = &store_forms[i];
	assert_non_null(form);
	store_make(&m, form);
	plan = store_plan(&m, form, &image);
}

static void found(uint32_t build)
{
	set_up(build);
	assert_true(pagestore_find(&store, &plan));
}

static void check(uint32_t key, enum pagestore_answer want)
{
	memset(page, 0xee, sizeof(page));
	assert_int_equal(pagestore_read(&store, key, page), want);
}

static void check_plain(void)
{
	check(KEY_PLAIN, PAGESTORE_GIVEN);
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(page[i], i < 0xf00 ? 'p' : 'q');
}

static void check_abc(uint32_t key)
{
	check(key, PAGESTORE_GIVEN);
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(page[i], "abc"[i % 3]);
}

/* The three pages that it has. */
static void check_pages(void)
{
	check_plain();
	check_abc(KEY_PACKED);
	check_abc(KEY_CHAINED);
}

TEST(pages_of_a_store_are_found_by_their_keys)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		found(store_forms[i].build);
		assert_int_equal(store.manager, store_manager(form));
		check_pages();
		check(KEY_INVALID, PAGESTORE_NO_KEY);
		check(KEY_PASSING, PAGESTORE_NO_KEY);
		check(KEY_PLAIN - 1, PAGESTORE_NO_KEY);
		check(KEY_PLAIN + 1, PAGESTORE_NO_KEY);
		check(KEY_PASSING + 1, PAGESTORE_NO_KEY);
		check(0, PAGESTORE_NO_KEY);
	}
}

/* From 24H2 on the store has no number of a paging file in its keys. */
TEST(a_key_of_another_file_is_another_key_before_24h2)
{
	found(22631);
	check(KEY_PACKED ^ 0x10000000, PAGESTORE_NO_KEY);
	found(26100);
	check_abc(KEY_PACKED ^ 0x10000000);
}

TEST(each_layout_is_told_by_its_owner_whatever_the_build_says)
{
	for (size_t i = 0; i < STORE_FORMS; i++)
		for (size_t k = 0; k <= STORE_FORMS; k++) {
			set_up(store_forms[i].build);
			plan.build = k < STORE_FORMS ? store_forms[k].build : 0;
			assert_true(pagestore_find(&store, &plan));
			check_pages();
		}
	found(22000);
	put_le64(store_at(&m, store_va(AT_STORE) + form->owner + 0x10),
		 get_le64(store_at(&m, store_va(AT_STORE) + form->owner)));
	put_le64(store_at(&m, store_va(AT_STORE) + form->owner), 0);
	check(KEY_PLAIN, PAGESTORE_NO_LAYOUT);
}

/* Symbols tell where SmGlobals is, which is not looked through here. */
TEST(globals_can_be_named_and_lie_elsewhere)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		set_up(store_forms[i].build);
		plan.n_writable = 0;
		assert_false(pagestore_find(&store, &plan));
		check(KEY_PLAIN, PAGESTORE_NONE);
		plan.globals = STORE_GLOBALS - form->head;
		assert_true(pagestore_find(&store, &plan));
		check_pages();
		plan.globals += 0x10;
		assert_false(pagestore_find(&store, &plan));
		/* What they tell is wrong: it is looked for all the same. */
		plan.n_writable = 1;
		assert_true(pagestore_find(&store, &plan));
		check_pages();
	}
}

/* A word of the image, or of what it leads to: neither in a scan nor by symbols is it taken. */
static void check_not_found(uint64_t va, uint64_t value)
{
	const uint64_t before = get_le64(store_at(&m, va));

	put_le64(store_at(&m, va), value);
	assert_false(pagestore_find(&store, &plan));
	put_le64(store_at(&m, va), before);
	assert_true(pagestore_find(&store, &plan));
}

TEST(a_manager_whose_store_or_tree_is_none_is_not_taken)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		found(store_forms[i].build);
		check_not_found(store_va(AT_STORE) + form->self, store_va(AT_STORE) + 8);
		check_not_found(store_manager(form) + form->tree, 0);
		check_not_found(store_manager(form) + form->tree, store_va(AT_KEYS) + 8);
		check_not_found(store_manager(form) + form->tree, store_va(AT_DATA));
		check_not_found(store_va(AT_KEYS), 0x02020001);
		check_not_found(store_manager(form), 0x1234567);
	}
}

TEST(a_ring_that_makes_no_sense_is_not_followed)
{
	uint64_t first, other;

	for (size_t i = 0; i < STORE_FORMS; i++) {
		found(store_forms[i].build);
		if (!form->head)
			continue;
		first = store_manager(form) + form->entry;
		other = store_va(AT_OTHER) + STORE_PARTITION + form->entry;
		check_not_found(STORE_GLOBALS, STORE_GLOBALS); /* empty */
		check_not_found(STORE_GLOBALS, first + 8);
		check_not_found(STORE_GLOBALS, 0);
		check_not_found(first + 8, other); /* it does not begin there */
		check_not_found(store_manager(form) + form->epartition, 0);
		check_not_found(store_va(AT_EPARTITION) + STORE_EPARTITION + 0x18, first);
		/* Nor one that can't be followed to its end. */
		check_not_found(first, 0);
		check_not_found(first, store_va(AT_DATA));
		check_not_found(other, other);
		check_not_found(other, first);
		/* Another partition has a store: an entry does not tell whose key it has. */
		check_not_found(other - form->entry + 31 * 8, store_va(AT_METADATA));
		m.lost[AT_OTHER] = true;
		assert_false(pagestore_find(&store, &plan));
	}
}

/* Both rings of 24H2 have the system's partition. */
TEST(what_one_ring_refuses_the_other_does_not_give)
{
	const struct store_form *second;
	const uint64_t head = store_va(AT_IMAGE + 2), other = store_va(AT_OTHER) + STORE_PARTITION;
	uint64_t entry;

	set_up(26200);
	second = form;
	found(26100);
	entry = store_manager(form) + second->entry;
	put_le64(store_at(&m, head), entry);
	put_le64(store_at(&m, head + 8), entry);
	put_le64(store_at(&m, entry), head);
	put_le64(store_at(&m, entry + 8), head);
	assert_true(pagestore_find(&store, &plan));
	check_not_found(other, store_va(AT_METADATA));
	put_le64(store_at(&m, STORE_GLOBALS), 0);
	assert_true(pagestore_find(&store, &plan));
	check_pages();
}

/* Whether a build has what is in this page. */
static bool has_page(unsigned i)
{
	if (i == AT_PARTITION)
		return form->head;
	return !form->inside || (i != AT_METADATA && i != AT_CHUNKS && i != AT_CHUNK);
}

TEST(each_page_that_is_lost_loses_what_it_had)
{
	static const struct {
		unsigned page;
		enum pagestore_answer plain, packed;
	} lost[] = {
		{ AT_METADATA, PAGESTORE_NO_STORE, PAGESTORE_NO_STORE },
		{ AT_PARTITION, PAGESTORE_NO_STORE, PAGESTORE_NO_STORE },
		{ AT_KEYS, PAGESTORE_NO_KEY, PAGESTORE_NO_KEY },
		{ AT_KEYS_LOW, PAGESTORE_NO_KEY, PAGESTORE_GIVEN },
		{ AT_KEYS_HIGH, PAGESTORE_GIVEN, PAGESTORE_NO_KEY },
		{ AT_STORE, PAGESTORE_NO_STORE, PAGESTORE_NO_STORE },
		{ AT_STORE + 1, PAGESTORE_NO_LAYOUT, PAGESTORE_NO_LAYOUT },
		{ AT_OWNER, PAGESTORE_NO_LAYOUT, PAGESTORE_NO_LAYOUT },
		{ AT_PAGES, PAGESTORE_NO_RECORD, PAGESTORE_NO_RECORD },
		{ AT_CHUNKS, PAGESTORE_NO_RECORD, PAGESTORE_NO_RECORD },
		{ AT_CHUNK, PAGESTORE_NO_RECORD, PAGESTORE_NO_RECORD },
		{ AT_REGIONS, PAGESTORE_NO_RECORD, PAGESTORE_NO_RECORD },
		{ AT_DATA, PAGESTORE_NO_DATA, PAGESTORE_NO_DATA },
		{ AT_DATA + 1, PAGESTORE_NO_DATA, PAGESTORE_GIVEN },
	};

	for (size_t f = 0; f < STORE_FORMS; f++) {
		found(store_forms[f].build);
		for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
			if (!has_page(lost[i].page))
				continue;
			m.lost[lost[i].page] = true;
			check(KEY_PLAIN, lost[i].plain);
			check(KEY_PACKED, lost[i].packed);
			m.lost[lost[i].page] = false;
		}
		check_pages();
	}
}

/* Structures that are no store's. */
static void check_word(unsigned at, size_t offset, uint64_t value, enum pagestore_answer want)
{
	uint8_t *p = m.at[at] + offset;
	const uint64_t before = get_le64(p);

	put_le64(p, value);
	check(KEY_PACKED, want);
	put_le64(p, before);
	check(KEY_PACKED, PAGESTORE_GIVEN);
}

static void check_word32(unsigned at, size_t offset, uint32_t value, enum pagestore_answer want)
{
	check_word(at, offset, (get_le64(m.at[at] + offset) & ~(uint64_t)UINT32_MAX) | value, want);
}

TEST(what_makes_no_sense_is_not_believed)
{
	found(22000);
	check_word(AT_METADATA, (size_t)0x28 * (store_number(form) % 32), store_va(AT_STORE) + 8,
		   PAGESTORE_NO_STORE);
	check_word(AT_STORE, 0x110 + 0x108, 0x7f00000020, PAGESTORE_NO_RECORD); /* a shift of 32 */
	check_word(AT_STORE, 0x110 + 0x110, 0x1001, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x110 + 0x110, 4, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x110 + 0x118, 0x1001, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x110 + 8, 0x10000, PAGESTORE_NO_RECORD);
	/* A match that ends before the page does. */
	check_word(AT_DATA, 8, UINT64_C(0x0ff9ff0f00), PAGESTORE_BAD_DATA);
	for (size_t i = 0; i < STORE_FORMS; i++) {
		found(store_forms[i].build);
		check_word(AT_STORE, form->self, store_va(AT_STORE) + 8, PAGESTORE_NO_STORE);
		check_word(AT_OWNER, STORE_EPROCESS + 0x28, STORE_DTB + PAGE_SIZE,
			   PAGESTORE_NO_LAYOUT);
		check_word(AT_KEYS, 0, 0xffff, PAGESTORE_NO_KEY);
		check_word(AT_KEYS, 0, 0, PAGESTORE_NO_KEY);
		check_word(AT_KEYS, 0, 0x02000001, PAGESTORE_NO_KEY);
		check_word(AT_KEYS, 0x18, store_va(AT_KEYS), PAGESTORE_NO_KEY); /* its own child */
		check_word(AT_KEYS, 0x18, 0x10000, PAGESTORE_NO_KEY);
		check_word(AT_KEYS_HIGH, 0x18, store_key(form, KEY_PACKED) | UINT64_C(1) << 48,
			   PAGESTORE_NO_KEY); /* twice the same key */
		/* Stores that are not there. */
		check_word32(AT_KEYS_HIGH, 0x14, 0x10000 | 71, PAGESTORE_NO_STORE);
		check_word32(AT_KEYS_HIGH, 0x14, 0x10000 | 0x3ff, PAGESTORE_NO_STORE);
		check_word(AT_REGIONS, 8, 0, PAGESTORE_NO_DATA);
		check_word(AT_REGIONS, 8, UINT64_C(0xffff800000000000), PAGESTORE_NO_DATA);
	}
}

/* The thread, and not what lies where later builds have the process. */
TEST(of_1507_a_thread_leads_to_the_owner)
{
	found(10240);
	check_word(AT_OWNER, STORE_THREAD + 0x220, store_va(AT_OWNER), PAGESTORE_NO_LAYOUT);
	check_word(AT_OWNER, STORE_THREAD + 0x220, 0x10000, PAGESTORE_NO_LAYOUT);
}

/* Behind the last of those that stand in SmGlobals there is room before the tree. */
TEST(of_1507_there_are_32_stores)
{
	found(10240);
	put_le64(store_at(&m, store_manager(form) + 32 * 0xb0), store_va(AT_STORE));
	check_word32(AT_KEYS_HIGH, 0x14, 0x10000 | 32, PAGESTORE_NO_STORE);
}

/* What a store would be in another build's manager. */
TEST(a_layout_goes_with_its_manager)
{
	const struct store_form *later;
	const uint64_t x = store_va(AT_STORE);

	set_up(26100);
	later = form;
	found(22631);
	put_le32(store_at(&m, x + later->regions - 8), 0x10000);
	put_le32(store_at(&m, x + later->regions - 4), 2);
	put_le64(store_at(&m, x + later->regions), store_va(AT_REGIONS));
	put_le64(store_at(&m, x + later->owner), store_va(AT_OWNER) + STORE_EPROCESS);
	put_le64(store_at(&m, x + later->manager), store_manager(form));
	check_pages();
	check_word(AT_STORE + form->owner / PAGE_SIZE, form->owner % PAGE_SIZE, 0,
		   PAGESTORE_NO_LAYOUT);
}

/* XPRESS with Huffman codes, and whatever else there may come. */
TEST(other_algorithms_are_not_guessed_at)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		const uint32_t ours = store_forms[i].lz4 ? 0 : 3;

		found(store_forms[i].build);
		for (uint32_t other = 0; other < 0x108; other++)
			if (other != ours)
				check_word32(AT_STORE + form->algorithm / PAGE_SIZE,
					     form->algorithm % PAGE_SIZE, other,
					     PAGESTORE_NO_LAYOUT);
		/* It has 32 bits in 24H2. */
		if (form->lz4)
			check_word32(AT_STORE + form->algorithm / PAGE_SIZE,
				     form->algorithm % PAGE_SIZE, 0x10000, PAGESTORE_NO_LAYOUT);
	}
}

/* What the layouts of 1507, 1511 and 24H2, which have one source only, are also told by. */
TEST(the_store_of_another_manager_is_not_read)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		found(store_forms[i].build);
		if (form->inside || form->lz4)
			check_word(AT_STORE + 1, form->manager - PAGE_SIZE, store_manager(form) + 8,
				   PAGESTORE_NO_LAYOUT);
	}
}

TEST(regions_are_as_the_kernel_makes_them)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		const size_t self = store_forms[i].self, at = store_forms[i].regions - PAGE_SIZE;

		found(store_forms[i].build);
		check_word(AT_STORE, self + 8, UINT64_C(32) << 32 | 0xfff, PAGESTORE_NO_LAYOUT);
		check_word(AT_STORE, self + 8, UINT64_C(12) << 32 | 0x7ff, PAGESTORE_NO_LAYOUT);
		check_word(AT_STORE, self + 8, UINT64_C(11) << 32 | 0x7ff, PAGESTORE_NO_LAYOUT);
		check_word32(AT_STORE + 1, at - 8, 0x20000, PAGESTORE_NO_LAYOUT);
		check_word32(AT_STORE + 1, at - 4, 0, PAGESTORE_NO_LAYOUT);
		check_word32(AT_STORE + 1, at - 4, 0x40001, PAGESTORE_NO_LAYOUT);
		check_word32(AT_STORE + 1, at - 4, 1,
			     PAGESTORE_NO_RECORD); /* it is in the second */
		check_word(AT_STORE + 1, at, 0x10000, PAGESTORE_NO_LAYOUT);
	}
}

/* Where the record of KEY_PACKED has its place and, behind it, its size. */
static uint8_t *record(void)
{
	return form->inside ? m.at[AT_PAGES] + 0x24 : m.at[AT_CHUNK] + 0x20 + (size_t)6 * 0x18;
}

static void put_record(uint32_t place, uint32_t size)
{
	put_le32(record(), place);
	put_le32(record() + 4, size);
}

TEST(regions_of_each_size_are_read)
{
	for (size_t i = 0; i < STORE_FORMS; i++)
		for (uint32_t shift = 7; shift <= 14; shift++) {
			const bool good = shift >= 8 && shift <= 13;

			found(store_forms[i].build);
			put_le32(m.at[AT_STORE] + form->self + 8, (1U << shift) - 1);
			put_le32(m.at[AT_STORE] + form->self + 12, shift);
			put_le32(m.at[AT_STORE + 1] + (form->regions - PAGE_SIZE - 8),
				 16U << shift);
			put_record(1U << shift, get_le32(record() + 4));
			check(KEY_PACKED, good ? PAGESTORE_GIVEN : PAGESTORE_NO_LAYOUT);
		}
}

TEST(a_page_lies_in_one_region)
{
	const uint32_t last = 0x1000 | 0xf00; /* a page before its end */

	for (size_t i = 0; i < STORE_FORMS; i++) {
		const uint32_t used = store_forms[i].inside ? 0 : 0x1000;

		found(store_forms[i].build);
		put_record(last, used);
		check(KEY_PACKED, PAGESTORE_NO_DATA); /* there is no memory there */
		put_record(last + 1, used);
		check(KEY_PACKED, PAGESTORE_NO_RECORD);
		put_record(0x1fff, used | 16);
		check(KEY_PACKED, PAGESTORE_NO_DATA);
		put_record(0x1fff, used | 17);
		check(KEY_PACKED, PAGESTORE_NO_RECORD);
		put_record(0x2000, used | 16); /* there is no third region */
		check(KEY_PACKED, PAGESTORE_NO_RECORD);
		put_record(0xfffff000, used | 16);
		check(KEY_PACKED, PAGESTORE_NO_RECORD);
	}
}

/* As many as use it are counted above the size; a page that nobody uses is no page. */
TEST(pages_that_are_shared_are_read_and_pages_that_are_gone_are_not)
{
	for (size_t i = 0; i < STORE_FORMS; i++) {
		found(store_forms[i].build);
		put_record(0x1000 | 0x10, form->inside ? 0 : 0x2000);
		check(KEY_PACKED, PAGESTORE_GIVEN);
		assert_int_equal(page[0], 'p');
		put_record(0x1000, form->inside ? 0x1000000 | 28 : 28);
		check(KEY_PACKED, PAGESTORE_NO_RECORD);
		put_record(0x1000, form->inside ? 0x1000000 : 0);
		check(KEY_PACKED, PAGESTORE_NO_RECORD);
		put_record(0x1000, 0xabc000 | 11); /* it is cut */
		check(KEY_PACKED, PAGESTORE_BAD_DATA);
		put_record(0x1000, 0xabc000 | 1);
		check(KEY_PACKED, PAGESTORE_BAD_DATA);
		put_record(0x1000, 0xabc000 | 0xfff); /* XPRESS ends where the page does */
		check(KEY_PACKED, form->lz4 ? PAGESTORE_BAD_DATA : PAGESTORE_GIVEN);
	}
	found(22000);
	put_record(UINT32_MAX, 0x186); /* it leads to itself */
	check(KEY_PACKED, PAGESTORE_NO_RECORD);
}

/* However it is made, a page costs so many reads and no more. */
TEST(a_hostile_store_costs_little)
{
	static const uint64_t circles[] = { 0x18, 8 };
	uint64_t most = 0;

	found(22000);
	put_record(UINT32_MAX, 0x186);
	for (size_t i = 0; i <= ARRAY_SIZE(circles); i++) {
		if (i)
			put_le64(m.at[AT_KEYS] + circles[i - 1], store_va(AT_KEYS));
		m.asked = 0;
		pagestore_read(&store, KEY_PACKED, page);
		most = m.asked > most ? m.asked : most;
	}
	assert_in_range(most, PAGESTORE_CHAIN, STORE_COST);
}

/* An image full of what looks like it: each word leads to the same array of no stores. */
TEST(a_hostile_image_costs_little)
{
	uint64_t other;

	set_up(22000);
	for (size_t i = 0; i < STORE_IMAGE_PAGES * PAGE_SIZE; i += 8)
		put_le64(store_at(&m, STORE_KERNEL + i), store_va(AT_METADATA));
	for (size_t i = 0; i < 32; i++)
		put_le64(m.at[AT_METADATA] + 0x28 * i, store_va(AT_KEYS));
	m.asked = 0;
	assert_false(pagestore_find(&store, &plan));
	assert_in_range(m.asked, 1000, PAGESTORE_LOOKS_MAX + 2 * 16);

	/* Or with a ring that has no end. */
	set_up(26100);
	other = store_va(AT_OTHER) + STORE_PARTITION + form->entry;
	put_le64(store_at(&m, other), other);
	m.asked = 0;
	assert_false(pagestore_find(&store, &plan));
	assert_in_range(m.asked, 2 * PAGESTORE_RING_MAX, 2 * PAGESTORE_RING_MAX + 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_a_store_are_found_by_their_keys),
		cmocka_unit_test(a_key_of_another_file_is_another_key_before_24h2),
		cmocka_unit_test(each_layout_is_told_by_its_owner_whatever_the_build_says),
		cmocka_unit_test(globals_can_be_named_and_lie_elsewhere),
		cmocka_unit_test(a_manager_whose_store_or_tree_is_none_is_not_taken),
		cmocka_unit_test(a_ring_that_makes_no_sense_is_not_followed),
		cmocka_unit_test(what_one_ring_refuses_the_other_does_not_give),
		cmocka_unit_test(each_page_that_is_lost_loses_what_it_had),
		cmocka_unit_test(what_makes_no_sense_is_not_believed),
		cmocka_unit_test(of_1507_a_thread_leads_to_the_owner),
		cmocka_unit_test(of_1507_there_are_32_stores),
		cmocka_unit_test(a_layout_goes_with_its_manager),
		cmocka_unit_test(other_algorithms_are_not_guessed_at),
		cmocka_unit_test(the_store_of_another_manager_is_not_read),
		cmocka_unit_test(regions_are_as_the_kernel_makes_them),
		cmocka_unit_test(regions_of_each_size_are_read),
		cmocka_unit_test(a_page_lies_in_one_region),
		cmocka_unit_test(pages_that_are_shared_are_read_and_pages_that_are_gone_are_not),
		cmocka_unit_test(a_hostile_store_costs_little),
		cmocka_unit_test(a_hostile_image_costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
