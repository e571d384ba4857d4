/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical prefix codes, and bits from the top of little-endian 16-bit words, shared by Windows'
 * XPRESS Huffman ([MS-XCA] 2.2) and LZX.
 */
#ifndef RAMSEAL_BASE_HUFFMAN_H
#define RAMSEAL_BASE_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUFFMAN_LENGTH_MAX  16
#define HUFFMAN_SYMBOLS_MAX 512
#define HUFFMAN_FAST_BITS   9

/*
 * Bits after the end are zeros. They may be loaded, because words are loaded before they are
 * needed; word_bits_bad() says whether one was used.
 */
struct word_bits {
	const uint8_t *at;
	size_t left;      /* bytes that are not loaded */
	uint32_t loaded;  /* bits, from the top */
	unsigned count;   /* of them */
	unsigned missing; /* of them, from after the end */
	bool bad;
};

struct word_bits word_bits_over(const uint8_t *in, size_t size);

/* Afterwards at least 16 bits are loaded. */
void word_bits_load(struct word_bits *b);

/* `count`: 0 to 16. */
unsigned word_bits_take(struct word_bits *b, unsigned count);

/* A byte between the words, where the next word would be loaded. */
uint8_t word_bits_byte(struct word_bits *b);
uint16_t word_bits_word(struct word_bits *b);

/*
 * Moves to the next word, even from the start of a word. Afterwards `at` and `left` are what
 * follows, and no bits are loaded.
 */
void word_bits_align(struct word_bits *b);

/* More bits were taken than there are. */
bool word_bits_bad(const struct word_bits *b);

struct huffman {
	uint16_t first[HUFFMAN_LENGTH_MAX + 1]; /* place in symbols[] of each length's first */
	uint16_t count[HUFFMAN_LENGTH_MAX + 1];
	uint16_t symbols[HUFFMAN_SYMBOLS_MAX];       /* by code */
	uint16_t fast[1 << HUFFMAN_FAST_BITS];       /* by the next bits: a place in symbols[] */
	uint8_t fast_length[1 << HUFFMAN_FAST_BITS]; /* 0: the code is longer, or is none */
};

/*
 * `lengths`: bits of each symbol's code, 0 for none; HUFFMAN_LENGTH_MAX and HUFFMAN_SYMBOLS_MAX at
 * most. False if the codes do not fit. They may be incomplete: bits that are not a code are bad.
 */
bool huffman_init(struct huffman *h, const uint8_t *lengths, size_t symbols);

/*
 * The next symbol; bits are loaded again for those it used. 0, and b->bad, if the bits are not a
 * code.
 */
unsigned huffman_next(const struct huffman *h, struct word_bits *b);

/*
 * Copies a match of `length` bytes within `out`, which has `at` of `size` bytes so far. False if it
 * begins before `out` or ends after its end.
 */
bool match_copy(uint8_t *out, size_t at, size_t size, size_t distance, size_t length);

#endif
