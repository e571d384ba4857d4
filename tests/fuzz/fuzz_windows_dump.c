/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is the fields of a header, and what follows that:
 *
 *	type (1), runs (1): then 16 bytes a run (43 at most), the rest from 0x2000 on
 *
 * NumberOfPages fits the runs, unless the type has its upper bit.
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/windows_dump.h"
#include "tests/fuzz/fuzz.h"

static void put_header(uint8_t *h, struct cursor *c)
{
	const uint8_t type = cur_u8(c), runs = cur_u8(c);
	uint64_t pages = 0;

	for (size_t i = 0; i < WINDOWS_DUMP_HEADER; i += 4)
		memcpy(h + i, "PAGE", 4);
	memcpy(h, WINDOWS_DUMP_SIGNATURE, 8);
	put_le32(h + 0x30, 0x8664);
	put_le32(h + 0xf98, type & 0x7f);
	put_le32(h + 0x88, runs);
	for (size_t i = 0; i < MIN(runs, WINDOWS_DUMP_RUNS_MAX); i++) {
		put_le64(h + 0x98 + 16 * i, cur_le64(c));
		put_le64(h + 0xa0 + 16 * i, cur_le64(c));
		pages += get_le64(h + 0xa0 + 16 * i);
	}
	put_le64(h + 0x90, type & 0x80 ? UINT64_C(0x4547415045474150) : pages);
}

/* Pages follow each other in the file, and where bits are counted also in memory. */
static void check(const struct windows_dump *d, size_t size)
{
	const bool full = d->type == WINDOWS_DUMP_FULL;
	uint64_t offset = d->at[0].offset, pages = 0;

	MUST(d->count && d->ram.count <= WINDOWS_DUMP_RUNS_MAX);
	MUST(full ? d->count == d->ram.count : d->count <= 4 * size);
	for (size_t i = 0; i < d->count; i++) {
		const struct range r = d->at[i].range;

		MUST(r.first < r.last && r.last < PHYS_LIMIT && d->at[i].offset == offset);
		MUST(!(r.first % PAGE_SIZE) && !((r.last + 1) % PAGE_SIZE));
		MUST(full || !i || r.first > d->at[i - 1].range.last + 1);
		offset += range_bytes(r);
		pages += range_bytes(r) >> PAGE_SHIFT;
	}
	MUST(pages <= WINDOWS_DUMP_PAGES_MAX && d->cut == (offset > size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	struct err e = ERR_INIT;
	struct windows_dump d;
	struct mem_blob b;
	uint8_t *file = malloc(WINDOWS_DUMP_HEADER + size);

	MUST(file);
	put_header(file, &c);
	memcpy(file + WINDOWS_DUMP_HEADER, c.at, c.left);
	mem_blob_init(&b, file, WINDOWS_DUMP_HEADER + c.left);
	enum status st = windows_dump_init(&d, &b.blob, &e);
	MUST(!st || e.message[0]);
	if (!st)
		check(&d, WINDOWS_DUMP_HEADER + c.left);
	windows_dump_deinit(&d);
	/* And whatever it is as it is. */
	mem_blob_init(&b, data, size);
	st = windows_dump_init(&d, &b.blob, &e);
	if (!st)
		check(&d, size);
	windows_dump_deinit(&d);
	free(file);
	return 0;
}
