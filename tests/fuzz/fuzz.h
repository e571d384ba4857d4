/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RAMSEAL_TESTS_FUZZ_FUZZ_H
#define RAMSEAL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* libFuzzer's entry: any bytes, always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An assertion that no NDEBUG removes. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#endif
