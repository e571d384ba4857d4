/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/image/inflated.h"
#include "tests/fuzz/fuzz.h"

/* Places are near each other, and few, so that small inputs have some and lose some. */
#define SPACING  500
#define PLACES   4096

/* Bytes that are read; a thousand come out of one. */
#define READ_MAX ((uint64_t)1 << 20)

/* From the end to the beginning the same as in one go. */
static void check_reads(struct inflated *i)
{
	const size_t len = (size_t)MIN(i->blob.size, READ_MAX);
	uint8_t *all = malloc(len + 1);
	size_t got = 0;

	MUST(all && !i->blob.read_at(&i->blob, 0, all, len, &got, NULL) && got == len);
	for (uint64_t at = len; at-- > 0; at -= MIN(at, 4999)) {
		uint8_t part[64];
		const size_t want = (size_t)MIN(sizeof(part), len - at);

		MUST(!i->blob.read_at(&i->blob, at, part, want, &got, NULL) && got == want);
		MUST(!memcmp(part, all + at, want));
	}
	MUST(!i->blob.read_at(&i->blob, i->blob.size, all, 1, &got, NULL) && !got);
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	uint8_t begin[32], same[32];
	struct inflated i;
	struct mem_blob b;
	size_t got = 0, n = 0;

	mem_blob_init(&b, data, size);
	const enum status probed = inflated_probe(&b.blob, begin, sizeof(begin), &got, &e);
	const enum status st = inflated_init(&i, &b.blob, SPACING, PLACES, &e);
	MUST(st == probed && (!st || (st == ST_NOT_MINE && e.message[0])));
	if (!st) {
		MUST(i.packed_end <= size && i.blob.size <= (uint64_t)size * 1032 + 258);
		MUST(i.end != INFLATED_CUT || i.packed_end == size);
		MUST(!i.blob.read_at(&i.blob, 0, same, sizeof(same), &n, NULL));
		MUST(n >= got && !memcmp(begin, same, got));
		check_reads(&i);
	}
	inflated_deinit(&i);
	return 0;
}
