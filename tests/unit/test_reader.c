/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "tests/gen/images.h"
#include "tests/unit/fake_drv.h"

#define PAGES 64

static const struct drv_ops small_ops = {
	.name = "fake", .read_max = 16 * PAGE_SIZE, .read = fake_read, .close = fake_close
};
static const struct drv_ops large_ops = {
	.name = "fake", .read_max = 256 * PAGE_SIZE, .read = fake_read, .close = fake_close
};

static uint8_t buffer[PAGES * PAGE_SIZE];
static struct page_status status[PAGES];

static enum status read_all(struct fake *f, uint64_t addr, size_t pages, struct err *e)
{
	memset(buffer, 0xAA, sizeof(buffer));
	memset(status, 0xAA, sizeof(status));
	return drv_read_pages(&f->drv, addr, buffer, pages, status, e);
}

/* Every page is what the fake's rule says: its pattern, or unreadable with the fake's error. */
static void check_pages(const struct fake *f, uint64_t addr, size_t from, size_t to)
{
	uint8_t want[PAGE_SIZE];

	for (size_t i = from; i < to; i++) {
		if (f->fails && f->fails(f, addr / PAGE_SIZE + i)) {
			assert_int_equal(status[i].state, PAGE_UNREADABLE);
			assert_int_equal(status[i].detail, FAKE_ERROR);
			continue;
		}
		assert_int_equal(status[i].state, PAGE_DATA);
		assert_int_equal(status[i].detail, 0);
		pattern(want, addr + i * PAGE_SIZE, PAGE_SIZE);
		assert_memory_equal(buffer + i * PAGE_SIZE, want, PAGE_SIZE);
	}
}

static void check_skipped(size_t from, size_t to, enum skip_reason why)
{
	for (size_t i = from; i < to; i++) {
		assert_int_equal(status[i].state, PAGE_SKIPPED);
		assert_int_equal(status[i].detail, why);
	}
}

TEST(healthy_source_is_read_in_its_largest_reads)
{
	struct err e = ERR_INIT;
	struct fake f;

	fake_init(&f, &small_ops, 0, PAGES * PAGE_SIZE - 1);
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	check_pages(&f, 0, 0, PAGES);
	assert_int_equal(f.reads, 4);
	fake_deinit(&f);
}

/*
 * A bad page costs its neighbours nothing, wherever it is. WinPmem zeroes good pages before it
 * (winpmem.cpp, 1385e10, lines 171-200), and go-winpmem reads the others into the first page of its
 * buffer (imager.go, lines 86-137).
 */
static void every_k(const struct drv_ops *ops, bool exact)
{
	for (size_t k = 0; k < PAGES; k++) {
		struct err e = ERR_INIT;
		struct fake f;

		fake_init(&f, ops, 0, PAGES * PAGE_SIZE - 1);
		f.fails = fake_fails_at_k;
		f.exact = exact;
		f.k = k;
		CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
		check_pages(&f, 0, 0, PAGES);
		assert_in_range(f.reads, 1, exact ? 6 : 30);
		fake_deinit(&f);
	}
}

TEST(bad_page_anywhere_costs_only_itself)
{
	every_k(&small_ops, false);
	every_k(&large_ops, false);
}

TEST(bad_page_anywhere_costs_only_itself_when_the_source_names_it)
{
	every_k(&small_ops, true);
	every_k(&large_ops, true);
}

TEST(every_pair_of_bad_pages_is_found)
{
	for (size_t k = 0; k < PAGES; k++) {
		for (size_t k2 = k + 1; k2 < PAGES; k2++) {
			struct fake f;

			fake_init(&f, &large_ops, 0, PAGES * PAGE_SIZE - 1);
			f.fails = fake_fails_at_k_and_k2;
			f.exact = k & 1;
			f.k = k;
			f.k2 = k2;
			assert_int_equal(read_all(&f, 0, PAGES, NULL), ST_OK);
			check_pages(&f, 0, 0, PAGES);
			fake_deinit(&f);
		}
	}
}

TEST(patterns_of_bad_pages_are_found)
{
	for (size_t k = 1; k < 9; k++) {
		struct err e = ERR_INIT;
		struct fake f;

		fake_init(&f, &large_ops, 0, PAGES * PAGE_SIZE - 1);
		f.fails = fake_fails_every_kth;
		f.k = k;
		CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
		check_pages(&f, 0, 0, PAGES);
		fake_deinit(&f);
	}
}

/* A region of bad pages is walked page by page, not bisected again for each. */
TEST(bad_region_costs_one_read_a_page)
{
	struct err e = ERR_INIT;
	struct fake f;

	fake_init(&f, &large_ops, 0, PAGES * PAGE_SIZE - 1);
	f.fails = fake_fails_from_k;
	f.k = 0;
	f.k2 = PAGES;
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	check_pages(&f, 0, 0, PAGES);
	assert_in_range(f.reads, PAGES, PAGES + 6);
	fake_deinit(&f);
}

TEST(pages_outside_the_map_are_skipped_and_not_asked_for)
{
	struct err e = ERR_INIT;
	struct fake f;

	fake_init(&f, &small_ops, 4 * PAGE_SIZE, 9 * PAGE_SIZE - 1);
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	check_skipped(0, 4, SKIP_NOT_MAPPED);
	check_pages(&f, 0, 4, 9);
	check_skipped(9, PAGES, SKIP_NOT_MAPPED);
	assert_int_equal(f.bytes, 5 * PAGE_SIZE);
	CHECK_OK(read_all(&f, UINT64_MAX - PAGE_SIZE + 1, 1, &e), &e);
	check_skipped(0, 1, SKIP_NOT_MAPPED);
	fake_deinit(&f);
}

TEST(pages_that_the_source_does_not_offer_are_skipped)
{
	struct err e = ERR_INIT;
	struct fake f;

	fake_init(&f, &small_ops, 0, PAGES * PAGE_SIZE - 1);
	f.fails = fake_fails_from_k;
	f.exact = f.not_offered = true;
	f.k = 10;
	f.k2 = 20;
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	check_skipped(10, 21, SKIP_NOT_MAPPED);
	f.fails = NULL;
	check_pages(&f, 0, 0, 10);
	check_pages(&f, 0, 21, PAGES);
	fake_deinit(&f);
}

/* Withheld: 10..20 at once, and 30..32 from the second time on that anyone asks. */
static unsigned asked;

static void withhold(struct drv *d, uint64_t addr, size_t pages, struct page_status *ret)
{
	(void)d;
	asked++;
	for (size_t i = 0; i < pages; i++) {
		const uint64_t page = addr / PAGE_SIZE + i;

		ret[i] = (struct page_status){ PAGE_DATA, 0 };
		if (page >= 10 && page <= 20)
			ret[i] = (struct page_status){ PAGE_UNREADABLE, DRV_POISONED };
		if (page >= 30 && page <= 32 && asked > 1)
			ret[i] = (struct page_status){ PAGE_SKIPPED, SKIP_NOT_MAPPED };
	}
}

static const struct drv_ops withholding_ops = { .name = "fake",
						.read_max = 16 * PAGE_SIZE,
						.read = fake_read,
						.withhold = withhold,
						.close = fake_close };

TEST(pages_that_must_not_be_read_are_not_touched)
{
	struct err e = ERR_INIT;
	struct fake f;

	asked = 0;
	fake_init(&f, &withholding_ops, 0, PAGES * PAGE_SIZE - 1);
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	assert_int_equal(asked, 1); /* no page of zeros: no reason to doubt */
	check_pages(&f, 0, 0, 10);
	check_pages(&f, 0, 21, PAGES);
	for (size_t i = 10; i <= 20; i++) {
		assert_int_equal(status[i].state, PAGE_UNREADABLE);
		assert_int_equal(status[i].detail, DRV_POISONED);
	}
	assert_int_equal(f.bytes, (PAGES - 11) * PAGE_SIZE);
	fake_deinit(&f);
}

/*
 * A page that went between the question and the reading: the source gives zeros, and they are
 * none.
 */
TEST(zeros_of_a_page_that_went_meanwhile_are_no_zeros)
{
	struct err e = ERR_INIT;
	struct fake f;

	asked = 0;
	fake_init(&f, &withholding_ops, 0, PAGES * PAGE_SIZE - 1);
	f.fails = fake_fails_from_k;
	f.zero_fills = true;
	f.k = 29;
	f.k2 = 31;
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	assert_int_equal(status[29].state, PAGE_DATA);
	assert_true(bytes_are_zero(buffer + 29 * PAGE_SIZE, PAGE_SIZE));
	check_skipped(30, 32, SKIP_NOT_MAPPED);
	assert_int_equal(status[32].state, PAGE_DATA); /* it went, but with content */
	assert_int_equal(status[33].state, PAGE_DATA);
	fake_deinit(&f);
}

TEST(source_that_dies_behind_withheld_pages_keeps_what_it_gave)
{
	struct err e = ERR_INIT;
	struct fake f;

	asked = 0;
	fake_init(&f, &withholding_ops, 0, PAGES * PAGE_SIZE - 1);
	f.dies_at = 25;
	f.exact = true;
	CHECK_STATUS(read_all(&f, 0, PAGES, &e), ST_SOURCE_FAILED, &e);
	check_pages(&f, 0, 0, 10);
	assert_int_equal(status[20].state, PAGE_UNREADABLE);
	check_pages(&f, 0, 21, 25);
	check_skipped(25, PAGES, SKIP_SOURCE_FAILED);
	fake_deinit(&f);
}

static void dies_at_every_k(bool exact)
{
	for (size_t k = 0; k < PAGES; k++) {
		struct err e = ERR_INIT;
		struct fake f;

		fake_init(&f, &small_ops, 0, PAGES * PAGE_SIZE - 1);
		f.dies_at = k;
		f.exact = exact;
		CHECK_STATUS(read_all(&f, 0, PAGES, &e), ST_SOURCE_FAILED, &e);
		CHECK_HAS(e.message, "errno 19");
		check_pages(&f, 0, 0, exact ? k : k / 16 * 16);
		check_skipped(exact ? k : k / 16 * 16, PAGES, SKIP_SOURCE_FAILED);

		/* The fake aborts if a dead source is asked again. */
		CHECK_STATUS(read_all(&f, 0, 3, &e), ST_SOURCE_FAILED, &e);
		check_skipped(0, 3, SKIP_SOURCE_FAILED);
		fake_deinit(&f);
	}
}

TEST(what_was_read_before_a_source_died_is_kept)
{
	dies_at_every_k(true);
	dies_at_every_k(false);
}

static struct drv_result boastful_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	(void)d;
	pattern(buf, addr, len);
	return (struct drv_result){ .good = len + 5 * PAGE_SIZE };
}

static struct drv_result ragged_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct fake *f = (struct fake *)d;
	const struct drv_result r = fake_read(d, addr, buf, len);

	(void)f;
	return (struct drv_result){ .good = r.good + (r.good < len ? 100 : 0),
				    .error = r.error,
				    .exact = r.exact };
}

TEST(source_that_lies_about_its_success_is_held_to_whole_pages)
{
	static const struct drv_ops boastful = { .name = "fake",
						 .read_max = 16 * PAGE_SIZE,
						 .read = boastful_read,
						 .close = fake_close };
	static const struct drv_ops ragged = {
		.name = "fake", .read_max = 16 * PAGE_SIZE, .read = ragged_read, .close = fake_close
	};
	struct err e = ERR_INIT;
	struct fake f;

	fake_init(&f, &boastful, 0, PAGES * PAGE_SIZE - 1);
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	check_pages(&f, 0, 0, PAGES);
	fake_deinit(&f);

	fake_init(&f, &ragged, 0, PAGES * PAGE_SIZE - 1);
	f.fails = fake_fails_at_k;
	f.exact = true;
	f.k = 21;
	CHECK_OK(read_all(&f, 0, PAGES, &e), &e);
	check_pages(&f, 0, 0, PAGES);
	fake_deinit(&f);
}

/* Memory that is read here and there, backwards: in the end its parts are the ranges again. */
TEST(parts_come_down_to_ranges_in_any_order)
{
	const uint64_t pages = 4096;
	struct err e = ERR_INIT;
	struct fake f;
	const struct drv_part *parts;
	size_t count;

	fake_init(&f, &small_ops, 0, pages * PAGE_SIZE - 1);
	f.fails = fake_fails_at_k;
	f.k = 1000;
	drv_note_parts(&f.drv, true);
	for (uint64_t step = 0; step < 2; step++)
		for (uint64_t i = pages - 1 - step; i < pages; i -= 2)
			CHECK_OK(read_all(&f, i * PAGE_SIZE, 1, &e), &e);
	drv_note_parts(&f.drv, false);
	parts = drv_parts(&f.drv, &count);
	assert_int_equal(count, 2);
	assert_int_equal(parts[0].range.first, 0);
	assert_int_equal(parts[0].range.last, 1000 * PAGE_SIZE - 1);
	assert_int_equal(parts[1].range.first, 1001 * PAGE_SIZE);
	assert_int_equal(parts[1].range.last, pages * PAGE_SIZE - 1);
	fake_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_source_is_read_in_its_largest_reads),
		cmocka_unit_test(bad_page_anywhere_costs_only_itself),
		cmocka_unit_test(bad_page_anywhere_costs_only_itself_when_the_source_names_it),
		cmocka_unit_test(every_pair_of_bad_pages_is_found),
		cmocka_unit_test(patterns_of_bad_pages_are_found),
		cmocka_unit_test(bad_region_costs_one_read_a_page),
		cmocka_unit_test(pages_outside_the_map_are_skipped_and_not_asked_for),
		cmocka_unit_test(pages_that_the_source_does_not_offer_are_skipped),
		cmocka_unit_test(pages_that_must_not_be_read_are_not_touched),
		cmocka_unit_test(zeros_of_a_page_that_went_meanwhile_are_no_zeros),
		cmocka_unit_test(source_that_dies_behind_withheld_pages_keeps_what_it_gave),
		cmocka_unit_test(what_was_read_before_a_source_died_is_kept),
		cmocka_unit_test(source_that_lies_about_its_success_is_held_to_whole_pages),
		cmocka_unit_test(parts_come_down_to_ranges_in_any_order),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
