/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is what a kdump says of itself, without the zeros between:
 *
 *	how (1): 0 a file; 1 a flattened one, records as they come; else the fields that follow
 *	version (1), status (1), sub header blocks (1), bitmap blocks (1), frames (4),
 *	notes: offset (2), size (2); bytes of bitmap 1 (1) and these, the same of bitmap 2,
 *	and the rest from the descriptors on
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/kdump_reader.h"
#include "tests/fuzz/fuzz.h"

#define BLOCKS_MAX  4u

/* More take no other path. */
#define FRAMES_READ 2048

static uint8_t *make_flattened(const uint8_t *data, size_t size, size_t *ret)
{
	uint8_t *file = calloc(1, KDUMP_FLAT_HEADER_SIZE + size);

	MUST(file);
	memcpy(file, KDUMP_FLAT_SIGNATURE, KDUMP_FLAT_SIGNATURE_SIZE);
	put_be64(file + 16, KDUMP_FLAT_TYPE);
	put_be64(file + 24, KDUMP_FLAT_VERSION);
	memcpy(file + KDUMP_FLAT_HEADER_SIZE, data, size);
	*ret = KDUMP_FLAT_HEADER_SIZE + size;
	return file;
}

static void put_some(uint8_t *to, struct cursor *c)
{
	const uint8_t want = cur_u8(c);
	const size_t n = MIN(want, c->left);

	if (n)
		memcpy(to, cur_bytes(c, n), n);
}

static uint8_t *make_plain(struct cursor *c, size_t *ret)
{
	const uint8_t version = cur_u8(c), status = cur_u8(c);
	const uint32_t sub = cur_u8(c) % BLOCKS_MAX, maps = cur_u8(c) % BLOCKS_MAX;
	const uint32_t frames = cur_le32(c);
	const size_t start = (1 + sub + maps) * PAGE_SIZE;
	uint8_t *file = calloc(1, (1 + 3 * BLOCKS_MAX) * PAGE_SIZE + c->left);

	MUST(file);
	memcpy(file, KDUMP_SIGNATURE, KDUMP_SIGNATURE_SIZE);
	put_le32(file + KDUMP_SIGNATURE_SIZE, version);
	put_le32(file + KDUMP_STATUS, status);
	put_le32(file + KDUMP_BLOCK_SIZE, PAGE_SIZE);
	put_le32(file + KDUMP_SUB_HEADER_BLOCKS, sub);
	put_le32(file + KDUMP_BITMAP_BLOCKS, maps);
	put_le32(file + KDUMP_MAX_MAPNR, frames);
	put_le64(file + PAGE_SIZE + KDUMP_SUB_MAX_MAPNR, frames);
	put_le64(file + PAGE_SIZE + KDUMP_SUB_NOTES, cur_le16(c));
	put_le64(file + PAGE_SIZE + KDUMP_SUB_NOTES + 8, cur_le16(c));
	put_some(file + (1 + sub) * PAGE_SIZE, c);
	put_some(file + (1 + sub + maps / 2) * PAGE_SIZE, c);
	*ret = start + c->left;
	memcpy(file + start, c->at, c->left);
	return file;
}

/* The same page twice; one that is left out has no bit, and one that is read has one. */
static uint64_t check_page(struct kdump *k, uint64_t frame)
{
	uint8_t one[PAGE_SIZE], other[PAGE_SIZE];
	const enum kdump_page is = kdump_read(k, frame, one);

	MUST(is != KDUMP_PAGE_FAILED);
	MUST(kdump_read(k, frame, other) == is);
	MUST(is != KDUMP_PAGE_READ || !memcmp(one, other, PAGE_SIZE));
	MUST(is == KDUMP_PAGE_LEFT_OUT || range_list_find(&k->ram, frame << PAGE_SHIFT));
	return is != KDUMP_PAGE_LEFT_OUT;
}

static void check(struct kdump *k)
{
	const uint64_t frames = MIN(k->frames, FRAMES_READ);
	uint64_t found = 0;

	MUST(k->frames && k->frames <= KDUMP_FRAMES_MAX && k->dumped <= k->frames);
	MUST(range_list_bytes(&k->ram) >> PAGE_SHIFT >= k->dumped);
	for (size_t i = 0; i < k->ram.count; i++)
		MUST(k->ram.at[i].first <= k->ram.at[i].last &&
		     (!i || k->ram.at[i].first > k->ram.at[i - 1].last + 1));
	for (size_t i = 1; i < k->n_records; i++)
		MUST(k->records[i].offset - k->records[i - 1].offset >= k->records[i - 1].length);
	for (uint64_t f = 0; f < frames; f++)
		found += check_page(k, f);
	MUST(found <= k->dumped && (k->frames > FRAMES_READ || found == k->dumped));
	check_page(k, k->frames - 1);
	MUST(!check_page(k, k->frames));
	MUST(!check_page(k, UINT64_MAX >> PAGE_SHIFT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t how = cur_u8(&c);
	struct err e = ERR_INIT;
	uint8_t *made = NULL;
	struct mem_blob b;
	struct kdump k;
	size_t len;

	if (how == 0) {
		mem_blob_init(&b, c.at, c.left);
	} else {
		made = how == 1 ? make_flattened(c.at, c.left, &len) : make_plain(&c, &len);
		mem_blob_init(&b, made, len);
	}
	const enum status st = kdump_init(&k, &b.blob, &e);
	MUST(!st || st == ST_NOT_MINE || e.message[0]);
	if (!st)
		check(&k);
	kdump_deinit(&k);
	free(made);
	return 0;
}
