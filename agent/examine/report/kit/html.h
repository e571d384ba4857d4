/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small pieces of HTML that the sections of a report share.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_HTML_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_HTML_H

#include "agent/examine/report/kit/glossary.h"

/*
 * A table. On a small screen each row becomes a block: the first cell is its heading, and each
 * other cell names its column.
 *
 *	html_table(&t, d, caption);
 *	html_column(&t, TERMS, "stream");
 *	html_column_of_numbers(&t, TERM_READ, "read");
 *	html_table_body(&t);
 *		html_row(&t);
 *		html_cell(&t, "");	what is in it	html_cell_end(&t);
 *		html_number(&t, n);
 *		html_row_end(&t);
 *	html_table_end(&t);
 */
#define HTML_COLUMNS_MAX 20

struct html_table {
	struct doc *d;
	const char *labels[HTML_COLUMNS_MAX]; /* of the columns; borrowed until the end */
	size_t columns;
	size_t next; /* the column of the next cell */
};

/* `caption`: markup, or NULL. */
void html_table(struct html_table *t, struct doc *d, const char *caption);
/* `text` need not be trusted. It is linked to the term; TERMS: no link. */
void html_column(struct html_table *t, enum term term, const char *text);
void html_column_of_numbers(struct html_table *t, enum term term, const char *text);
void html_table_body(struct html_table *t);
void html_table_end(struct html_table *t);

void html_row(struct html_table *t);
/* A row that sums everything that has no row of its own. */
void html_row_of_rest(struct html_table *t);
void html_row_end(struct html_table *t);

/* Cells, in the order of the columns. `style`: of the page, or "". */
void html_cell(struct html_table *t, const char *style);
void html_cell_end(struct html_table *t);
void html_cells_empty(struct html_table *t, size_t n);
void html_text(struct html_table *t, const char *text);
void html_number(struct html_table *t, uint64_t n);
/* A number, followed by its share of `whole`. */
void html_number_of(struct html_table *t, uint64_t n, uint64_t whole);
void html_size(struct html_table *t, uint64_t bytes);
void html_duration(struct html_table *t, uint64_t ns);

/*
 * Rows with a name (our own markup) and a value, which the caller puts in between; in <table
 * class="facts">. html_fact() makes one from untrusted text, and nothing if there is no text.
 */
void html_fact_begin(struct doc *d, const char *name);
void html_fact_end(struct doc *d);
void html_fact(struct doc *d, const char *name, const char *text);

/* "2026-11-20 05:30:12 UTC", with the fractions of the second behind it on hover. */
void html_time(struct doc *d, uint64_t wall_ns);

/* Untrusted text, of bounded length, that cannot reorder what is next to it. */
void html_strange(struct doc *d, const char *text);

#endif
