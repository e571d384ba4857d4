/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/image/avml.h"
#include "tests/fuzz/fuzz.h"

/* Bytes of memory that are read; more take no other path. */
#define READ_MAX ((uint64_t)256 << 10)

/* Byte by byte the same as in one go, and not one behind the end. */
static void check_reads(struct avml *a, uint8_t *all)
{
	const size_t len = (size_t)MIN(a->plain, READ_MAX);
	size_t got = 0, n;
	enum status st = avml_read(a, 0, all, len, &got, NULL);

	MUST(got <= len && (!st || st == ST_CORRUPT) && (got == len || st));
	for (uint64_t at = len; at-- > 0; at -= MIN(at, 997)) {
		uint8_t byte;

		st = avml_read(a, at, &byte, 1, &n, NULL);
		MUST(at >= got || (!st && n == 1 && byte == all[at]));
	}
	MUST(!avml_read(a, a->plain, all, 1, &n, NULL) && !n);
}

/* What it holds is bounded by the file, whatever its headers say. */
static void check_blocks(const struct avml *a, size_t size)
{
	uint64_t plain = 0;

	MUST(a->count <= size / AVML_HEADER_SIZE);
	MUST(a->plain - a->zeros <= (uint64_t)SNAPPY_RATIO_MAX * size);
	MUST(a->zeros <= AVML_ZEROS_MAX * a->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct avml_block *k = &a->at[i];

		MUST(k->range.first <= k->range.last && k->plain == plain);
		MUST(k->present <= range_bytes(k->range));
		MUST(k->present == range_bytes(k->range) ||
		     range_bytes(k->range) <= AVML_CLAIM_MAX);
		plain += k->present;
	}
	MUST(plain == a->plain);
	for (size_t i = 0; i < a->n_points; i++)
		MUST(a->points[i].plain <= a->plain &&
		     (!i || a->points[i].plain > a->points[i - 1].plain));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct mem_blob b;
	struct avml a;

	mem_blob_init(&b, data, size);
	const enum status st = avml_init(&a, &b.blob, &e);
	MUST(!st || e.message[0]);
	if (!st) {
		uint8_t *all = malloc(READ_MAX);

		MUST(all);
		check_blocks(&a, size);
		check_reads(&a, all);
		free(all);
	}
	avml_deinit(&a);
	return 0;
}
