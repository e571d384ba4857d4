/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/xpress_huffman.h"

#include "formats/base/bytes.h"
#include "formats/base/huffman.h"

/* [MS-XCA] 2.2.4: 256 literals, then matches by 16 kinds of distance and 16 lengths. */
#define SYMBOLS     512
#define LITERALS    256
#define TABLE_SIZE  (SYMBOLS / 2) /* half a byte for each length */
#define MATCH_MIN   3
#define LENGTH_MORE 15
#define BYTE_MORE   255

static bool read_xpress_codes(const uint8_t *in, struct huffman *h)
{
	uint8_t lengths[SYMBOLS];

	for (size_t i = 0; i < TABLE_SIZE; i++) {
		lengths[2 * i] = in[i] & 15;
		lengths[2 * i + 1] = in[i] >> 4;
	}
	return huffman_init(h, lengths, SYMBOLS);
}

/*
 * Without MATCH_MIN. The bytes stand behind the words that are loaded by then: 16 bits at least
 * when a symbol has been taken.
 */
static size_t match_length(struct word_bits *b, unsigned symbol)
{
	unsigned length = symbol & LENGTH_MORE;

	if (length < LENGTH_MORE)
		return length;
	word_bits_load(b);
	length = word_bits_byte(b);
	if (length < BYTE_MORE)
		return LENGTH_MORE + length;
	/*
	 * A word holds the whole length; one that the byte could have said is refused. 0 would say
	 * that 32 bits follow, for matches longer than what we decode.
	 */
	length = word_bits_word(b);
	if (length < LENGTH_MORE)
		b->bad = true;
	return length;
}

bool xpress_huffman_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t size)
{
	struct huffman codes;
	struct word_bits b;
	size_t at = 0;

	if (size > XPRESS_HUFFMAN_MAX || in_size < TABLE_SIZE || !read_xpress_codes(in, &codes))
		return false;
	b = word_bits_over(in + TABLE_SIZE, in_size - TABLE_SIZE);
	while (at < size && !word_bits_bad(&b)) {
		const unsigned symbol = huffman_next(&codes, &b);
		size_t length, distance;

		if (symbol < LITERALS) {
			out[at++] = (uint8_t)symbol;
			continue;
		}
		length = match_length(&b, symbol - LITERALS) + MATCH_MIN;
		distance = (symbol - LITERALS) >> 4;
		distance = ((size_t)1 << distance) + word_bits_take(&b, (unsigned)distance);
		if (word_bits_bad(&b) || !match_copy(out, at, size, distance, length))
			return false;
		at += length;
	}
	return !word_bits_bad(&b);
}
