/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of the report on one process. Internal to it. Lists are limited so that a browser
 * can show the page of any process; what is left out is summed.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_SECTIONS_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_SECTIONS_H

#include "agent/examine/report/kit/html.h"
#include "agent/examine/report/process/process_run.h"

#define PROCESS_RANGES  500
#define PROCESS_HEAPS   200
#define PROCESS_MODULES 500
#define PROCESS_THREADS 200

/* process_page.c */
void section_who(struct doc *d, const struct report_process *r);

/* process_ranges.c: the map, and tables of the states of pages. */
bool has_ranges(const struct report_process *r);
void section_map(struct doc *d, const struct report_process *r);
/* How far pages can be trusted, by kind. */
bool has_trust(const struct report_process *r);
void section_trust(struct doc *d, const struct report_process *r);

/* A table of page states. */
struct counts_table {
	struct html_table t;
	enum pages_state columns[PAGES_STATES];
	size_t count;
	bool still;
};

/* Leaves out states without pages in `total`; `first` is the first column's name. */
void counts_table(struct counts_table *t, struct doc *d, const struct report_process *r,
		  const struct pages_counts *total, const char *caption, enum term term,
		  const char *first);
/* Writes the cells after the row's first one and ends the row. */
void counts_row(struct counts_table *t, const struct pages_counts *c);
void counts_table_end(struct counts_table *t);

/* process_heaps.c */
void section_heaps(struct doc *d, const struct report_process *r);

/* process_blocks.c */
bool has_largest(const struct report_process *r);
void section_largest(struct doc *d, const struct report_process *r);
bool has_names(const struct report_process *r);
void section_names(struct doc *d, const struct report_process *r);
bool has_leaks(const struct report_process *r);
void section_leaks(struct doc *d, const struct report_process *r);

/* process_lists.c: modules and threads. */
void section_modules(struct doc *d, const struct report_process *r);
void section_threads(struct doc *d, const struct report_process *r);
/* Counts modules on which the loader's lists and the mapped images disagree. */
size_t count_module_findings(const struct report_process *r);
/* The first few of them by name. */
void put_module_findings(struct doc *d, const struct report_process *r);

#endif
