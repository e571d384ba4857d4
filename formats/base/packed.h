/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of unsigned integers, for millions of rows that differ little from their neighbours. Rows
 * are added at its end. Every PACKED_ROWS of them become a block, where a column takes as many bits
 * as its values need above their least one, zeros that all of them end in left out ("frame of
 * reference" coding). Any 64-bit values are fine: the worst take what they would in an array.
 */
#ifndef RAMSEAL_BASE_PACKED_H
#define RAMSEAL_BASE_PACKED_H

#include "formats/base/bytes.h"
#include "formats/base/err.h"

#define PACKED_COLUMNS_MAX 4
#define PACKED_ROWS        256 /* a power of two */

struct packed_column {
	uint64_t least;
	uint64_t mask;
	uint32_t at; /* its first byte */
	uint8_t bits;
	uint8_t shift;
};

/* The bytes end in eight that are there to be read with the last value. */
struct packed_block {
	struct packed_column columns[PACKED_COLUMNS_MAX];
	uint8_t bytes[];
};

/* All zero but for `columns` is an empty table. */
struct packed {
	unsigned columns; /* PACKED_COLUMNS_MAX at most */
	struct packed_block **blocks;
	size_t n_blocks;
	size_t room;
	size_t rows;
	uint64_t (*open)[PACKED_ROWS]; /* the columns of what is no block yet */
};

/* Empty again; `columns` stays. */
void packed_deinit(struct packed *p);

/* Appends a row of p->columns values. ST_NOMEM: the table is as it was. */
enum status packed_add(struct packed *p, const uint64_t *row, struct err *e);

/* Behind the last row: before this none can be read, and after it none can be added. */
enum status packed_finish(struct packed *p, struct err *e);

/* `row` below p->rows, `column` below p->columns. */
static inline uint64_t packed_get(const struct packed *p, size_t row, unsigned column)
{
	const struct packed_block *b = p->blocks[row / PACKED_ROWS];
	const struct packed_column *c = &b->columns[column];
	const size_t bit = row % PACKED_ROWS * c->bits;

	/* Of 57 bits and more there are 64, which begin with a byte: eight bytes hold any value. */
	return c->least +
	       (((get_le64(b->bytes + c->at + bit / 8) >> (bit % 8)) & c->mask) << c->shift);
}

#endif
