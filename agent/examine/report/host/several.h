/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is compared on the page about several acquisitions. Those with the same label are repeated
 * runs of one thing: a family.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_HOST_SEVERAL_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_HOST_SEVERAL_H

#include "agent/examine/report/host/pages.h"
#include "agent/examine/report/kit/html.h"

#define VALUE_UNKNOWN UINT64_MAX

/* A number that is compared. */
struct compared_row {
	enum term term;
	const char *name;
	uint64_t (*value)(const struct report_run *r); /* VALUE_UNKNOWN: it is not known */
	void (*put)(struct doc *d, uint64_t n);
	bool of_smear; /* not of runs that were not measured, or of images, which have one moment */
	bool of_named; /* with its share of the pages that the tables name */
};

extern const struct compared_row compared_rows[];
extern const size_t n_compared_rows;

/* How many pages the image's own tables name. */
uint64_t compared_named(const struct report_run *r);
/* The multiple of the first column, on a line of its own. */
void compared_put_multiple(struct doc *d, double n);

struct family {
	const char *label;
	size_t count;
	size_t *runs; /* places in the array of all runs */
};

struct families {
	struct family *at;
	size_t count, runs;
	size_t *places; /* owned; what the families point into */
};

/* In the order in which they occur. False: out of memory. */
bool families_find(const struct report_run *runs, size_t count, struct families *ret);
void families_deinit(struct families *f);
#define _cleanup_families_ CLEANUP(families_deinit)

/* True if any of them has more than one run. */
bool families_repeat(const struct families *f);

/* Who did better and by how much, in a paragraph; nothing if nothing was measured. */
void families_put_sentence(struct doc *d, const struct families *f, const struct report_run *runs);

/* Medians and ranges, a column for each family. */
void families_put_table(struct doc *d, const struct families *f, const struct report_run *runs,
			bool measured);

#endif
