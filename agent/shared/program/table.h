/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for people, on stdout or elsewhere. On a terminal that is too narrow, columns are left
 * out, which a line behind the table says. Elsewhere all of them are there.
 *
 *	table_begin(&t, stdout, columns, ARRAY_SIZE(columns));
 *	for (…) {
 *		table_cell(&t, "%" PRIu64, pages);
 *		table_cell(&t, "%s", path);
 *	}
 *	table_end(&t);
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_TABLE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/defs.h"

#define TABLE_COLUMNS 16

struct table_column {
	const char *head;
	int width;     /* as printf() has it: negative is left-aligned; 0: the rest of the line */
	unsigned drop; /* the column with the highest number goes first; 0: it stays */
};

struct table {
	FILE *out;
	const struct table_column *at; /* the caller's */
	size_t n;
	size_t width; /* of a line */
	size_t next;  /* the cell that comes next */
	size_t used;  /* columns of the row so far */
	bool dropped[TABLE_COLUMNS];
};

/* Chooses the columns and prints their heads. */
void table_begin(struct table *t, FILE *out, const struct table_column *at, size_t n);
void table_begin_in(struct table *t, FILE *out, size_t width, const struct table_column *at,
		    size_t n);

/*
 * The next cell of the row; the last one ends the line. What does not fit into the rest of a line
 * gets a line of its own. The text must be harmless: see text_printable().
 */
void table_cell(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Says which columns are not there. */
void table_end(const struct table *t);

#endif
