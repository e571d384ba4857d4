/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/rsz/rsz_reader.h"
#include "formats/rsz/rsz_wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/rsz_recipe.h"

/* Bytes of content; what is longer takes no other path, but time. */
#define DECODE_MAX ((size_t)256 << 10)

struct walk {
	struct mem_blob blob;
	struct rsz_scan *scan;
	struct rsz_decoder *decoder;
	struct rsz_loaded buffers;
	bool good; /* every payload, too, and all were looked at */
};

/* What was judged must be within what buffers for any legal chunk hold. */
static void check_chunk(struct walk *w, const struct rsz_record *rec)
{
	struct rsz_chunk *c = &w->buffers.chunk;
	size_t pages = 0, bytes = 0;

	rsz_scan_chunk(w->scan, c);
	MUST(c->n_extents >= 1 && c->n_extents <= RSZ_EXTENTS_MAX);
	MUST(c->length <= RSZ_CONTENT_MAX && rec->content <= c->length);
	for (size_t i = 0; i < c->n_extents; i++) {
		bytes += c->extents[i].length;
		pages += rsz_extent_pages(&c->extents[i]);
	}
	MUST(bytes == c->length && (!c->paged || pages == c->n_pages));
	for (size_t i = 0; c->paged && i < c->n_pages; i++)
		MUST(c->pages[i].state < PAGE_STATES);
}

static void check_record(struct walk *w, const struct rsz_record *rec, uint64_t place)
{
	struct err e = ERR_INIT;
	enum status st;

	MUST(rec->offset == place);
	MUST(rec->stored <= w->blob.blob.size - place - rec->header_length);
	if (rec->type == RSZ_CHUNK)
		check_chunk(w, rec);
	if (rec->content > DECODE_MAX) {
		w->good = false;
		return;
	}
	st = rsz_check(w->decoder, rec->header, rec->header_length,
		       w->blob.at + place + rec->header_length, &e);
	MUST(!st || (st == ST_CORRUPT && e.message[0]));
	w->good &= !st;
}

static void walk(struct walk *w, struct rsz_scan_result *ret)
{
	struct err e = ERR_INIT;
	struct rsz_record rec;
	uint64_t place = 0, records = 0;
	bool without_begin = false;
	enum status st;

	w->good = true;
	while (!(st = rsz_scan_next(w->scan, &rec, &e))) {
		if (!records && rec.sequence == 1) { /* BEGIN is bad, and was skipped */
			place = rec.offset;
			records = 1;
			without_begin = true;
		}
		MUST(rec.sequence == records);
		check_record(w, &rec, place);
		place += rec.header_length + rec.stored;
		records++;
	}
	MUST(st == ST_END && rsz_scan_next(w->scan, &rec, &e) == ST_END);
	rsz_scan_end(w->scan, ret);
	MUST(!without_begin || ret->end == RSZ_END_DAMAGED);
	MUST(ret->whole == (without_begin ? 0 : place));
	MUST(ret->records == (without_begin ? 0 : records));
	MUST((ret->end == RSZ_END_SEALED) == !ret->reason[0]);
	MUST(ret->end != RSZ_END_SEALED || place + ret->behind == w->blob.blob.size);
}

/* What verification calls whole, the reader must read, to the last byte. */
static void must_be_readable(struct mem_blob *blob, const struct rsz_scan_result *end)
{
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_segment seg;
	const struct rsz_chunk *chunk;
	size_t left = 256; /* segments: enough, and bounded */

	MUST(!rsz_reader_open(&blob->blob, RSZ_TRUST_INDEX, &r, NULL) &&
	     !rsz_cursor_create(r, 1, &c, NULL));
	MUST(rsz_reader_end(r)->end == end->end);
	if (end->end == RSZ_END_SEALED)
		MUST(!memcmp(rsz_reader_end(r)->root, end->root, SHA256_SIZE));
	for (uint32_t s = 0; s < rsz_reader_streams(r); s++)
		for (uint64_t at = 0; left && rsz_reader_next(r, s, at, &seg); left--) {
			struct rsz_page page;

			MUST(!rsz_cursor_load(c, rsz_reader_record(r, seg.extent), &chunk, NULL));
			MUST(chunk->stream == s);
			if (chunk->paged)
				MUST(!rsz_cursor_page(c, s, seg.address, &page, NULL) &&
				     page.captured);
			at = seg.address + seg.length;
		}
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct walk w = { 0 };
	struct rsz_scan_result end;
	struct mem_sink bytes;
	struct err e = ERR_INIT;

	mem_sink_init(&bytes, SIZE_MAX);
	recipe_cook(data, size, &bytes);
	mem_blob_init(&w.blob, bytes.at, bytes.len);
	w.blob.blob.device = size % 2;
	const enum status st = rsz_scan_create(&w.blob.blob, &w.scan, &e);
	MUST(!st || (st == ST_INPUT && e.message[0]));
	if (!st) {
		MUST(!rsz_decoder_create(&w.decoder, &e) && !rsz_loaded_init(&w.buffers, &e));
		walk(&w, &end);
		/*
		 * A reader believes the index of a container that ends with CLOSE; a scan does not.
		 * So it believes an end that was made to look like one behind the true one, too.
		 * Without sums, what an INDEX holds need not be what was listed.
		 */
		if (CHECKS_SUMS && w.good && end.end != RSZ_END_DAMAGED && !end.behind &&
		    !w.blob.blob.device)
			must_be_readable(&w.blob, &end);
		rsz_loaded_deinit(&w.buffers);
		rsz_decoder_destroy(w.decoder);
		rsz_scan_destroy(w.scan);
	}
	mem_sink_deinit(&bytes);
	return 0;
}
