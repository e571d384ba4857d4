/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/lime.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct mem_blob b;
	struct lime l;

	mem_blob_init(&b, data, size);
	const enum status st = lime_init(&l, &b.blob, &e);
	MUST(!st || e.message[0]);
	MUST(l.count <= size / LIME_HEADER_SIZE);
	MUST(l.rest <= size && (l.end != LIME_NO_HEADER || l.problem.message[0]));
	for (size_t i = 0; i < l.count; i++) {
		MUST(l.at[i].range.first <= l.at[i].range.last);
		MUST(l.at[i].offset <= size && l.at[i].present <= size - l.at[i].offset);
		MUST(l.at[i].present <= range_bytes(l.at[i].range));
		/* No byte belongs to two records. */
		MUST(!i || l.at[i].offset >= l.at[i - 1].offset + l.at[i - 1].present);
		/* What lacks bytes is counted. */
		if (l.at[i].present < range_bytes(l.at[i].range) && !l.at[i].zeros)
			MUST(l.cut || (i == l.count - 1 && l.end == LIME_CUT_RANGE));
	}
	lime_deinit(&l);
	return 0;
}
