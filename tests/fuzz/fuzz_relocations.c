/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Width and size of the image, then its table, by which an image of zeros is relocated page by
 * page: nothing is changed that lies behind the image.
 */
#include <string.h>

#include "agent/examine/process/relocations.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"

#define PAGES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct relocations *r;
	uint32_t image_size;
	uint8_t *table, *page;
	bool narrow;

	if (size < 4)
		return 0;
	narrow = data[0] & 1;
	image_size = get_le32(data) >> 8 & (PAGES_MAX * PAGE_SIZE - 1);
	table = malloc(size - 4 ? size - 4 : 1);
	page = malloc(PAGE_SIZE + 2 * RELOCATIONS_REACH);
	MUST(table && page);
	memcpy(table, data + 4, size - 4);
	MUST(relocations_open(table, size - 4, image_size, narrow, &r, NULL) == ST_OK);
	for (uint32_t rva = 0; r && rva < PAGES_MAX * PAGE_SIZE; rva += PAGE_SIZE) {
		const bool reaches_in = relocations_reach_in(r, rva);

		memset(page, 0, PAGE_SIZE + 2 * RELOCATIONS_REACH);
		relocations_apply(r, rva, 1, page);
		MUST(!reaches_in || rva);
		/* Nothing lies behind the image. */
		for (size_t i = 0; i < PAGE_SIZE; i++)
			MUST(rva + i < image_size || !page[RELOCATIONS_REACH + i]);
	}
	relocations_close(r);
	free(page);
	return 0;
}
