/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test includes: cmocka in the order it wants its headers in, and checks that
 * print both values.
 */
#ifndef RAMSEAL_TESTS_UNIT_TEST_H
#define RAMSEAL_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* cmocka 2 has no name for both kinds of numbers, and warns of this one. */
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#include "formats/base/err.h"

/* Fails with the message of `e` when `st` is not the status that the test wants. */
#define CHECK_STATUS(st, want, e)                                                                  \
	do {                                                                                       \
		const enum status st_ = (st);                                                      \
		if (st_ != (want))                                                                 \
			fail_msg("%s is \"%s\", wanted \"%s\": %s", #st, status_text(st_),         \
				 status_text(want), (e)->message);                                 \
	} while (0)

#define CHECK_OK(st, e) CHECK_STATUS(st, ST_OK, e)

/* Fails unless `text` holds `part`. */
#define CHECK_HAS(text, part)                                                                      \
	do {                                                                                       \
		if (!strstr((text), (part)))                                                       \
			fail_msg("\"%s\" does not hold \"%s\"", (text), (part));                   \
	} while (0)

/* AddressSanitizer: gcc has a macro, clang a feature. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define TEST_HAS_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(TEST_HAS_ASAN)
#define TEST_HAS_ASAN
#endif

/*
 * Each block of 128 KiB and more, and each thread's stack, is mapped anew by ASan, and by Wine,
 * which some virtual machines take long for. So of rows of thousands of cases that need some, they
 * are given every seventh, unless all are wanted (meson.build).
 */
static inline int test_step(void)
{
#if defined(TEST_HAS_ASAN) || defined(_WIN32)
	const char *whole = getenv("RAMSEAL_WHOLE");

	return whole && *whole == '1' ? 1 : 7;
#else
	return 1;
#endif
}

#define TEST(name) static void name(void **state __attribute__((unused)))

#endif
