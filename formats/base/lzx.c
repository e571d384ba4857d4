/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/lzx.h"

#include "formats/base/bytes.h"
#include "formats/base/huffman.h"

#define LITERALS       256
#define DISTANCE_SLOTS 30 /* for a window of 32 KiB */
#define MAIN_SYMBOLS   (LITERALS + 8 * DISTANCE_SLOTS)
#define LENGTH_SYMBOLS 249
#define PRE_SYMBOLS    20
#define ALIGNED        8 /* symbols of the code for the lowest 3 bits of a distance */
#define RECENT         3 /* distances that have slots of their own */
#define MATCH_MIN      2
#define LENGTH_MORE    7
#define SIZE_BITS      16

enum block { BLOCK_VERBATIM = 1, BLOCK_ALIGNED = 2, BLOCK_PLAIN = 3 };

struct lzx {
	struct word_bits b;
	uint8_t main_lengths[MAIN_SYMBOLS]; /* a block's are told as differences from the last */
	uint8_t length_lengths[LENGTH_SYMBOLS];
	struct huffman main, length, aligned;
	uint32_t recent[RECENT];
	uint8_t *out;
	size_t size;
	size_t at;
};

/* Codes of the lengths of codes: what each means for those from `i` on. Returns how many. */
static size_t read_lzx_run(struct lzx *z, const struct huffman *pre, uint8_t *lengths, size_t i,
			   size_t end)
{
	unsigned symbol = huffman_next(pre, &z->b);
	size_t run = 1;
	uint8_t length = 0;

	if (symbol == 17) {
		run = 4 + word_bits_take(&z->b, 4);
	} else if (symbol == 18) {
		run = 20 + word_bits_take(&z->b, 5);
	} else {
		if (symbol == 19) {
			run = 4 + word_bits_take(&z->b, 1);
			symbol = huffman_next(pre, &z->b);
		}
		if (symbol > 16)
			z->b.bad = true;
		else
			length = (uint8_t)((lengths[i] + 17u - symbol) % 17);
	}
	/* As wimlib reads it: what a run has behind the end counts for nothing. */
	run = MIN(run, end - i);
	memset(lengths + i, length, run);
	return run;
}

static bool read_lengths(struct lzx *z, uint8_t *lengths, size_t count)
{
	uint8_t pre_lengths[PRE_SYMBOLS];
	struct huffman pre;

	for (size_t i = 0; i < PRE_SYMBOLS; i++)
		pre_lengths[i] = (uint8_t)word_bits_take(&z->b, 4);
	if (!huffman_init(&pre, pre_lengths, PRE_SYMBOLS))
		return false;
	for (size_t i = 0; i < count && !z->b.bad;)
		i += read_lzx_run(z, &pre, lengths, i, count);
	return !z->b.bad;
}

static bool read_lzx_codes(struct lzx *z, enum block kind)
{
	uint8_t aligned[ALIGNED];

	for (size_t i = 0; i < ALIGNED && kind == BLOCK_ALIGNED; i++)
		aligned[i] = (uint8_t)word_bits_take(&z->b, 3);
	return (kind != BLOCK_ALIGNED || huffman_init(&z->aligned, aligned, ALIGNED)) &&
	       read_lengths(z, z->main_lengths, LITERALS) &&
	       read_lengths(z, z->main_lengths + LITERALS, MAIN_SYMBOLS - LITERALS) &&
	       huffman_init(&z->main, z->main_lengths, MAIN_SYMBOLS) &&
	       read_lengths(z, z->length_lengths, LENGTH_SYMBOLS) &&
	       huffman_init(&z->length, z->length_lengths, LENGTH_SYMBOLS);
}

/* Slots 0 to 3 are one distance each, then two of them have each number of further bits. */
static uint32_t read_distance(struct lzx *z, unsigned slot, enum block kind)
{
	const unsigned bits = slot < 4 ? 0 : slot / 2 - 1;
	uint32_t ret = slot < 4 ? slot : (2 + slot % 2) << bits;

	if (kind == BLOCK_ALIGNED && bits >= 3) {
		ret += word_bits_take(&z->b, bits - 3) << 3;
		return ret + huffman_next(&z->aligned, &z->b);
	}
	return ret + word_bits_take(&z->b, bits);
}

static uint32_t match_distance(struct lzx *z, unsigned slot, enum block kind)
{
	uint32_t ret;

	if (slot < RECENT) {
		ret = z->recent[slot];
		z->recent[slot] = z->recent[0];
	} else {
		ret = read_distance(z, slot, kind) - (RECENT - 1);
		z->recent[2] = z->recent[1];
		z->recent[1] = z->recent[0];
	}
	z->recent[0] = ret;
	return ret;
}

static bool decode_coded(struct lzx *z, enum block kind, size_t end)
{
	while (z->at < end) {
		const unsigned symbol = huffman_next(&z->main, &z->b);
		size_t length = symbol & LENGTH_MORE;
		uint32_t distance;

		if (z->b.bad)
			return false;
		if (symbol < LITERALS) {
			z->out[z->at++] = (uint8_t)symbol;
			continue;
		}
		if (length == LENGTH_MORE)
			length += huffman_next(&z->length, &z->b);
		distance = match_distance(z, (symbol - LITERALS) >> 3, kind);
		if (z->b.bad || !match_copy(z->out, z->at, end, distance, length + MATCH_MIN))
			return false;
		z->at += length + MATCH_MIN;
	}
	return true;
}

/* Bytes as they are, from the next word on; an odd number of them is followed by one of no use. */
static bool decode_plain(struct lzx *z, size_t count)
{
	struct cursor c;
	const uint8_t *from;

	word_bits_align(&z->b);
	if (z->b.bad)
		return false;
	c = cursor_over(z->b.at, z->b.left);
	for (size_t i = 0; i < RECENT; i++)
		z->recent[i] = cur_le32(&c);
	from = cur_bytes(&c, count);
	if (!from)
		return false;
	memcpy(z->out + z->at, from, count);
	z->at += count;
	if (count % 2 && c.left)
		cur_bytes(&c, 1);
	z->b = word_bits_over(c.at, c.left);
	return true;
}

static bool decode_lzx_block(struct lzx *z)
{
	const enum block kind = (enum block)word_bits_take(&z->b, 3);
	const size_t count =
		word_bits_take(&z->b, 1) ? LZX_CHUNK : word_bits_take(&z->b, SIZE_BITS);

	if (z->b.bad || !count || count > z->size - z->at)
		return false;
	switch (kind) {
	case BLOCK_VERBATIM:
	case BLOCK_ALIGNED:
		return read_lzx_codes(z, kind) && decode_coded(z, kind, z->at + count);
	case BLOCK_PLAIN:
		return decode_plain(z, count);
	}
	return false;
}

#define JUMP      0xe8
#define JUMP_TAIL 10 /* bytes at the end in which no jump begins */
#define JUMP_FILE 12000000

/* Targets of jumps were made absolute before they were compressed. */
static void untranslate(uint8_t *out, size_t size)
{
	for (size_t i = 0; size > JUMP_TAIL && i < size - JUMP_TAIL; i++) {
		int32_t target;

		if (out[i] != JUMP)
			continue;
		target = (int32_t)get_le32(out + i + 1);
		if (target >= 0 && target < JUMP_FILE)
			put_le32(out + i + 1, (uint32_t)target - (uint32_t)i);
		else if (target < 0 && target >= -(int32_t)i)
			put_le32(out + i + 1, (uint32_t)target + JUMP_FILE);
		i += 4;
	}
}

bool lzx_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t size)
{
	struct lzx z = {
		.b = word_bits_over(in, in_size), .recent = { 1, 1, 1 }, .out = out, .size = size
	};

	if (size > LZX_CHUNK)
		return false;
	while (z.at < size)
		if (!decode_lzx_block(&z))
			return false;
	untranslate(out, size);
	return true;
}
