/* SPDX-License-Identifier: Apache-2.0 */
/* The block as it comes, into a page, and into as much and one byte less. */
#include <string.h>

#include "formats/base/defs.h"
#include "formats/base/lzo.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Each of its own size, so that a byte too far is seen. */
	uint8_t *page = malloc(PAGE_SIZE), *less;
	size_t got = 0, again = 0;

	MUST(page);
	if (lzo_decode(data, size, page, PAGE_SIZE, &got)) {
		MUST(got <= PAGE_SIZE && size);
		less = malloc(got ? got : 1);
		MUST(less);
		MUST(lzo_decode(data, size, less, got, &again) && again == got);
		MUST(!memcmp(page, less, got));
		if (got)
			MUST(!lzo_decode(data, size, less, got - 1, &again));
		free(less);
	}
	free(page);
	return 0;
}
