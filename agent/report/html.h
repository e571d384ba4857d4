/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small pieces of HTML that the sections of a report share.
 */
#ifndef RAMSEAL_AGENT_REPORT_HTML_H
#define RAMSEAL_AGENT_REPORT_HTML_H

#include "agent/report/glossary.h"

/* A table with a caption (or NULL) and a first column; further columns until html_table_body(). */
void html_table(struct doc *d, const char *caption, const char *first);
void html_table_body(struct doc *d);
void html_table_end(struct doc *d);

/* The head of a column of numbers, and of one of a number and its share; linked to what it means. */
void html_column(struct doc *d, enum term t, const char *text);
void html_column_of_two(struct doc *d, enum term t, const char *text);

/* Cells. */
void html_number(struct doc *d, uint64_t n);
void html_share(struct doc *d, uint64_t part, uint64_t whole);
void html_size(struct doc *d, uint64_t bytes);
void html_duration(struct doc *d, uint64_t ns);

/* A stranger's text, of bounded length, that does not reorder what stands beside it. */
void html_strange(struct doc *d, const char *text);

#endif
