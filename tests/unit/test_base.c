/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/io.h"
#include "formats/base/machine.h"
#include "formats/base/page.h"
#include "formats/base/range.h"
#include "formats/base/sha256.h"

TEST(context_goes_to_the_front)
{
	struct err e = ERR_INIT;

	err_set(&e, ST_CORRUPT, "runs backwards");
	err_add(&e, ST_CORRUPT, "record %d", 7);
	assert_int_equal(err_add(&e, ST_CORRUPT, "image.lime"), ST_CORRUPT);
	assert_string_equal(e.message, "image.lime: record 7: runs backwards");
}

TEST(context_without_a_message_takes_the_status_text)
{
	struct err e = ERR_INIT;

	err_add(&e, ST_NOMEM, "buffers");
	assert_string_equal(e.message, "buffers: out of memory");
}

TEST(message_that_is_too_long_shows_its_cut)
{
	struct err e = ERR_INIT;
	char longer[2 * ERR_MESSAGE_MAX];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	err_set(&e, ST_CORRUPT, "%s", longer);
	assert_int_equal(strlen(e.message), ERR_MESSAGE_MAX - 1);
	assert_string_equal(e.message + ERR_MESSAGE_MAX - 4, "...");
	err_add(&e, ST_CORRUPT, "front");
	assert_memory_equal(e.message, "front: xxx", 10);
	assert_int_equal(strlen(e.message), ERR_MESSAGE_MAX - 1);
	assert_string_equal(e.message + ERR_MESSAGE_MAX - 4, "...");
}

TEST(every_status_has_an_exit_code_with_a_text)
{
#define X(name, code, text)                                                                        \
	assert_int_equal(status_exit_code(name), code);                                            \
	assert_string_equal(status_text(name), text);
	STATUS_MAP(X)
#undef X
	assert_string_equal(exit_code_text(EXIT_COMPLETE), "complete");
}

TEST(cursor_past_the_end_is_bad_and_zero)
{
	const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	assert_int_equal(cur_le32(&c), 0x04030201);
	assert_false(c.bad);
	assert_int_equal(cur_le32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cur_u8(&c), 0);
}

TEST(bounds_do_not_wrap)
{
	assert_true(range_fits(10, 0, 10));
	assert_false(range_fits(11, 0, 10));
	assert_false(range_fits(1, UINT64_MAX, 10));
	assert_false(range_fits(UINT64_MAX, 1, UINT64_MAX));
}

static void add(struct range_list *l, uint64_t first, uint64_t last)
{
	struct err e = ERR_INIT;

	CHECK_OK(range_list_add(l, first, last, &e), &e);
}

TEST(range_that_runs_backwards_is_corrupt)
{
	struct err e = ERR_INIT;
	_cleanup_ranges_ struct range_list l = { 0 };

	assert_int_equal(range_list_add(&l, 0x2000, 0x1fff, &e), ST_CORRUPT);
	assert_string_equal(e.message, "range 0x2000-0x1fff runs backwards");
}

TEST(tidy_sorts_merges_and_cuts)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct range_faults faults;

	add(&l, 0x100000, 0x1fffff);
	add(&l, 0x1000, 0x9fbff);    /* the last page is only partly RAM */
	add(&l, 0x180000, 0x2fffff); /* overlaps the first */
	add(&l, PHYS_LIMIT - 0x1000, UINT64_MAX);
	add(&l, PHYS_LIMIT + 0x1000, UINT64_MAX);
	add(&l, 0x400100, 0x400eff); /* less than a page */
	range_list_tidy(&l, &faults);

	assert_int_equal(l.count, 3);
	assert_int_equal(l.at[0].first, 0x1000);
	assert_int_equal(l.at[0].last, 0x9efff);
	assert_int_equal(l.at[1].first, 0x100000);
	assert_int_equal(l.at[1].last, 0x2fffff);
	assert_int_equal(l.at[2].first, PHYS_LIMIT - 0x1000);
	assert_int_equal(l.at[2].last, PHYS_LIMIT - 1);
	assert_int_equal(faults.unsorted, 2);
	assert_int_equal(faults.overlapping, 1);
	assert_int_equal(faults.beyond, 2);
	assert_int_equal(faults.partial, 2);
	assert_int_equal(range_list_bytes(&l), 0x9e000 + 0x200000 + 0x1000);
}

/* A real map: setup data passed by the boot loader splits RAM at 0xc61ce018. */
TEST(page_that_two_ranges_cover_together_survives_tidy)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct range_faults faults;

	add(&l, 0xc61ce018, 0xc61ddfff);
	add(&l, 0x100000, 0xc61ce017);
	add(&l, 0xc61de000, 0xc61dffff); /* touches at a page: stays apart */
	range_list_tidy(&l, &faults);

	assert_int_equal(l.count, 2);
	assert_int_equal(l.at[0].first, 0x100000);
	assert_int_equal(l.at[0].last, 0xc61ddfff);
	assert_int_equal(faults.partial, 0);
	assert_int_equal(faults.overlapping, 0);
}

TEST(first_page_of_memory_survives_tidy)
{
	_cleanup_ranges_ struct range_list l = { 0 };

	add(&l, 0, 0xfff);
	add(&l, 0x1000, 0x1ffe);
	range_list_tidy(&l, NULL);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.at[0].first, 0);
	assert_int_equal(l.at[0].last, 0xfff);
}

TEST(same_addresses_cut_differently_are_the_same_map)
{
	_cleanup_ranges_ struct range_list a = { 0 }, b = { 0 };

	add(&a, 0x1000, 0x4fff);
	add(&b, 0x1000, 0x1fff);
	add(&b, 0x2000, 0x4fff);
	assert_true(range_list_same(&a, &b));
	add(&b, 0x6000, 0x6fff);
	assert_false(range_list_same(&a, &b));
	range_list_join(&b);
	assert_int_equal(b.count, 2);
}

/* Every pair of lists over eight pages, neighbouring pages apart or in one range. */
static void add_pages(struct range_list *l, unsigned pages, bool joined)
{
	for (uint64_t i = 0; i < 8; i++)
		if (pages >> i & 1)
			add(l, i * 0x1000, i * 0x1000 + 0xfff);
	if (joined)
		range_list_join(l);
}

static unsigned pages_of(const struct range_list *l)
{
	unsigned pages = 0;

	for (size_t i = 0; i < l->count; i++)
		for (uint64_t page = l->at[i].first / 0x1000; page <= l->at[i].last / 0x1000;
		     page++)
			pages |= 1u << page;
	return pages;
}

TEST(subtraction_leaves_what_is_in_the_first_alone)
{
	for (unsigned i = 0; i < 1 << 16; i++) {
		_cleanup_ranges_ struct range_list a = { 0 }, b = { 0 }, left = { 0 };
		struct err e = ERR_INIT;

		add_pages(&a, i & 0xff, i & 1);
		add_pages(&b, i >> 8, i & 2);
		CHECK_OK(range_list_subtract(&a, &b, &left, &e), &e);
		assert_int_equal(pages_of(&left), (i & 0xff) & ~(i >> 8));
		assert_int_equal(range_list_bytes(&left),
				 0x1000 * (uint64_t)__builtin_popcount((i & 0xff) & ~(i >> 8)));
	}
}

TEST(find_hits_ends_and_misses_gaps)
{
	_cleanup_ranges_ struct range_list l = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		add(&l, i * 0x4000, i * 0x4000 + 0x1fff);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_ptr_equal(range_list_find(&l, i * 0x4000), &l.at[i]);
		assert_ptr_equal(range_list_find(&l, i * 0x4000 + 0x1fff), &l.at[i]);
		assert_null(range_list_find(&l, i * 0x4000 + 0x2000));
	}
}

TEST(one_bit_anywhere_is_not_zero)
{
	static _Alignas(64) uint8_t page[PAGE_SIZE];

	assert_true(bytes_are_zero(page, sizeof(page)));
	for (size_t i = 0; i < sizeof(page); i++) {
		page[i] = 0x80;
		assert_false(bytes_are_zero(page, sizeof(page)));
		page[i] = 0;
	}
}

TEST(machines_have_the_manifests_names)
{
	enum machine_arch arch;

	for (unsigned i = 0; i < MACHINE_ARCHES; i++) {
		assert_true(machine_arch_from_name(machine_arch_name((enum machine_arch)i), &arch));
		assert_int_equal(arch, i);
	}
	assert_string_equal(machine_arch_name(ARCH_X86_64), "x86_64");
	assert_string_equal(machine_arch_name(ARCH_ARM64), "arm64");
	assert_false(machine_arch_from_name("arm", &arch));
	assert_int_equal(arch, ARCH_X86_64);
	assert_false(machine_arch_from_name(NULL, &arch));
	assert_string_equal(machine_arch_name((enum machine_arch)MACHINE_ARCHES), "unknown");
}

TEST(only_arm64_has_pages_of_other_sizes)
{
	assert_true(machine_page_size_is_valid(ARCH_X86_64, 4096));
	assert_false(machine_page_size_is_valid(ARCH_X86_64, 16384));
	assert_true(machine_page_size_is_valid(ARCH_ARM64, 4096));
	assert_true(machine_page_size_is_valid(ARCH_ARM64, 16384));
	assert_true(machine_page_size_is_valid(ARCH_ARM64, 65536));
	assert_false(machine_page_size_is_valid(ARCH_ARM64, 0));
	assert_false(machine_page_size_is_valid(ARCH_ARM64, 8192));
	assert_false(machine_page_size_is_valid(ARCH_ARM64, 131072));
	assert_int_equal(machine_page_size(&(struct machine_kind){ .arch = ARCH_ARM64 }), 4096);
	assert_int_equal(machine_page_size(&(struct machine_kind){ ARCH_ARM64, 65536 }), 65536);
}

TEST(memory_sink_is_full_at_its_limit)
{
	struct err e = ERR_INIT;
	struct mem_sink s;

	mem_sink_init(&s, 10);
	CHECK_OK(sink_write(&s.sink, "12345", 5, &e), &e);
	CHECK_STATUS(sink_write(&s.sink, "123456", 6, &e), ST_OUTPUT, &e);
	CHECK_OK(sink_write(&s.sink, "67890", 5, &e), &e);
	assert_memory_equal(s.at, "1234567890", 10);
	mem_sink_deinit(&s);
}

TEST(array_keeps_its_elements_while_it_grows)
{
	size_t room = 0, count = 0;
	uint64_t *at = NULL;

	while (count < 1000) {
		if (count == room) {
			at = array_grow(at, &room, sizeof(*at));
			assert_non_null(at);
			assert_true(room > count);
		}
		at[count] = count * count;
		count++;
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(at[i], i * i);
	free(at);
}

TEST(array_without_a_number_for_its_size_does_not_grow)
{
	static const size_t rooms[] = { SIZE_MAX / 2 + 1, SIZE_MAX / 16 + 1 };

	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		size_t room = rooms[i];

		assert_null(array_grow(NULL, &room, 8));
		assert_int_equal(room, rooms[i]);
	}
}

/* Three words, so that elements are no power of two. */
struct element {
	uint64_t key, number, more;
};

static uint64_t comparisons;

static int compare_elements(const void *a, const void *b)
{
	const struct element *x = a, *y = b;

	comparisons++;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Orders that are known to be hard for some way of sorting. */
static uint64_t key_of(unsigned order, size_t i, size_t count)
{
	switch (order) {
	case 0:
		return i;
	case 1:
		return count - i;
	case 2:
		return 7;
	case 3:
		return i < count / 2 ? i : count - i;
	case 4: /* what a median of three likes least */
		return i % 2 ? i : i + count / 2;
	case 5:
		return i % 3;
	default:
		return (i * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
	}
}

static void check_sorted(const struct element *at, size_t count, unsigned order)
{
	uint64_t numbers = 0;

	for (size_t i = 0; i < count; i++) {
		assert_true(!i || at[i - 1].key <= at[i].key);
		assert_int_equal(at[i].key, key_of(order, (size_t)at[i].number, count));
		assert_int_equal(at[i].more, ~at[i].number);
		numbers += at[i].number;
	}
	assert_int_equal(numbers, count * (count - 1) / 2);
}

TEST(array_is_sorted_where_it_lies_from_any_order)
{
	static const size_t counts[] = { 1, 2, 3, 15, 16, 17, 18, 100, 4096, 50000 };
	static struct element at[50000];

	for (size_t k = 0; k < ARRAY_SIZE(counts) * 7; k++) {
		const size_t n = counts[k / 7];
		const unsigned order = (unsigned)(k % 7);
		uint64_t log = 1;

		while (n >> log)
			log++;
		for (size_t i = 0; i < n; i++)
			at[i] = (struct element){ key_of(order, i, n), i, ~(uint64_t)i };
		comparisons = 0;
		array_sort(at, n, sizeof(*at), compare_elements);
		check_sorted(at, n, order);
		assert_true(comparisons <= 6 * n * log);
	}
	array_sort(NULL, 0, sizeof(*at), compare_elements);
}

TEST(arrays_have_room_for_one_more_and_keep_what_they_have)
{
	uint32_t *at = NULL;
	size_t count = 0, room = 0;

	for (; count < 1000; count++) {
		assert_true(ARRAY_ROOM(at, count, room));
		assert_true(count < room && room <= MAX(2 * count, 16));
		at[count] = (uint32_t)count;
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(at[i], i);
	free(at);
}

/* Of 0, 2, 2, 4, 4, 6, 6...: each key between them and beyond, in arrays of each length. */
TEST(first_where_finds_the_first_of_equal_elements_or_their_place)
{
	uint32_t at[20];

	for (uint32_t i = 0; i < ARRAY_SIZE(at); i++)
		at[i] = (i + 1) / 2 * 2;
	for (size_t n = 0; n <= ARRAY_SIZE(at); n++)
		for (uint32_t key = 0; key < 25; key++) {
			size_t before = 0;

			while (before < n && at[before] < key)
				before++;
			assert_int_equal(FIRST_WHERE(i, n, at[i] >= key), before);
		}
}

TEST(blob_that_ends_too_early_says_where)
{
	struct err e = ERR_INIT;
	struct mem_blob b;
	uint8_t buf[8];

	mem_blob_init(&b, "12345", 5);
	CHECK_STATUS(blob_read(&b.blob, 3, buf, 4, &e), ST_CORRUPT, &e);
	assert_string_equal(e.message, "ends at offset 5, 2 bytes too early");
	CHECK_STATUS(blob_read(&b.blob, 100, buf, 1, &e), ST_CORRUPT, &e);
}

/* FIPS 180-4 examples: "abc" and the empty message. */
TEST(sha256_of_known_messages)
{
	struct err e = ERR_INIT;
	struct sha256 *h = NULL;
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	CHECK_OK(sha256_create(&h, &e), &e);
	sha256_of(h, "abc", 3, digest);
	sha256_hex(digest, hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256_of(h, "", 0, digest);
	sha256_hex(digest, hex);
	assert_string_equal(hex,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(context_goes_to_the_front),
		cmocka_unit_test(context_without_a_message_takes_the_status_text),
		cmocka_unit_test(message_that_is_too_long_shows_its_cut),
		cmocka_unit_test(every_status_has_an_exit_code_with_a_text),
		cmocka_unit_test(cursor_past_the_end_is_bad_and_zero),
		cmocka_unit_test(bounds_do_not_wrap),
		cmocka_unit_test(range_that_runs_backwards_is_corrupt),
		cmocka_unit_test(tidy_sorts_merges_and_cuts),
		cmocka_unit_test(first_page_of_memory_survives_tidy),
		cmocka_unit_test(page_that_two_ranges_cover_together_survives_tidy),
		cmocka_unit_test(same_addresses_cut_differently_are_the_same_map),
		cmocka_unit_test(subtraction_leaves_what_is_in_the_first_alone),
		cmocka_unit_test(find_hits_ends_and_misses_gaps),
		cmocka_unit_test(one_bit_anywhere_is_not_zero),
		cmocka_unit_test(machines_have_the_manifests_names),
		cmocka_unit_test(only_arm64_has_pages_of_other_sizes),
		cmocka_unit_test(memory_sink_is_full_at_its_limit),
		cmocka_unit_test(array_keeps_its_elements_while_it_grows),
		cmocka_unit_test(array_without_a_number_for_its_size_does_not_grow),
		cmocka_unit_test(array_is_sorted_where_it_lies_from_any_order),
		cmocka_unit_test(arrays_have_room_for_one_more_and_keep_what_they_have),
		cmocka_unit_test(first_where_finds_the_first_of_equal_elements_or_their_place),
		cmocka_unit_test(blob_that_ends_too_early_says_where),
		cmocka_unit_test(sha256_of_known_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
