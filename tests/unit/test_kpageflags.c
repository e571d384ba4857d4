/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files made like /proc/kpageflags; bits as in include/uapi/linux/kernel-page-flags.h.
 */
#include "tests/unit/test.h"

#include "driver-interface/kpageflags.h"
#include "driver-interface/source.h"
#include "tests/gen/images.h"

#define HEAD     ((uint64_t)1 << 15)
#define TAIL     ((uint64_t)1 << 16)
#define HUGE     ((uint64_t)1 << 17)
#define HWPOISON ((uint64_t)1 << 19)
#define NOPAGE   ((uint64_t)1 << 20)
#define OFFLINE  ((uint64_t)1 << 23)
#define OTHERS   (~(HEAD | TAIL | HUGE | HWPOISON | NOPAGE | OFFLINE))

static struct image flags;

static struct kpageflags open_flags(void)
{
	struct kpageflags f;

	kpageflags_set_path(image_save(&flags));
	kpageflags_open(&f);
	kpageflags_set_path(NULL);
	assert_true(f.fd >= 0);
	return f;
}

static void close_flags(struct kpageflags *f)
{
	kpageflags_close(f);
	image_free(&flags);
}

static void check(struct kpageflags *f, uint64_t pfn, uint32_t state, uint32_t detail)
{
	struct page_status s = { 99, 99 };

	assert_true(kpageflags_withhold(f, pfn * PAGE_SIZE, 1, &s));
	assert_int_equal(s.state, state);
	assert_int_equal(s.detail, detail);
}

TEST(three_flags_say_that_a_page_must_not_be_read)
{
	struct kpageflags f;
	struct page_status s[600];

	for (uint64_t pfn = 0; pfn < 600; pfn++)
		image_u64(&flags, pfn * 8, OTHERS | HEAD);
	image_u64(&flags, 10 * 8, HWPOISON);
	image_u64(&flags, 255 * 8, OFFLINE);
	image_u64(&flags, 256 * 8, NOPAGE);
	image_u64(&flags, 599 * 8, HWPOISON | OFFLINE);
	f = open_flags();
	check(&f, 9, PAGE_DATA, 0);
	check(&f, 10, PAGE_UNREADABLE, DRV_POISONED);
	assert_true(kpageflags_withhold(&f, 0, 600, s));
	for (size_t i = 0; i < 600; i++) {
		const bool offline = i == 255 || i == 256, poisoned = i == 10 || i == 599;

		assert_int_equal(s[i].state, offline    ? PAGE_SKIPPED
					     : poisoned ? PAGE_UNREADABLE
							: PAGE_DATA);
		assert_int_equal(s[i].detail, offline    ? SKIP_NOT_MAPPED
					      : poisoned ? DRV_POISONED
							 : 0);
	}
	close_flags(&f);
}

/* 64 KiB: a PFN is that of sixteen pages, where a read begins inside of one, too. */
TEST(flags_are_those_of_the_kernels_pages)
{
	struct kpageflags f;
	struct page_status s[600];

	for (uint64_t pfn = 0; pfn < 40; pfn++)
		image_u64(&flags, pfn * 8, OTHERS | HEAD);
	image_u64(&flags, 1 * 8, HWPOISON);
	image_u64(&flags, 20 * 8, OFFLINE);
	kpageflags_set_page_size(65536);
	f = open_flags();
	kpageflags_set_page_size(0);
	for (size_t from = 0; from < 20; from++) {
		assert_true(kpageflags_withhold(&f, from * PAGE_SIZE, 600, s));
		for (size_t i = 0; i < 600; i++) {
			const size_t pfn = (from + i) / 16;

			assert_int_equal(s[i].state, pfn == 1    ? PAGE_UNREADABLE
						     : pfn == 20 ? PAGE_SKIPPED
								 : PAGE_DATA);
		}
	}
	check(&f, 40 * 16 - 1, PAGE_DATA, 0);
	check(&f, 40 * 16, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	close_flags(&f);
}

/* The file ends with the last page that the kernel knows. */
TEST(what_lies_behind_the_end_has_no_page)
{
	struct kpageflags f;

	image_u64(&flags, 3 * 8, OTHERS);
	f = open_flags();
	check(&f, 3, PAGE_DATA, 0);
	check(&f, 4, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	check(&f, UINT64_C(1) << 40, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	close_flags(&f);
}

/* Until 6.9 its first PFN alone is marked. */
TEST(huge_page_is_poisoned_as_a_whole)
{
	const uint64_t gigabyte = 1 << 18;
	struct kpageflags f;

	for (uint64_t pfn = 512; pfn < 3 * 512; pfn++)
		image_u64(&flags, pfn * 8, HUGE | (pfn % 512 ? TAIL : HEAD));
	image_u64(&flags, 512 * 8, HUGE | HEAD | HWPOISON);
	for (uint64_t pfn = gigabyte; pfn < gigabyte + 1024; pfn++)
		image_u64(&flags, pfn * 8, HUGE | (pfn > gigabyte ? TAIL : HEAD | HWPOISON));
	/* Another compound page whose first page is poisoned: only that one is. */
	image_u64(&flags, 2048 * 8, HEAD | HWPOISON);
	image_u64(&flags, 2049 * 8, TAIL);
	f = open_flags();
	check(&f, 511, PAGE_DATA, 0);
	check(&f, 512, PAGE_UNREADABLE, DRV_POISONED);
	check(&f, 700, PAGE_UNREADABLE, DRV_POISONED);
	check(&f, 1024, PAGE_DATA, 0);
	check(&f, 1025, PAGE_DATA, 0);
	check(&f, gigabyte + 600, PAGE_UNREADABLE, DRV_POISONED);
	check(&f, 2048, PAGE_UNREADABLE, DRV_POISONED);
	check(&f, 2049, PAGE_DATA, 0);
	close_flags(&f);
}

TEST(file_that_fails_is_not_asked_for_more_than_it_knows)
{
	struct kpageflags f;
	struct page_status s[2] = { { 99, 99 }, { 99, 99 } };

	kpageflags_set_path("/"); /* read() says EISDIR */
	kpageflags_open(&f);
	assert_true(kpageflags_is_set());
	assert_false(kpageflags_withhold(&f, 0, 2, s));
	assert_int_equal(s[1].state, PAGE_DATA);
	kpageflags_close(&f);
	kpageflags_set_path("/nowhere");
	kpageflags_open(&f);
	assert_int_equal(f.fd, -1);
	kpageflags_set_path(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_flags_say_that_a_page_must_not_be_read),
		cmocka_unit_test(flags_are_those_of_the_kernels_pages),
		cmocka_unit_test(what_lies_behind_the_end_has_no_page),
		cmocka_unit_test(huge_page_is_poisoned_as_a_whole),
		cmocka_unit_test(file_that_fails_is_not_asked_for_more_than_it_knows),
	};

	return cmocka_run_group_tests_name("kpageflags", tests, NULL, NULL);
}
