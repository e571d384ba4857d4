/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/packed.h"

#include <stdlib.h>

#include "formats/base/array.h"

void packed_deinit(struct packed *p)
{
	for (size_t i = 0; i < p->n_blocks; i++)
		free(p->blocks[i]);
	free(p->blocks);
	free(p->open);
	*p = (struct packed){ .columns = p->columns };
}

/* Bits that a column takes; its values are at most `span` above the least one. */
static uint8_t column_bits_of(uint64_t span)
{
	const unsigned bits = span ? 64 - (unsigned)__builtin_clzll(span) : 0;

	return (uint8_t)(bits > 56 ? 64 : bits);
}

static struct packed_column measure_column(const uint64_t *values, size_t rows, uint32_t at)
{
	struct packed_column c = { .least = values[0], .at = at };
	uint64_t most = values[0], differs = 0;

	for (size_t i = 1; i < rows; i++) {
		c.least = MIN(c.least, values[i]);
		most = MAX(most, values[i]);
		differs |= values[i] ^ values[0];
	}
	/* Values that end in the same bits are multiples of that apart. */
	c.shift = differs ? (uint8_t)__builtin_ctzll(differs) : 0;
	c.bits = column_bits_of((most - c.least) >> c.shift);
	c.mask = c.bits ? UINT64_MAX >> (64 - c.bits) : 0;
	return c;
}

/*
 * Words are put whole: what the last one has beyond its column is zeros, and behind it comes the
 * next column, or the eight bytes that a block ends in.
 */
static void put_column(struct packed_block *b, const struct packed_column *c,
		       const uint64_t *values, size_t rows)
{
	uint8_t *to = b->bytes + c->at;
	uint64_t word = 0;
	unsigned filled = 0; /* bits of it */

	for (size_t i = 0; i < rows && c->bits; i++) {
		const uint64_t v = (values[i] - c->least) >> c->shift;

		word |= v << filled;
		filled += c->bits;
		if (filled < 64)
			continue;
		put_le64(to, word);
		to += sizeof(word);
		filled -= 64;
		word = filled ? v >> (c->bits - filled) : 0;
	}
	if (filled)
		put_le64(to, word);
}

/* Makes a block of the last `rows` rows. */
static enum status pack_block(struct packed *p, size_t rows, struct err *e)
{
	struct packed_column columns[PACKED_COLUMNS_MAX] = { 0 };
	struct packed_block *b;
	uint32_t size = 0;

	for (unsigned i = 0; i < p->columns; i++) {
		columns[i] = measure_column(p->open[i], rows, size);
		size += (uint32_t)((rows * columns[i].bits + 7) / 8);
	}
	if (!ARRAY_ROOM(p->blocks, p->n_blocks, p->room))
		return err_nomem(e);
	b = calloc(1, sizeof(*b) + size + sizeof(uint64_t));
	if (!b)
		return err_nomem(e);
	memcpy(b->columns, columns, sizeof(columns));
	for (unsigned i = 0; i < p->columns; i++)
		put_column(b, &columns[i], p->open[i], rows);
	p->blocks[p->n_blocks++] = b;
	return ST_OK;
}

enum status packed_add(struct packed *p, const uint64_t *row, struct err *e)
{
	const size_t at = p->rows % PACKED_ROWS;
	enum status st;

	if (!p->open) {
		p->open = malloc(p->columns * sizeof(*p->open));
		if (!p->open)
			return err_nomem(e);
	}
	for (unsigned i = 0; i < p->columns; i++)
		p->open[i][at] = row[i];
	st = at + 1 == PACKED_ROWS ? pack_block(p, PACKED_ROWS, e) : ST_OK;
	p->rows += !st;
	return st;
}

enum status packed_finish(struct packed *p, struct err *e)
{
	const size_t left = p->rows % PACKED_ROWS;
	const enum status st = left ? pack_block(p, left, e) : ST_OK;

	free(p->open);
	p->open = NULL;
	return st;
}
