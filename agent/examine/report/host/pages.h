/* SPDX-License-Identifier: Apache-2.0 */
/* The report's page about one acquisition, the one about several, and their figures. */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_HOST_PAGES_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_HOST_PAGES_H

#include "agent/examine/report/host/run.h"
#include "agent/examine/report/kit/figures.h"
#include "agent/examine/report/kit/glossary.h"
#include "agent/examine/report/kit/page.h"

/* The page of one acquisition; the page of several, side by side. */
void page_of_one(struct doc *d, const struct report_run *r);
void page_of_several(struct doc *d, const struct report_run *runs, size_t count);
/* One figure as an SVG file of its own, about one acquisition or about several. */
typedef void figure_put(struct doc *d, const struct report_run *runs, size_t count,
			enum svg_form form);

struct page_figure {
	const char *name;
	bool several;     /* takes more than one */
	bool wants_smear; /* needs both passes over the page tables in each */
	figure_put *put;
};

extern const struct page_figure page_figures[];
extern const size_t page_n_figures;

/* Draws it for wide and for small screens. The figure stays open for a caption. */
void page_figure_begin(struct doc *d, figure_put *put, const struct report_run *runs, size_t count);
void page_figure_end(struct doc *d);

figure_put figure_of_timeline;
figure_put figure_of_strip;
figure_put figure_of_moments;
/* One run: its three copies; several: the tables in their images. */
figure_put figure_of_windows;
figure_put figure_of_curves;
figure_put figure_of_spread;
figure_put figure_of_verdicts;
figure_put figure_of_transitions;
figure_put figure_of_processes;
figure_put figure_of_states;

/* The same for another pair of copies. */
void figure_of_pair(struct doc *d, const struct smear *s, enum pair p, enum svg_form form);

/* The address spaces, sorted; the caller frees the array. NULL: no memory. */
typedef int space_compare(const void *a, const void *b);
const struct smear_space **spaces_sorted(const struct smear *s, space_compare *compare);
space_compare compare_risk, compare_size;

/* A figure shows at most this many processes. */
#define PAGE_PROCESSES 20

/* States in a few groups. */
#define GROUP_MAP(X)                                                                               \
	X(GROUP_MEMORY, "in memory", 0)                                                            \
	X(GROUP_TRANSITION, "transition", 5)                                                       \
	X(GROUP_PAGED_OUT, "paged out", 1)                                                         \
	X(GROUP_PROTOTYPE, "prototype", 4)                                                         \
	X(GROUP_ZERO, "demand zero", 3)                                                            \
	X(GROUP_OTHER, "other", 7)

enum group {
#define X(name, text, series) name,
	GROUP_MAP(X)
#undef X
		GROUPS
};

void group_states(const struct copy_sums *c, uint64_t ret[static GROUPS]);

#endif
