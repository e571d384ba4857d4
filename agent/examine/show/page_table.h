/* SPDX-License-Identifier: Apache-2.0 */
/* Where pages are and how far they can be trusted, as `vad --pages` and `heap --pages` print it. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_PAGE_TABLE_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_PAGE_TABLE_H

#include <jansson.h>

#include "agent/examine/process/states.h"

/* A text table. Only the states that `total` has get a column; the rest are named below it. */
struct page_table {
	int label;                        /* width of the first column */
	const char *tail;                 /* heading of what follows a row; NULL: nothing does */
	bool still;                       /* an image: what is safe is unknown */
	const struct pages_counts *total; /* borrowed */
};

void page_table_begin(const struct page_table *t, const char *what);
/* `tail` follows the row and begins with its own blank; may be "". */
void page_table_row(const struct page_table *t, const char *label, const struct pages_counts *c,
		    const char *tail);
/* The row of the totals, and the states that no page is in. */
void page_table_end(const struct page_table *t, const char *label);

/* As the schemas of vad and heap-pages have it; NULL if out of memory. */
json_t *page_counts_json(const struct pages_counts *c);

#endif
