/* SPDX-License-Identifier: Apache-2.0 */
/* The stream as it comes, into a page as the store's, and into one byte less than that gave. */
#include <string.h>

#include "formats/base/defs.h"
#include "formats/base/xpress.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Each of its own size, so that a byte too far is seen. */
	uint8_t *page = malloc(PAGE_SIZE), *less;
	size_t got = 0, again = 0;

	MUST(page);
	if (xpress_decode(data, size, page, PAGE_SIZE, &got)) {
		MUST(got <= PAGE_SIZE);
		/* A match is at least 3 bytes of input and at most all of the output. */
		MUST(!got || size > 4);
		less = malloc(got ? got : 1);
		MUST(less);
		MUST(xpress_decode(data, size, less, got, &again) && again == got);
		MUST(!memcmp(page, less, got));
		if (got)
			MUST(!xpress_decode(data, size, less, got - 1, &again) || again == got - 1);
		free(less);
	}
	free(page);
	return 0;
}
