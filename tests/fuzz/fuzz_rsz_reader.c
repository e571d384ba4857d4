/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/rsz/rsz_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/rsz_recipe.h"

/* Bounds on time, per stream: what is longer takes no other path. */
#define SEGMENTS_MAX 16
#define DECODE_MAX   ((size_t)64 << 10)
#define TEXT_MAX     ((size_t)256 << 10)

/* A glance needs no more than the whole chunk, and what both give is the same. */
static void check_glance(const struct rsz_reader *r, uint32_t stream, uint64_t address,
			 enum status whole, const uint8_t *want)
{
	static uint8_t buf[3 * PAGE_SIZE];
	struct page_status status[3];
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;

	MUST(!rsz_cursor_create(r, 1, &c, &e) && !rsz_cursor_allow_glances(c, &e));
	const enum status st = rsz_cursor_read(c, stream, address, buf, 3, status, NULL, &e);
	MUST(!st || (st == ST_CORRUPT && e.message[0]));
	MUST(st || whole || !memcmp(buf, want, sizeof(buf)));
	MUST(whole || !st);
	rsz_cursor_destroy(c);
}

static void check_page(const struct rsz_reader *r, struct rsz_cursor *c, uint32_t stream,
		       uint64_t address)
{
	struct page_status status[3];
	static const uint8_t zeros[PAGE_SIZE];
	static uint8_t buf[3 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct rsz_page page;
	enum status st = rsz_cursor_page(c, stream, address, &page, &e);

	MUST(!st || (st == ST_CORRUPT && e.message[0]));
	if (!st && page.captured) {
		MUST(page.length >= 1 && page.length <= PAGE_SIZE);
		MUST(page.status.state < PAGE_STATES && page.start <= page.end);
		memcpy(buf, page.data, page.length);
		MUST(page.status.state == PAGE_DATA || !memcmp(buf, zeros, page.length));
	}
	st = rsz_cursor_read(c, stream, address & ~(uint64_t)(PAGE_SIZE - 1), buf, 3, status, NULL,
			     &e);
	MUST(!st || (st == ST_CORRUPT && e.message[0]));
	for (size_t i = 0; !st && i < 3; i++)
		MUST(status[i].state < PAGE_STATES);
	check_glance(r, stream, address & ~(uint64_t)(PAGE_SIZE - 1), st, buf);
}

/* Segments come in ascending order, do not overlap, and do not run over the end of addresses. */
static void check_stream(const struct rsz_reader *r, struct rsz_cursor *c, uint32_t stream)
{
	const struct rsz_stream_info *info = rsz_reader_stream(r, stream);
	struct rsz_segment seg;
	uint64_t at = 0;
	size_t left = SEGMENTS_MAX;
	static uint8_t copy[RSZ_CONTENT_MAX];
	const uint8_t *text;
	size_t len, all = 0;
	enum status st;

	MUST(info && info->name && info->meta && strlen(info->name));
	for (; left && rsz_reader_next(r, stream, at, &seg); left--) {
		MUST(seg.length && seg.address >= at);
		MUST(seg.length <= RSZ_CONTENT_MAX && seg.address < 1ull << 63);
		if (seg.length <= DECODE_MAX) {
			check_page(r, c, stream, seg.address);
			check_page(r, c, stream, seg.address + seg.length - 1);
		}
		at = seg.address + seg.length;
	}
	check_page(r, c, stream, at);
	if (!left)
		return;
	for (at = 0; all < TEXT_MAX; all += len) {
		const uint64_t from = at;

		st = rsz_cursor_next_text(c, stream, &at, &text, &len, NULL);
		if (st == ST_END)
			break;
		MUST(st == ST_OK || st == ST_CORRUPT);
		MUST(at > from && len && len <= RSZ_CONTENT_MAX);
		if (!st)
			memcpy(copy, text, len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct mem_sink bytes;
	struct mem_blob blob;
	struct err e = ERR_INIT;

	mem_sink_init(&bytes, SIZE_MAX);
	recipe_cook(data, size, &bytes);
	mem_blob_init(&blob, bytes.at, bytes.len);
	const enum status st = rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e);
	MUST(!st || (st == ST_INPUT && e.message[0]));
	if (!st) {
		const struct rsz_scan_result *end = rsz_reader_end(r);

		MUST(end->whole <= blob.blob.size);
		MUST((end->end == RSZ_END_SEALED) == !end->reason[0]);
		MUST(!rsz_cursor_create(r, 1, &c, &e));
		for (uint32_t i = 0; i < rsz_reader_streams(r) && i < 16; i++)
			check_stream(r, c, i);
		rsz_cursor_destroy(c);
		rsz_reader_close(r);
	}
	mem_sink_deinit(&bytes);
	return 0;
}
