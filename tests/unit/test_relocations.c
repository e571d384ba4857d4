/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of base relocations: what they add to, and which of them are not believed. */
#include "tests/unit/test.h"

#include "agent/examine/process/relocations.h"
#include "formats/base/bytes.h"

#define IMAGE_SIZE 0x4000u
#define REACH      RELOCATIONS_REACH

static struct relocations *r;

static int tear_down(void **state)
{
	(void)state;
	relocations_close(r);
	r = NULL;
	return 0;
}

/* The words as they lie in the table, of 16 bits. */
static bool open_table(const uint16_t *words, size_t count, bool narrow)
{
	uint8_t *table = malloc(count ? 2 * count : 1);
	struct err e;

	assert_non_null(table);
	for (size_t i = 0; i < count; i++)
		put_le16(table + 2 * i, words[i]);
	relocations_close(r);
	assert_int_equal(relocations_open(table, 2 * count, IMAGE_SIZE, narrow, &r, &e), ST_OK);
	return r != NULL;
}

#define OPEN(narrow, ...)                                                                          \
	open_table((const uint16_t[]){ __VA_ARGS__ },                                              \
		   sizeof((const uint16_t[]){ __VA_ARGS__ }) / 2, (narrow))

/* Page n of the image as a window, out of all of it. */
static void window(const uint8_t *image, uint32_t rva, uint8_t *ret)
{
	memset(ret, 0, PAGE_SIZE + 2 * REACH);
	memcpy(ret + REACH, image + rva, PAGE_SIZE);
	if (relocations_reach_in(r, rva))
		memcpy(ret, image + rva - REACH, REACH);
}

/* Page by page the same as all at once, for one address in the page `of`. Does it leave that? */
static bool check_place(bool narrow, uint16_t of, unsigned at)
{
	static uint8_t image[IMAGE_SIZE], want[IMAGE_SIZE], page[PAGE_SIZE + 2 * REACH];
	const uint64_t delta = UINT64_C(0xfedcba9876543210) + at;
	const uint16_t kind = narrow ? 3 << 12 : 10 << 12;
	const bool crosses = at + (narrow ? 4 : 8) > (unsigned)PAGE_SIZE;

	for (size_t i = 0; i < sizeof(image); i++)
		image[i] = (uint8_t)(i * 31 >> 3);
	memcpy(want, image, sizeof(want));
	if (narrow)
		put_le32(want + of + at, (uint32_t)(get_le32(image + of + at) + delta));
	else
		put_le64(want + of + at, get_le64(image + of + at) + delta);
	assert_true(OPEN(narrow, of, 0, 12, 0, (uint16_t)(kind | at), 0));
	for (uint32_t rva = 0; rva < IMAGE_SIZE; rva += PAGE_SIZE) {
		window(image, rva, page);
		relocations_apply(r, rva, delta, page);
		assert_memory_equal(page + REACH, want + rva, PAGE_SIZE);
		assert_int_equal(relocations_reach_in(r, rva), crosses && rva == of + PAGE_SIZE);
	}
	return crosses;
}

static void each_place_in_a_page_and_across_pages(void **state)
{
	unsigned crossed = 0;

	(void)state;
	for (int narrow = 0; narrow < 2; narrow++)
		for (unsigned at = 0; at < PAGE_SIZE; at += at < 16 || at > 4000 ? 1 : 61) {
			crossed += check_place(narrow, 0x0000, at); /* none lies before that page */
			crossed += check_place(narrow, 0x1000, at);
		}
	assert_int_equal(crossed, 2 * (3 + 7));
}

static void blocks_of_one_page_and_fillers(void **state)
{
	static uint8_t page[PAGE_SIZE + 2 * REACH];

	(void)state;
	/* Two blocks of page 1, an empty one, one of page 3; words that fill them up. */
	assert_true(OPEN(false, 0x1000, 0, 12, 0, 0xa010, 0, 0x1000, 0, 12, 0, 0xa020, 0xa040,
			 0x2000, 0, 8, 0, 0x3000, 0, 12, 0, 0xa0ff, 0));
	relocations_apply(r, 0x1000, 1, page);
	for (size_t i = 0; i < sizeof(page); i++)
		assert_int_equal(page[i],
				 i == REACH + 0x10 || i == REACH + 0x20 || i == REACH + 0x40);
	memset(page, 0, sizeof(page));
	relocations_apply(r, 0x2000, 1, page);
	for (size_t i = 0; i < sizeof(page); i++)
		assert_int_equal(page[i], 0);
	relocations_apply(r, 0x3000, 0x100, page);
	assert_int_equal(page[REACH + 0x100], 1);
}

static void what_is_out_of_order_is_not_used(void **state)
{
	(void)state;
	assert_true(OPEN(false, 0x1000, 0, 12, 0, 0xaff8, 0));
	assert_true(OPEN(false, 0x3000, 0, 12, 0, 0xaff8, 0)); /* the image's last 8 bytes */
	assert_false(OPEN(false, 0x3000, 0, 12, 0, 0xaff9, 0));
	assert_true(OPEN(true, 0x3000, 0, 12, 0, 0x3ffc, 0));
	assert_false(OPEN(true, 0x3000, 0, 12, 0, 0x3ffd, 0));
	assert_false(OPEN(false, 0x4000, 0, 12, 0, 0xa000, 0));
	/* Sectors that could not be read, as zeros: of all of it, behind a block, within one. */
	assert_false(open_table(NULL, 0, false));
	assert_false(OPEN(false, 0, 0, 0, 0, 0, 0));
	assert_false(OPEN(false, 0x1000, 0, 12, 0, 0xa010, 0, 0, 0, 0, 0));
	assert_false(OPEN(false, 0x1000, 0, 16, 0, 0xa010, 0, 0, 0));
	assert_false(OPEN(false, 0x1000, 0, 16, 0, 0, 0, 0, 0xa010));
	assert_false(OPEN(false, 0x1000, 0, 12, 0, 0, 0));
	assert_false(OPEN(false, 0, 0xffff, 12, 0, 0xa000, 0));
	assert_false(OPEN(false, 0x1004, 0, 12, 0, 0xa000, 0));    /* no page */
	assert_false(OPEN(false, 0x1000, 0, 14, 0, 0xa000, 0, 0)); /* not of 32 bits */
	assert_false(OPEN(false, 0x1000, 0, 16, 0, 0xa000, 0));    /* cut */
	assert_false(OPEN(false, 0x1000, 0, 12));
	assert_false(OPEN(false, 0x1000, 0, 4, 0));
	assert_false(OPEN(false, 0x1000, 0, 0, 0, 0xa000, 0));
	assert_false(OPEN(false, 0x2000, 0, 12, 0, 0xa000, 0, 0x1000, 0, 12, 0, 0xa000, 0));
	assert_false(OPEN(false, 0x1000, 0, 12, 0, 0x3000, 0)); /* of x86 */
	assert_false(OPEN(true, 0x1000, 0, 12, 0, 0xa000, 0));  /* of x64 */
	for (uint16_t kind = 1; kind < 16; kind++)
		assert_int_equal(OPEN(false, 0x1000, 0, 12, 0, (uint16_t)(kind << 12), 0),
				 kind == 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_place_in_a_page_and_across_pages, tear_down),
		cmocka_unit_test_teardown(blocks_of_one_page_and_fillers, tear_down),
		cmocka_unit_test_teardown(what_is_out_of_order_is_not_used, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
