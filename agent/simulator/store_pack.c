/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/store_pack.h"

#include <string.h>

#include "formats/base/bytes.h"

/* Where what began with the same bytes was last: one more than the place. */
struct seen {
	uint16_t at[4096];
};

/* The match at `i`: its length, of `bytes` at least; 0: none. It ends before `end`. */
static size_t find_match(struct seen *s, const uint8_t *page, size_t i, size_t end, unsigned bytes,
			 size_t *ret_from)
{
	uint32_t begin = 0;
	uint16_t *seen;
	size_t n = 0;

	if (i + bytes > end)
		return 0;
	for (unsigned k = 0; k < bytes; k++)
		begin = begin << 8 | page[i + k];
	seen = &s->at[begin * UINT32_C(2654435761) >> 20];
	*ret_from = *seen ? *seen - 1U : i;
	*seen = (uint16_t)(i + 1);
	while (*ret_from < i && i + n < end && page[*ret_from + n] == page[i + n])
		n++;
	return n >= bytes ? n : 0;
}

/*
 * XPRESS
 */

struct xpress {
	uint8_t *out;
	size_t at, word, half;
	uint32_t bits;
	unsigned n_bits;
};

static void put_xpress_bit(struct xpress *p, bool match)
{
	p->bits = p->bits << 1 | match;
	if (++p->n_bits == 32) {
		put_le32(p->out + p->word, p->bits);
		p->word = p->at;
		p->at += 4;
		p->n_bits = 0;
	}
}

/* The length without the three that every match has, and the seven that did not fit. */
static void put_long(struct xpress *p, size_t length)
{
	const uint8_t nibble = (uint8_t)MIN(length, 15);

	if (p->half) {
		p->out[p->half] |= (uint8_t)(nibble << 4);
		p->half = 0;
	} else {
		p->half = p->at;
		p->out[p->at++] = nibble;
	}
	if (length < 15)
		return;
	p->out[p->at++] = (uint8_t)MIN(length - 15, 255);
	if (length - 15 >= 255) {
		put_le16(p->out + p->at, (uint16_t)(length + 7));
		p->at += 2;
	}
}

static void put_match(struct xpress *p, size_t distance, size_t length)
{
	uint8_t *word = p->out + p->at;

	p->at += 2;
	put_le16(word, (uint16_t)((distance - 1) << 3 | MIN(length - 3, 7)));
	if (length - 3 >= 7)
		put_long(p, length - 10);
	put_xpress_bit(p, true);
}

size_t sim__pack_xpress(const uint8_t page[static PAGE_SIZE], uint8_t to[static 2 * PAGE_SIZE])
{
	struct xpress p = { .out = to, .at = 4 };
	struct seen seen = { 0 };
	size_t i = 0, from;

	while (i < PAGE_SIZE && p.at < PAGE_SIZE) {
		const size_t n = find_match(&seen, page, i, PAGE_SIZE, 3, &from);

		if (n) {
			put_match(&p, i - from, n);
			i += n;
		} else {
			to[p.at++] = page[i++];
			put_xpress_bit(&p, false);
		}
	}
	if (p.n_bits)
		put_le32(to + p.word, p.bits << (32 - p.n_bits) | (UINT32_MAX >> p.n_bits));
	return i == PAGE_SIZE && p.at < PAGE_SIZE ? p.at : 0;
}

/*
 * LZ4
 */

/* The last five bytes are literals, and no match begins in the last twelve. */
#define LITERAL_END (PAGE_SIZE - 5)
#define MATCH_END   (PAGE_SIZE - 12)

static size_t put_length(uint8_t *to, size_t length)
{
	size_t n = 0;

	if (length < 15)
		return 0;
	for (length -= 15; length >= 255; length -= 255)
		to[n++] = 255;
	to[n++] = (uint8_t)length;
	return n;
}

/* Literals, and a match of `length` behind them; 0: there is none. */
static size_t put_sequence(uint8_t *to, const uint8_t *literals, size_t n, size_t distance,
			   size_t length)
{
	size_t at = 1;

	to[0] = (uint8_t)(MIN(n, 15) << 4 | (length ? MIN(length - 4, 15) : 0));
	at += put_length(to + at, n);
	memcpy(to + at, literals, n);
	at += n;
	if (!length)
		return at;
	put_le16(to + at, (uint16_t)distance);
	return at + 2 + put_length(to + at + 2, length - 4);
}

size_t sim__pack_lz4(const uint8_t page[static PAGE_SIZE], uint8_t to[static 2 * PAGE_SIZE])
{
	struct seen seen = { 0 };
	size_t at = 0, done = 0, i = 0, from;

	while (i <= MATCH_END) {
		const size_t n = find_match(&seen, page, i, LITERAL_END, 4, &from);

		if (!n) {
			i++;
			continue;
		}
		at += put_sequence(to + at, page + done, i - done, i - from, n);
		i += n;
		done = i;
	}
	at += put_sequence(to + at, page + done, PAGE_SIZE - done, 0, 0);
	return at < PAGE_SIZE ? at : 0;
}
