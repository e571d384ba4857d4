/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/relocations.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/defs.h"

/* A block is the address of a page, its own size, and entries of 16 bits: kind and offset. */
#define BLOCK_HEADER 8
#define KIND_SHIFT   12
#define KIND_HIGHLOW 3 /* 32 bits */
#define KIND_DIR64   10

struct block {
	uint32_t rva;
	uint32_t at; /* of its first entry, in the table */
	uint32_t count;
};

struct relocations {
	uint8_t *table;
	struct block *blocks; /* by rising addresses; several may be of one page */
	size_t count, room;
	bool narrow;
};

static size_t relocation_width(const struct relocations *r)
{
	return r->narrow ? 4 : 8;
}

static uint16_t relocation_entry(const struct relocations *r, const struct block *b, uint32_t i)
{
	return get_le16(r->table + b->at + (size_t)2 * i);
}

/* The last word alone may be empty: it fills the block up to 32 bits. */
static bool is_known_block(const struct relocations *r, const struct block *b, uint32_t image_size)
{
	const uint64_t last = (uint64_t)image_size - relocation_width(r);

	for (uint32_t i = 0; i < b->count; i++) {
		const uint16_t x = relocation_entry(r, b, i);

		if (!x && i && i == b->count - 1)
			continue;
		if (x >> KIND_SHIFT != (r->narrow ? KIND_HIGHLOW : KIND_DIR64) ||
		    (uint64_t)b->rva + x % PAGE_SIZE > last)
			return false;
	}
	return true;
}

static enum status add_relocation_block(struct relocations *r, const struct block *b, struct err *e)
{
	if (!ARRAY_ROOM(r->blocks, r->count, r->room))
		return err_nomem(e);
	r->blocks[r->count++] = *b;
	return ST_OK;
}

/* *ret_good: all of the table can be followed. */
static enum status list_relocation_blocks(struct relocations *r, size_t size, uint32_t image_size,
					  bool *ret_good, struct err *e)
{
	enum status st = ST_OK;

	*ret_good = size > 0 && image_size >= relocation_width(r);
	for (size_t at = 0; at < size && *ret_good && !st;) {
		struct block b = { .at = (uint32_t)at + BLOCK_HEADER };
		uint32_t length;

		*ret_good = size - at >= BLOCK_HEADER;
		if (!*ret_good)
			break;
		b.rva = get_le32(r->table + at);
		length = get_le32(r->table + at + 4);
		b.count = length < BLOCK_HEADER ? 0 : (length - BLOCK_HEADER) / 2;
		*ret_good = length >= BLOCK_HEADER && length % 4 == 0 && length <= size - at &&
			    b.rva % PAGE_SIZE == 0 &&
			    (!r->count || b.rva >= r->blocks[r->count - 1].rva) &&
			    is_known_block(r, &b, image_size);
		if (*ret_good)
			st = add_relocation_block(r, &b, e);
		at += length;
	}
	return st;
}

enum status relocations_open(uint8_t *table, size_t size, uint32_t image_size, bool narrow,
			     struct relocations **ret, struct err *e)
{
	struct relocations *r = calloc(1, sizeof(*r));
	bool good = false;
	enum status st;

	*ret = NULL;
	if (!r) {
		free(table);
		return err_nomem(e);
	}
	r->table = table;
	r->narrow = narrow;
	st = size > RELOCATIONS_MAX ? ST_OK : list_relocation_blocks(r, size, image_size, &good, e);
	if (st || !good) {
		relocations_close(r);
		return st;
	}
	*ret = r;
	return ST_OK;
}

void relocations_close(struct relocations *r)
{
	if (!r)
		return;
	free(r->table);
	free(r->blocks);
	free(r);
}

/* The first block of the page, or of one behind it. */
static size_t first_block_of_page(const struct relocations *r, uint32_t rva)
{
	return FIRST_WHERE(i, r->count, r->blocks[i].rva >= rva);
}

bool relocations_reach_in(const struct relocations *r, uint32_t rva)
{
	const uint32_t before = rva - (uint32_t)PAGE_SIZE;

	if (rva < PAGE_SIZE)
		return false;
	for (size_t i = first_block_of_page(r, before); i < r->count && r->blocks[i].rva == before;
	     i++)
		for (uint32_t k = 0; k < r->blocks[i].count; k++) {
			const uint16_t x = relocation_entry(r, &r->blocks[i], k);

			if (x >> KIND_SHIFT && x % PAGE_SIZE + relocation_width(r) > PAGE_SIZE)
				return true;
		}
	return false;
}

static void add_delta(uint8_t *at, bool narrow, uint64_t delta)
{
	if (narrow)
		put_le32(at, (uint32_t)(get_le32(at) + delta));
	else
		put_le64(at, get_le64(at) + delta);
}

/* Those of the page at `of`, whose first byte is bytes[begin], as far as they lie in `bytes`. */
static void apply_relocations(const struct relocations *r, uint32_t of, int64_t begin,
			      uint64_t delta, uint8_t *bytes, size_t size)
{
	for (size_t i = first_block_of_page(r, of); i < r->count && r->blocks[i].rva == of; i++)
		for (uint32_t k = 0; k < r->blocks[i].count; k++) {
			const uint16_t x = relocation_entry(r, &r->blocks[i], k);
			const int64_t at = begin + x % (int64_t)PAGE_SIZE;

			if (x >> KIND_SHIFT && at >= 0 &&
			    (uint64_t)at + relocation_width(r) <= size)
				add_delta(bytes + at, r->narrow, delta);
		}
}

void relocations_apply(const struct relocations *r, uint32_t rva, uint64_t delta,
		       uint8_t bytes[static PAGE_SIZE + 2 * RELOCATIONS_REACH])
{
	const size_t size = PAGE_SIZE + 2 * (size_t)RELOCATIONS_REACH;

	if (rva >= PAGE_SIZE)
		apply_relocations(r, rva - (uint32_t)PAGE_SIZE,
				  RELOCATIONS_REACH - (int64_t)PAGE_SIZE, delta, bytes, size);
	apply_relocations(r, rva, RELOCATIONS_REACH, delta, bytes, size);
}
