/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of unsigned integers, for millions of rows that differ little from their neighbours. Rows
 * are appended. Each PACKED_ROWS rows become a block in which a column takes only the bits that its
 * values need above the smallest one, without trailing zeros that they all share ("frame of
 * reference" coding). Any 64-bit values work: at worst they take as much as in an array.
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

/* Eight spare bytes at the end can be read together with the last value. */
struct packed_block {
	struct packed_column columns[PACKED_COLUMNS_MAX];
	uint8_t bytes[];
};

/* An empty table is all zero except `columns`. */
struct packed {
	unsigned columns; /* PACKED_COLUMNS_MAX at most */
	struct packed_block **blocks;
	size_t n_blocks;
	size_t room;
	size_t rows;
	uint64_t (*open)[PACKED_ROWS]; /* the columns of the rows after the last block */
};

/* Empty again; `columns` stays. */
void packed_deinit(struct packed *p);

/* Appends a row of p->columns values. ST_NOMEM: the table is as it was. */
enum status packed_add(struct packed *p, const uint64_t *row, struct err *e);

/* Call after the last row: no row can be read before this, and none added after it. */
enum status packed_finish(struct packed *p, struct err *e);

/* `row` below p->rows, `column` below p->columns. */
static inline uint64_t packed_get(const struct packed *p, size_t row, unsigned column)
{
	const struct packed_block *b = p->blocks[row / PACKED_ROWS];
	const struct packed_column *c = &b->columns[column];
	const size_t bit = row % PACKED_ROWS * c->bits;

	/* Columns of 57 bits or more take 64, aligned to a byte, so eight bytes hold any value. */
	return c->least +
	       (((get_le64(b->bytes + c->at + bit / 8) >> (bit % 8)) & c->mask) << c->shift);
}

#endif
