/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated runs: their medians and ranges, and which of two families did better.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/host/several.h"

/*
 * Families
 */

static size_t find_family(const struct families *f, const char *label)
{
	size_t i = 0;

	while (i < f->count && strcmp(f->at[i].label, label) != 0)
		i++;
	return i;
}

bool families_find(const struct report_run *runs, size_t count, struct families *ret)
{
	size_t *next;

	*ret = (struct families){ .runs = count };
	ret->at = calloc(count, sizeof(*ret->at));
	ret->places = calloc(count, sizeof(*ret->places));
	if (!ret->at || !ret->places)
		return false;
	for (size_t i = 0; i < count; i++) {
		const size_t k = find_family(ret, runs[i].label);

		ret->count = MAX(ret->count, k + 1);
		ret->at[k].label = runs[i].label;
		ret->at[k].count++;
	}
	next = ret->places;
	for (size_t k = 0; k < ret->count; k++) {
		ret->at[k].runs = next;
		next += ret->at[k].count;
		ret->at[k].count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct family *x = &ret->at[find_family(ret, runs[i].label)];

		x->runs[x->count++] = i;
	}
	return true;
}

void families_deinit(struct families *f)
{
	free(f->at);
	free(f->places);
	*f = (struct families){ 0 };
}

bool families_repeat(const struct families *f)
{
	return f->count < f->runs;
}

/*
 * Numbers of a family
 */

struct spread {
	size_t known; /* of its runs */
	double median, low, high;
};

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What a run has; negative: it is not known. */
typedef double run_number(const struct report_run *r, const void *context);

static bool spread_of(const struct family *f, const struct report_run *runs, run_number *of,
		      const void *context, struct spread *ret)
{
	_cleanup_free_ double *at = calloc(f->count, sizeof(*at));

	*ret = (struct spread){ 0 };
	if (!at)
		return false;
	for (size_t i = 0; i < f->count; i++) {
		const double n = of(&runs[f->runs[i]], context);

		if (n >= 0)
			at[ret->known++] = n;
	}
	if (!ret->known)
		return true;
	qsort(at, ret->known, sizeof(*at), compare_doubles);
	ret->low = at[0];
	ret->high = at[ret->known - 1];
	ret->median = (at[(ret->known - 1) / 2] + at[ret->known / 2]) / 2;
	return true;
}

static double number_of_row(const struct report_run *r, const void *context)
{
	const struct compared_row *row = context;
	const uint64_t n = row->value(r);

	return n == VALUE_UNKNOWN ? -1 : (double)n;
}

static double share_of_row(const struct report_run *r, const void *context)
{
	const uint64_t named = r->has_smear ? compared_named(r) : 0;

	return named ? number_of_row(r, context) / (double)named : -1;
}

static double share_at_risk(const struct report_run *r, const void *context)
{
	const uint64_t named = r->has_smear ? compared_named(r) : 0;
	uint64_t trust[TRUSTS];

	(void)context;
	if (!named)
		return -1;
	smear_trust(&r->smear, COPY_IMAGE, trust);
	return (double)trust[TRUST_AT_RISK] / (double)named;
}

static double median_window(const struct report_run *r, const void *context)
{
	const struct window_summary *w = &r->smear.total.copy[COPY_IMAGE].window[WINDOW_FRAMES];

	(void)context;
	return r->has_smear && w->pages ? (double)w->median : -1;
}

/*
 * The sentence
 */

struct measured {
	const struct family *family;
	struct spread risk, window;
};

static bool overlap(const struct spread *a, const struct spread *b)
{
	return a->low <= b->high && b->low <= a->high;
}

/* Fewer pages at risk; of those that have as many, shorter windows. */
static bool is_better(const struct measured *a, const struct measured *b)
{
	return a->risk.median != b->risk.median ? a->risk.median < b->risk.median
						: a->window.median < b->window.median;
}

static void put_ratio(struct doc *d, double share)
{
	doc_share(d, (uint64_t)(share * 1e9 + .5), 1000000000);
}

static void put_ratio_spread(struct doc *d, const struct spread *s)
{
	put_ratio(d, s->median);
	if (s->high == s->low)
		return;
	doc_put(d, " (");
	put_ratio(d, s->low);
	doc_put(d, " to ");
	put_ratio(d, s->high);
	doc_put(d, ")");
}

static void put_time_spread(struct doc *d, const struct spread *s)
{
	doc_span(d, (uint64_t)s->median);
	if (s->high == s->low)
		return;
	doc_put(d, " (");
	doc_span(d, (uint64_t)s->low);
	doc_put(d, " to ");
	doc_span(d, (uint64_t)s->high);
	doc_put(d, ")");
}

static void put_measured_name(struct doc *d, const struct measured *m)
{
	doc_put(d, "<b>");
	html_strange(d, m->family->label);
	doc_put(d, "</b>");
}

static bool same_spread(const struct spread *a, const struct spread *b)
{
	return a->low == b->low && a->median == b->median && a->high == b->high;
}

/* "guided did better than linear: …", as far as the runs show it. */
static void put_verdict(struct doc *d, const struct measured *a, const struct measured *b)
{
	const bool by_risk = a->risk.median != b->risk.median;
	const bool same_risk = same_spread(&a->risk, &b->risk);
	const bool same_window = same_spread(&a->window, &b->window);
	const bool same = same_risk && same_window;
	const bool unclear =
		by_risk ? overlap(&a->risk, &b->risk) : overlap(&a->window, &b->window);

	if (unclear)
		doc_put(d, same ? "No difference between " : "No clear difference between ");
	put_measured_name(d, a);
	doc_put(d, unclear ? " and " : " did better than ");
	put_measured_name(d, b);
	doc_put(d, unclear && !same ? ", whose runs overlap: " : ": ");
	put_ratio_spread(d, &a->risk);
	doc_put(d, same_risk ? " of the pages are at risk in both"
			     : " of the pages are at risk, not ");
	if (!same_risk)
		put_ratio_spread(d, &b->risk);
	doc_put(d, "; the median mapping window is ");
	put_time_spread(d, &a->window);
	if (same_window) {
		doc_put(d, " in both");
	} else {
		doc_put(d, ", not ");
		put_time_spread(d, &b->window);
	}
	if (a->window.high < b->window.low && a->window.median > 0)
		doc_printf(d, ", so %.3g times shorter", b->window.median / a->window.median);
	doc_put(d, ".");
}

static void put_only(struct doc *d, const struct measured *a)
{
	put_measured_name(d, a);
	doc_put(d, ": ");
	put_ratio_spread(d, &a->risk);
	doc_put(d, " of the pages are at risk; the median mapping window is ");
	put_time_spread(d, &a->window);
	doc_put(d, ".");
}

/* The best two; how many there are. */
static size_t best_two(struct doc *d, const struct families *f, const struct report_run *runs,
		       struct measured ret[static 2])
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++) {
		struct measured m = { .family = &f->at[i] };

		if (!spread_of(&f->at[i], runs, share_at_risk, NULL, &m.risk) ||
		    !spread_of(&f->at[i], runs, median_window, NULL, &m.window)) {
			d->lost = true;
			return 0;
		}
		if (!m.risk.known || !m.window.known)
			continue;
		if (!n || is_better(&m, &ret[0])) {
			ret[1] = ret[0];
			ret[0] = m;
		} else if (n == 1 || is_better(&m, &ret[1])) {
			ret[1] = m;
		}
		n++;
	}
	return n;
}

void families_put_sentence(struct doc *d, const struct families *f, const struct report_run *runs)
{
	struct measured best[2] = { 0 };
	const size_t n = best_two(d, f, runs, best);

	if (!n)
		return;
	doc_put(d, "<p class=\"verdict\">");
	if (n == 1)
		put_only(d, &best[0]);
	else
		put_verdict(d, &best[0], &best[1]);
	doc_put(d, "</p>\n");
	if (n == 1)
		return;
	doc_put(d, "<p class=\"soft\">");
	if (best[0].risk.known < 2 || best[1].risk.known < 2)
		doc_put(d,
			"With one run of a kind it is not known how much runs differ by chance. ");
	else
		doc_put(d, "Numbers are medians of repeated runs; their range is in brackets. ");
	doc_put(d, "Only runs of the same machine at the same work can be compared, and whether "
		   "they are is not known here.</p>\n");
}

/*
 * The table
 */

static void put_family_shares(struct html_table *t, const struct spread *s)
{
	doc_put(t->d, "<br> <span class=\"soft\">");
	put_ratio_spread(t->d, s);
	doc_put(t->d, "</span>");
}

static void put_family_cell(struct html_table *t, const struct compared_row *row,
			    const struct family *f, const struct families *all,
			    const struct report_run *runs)
{
	struct spread s, first, shares;

	if (!spread_of(f, runs, number_of_row, row, &s) ||
	    !spread_of(&all->at[0], runs, number_of_row, row, &first) ||
	    !spread_of(f, runs, share_of_row, row, &shares)) {
		t->d->lost = true;
		return;
	}
	html_cell(t, "n spread");
	doc_put(t->d, "<span>");
	if (!s.known) {
		doc_put(t->d, row->of_smear && runs[f->runs[0]].origin.still ? "not applicable"
									     : "not known");
	} else {
		row->put(t->d, (uint64_t)(s.median + .5));
		if (s.known > 1 && s.high > s.low) {
			doc_put(t->d, "<br> <span class=\"soft\">");
			row->put(t->d, (uint64_t)s.low);
			doc_put(t->d, " to ");
			row->put(t->d, (uint64_t)s.high);
			doc_put(t->d, "</span>");
		}
		if (row->of_named && shares.known)
			put_family_shares(t, &shares);
		else if (f != all->at && first.known && first.median > 0)
			compared_put_multiple(t->d, s.median / first.median);
		if (s.known < f->count)
			doc_printf(t->d, "<br> <span class=\"soft\">known of %zu of %zu</span>",
				   s.known, f->count);
	}
	doc_put(t->d, "</span>");
	html_cell_end(t);
}

void families_put_table(struct doc *d, const struct families *f, const struct report_run *runs,
			bool measured)
{
	struct html_table t;

	html_table(&t, d,
		   "Medians, and below them the range, of runs with the same name; × is the "
		   "multiple of the first column");
	html_column(&t, TERMS, "");
	for (size_t i = 0; i < f->count; i++)
		html_column_of_numbers(&t, TERMS, f->at[i].label);
	html_table_body(&t);
	html_row(&t);
	html_cell(&t, "");
	doc_put(d, "runs");
	html_cell_end(&t);
	for (size_t i = 0; i < f->count; i++)
		html_number(&t, f->at[i].count);
	html_row_end(&t);
	for (size_t k = 0; k < n_compared_rows; k++) {
		const struct compared_row *row = &compared_rows[k];

		if (row->of_smear && !measured)
			continue;
		html_row(&t);
		html_cell(&t, "");
		glossary_link(d, row->term, row->name);
		html_cell_end(&t);
		for (size_t i = 0; i < f->count; i++)
			put_family_cell(&t, row, &f->at[i], f, runs);
		html_row_end(&t);
	}
	html_table_end(&t);
}
