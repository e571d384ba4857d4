/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/foreign.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct foreign *is = NULL;
	struct mem_blob b;

	mem_blob_init(&b, data, size);
	MUST(!foreign_find(&b.blob, &is, NULL));
	MUST(!is || is->what[0]);
	/* What begins with zeros is memory, as far as anybody can tell. */
	if (size >= 8192) {
		size_t i = 0;

		while (i < size && !data[i])
			i++;
		MUST(i < size || !is);
	}
	return 0;
}
