/* SPDX-License-Identifier: Apache-2.0 */
/* The compression store, out of pages that were made by hand. */
#include "tests/unit/test.h"

#include "formats/base/page.h"
#include "tests/gen/store_pages.h"

static struct store_pages m;
static struct pagestore store;
static struct pagestore_plan plan;
static const struct range image = { STORE_KERNEL, STORE_KERNEL + 2 * PAGE_SIZE - 1 };
static uint8_t page[PAGE_SIZE];

static void set_up(void)
{
	store_make(&m, 0x430, 0x1848, 0x19b8);
	plan = store_plan(&m, &image);
}

static void check(uint32_t key, enum pagestore_answer want)
{
	assert_int_equal(pagestore_read(&store, key, page), want);
}

/* The three pages that it has. */
static void check_pages(void)
{
	check(KEY_PLAIN, PAGESTORE_GIVEN);
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(page[i], i < 0xf00 ? 'p' : 'q');
	check(KEY_PACKED, PAGESTORE_GIVEN);
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(page[i], "abc"[i % 3]);
	memset(page, 0, sizeof(page));
	check(KEY_CHAINED, PAGESTORE_GIVEN);
	for (size_t i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(page[i], "abc"[i % 3]);
}

TEST(pages_of_a_store_are_found_by_their_keys)
{
	set_up();
	assert_true(pagestore_find(&store, &plan));
	assert_int_equal(store.globals, STORE_GLOBALS);
	check_pages();
	check(KEY_INVALID, PAGESTORE_NO_KEY);
	check(KEY_PLAIN - 1, PAGESTORE_NO_KEY);
	check(KEY_PLAIN + 1, PAGESTORE_NO_KEY);
	check(KEY_INVALID + 1, PAGESTORE_NO_KEY);
	check(0, PAGESTORE_NO_KEY);
}

TEST(each_layout_is_told_by_its_owner_whatever_the_build_says)
{
	static const struct {
		uint32_t build;
		unsigned algorithm, regions, owner;
	} layouts[] = {
		{ 14393, 0x420, 0x17a8, 0x1918 },
		{ 15063, 0x420, 0x1828, 0x1988 },
		{ 17134, 0x430, 0x1848, 0x19a8 },
		{ 22000, 0x430, 0x1848, 0x19b8 },
	};

	set_up();
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		for (size_t k = 0; k <= ARRAY_SIZE(layouts); k++) {
			store_make(&m, layouts[i].algorithm, layouts[i].regions, layouts[i].owner);
			plan.build = k < ARRAY_SIZE(layouts) ? layouts[k].build : 0;
			assert_true(pagestore_find(&store, &plan));
			check_pages();
		}
	store_make(&m, 0x430, 0x1848, 0x19c8);
	check(KEY_PLAIN, PAGESTORE_NO_LAYOUT);
}

TEST(globals_can_be_named_and_lie_elsewhere)
{
	/* In the page of the owner, which is not looked through. */
	const uint64_t elsewhere = store_va(AT_OWNER) + 0x200;
	uint8_t *at = m.at[AT_OWNER] + 0x200;

	set_up();
	memset(m.at[AT_IMAGE], 0, 2 * PAGE_SIZE);
	assert_false(pagestore_find(&store, &plan));
	check(KEY_PLAIN, PAGESTORE_NONE);
	put_le64(at + (size_t)8 * (STORE_NUMBER / 32), store_va(AT_METADATA));
	put_le64(at + 0x1c0, store_va(AT_KEYS));
	assert_false(pagestore_find(&store, &plan));
	plan.globals = elsewhere;
	assert_true(pagestore_find(&store, &plan));
	check_pages();
	/* As from 22H2 on: a pointer behind what the structure was before. */
	plan.globals = STORE_KERNEL + 0x100;
	put_le64(m.at[AT_IMAGE] + 0x108, elsewhere + 0x7a8);
	assert_true(pagestore_find(&store, &plan));
	check_pages();
	plan.globals = STORE_KERNEL + 0x200;
	assert_false(pagestore_find(&store, &plan));
}

TEST(each_page_that_is_lost_loses_what_it_had)
{
	static const struct {
		unsigned page;
		enum pagestore_answer plain, packed;
	} lost[] = {
		{ AT_METADATA, PAGESTORE_NO_STORE, PAGESTORE_NO_STORE },
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

	set_up();
	assert_true(pagestore_find(&store, &plan));
	for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
		m.lost[lost[i].page] = true;
		check(KEY_PLAIN, lost[i].plain);
		check(KEY_PACKED, lost[i].packed);
		m.lost[lost[i].page] = false;
	}
	check_pages();
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

TEST(what_makes_no_sense_is_not_believed)
{
	set_up();
	assert_true(pagestore_find(&store, &plan));
	check_word(AT_STORE, 0x370, store_va(AT_STORE) + 8, PAGESTORE_NO_STORE);
	check_word(AT_METADATA, (size_t)0x28 * (STORE_NUMBER % 32), store_va(AT_STORE) + 8,
		   PAGESTORE_NO_STORE);
	check_word(AT_STORE, 0x430, 4, PAGESTORE_NO_LAYOUT); /* XPRESS with Huffman codes */
	check_word(AT_OWNER, 0x80 + 0x28, STORE_DTB + PAGE_SIZE, PAGESTORE_NO_LAYOUT);
	check_word(AT_KEYS, 0, 0xffff, PAGESTORE_NO_KEY);
	check_word(AT_KEYS, 0, 0, PAGESTORE_NO_KEY);
	check_word(AT_KEYS, 0, 0x02000001, PAGESTORE_NO_KEY);
	check_word(AT_KEYS, 0x18, store_va(AT_KEYS), PAGESTORE_NO_KEY); /* its own child */
	check_word(AT_KEYS, 0x18, 0x10000, PAGESTORE_NO_KEY);
	check_word(AT_KEYS_HIGH, 0x18, KEY_PACKED, PAGESTORE_NO_KEY); /* twice the same key */
	check_word(AT_STORE, 0x110 + 0x108, 0x7f00000020, PAGESTORE_NO_RECORD); /* a shift of 32 */
	check_word(AT_STORE, 0x110 + 0x110, 0x1001, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x110 + 0x110, 4, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x110 + 0x118, 0x1001, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x110 + 8, 0x10000, PAGESTORE_NO_RECORD);
	check_word(AT_STORE, 0x378, UINT64_C(32) << 32 | 0xfff, PAGESTORE_NO_RECORD);
	check_word(AT_REGIONS, 8, 0, PAGESTORE_NO_DATA);
	check_word(AT_REGIONS, 8, UINT64_C(0xffff800000000000), PAGESTORE_NO_DATA);
	/* The record: no size, one that cuts the data, one that leads to itself. */
	check_word(AT_CHUNK, 0x20 + 6 * 0x18, UINT64_C(0x1000), PAGESTORE_NO_RECORD);
	check_word(AT_CHUNK, 0x20 + 6 * 0x18, UINT64_C(11) << 32 | 0x1000, PAGESTORE_BAD_DATA);
	check_word(AT_CHUNK, 0x20 + 6 * 0x18, UINT64_C(0x186) << 32 | UINT32_MAX,
		   PAGESTORE_NO_RECORD);
	/* A match that ends before the page does. */
	check_word(AT_DATA, 8, UINT64_C(0x0ff9ff0f00), PAGESTORE_BAD_DATA);
}

/* However it is made, a page costs so many reads and no more. */
TEST(a_hostile_store_costs_little)
{
	static const uint64_t circles[] = { 0x18, 8 };
	uint64_t most = 0;

	set_up();
	assert_true(pagestore_find(&store, &plan));
	put_le64(m.at[AT_CHUNK] + 0x20 + 6 * 0x18, UINT64_C(0x186) << 32 | UINT32_MAX);
	for (size_t i = 0; i <= ARRAY_SIZE(circles); i++) {
		if (i)
			put_le64(m.at[AT_KEYS] + circles[i - 1], store_va(AT_KEYS));
		m.asked = 0;
		pagestore_read(&store, KEY_PACKED, page);
		most = m.asked > most ? m.asked : most;
	}
	assert_in_range(most, PAGESTORE_CHAIN, 5 * PAGESTORE_CHAIN + 2 * PAGESTORE_DEPTH + 32);

	/* An image full of what looks like it: each word leads to the same array of no stores. */
	set_up();
	for (size_t i = 0; i < 2 * PAGE_SIZE; i += 8)
		put_le64(m.at[AT_IMAGE] + i, store_va(AT_METADATA));
	put_le64(m.at[AT_METADATA] + (size_t)0x28 * (STORE_NUMBER % 32), 0);
	for (size_t i = 0; i < 32; i++)
		put_le64(m.at[AT_METADATA] + 0x28 * i, store_va(AT_KEYS));
	m.asked = 0;
	assert_false(pagestore_find(&store, &plan));
	assert_in_range(m.asked, 1000, PAGESTORE_LOOKS_MAX + 2 * 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_a_store_are_found_by_their_keys),
		cmocka_unit_test(each_layout_is_told_by_its_owner_whatever_the_build_says),
		cmocka_unit_test(globals_can_be_named_and_lie_elsewhere),
		cmocka_unit_test(each_page_that_is_lost_loses_what_it_had),
		cmocka_unit_test(what_makes_no_sense_is_not_believed),
		cmocka_unit_test(a_hostile_store_costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
