/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/kernel_pagefiles.h"
#include "tsk-extract/pagefiles_internal.h"

/* An answer as the kernel writes it: each entry, its name behind it, and the next one. */
#define BASE  UINT64_C(0x00000216c0de0040) /* where the asker's buffer was */
#define ENTRY 32

struct answer {
	uint8_t bytes[4096];
	size_t size;
	size_t last; /* the entry that was added last */
};

/* `growth`: bytes that a later Windows has behind what is known of an entry. */
static void add_entry(struct answer *a, const char *name, uint32_t total, size_t growth)
{
	const size_t length = 2 * strlen(name);
	uint8_t *p = a->bytes + a->size;

	if (a->size)
		put_le32(a->bytes + a->last, (uint32_t)(a->size - a->last));
	a->last = a->size;
	put_le32(p + 4, total);
	put_le32(p + 8, total / 2);
	put_le16(p + 16, (uint16_t)length);
	put_le16(p + 18, (uint16_t)(length + 2));
	put_le64(p + 24, length ? BASE + a->size + ENTRY + growth : 0);
	for (size_t i = 0; name[i]; i++)
		p[ENTRY + growth + 2 * i] = (uint8_t)name[i];
	a->size += (ENTRY + growth + length + 2 + 7) & ~(size_t)7;
}

/* "name=total/in use " of each, and what ended it. */
static void check(const uint8_t *bytes, size_t size, const char *want, size_t nameless)
{
	struct kernel_pagefiles k = kernel_pagefiles_begin(bytes, size, BASE);
	const enum number_origin origin = kernel_pagefiles_origin(k);
	struct kernel_pagefile one;
	char got[512] = "";
	size_t n = 0;
	enum status st;

	while (kernel_pagefiles_next(&k, &one, &st)) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s=%u/%u ", one.name,
			 one.total, one.in_use);
		free(one.name);
		n++;
	}
	assert_int_equal(st, ST_OK);
	assert_string_equal(got, want);
	/* Of several nobody says that they stand in the order of their numbers. */
	assert_int_equal(origin, n == 1 ? NUMBER_KNOWN : NUMBER_ASSUMED);
	assert_int_equal(k.nameless, nameless);
}

TEST(files_come_in_their_order)
{
	struct answer a = { .size = 0 };

	add_entry(&a, "\\??\\C:\\pagefile.sys", 0x40000, 0);
	add_entry(&a, "\\??\\D:\\pagefile.sys", 0x20000, 0);
	check(a.bytes, a.size,
	      "\\??\\C:\\pagefile.sys=262144/131072 \\??\\D:\\pagefile.sys=131072/65536 ", 0);
}

/* The compression store is a paging file without a file, wherever the kernel lists it. */
TEST(what_has_no_name_takes_no_number)
{
	struct answer a = { .size = 0 };

	add_entry(&a, "", 0x10000, 0);
	add_entry(&a, "C:\\p", 4, 0);
	add_entry(&a, "", 0x10000, 0);
	add_entry(&a, "C:\\s", 8, 0);
	add_entry(&a, "", 0x10000, 0);
	check(a.bytes, a.size, "C:\\p=4/2 C:\\s=8/4 ", 3);
	a = (struct answer){ .size = 0 };
	add_entry(&a, "", 0x10000, 0);
	check(a.bytes, a.size, "", 1);
}

TEST(entries_may_have_grown)
{
	struct answer a = { .size = 0 };

	add_entry(&a, "C:\\p", 4, 8); /* as class 144 has it: MinimumSize, MaximumSize */
	add_entry(&a, "C:\\s", 8, 48);
	check(a.bytes, a.size, "C:\\p=4/2 C:\\s=8/4 ", 0);
}

TEST(answers_that_lie_are_read_as_far_as_they_go)
{
	struct answer whole = { .size = 0 }, a;
	uint8_t *part;

	check(NULL, 0, "", 0);
	add_entry(&whole, "C:\\p", 4, 0);
	add_entry(&whole, "C:\\s", 8, 0);
	for (size_t cut = 0; cut < whole.size; cut++) {
		part = malloc(cut ? cut : 1); /* of its own, for the sanitizer to watch */
		memcpy(part, whole.bytes, cut);
		check(part, cut,
		      cut < ENTRY + 8                ? ""
		      : cut < whole.last + ENTRY + 8 ? "C:\\p=4/2 "
						     : "C:\\p=4/2 C:\\s=8/4 ",
		      0);
		free(part);
	}
	a = whole;
	put_le64(a.bytes + 24, BASE - 2); /* a name in front of the answer */
	check(a.bytes, a.size, "", 0);
	put_le64(a.bytes + 24, BASE + a.size - 2); /* and one that leaves it */
	check(a.bytes, a.size, "", 0);
	a = whole;
	put_le32(a.bytes, UINT32_MAX); /* the next one is outside */
	check(a.bytes, a.size, "C:\\p=4/2 ", 0);
	a = whole;
	put_le16(a.bytes + 16, 1); /* half a character is no name */
	check(a.bytes, a.size, "C:\\s=8/4 ", 1);
}

static void check_plain(const char *name, const char *plain, size_t volume)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", name);
	assert_string_equal(pagefile__plain_name(text), plain);
	assert_int_equal(pagefile__volume_length(plain), volume);
}

TEST(names_are_those_that_a_volume_is_opened_by)
{
	static const char volume[] = "\\\\?\\Volume{01234567-89ab-cdef-0123-456789abcdef}";

	check_plain("\\??\\C:\\pagefile.sys", "C:\\pagefile.sys", 2);
	check_plain("\\??\\C:\\page file 2.sys 16 32", "C:\\page file 2.sys", 2);
	check_plain("\\??\\Volume{01234567-89ab-cdef-0123-456789abcdef}\\pagefile.sys",
		    "\\\\?\\Volume{01234567-89ab-cdef-0123-456789abcdef}\\pagefile.sys",
		    sizeof(volume) - 1);
	check_plain("\\??\\volume{01234567-89ab-cdef-0123-456789abcdef}\\p.sys 0 0",
		    "\\\\?\\volume{01234567-89ab-cdef-0123-456789abcdef}\\p.sys",
		    sizeof(volume) - 1);
	check_plain("\\??\\Volume{0123", "\\\\?\\Volume{0123", 0);
	check_plain("\\Device\\HarddiskVolume2\\p.sys", "\\Device\\HarddiskVolume2\\p.sys", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_come_in_their_order),
		cmocka_unit_test(what_has_no_name_takes_no_number),
		cmocka_unit_test(entries_may_have_grown),
		cmocka_unit_test(answers_that_lie_are_read_as_far_as_they_go),
		cmocka_unit_test(names_are_those_that_a_volume_is_opened_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
