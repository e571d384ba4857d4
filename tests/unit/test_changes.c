/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine whose memory changes while it is read: what is told of it. That added memory is
 * acquired, the guest shows (tests/vm).
 */
#include "agent/collect/acquire/changes.h"

#include <string.h>

#include "tests/unit/fake_drv.h"
#include "tests/unit/test.h"

#define PAGE(n) ((uint64_t)(n) * PAGE_SIZE)

/* What the system says when it is asked: pages of RAM, and of those that are withheld. */
static uint64_t ram_first, ram_last, offline, poisoned, hole;
static struct fake fake;

static void withhold(struct drv *d, uint64_t addr, size_t pages, struct page_status *ret)
{
	(void)d;
	for (size_t i = 0; i < pages; i++) {
		const uint64_t page = addr / PAGE_SIZE + i;

		ret[i] = page == offline    ? (struct page_status){ PAGE_SKIPPED, SKIP_NOT_MAPPED }
			 : page == poisoned ? (struct page_status){ PAGE_UNREADABLE, DRV_POISONED }
					    : (struct page_status){ PAGE_DATA, 0 };
	}
}

static size_t look(struct drv *d, uint64_t addr, size_t pages, bool *ret_hole)
{
	const uint64_t page = addr / PAGE_SIZE;

	(void)d;
	*ret_hole = page == hole;
	return *ret_hole ? 1 : page > hole ? pages : MIN(pages, (size_t)(hole - page));
}

static enum status maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	enum status st = range_list_add(&l, PAGE(ram_first), PAGE(ram_last + 1) - 1, e);

	(void)d;
	return st ? st : drv__maps_add(ret, "fake", &l, e);
}

static const struct drv_ops fake_ops = { .name = "fake",
					 .read_max = 16 * PAGE_SIZE,
					 .read = fake_read,
					 .withhold = withhold,
					 .look = look,
					 .maps_again = maps_again,
					 .close = fake_close };

static int setup(void **state)
{
	(void)state;
	ram_first = 10;
	ram_last = 99;
	offline = 20;
	poisoned = 30;
	hole = UINT64_MAX;
	fake_init(&fake, &fake_ops, PAGE(10), PAGE(100) - 1);
	fake.drv.info.withholds = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_deinit(&fake);
	return 0;
}

static void check_range(const struct range_list *l, uint64_t first, uint64_t last)
{
	assert_int_equal(l->count, 1);
	assert_int_equal(l->at[0].first, PAGE(first));
	assert_int_equal(l->at[0].last, PAGE(last + 1) - 1);
}

TEST(memory_that_stays_is_no_news)
{
	struct memory_changes c = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	check_range(&c.before.offline, 20, 20);
	check_range(&c.before.poisoned, 30, 30);
	CHECK_OK(changes_sample(&c, &fake.drv, &e), &e);
	CHECK_OK(changes_end(&c, &fake.drv, &e), &e);
	CHECK_OK(changes_outcome(&c, &e), &e);
	assert_null(changes_json(&c));
	assert_int_equal(c.now.count, 1);
	memory_changes_deinit(&c);
}

TEST(memory_that_was_added_and_not_read_is_missing)
{
	struct memory_changes c = { 0 };
	struct err e = ERR_INIT;
	json_t *told;

	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	ram_first = 12;
	ram_last = 149;
	CHECK_OK(changes_sample(&c, &fake.drv, &e), &e);
	check_range(&c.added, 100, 149);
	check_range(&c.missing, 100, 149);
	check_range(&c.removed, 10, 11);
	CHECK_OK(changes_end(&c, &fake.drv, &e), &e);
	CHECK_STATUS(changes_outcome(&c, &e), ST_UNREADABLE, &e);
	CHECK_HAS(e.message, "200.0 KiB");
	told = changes_json(&c);
	assert_int_equal(json_array_size(json_object_get(told, "missing")), 1);
	json_decref(told);

	/* It was taken away again before the end. */
	ram_first = 10;
	ram_last = 99;
	CHECK_OK(changes_sample(&c, &fake.drv, &e), &e);
	CHECK_OK(changes_outcome(&c, &e), &e);
	memory_changes_deinit(&c);
}

/* A source that cannot be opened anew leaves it missing, and does not end the acquisition. */
TEST(source_that_does_not_grow_is_not_opened_again)
{
	const struct memory_plan plan = { .source = &fake.drv };
	struct memory_result result = { 0 };
	struct memory_changes c = { 0 };
	struct err e = ERR_INIT;

	ram_last = 149;
	CHECK_OK(changes_acquire(&c, &fake.drv, "no-such-source", &plan, &result, &e), &e);
	check_range(&c.missing, 100, 149);
	fake.drv.info.grows = true;
	CHECK_OK(changes_acquire(&c, &fake.drv, "no-such-source", &plan, &result, &e), &e);
	check_range(&c.missing, 100, 149);
	assert_ptr_equal(changes_source(&c, &fake.drv), &fake.drv);
	memory_changes_deinit(&c);
}

TEST(pages_that_go_and_come_back_are_told)
{
	struct memory_changes c = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	offline = 40;
	poisoned = 20; /* for another reason than before: nothing new */
	CHECK_OK(changes_end(&c, &fake.drv, &e), &e);
	check_range(&c.withheld, 40, 40);
	check_range(&c.returned, 30, 30);
	memory_changes_deinit(&c);
}

/* A page that is lost to the hardware is none to the kernel, too, and is told as lost. */
TEST(holes_of_the_direct_map_are_told)
{
	struct memory_changes c = { 0 };
	struct err e = ERR_INIT;
	json_t *told;

	fake.drv.info.finds_holes = true;
	hole = 50;
	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	check_range(&c.before.holes, 50, 50);
	told = changes_withheld_json(&c);
	assert_true(json_is_true(json_object_get(told, "holes_known")));
	assert_int_equal(json_array_size(json_object_get(told, "holes")), 1);
	json_decref(told);
	hole = 60;
	CHECK_OK(changes_end(&c, &fake.drv, &e), &e);
	check_range(&c.withheld, 60, 60);
	check_range(&c.returned, 50, 50);
	memory_changes_deinit(&c);

	hole = poisoned;
	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	assert_int_equal(c.before.holes.count, 0);
	memory_changes_deinit(&c);
}

/* Where nobody can be asked, nothing is claimed. */
TEST(who_cannot_be_asked_says_nothing_of_changes)
{
	struct memory_changes c = { 0 };
	struct err e = ERR_INIT;
	json_t *told;

	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	fake.drv.info.withholds = false;
	CHECK_OK(changes_end(&c, &fake.drv, &e), &e);
	assert_int_equal(c.returned.count, 0);
	memory_changes_deinit(&c);

	CHECK_OK(changes_begin(&c, &fake.drv, &e), &e);
	told = changes_withheld_json(&c);
	assert_true(json_is_false(json_object_get(told, "known")));
	json_decref(told);
	memory_changes_deinit(&c);
}

#define CHANGES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHANGES_TEST(memory_that_stays_is_no_news),
		CHANGES_TEST(memory_that_was_added_and_not_read_is_missing),
		CHANGES_TEST(source_that_does_not_grow_is_not_opened_again),
		CHANGES_TEST(pages_that_go_and_come_back_are_told),
		CHANGES_TEST(holes_of_the_direct_map_are_told),
		CHANGES_TEST(who_cannot_be_asked_says_nothing_of_changes),
	};

	return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
