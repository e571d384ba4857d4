/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/snappy.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

#define CHUNK_HEADER   4
#define CHUNK_CRC      4
#define VARINT_MAX     5 /* of 32 bits */

/* CRC-32C: RFC 3720, 12.1; the polynomial 0x1edc6f41 with its bits reversed. */
#define CRC_POLYNOMIAL 0x82f63b78u

/* Eight bytes a step: table[k] is the CRC of a byte that k zeros follow. */
static uint32_t crc_table[8][256];

__attribute__((constructor)) static void make_crc_table(void)
{
	for (uint32_t n = 0; n < 256; n++) {
		uint32_t crc = n;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
		crc_table[0][n] = crc;
	}
	for (uint32_t n = 0; n < 256; n++)
		for (int k = 1; k < 8; k++)
			crc_table[k][n] =
				crc_table[k - 1][n] >> 8 ^ crc_table[0][crc_table[k - 1][n] & 0xff];
}

static uint32_t crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (; len >= 8; p += 8, len -= 8) {
		const uint32_t low = get_le32(p) ^ crc, high = get_le32(p + 4);

		crc = 0;
		for (int k = 0; k < 4; k++) {
			crc ^= crc_table[7 - k][low >> 8 * k & 0xff];
			crc ^= crc_table[3 - k][high >> 8 * k & 0xff];
		}
	}
	while (len--)
		crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

/* framing_format.txt, 3. */
uint32_t snappy_masked_crc(const uint8_t *p, size_t len)
{
	const uint32_t crc = crc32c(p, len);

	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* format_description.txt, 1. */
static bool take_snappy_length(struct cursor *c, uint32_t *ret)
{
	uint64_t value = 0;

	for (int i = 0; i < VARINT_MAX; i++) {
		const uint8_t byte = cur_u8(c);

		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*ret = (uint32_t)value;
			return !c->bad && value <= UINT32_MAX;
		}
	}
	return false;
}

struct output {
	uint8_t *first, *at;
	size_t left;
};

/* 2.1: up to 60 bytes by the tag itself, more by 1 to 4 bytes behind it. */
static bool put_literal(struct output *o, struct cursor *c, uint8_t tag)
{
	size_t len = tag >> 2;
	const uint8_t *p;

	if (len >= 60) {
		const size_t bytes = len - 59;

		len = 0;
		for (size_t i = 0; i < bytes; i++)
			len |= (size_t)cur_u8(c) << 8 * i;
	}
	if (len >= o->left)
		return false;
	p = cur_bytes(c, ++len);
	if (!p)
		return false;
	memcpy(o->at, p, len);
	o->at += len;
	o->left -= len;
	return true;
}

/* 2.2: a copy that overlaps itself repeats what it has just written. */
static bool put_snappy_copy(struct output *o, struct cursor *c, uint8_t tag)
{
	const unsigned kind = tag & 3;
	const size_t len = kind == 1 ? 4 + (tag >> 2 & 7) : 1 + (tag >> 2);
	const size_t back = kind == 1   ? (size_t)(tag >> 5) << 8 | cur_u8(c)
			    : kind == 2 ? cur_le16(c)
					: cur_le32(c);
	const uint8_t *from;

	if (c->bad || !back || back > (size_t)(o->at - o->first) || len > o->left)
		return false;
	from = o->at - back;
	if (back >= len)
		memcpy(o->at, from, len);
	else
		for (size_t i = 0; i < len; i++)
			o->at[i] = from[i];
	o->at += len;
	o->left -= len;
	return true;
}

bool snappy_decode(const uint8_t *packed, size_t len, uint8_t *plain, size_t plain_len)
{
	struct cursor c = cursor_over(packed, len);
	struct output o = { plain, plain, plain_len };
	uint32_t told;

	if (!take_snappy_length(&c, &told) || told != plain_len)
		return false;
	while (c.left) {
		const uint8_t tag = cur_u8(&c);

		if (!(tag & 3 ? put_snappy_copy(&o, &c, tag) : put_literal(&o, &c, tag)))
			return false;
	}
	return !o.left;
}

/* Of a chunk with data: its CRC, and how many bytes it becomes. False if that cannot be. */
static bool take_snappy_data(struct snappy_chunk *chunk, struct cursor *c, uint32_t length)
{
	if (length < CHUNK_CRC)
		return false;
	chunk->crc = cur_le32(c);
	chunk->size = length - CHUNK_CRC;
	if (chunk->size > (chunk->stored ? SNAPPY_PLAIN_MAX : SNAPPY_PACKED_MAX))
		return false;
	c->left = MIN(c->left, chunk->size);
	if (chunk->stored)
		chunk->plain = chunk->size;
	else if (!take_snappy_length(c, &chunk->plain))
		return false;
	return chunk->plain <= SNAPPY_PLAIN_MAX &&
	       chunk->plain <= (uint64_t)SNAPPY_RATIO_MAX * chunk->size;
}

enum status snappy_chunk_at(struct blob *b, uint64_t off, struct snappy_chunk *ret, struct err *e)
{
	uint8_t h[CHUNK_HEADER + CHUNK_CRC + VARINT_MAX] = { 0 };
	size_t got = 0;
	const enum status st = b->read_at(b, off, h, sizeof(h), &got, e);
	struct cursor c = cursor_over(h, sizeof(h));
	const uint8_t type = cur_u8(&c);
	const uint32_t length = cur_le16(&c) | (uint32_t)cur_u8(&c) << 16;

	*ret = (struct snappy_chunk){ .kind = SNAPPY_CUT, .stored = type == 1 };
	if (st || got < CHUNK_HEADER)
		return st;
	ret->kind = SNAPPY_BAD;
	if (type <= 1) {
		if (!range_fits(off + CHUNK_HEADER, length, b->size) && got < sizeof(h))
			ret->kind = SNAPPY_CUT; /* perhaps inside the length */
		else if (take_snappy_data(ret, &c, length))
			ret->kind = SNAPPY_DATA;
	} else if (type >= 0x80) {
		ret->kind = SNAPPY_SKIP;
	}
	/* The identifier has no other bytes, wherever it stands. */
	if (type == 0xff && (length != 6 || memcmp(h, SNAPPY_IDENTIFIER, SNAPPY_IDENTIFIER_SIZE)))
		ret->kind = got < SNAPPY_IDENTIFIER_SIZE ? SNAPPY_CUT : SNAPPY_BAD;
	if (ret->kind == SNAPPY_BAD || ret->kind == SNAPPY_CUT)
		return ST_OK;
	if (!range_fits(off + CHUNK_HEADER, length, b->size))
		ret->kind = SNAPPY_CUT;
	ret->offset = off + CHUNK_HEADER + CHUNK_CRC;
	ret->next = off + CHUNK_HEADER + length;
	return ST_OK;
}

enum status snappy_unpack(struct blob *b, const struct snappy_chunk *c, uint8_t *packed,
			  uint8_t *plain, struct err *e)
{
	const enum status st = blob_read(b, c->offset, c->stored ? plain : packed, c->size, e);

	if (st)
		return st;
	if (!c->stored && !snappy_decode(packed, c->size, plain, c->plain))
		return err_set(e, ST_CORRUPT, "is not valid snappy data");
	if (CHECKS_SUMS && snappy_masked_crc(plain, c->plain) != c->crc)
		return err_set(e, ST_CORRUPT, "has another CRC-32C");
	return ST_OK;
}
