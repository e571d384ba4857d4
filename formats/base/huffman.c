/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/huffman.h"

#include <string.h>

#include "formats/base/bytes.h"

#define WORD_BITS 16

struct word_bits word_bits_over(const uint8_t *in, size_t size)
{
	return (struct word_bits){ .at = in, .left = size };
}

uint16_t word_bits_word(struct word_bits *b)
{
	uint16_t ret;

	if (b->left < 2) {
		b->bad = true;
		return 0;
	}
	ret = get_le16(b->at);
	b->at += 2;
	b->left -= 2;
	return ret;
}

uint8_t word_bits_byte(struct word_bits *b)
{
	if (!b->left) {
		b->bad = true;
		return 0;
	}
	b->left--;
	return *b->at++;
}

void word_bits_load(struct word_bits *b)
{
	if (b->count >= WORD_BITS)
		return;
	if (b->left < 2)
		b->missing += WORD_BITS;
	else
		b->loaded |= (uint32_t)word_bits_word(b) << (WORD_BITS - b->count);
	b->count += WORD_BITS;
}

static void drop_code_bits(struct word_bits *b, unsigned count)
{
	b->loaded = (uint32_t)((uint64_t)b->loaded << count);
	b->count -= count;
	if (b->missing > b->count) {
		b->bad = true;
		b->missing = b->count;
	}
}

unsigned word_bits_take(struct word_bits *b, unsigned count)
{
	unsigned ret;

	word_bits_load(b);
	ret = (unsigned)((uint64_t)b->loaded >> (32 - count));
	drop_code_bits(b, count);
	return ret;
}

void word_bits_align(struct word_bits *b)
{
	word_bits_load(b);
	drop_code_bits(b, b->count % WORD_BITS ? b->count % WORD_BITS : WORD_BITS);
	if (b->count && !b->missing) {
		b->at -= 2;
		b->left += 2;
	}
	b->bad = b->bad || b->missing;
	b->loaded = 0;
	b->count = 0;
	b->missing = 0;
}

bool word_bits_bad(const struct word_bits *b)
{
	return b->bad;
}

/* Where each length begins, and the symbols in the order of their codes. */
static void sort_symbols(struct huffman *h, const uint8_t *lengths, size_t symbols)
{
	uint16_t next[HUFFMAN_LENGTH_MAX + 1];

	for (size_t i = 0; i < symbols; i++)
		h->count[lengths[i]]++;
	h->count[0] = 0;
	for (unsigned n = 1; n <= HUFFMAN_LENGTH_MAX; n++)
		h->first[n] = (uint16_t)(h->first[n - 1] + h->count[n - 1]);
	memcpy(next, h->first, sizeof(next));
	for (size_t i = 0; i < symbols; i++)
		if (lengths[i])
			h->symbols[next[lengths[i]]++] = (uint16_t)i;
}

static void fill_fast(struct huffman *h)
{
	uint32_t at = 0;

	for (unsigned n = 1; n <= HUFFMAN_FAST_BITS; n++)
		for (unsigned i = 0; i < h->count[n]; i++)
			for (unsigned k = 0; k < 1u << (HUFFMAN_FAST_BITS - n); k++, at++) {
				h->fast[at] = (uint16_t)(h->first[n] + i);
				h->fast_length[at] = (uint8_t)n;
			}
}

bool huffman_init(struct huffman *h, const uint8_t *lengths, size_t symbols)
{
	uint32_t left = 1;

	memset(h, 0, sizeof(*h));
	sort_symbols(h, lengths, symbols);
	for (unsigned n = 1; n <= HUFFMAN_LENGTH_MAX; n++) {
		left <<= 1;
		if (h->count[n] > left)
			return false;
		left -= h->count[n];
	}
	fill_fast(h);
	return true;
}

unsigned huffman_next(const struct huffman *h, struct word_bits *b)
{
	uint32_t code = 0, first = 0;
	unsigned at;

	word_bits_load(b);
	at = b->loaded >> (32 - HUFFMAN_FAST_BITS);
	if (h->fast_length[at]) {
		drop_code_bits(b, h->fast_length[at]);
		return h->symbols[h->fast[at]];
	}
	/* Codes of one length are neighbours, and come behind all shorter ones. */
	for (unsigned n = 1; n <= HUFFMAN_LENGTH_MAX; n++) {
		first <<= 1;
		code = b->loaded >> (32 - n);
		if (code - first < h->count[n]) {
			drop_code_bits(b, n);
			return h->symbols[h->first[n] + (code - first)];
		}
		first += h->count[n];
	}
	b->bad = true;
	return 0;
}

bool match_copy(uint8_t *out, size_t at, size_t size, size_t distance, size_t length)
{
	if (!distance || distance > at || length > size - at)
		return false;
	/* Byte by byte: a match may reach into what it writes. */
	for (size_t i = at; i < at + length; i++)
		out[i] = out[i - distance];
	return true;
}
