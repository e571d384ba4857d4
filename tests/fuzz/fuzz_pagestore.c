/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of tests/gen/store_pages.h, of the build that the first byte names, with what the input
 * changes in it: seven bytes each, a page, an offset, how many of the three bytes that follow are
 * put there. With the first byte's highest bit symbols tell where it is.
 */
#include "formats/base/page.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/store_pages.h"

#define CHANGE 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t keys[] = { KEY_PLAIN, KEY_PACKED, KEY_CHAINED, KEY_INVALID };
	static const struct range image = { STORE_KERNEL,
					    STORE_KERNEL + STORE_IMAGE_PAGES * PAGE_SIZE - 1 };
	static struct store_pages m;
	const struct store_form *f = &store_forms[(size ? *data & 0x7f : 0) % STORE_FORMS];
	struct pagestore_plan plan = store_plan(&m, f, &image);
	struct pagestore store;
	uint8_t page[PAGE_SIZE];

	store_make(&m, f);
	if (size) {
		plan.globals = *data & 0x80 ? STORE_GLOBALS - f->head : 0;
		data++;
		size--;
	}
	for (; size >= CHANGE; size -= CHANGE, data += CHANGE) {
		const unsigned i = data[0] % STORE_PAGES, at = get_le16(data + 1) % PAGE_SIZE;

		for (unsigned k = 0; k < 1U + data[3] % 3 && at + k < PAGE_SIZE; k++)
			m.at[i][at + k] = data[4 + k];
		m.lost[i] ^= data[3] == 0xff;
	}
	if (!pagestore_find(&store, &plan)) {
		MUST(m.asked <= PAGESTORE_LOOKS_MAX + 3 * STORE_IMAGE_PAGES + 16);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		m.asked = 0;
		MUST(*pagestore_why(pagestore_read(&store, keys[i], page)) != '?');
		MUST(m.asked <= STORE_COST);
	}
	return 0;
}
