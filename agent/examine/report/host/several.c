/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on several acquisitions, side by side. The first one is what the others are compared
 * with.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/host/outcome.h"
#include "agent/examine/report/host/several.h"

static const char *text_or_not_recorded(const char *text)
{
	return text ? text : "not recorded";
}

static const struct copy_sums *image_of(const struct report_run *r)
{
	return &r->smear.total.copy[COPY_IMAGE];
}

uint64_t compared_named(const struct report_run *r)
{
	uint64_t trust[TRUSTS];

	smear_trust(&r->smear, COPY_IMAGE, trust);
	return trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

static uint64_t pages_trusted(const struct report_run *r, enum trust t)
{
	uint64_t trust[TRUSTS];

	smear_trust(&r->smear, COPY_IMAGE, trust);
	return trust[t];
}

/*
 * Numbers that are compared: what a run has of each.
 */

static uint64_t wall_time(const struct report_run *r)
{
	return run_wall(r) ? run_wall(r) : VALUE_UNKNOWN;
}

static uint64_t memory_bytes_read(const struct report_run *r)
{
	const struct stream_sums *m = run_stream(r, RSZ_KIND_MEMORY);

	return m ? run_stream_read(m) : VALUE_UNKNOWN;
}

static uint64_t unreadable_pages(const struct report_run *r)
{
	return run_pages(r, PAGE_UNREADABLE);
}

static uint64_t skipped_pages(const struct report_run *r)
{
	return run_pages(r, PAGE_SKIPPED);
}

static uint64_t if_measured(const struct report_run *r, uint64_t n)
{
	return r->has_smear ? n : VALUE_UNKNOWN;
}

static uint64_t median(const struct report_run *r)
{
	return if_measured(r, image_of(r)->window[WINDOW_FRAMES].median);
}

static uint64_t p95(const struct report_run *r)
{
	return if_measured(r, image_of(r)->window[WINDOW_FRAMES].p95);
}

static uint64_t longest_window(const struct report_run *r)
{
	return if_measured(r, image_of(r)->window[WINDOW_FRAMES].max);
}

static uint64_t pages_named(const struct report_run *r)
{
	return if_measured(r, compared_named(r));
}

static uint64_t safe_pages(const struct report_run *r)
{
	return if_measured(r, pages_trusted(r, TRUST_SAFE));
}

static uint64_t at_risk(const struct report_run *r)
{
	return if_measured(r, pages_trusted(r, TRUST_AT_RISK));
}

static uint64_t wrong_pages(const struct report_run *r)
{
	return if_measured(r, pages_trusted(r, TRUST_WRONG));
}

const struct compared_row compared_rows[] = {
	{ TERM_WALL, "wall time", wall_time, doc_span, false, false },
	{ TERM_READ, "memory read", memory_bytes_read, doc_size, false, false },
	{ TERM_AGAIN, "read again", run_again, doc_size, false, false },
	{ TERM_UNREADABLE, "unreadable pages", unreadable_pages, doc_count, false, false },
	{ TERM_SKIPPED, "skipped pages", skipped_pages, doc_count, false, false },
	{ TERM_QUANTILE, "median window", median, doc_duration, true, false },
	{ TERM_QUANTILE, "95th percentile of windows", p95, doc_duration, true, false },
	{ TERM_QUANTILE, "longest window", longest_window, doc_duration, true, false },
	{ TERM_COPY, "pages named", pages_named, doc_count, true, false },
	{ TERM_SAFE, "safe", safe_pages, doc_count, true, true },
	{ TERM_RISK, "at risk", at_risk, doc_count, true, true },
	{ TERM_WRONG, "wrong", wrong_pages, doc_count, true, true },
};
const size_t n_compared_rows = ARRAY_SIZE(compared_rows);

static void put_safe_rating(struct doc *d, const struct report_run *r)
{
	uint64_t trust[TRUSTS];

	smear_trust(&r->smear, COPY_IMAGE, trust);
	doc_put(d, "<br> ");
	rating_put(d, safe_rating(trust), safe_word(trust));
}

/* Three digits, and no exponent. */
void compared_put_multiple(struct doc *d, double n)
{
	doc_printf(d,
		   n < 999.5 ? "<br> <span class=\"soft\">× %.3g</span>"
			     : "<br> <span class=\"soft\">× %.0f</span>",
		   n);
}

static void put_compared_value(struct html_table *t, const struct compared_row *row,
			       const struct report_run *r, const struct report_run *first)
{
	const uint64_t n = row->value(r), base = row->value(first);

	html_cell(t, "n");
	if (n == VALUE_UNKNOWN) {
		doc_put(t->d, row->of_smear && r->origin.still ? "not applicable" : "not known");
		html_cell_end(t);
		return;
	}
	doc_put(t->d, "<span>");
	row->put(t->d, n);
	if (row->of_named) {
		doc_put(t->d, "<br> <span class=\"soft\">");
		doc_share(t->d, n, compared_named(r));
		doc_put(t->d, "</span>");
		if (row->value == safe_pages && compared_named(r))
			put_safe_rating(t->d, r);
	} else if (r != first && base && base != VALUE_UNKNOWN) {
		compared_put_multiple(t->d, (double)n / (double)base);
	}
	doc_put(t->d, "</span>");
	html_cell_end(t);
}

static void put_row_head(struct html_table *t, enum term term, const char *name)
{
	html_row(t);
	html_cell(t, "");
	glossary_link(t->d, term, name);
	html_cell_end(t);
}

static bool any_measured(const struct report_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (runs[i].has_smear)
			return true;
	return false;
}

/* Why images have no such numbers. */
static void put_images_note(struct doc *d, const struct report_run *runs, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any = any || runs[i].origin.still;
	if (!any)
		return;
	doc_put(d,
		"<p class=\"soft\">Mapping windows, and how many pages are safe or at risk, are ");
	glossary_link(d, TERM_NOT_APPLICABLE, "not applicable");
	doc_put(d, " to images: " ORIGIN_STILL_WHY ".</p>\n");
}

static void put_each_run(struct doc *d, const struct report_run *runs, size_t count)
{
	const bool measured = any_measured(runs, count);
	struct html_table t;

	html_table(&t, d,
		   measured
			   ? "Windows and verdicts by the images' own tables, pages of 4 KiB; × is "
			     "the multiple of the first column"
			   : "× is the multiple of the first column");
	html_column(&t, TERMS, "");
	for (size_t i = 0; i < count; i++)
		html_column_of_numbers(&t, TERMS, runs[i].label);
	html_table_body(&t);
	put_row_head(&t, TERM_ORDER, "order");
	for (size_t i = 0; i < count; i++) {
		html_cell(&t, "n");
		html_strange(d, text_or_not_recorded(run_order(&runs[i])));
		html_cell_end(&t);
	}
	html_row_end(&t);
	for (size_t k = 0; k < n_compared_rows; k++) {
		if (compared_rows[k].of_smear && !measured)
			continue;
		put_row_head(&t, compared_rows[k].term, compared_rows[k].name);
		for (size_t i = 0; i < count; i++)
			put_compared_value(&t, &compared_rows[k], &runs[i], runs);
		html_row_end(&t);
	}
	html_table_end(&t);
}

static void put_compared_numbers(struct doc *d, const struct report_run *runs, size_t count)
{
	_cleanup_families_ struct families f;

	if (!families_find(runs, count, &f)) {
		d->lost = true;
		return;
	}
	if (families_repeat(&f)) {
		families_put_table(d, &f, runs, any_measured(runs, count));
		doc_put(d, "<details><summary>Each run in numbers</summary>\n");
		put_each_run(d, runs, count);
		doc_put(d, "</details>\n");
	} else {
		put_each_run(d, runs, count);
	}
	put_images_note(d, runs, count);
}

/* The runs that were measured, packed; NULL if there are none. */
static struct report_run *runs_with_smear(const struct report_run *runs, size_t count, size_t *ret)
{
	struct report_run *at = calloc(count, sizeof(*at));
	size_t n = 0;

	for (size_t i = 0; at && i < count; i++)
		if (runs[i].has_smear)
			at[n++] = runs[i];
	*ret = n;
	return at;
}

/* What the caption says of it, open for more. */
static void put_figure(struct doc *d, const struct report_run *runs, size_t count, figure_put *put,
		       const char *caption)
{
	size_t n;
	_cleanup_free_ struct report_run *at = runs_with_smear(runs, count, &n);

	if (!at) {
		d->lost = true;
		return;
	}
	page_figure_begin(d, put, at, n);
	doc_printf(d, "<figcaption>%s", caption);
	if (n < count) {
		doc_put(d, " Left out: ");
		doc_count(d, count - n);
		doc_put(d, " whose page tables and memory cannot be compared.");
	}
	doc_put(d, "</figcaption>");
	page_figure_end(d);
}

static void put_curves(struct doc *d, const struct report_run *runs, size_t count)
{
	doc_put(d, "<p>How far apart in time entries and contents were read, by the ");
	glossary_link(d, TERM_COPY, "images' own tables");
	doc_put(d, ": the ");
	glossary_link(d, TERM_WINDOW, "mapping window");
	doc_put(d, " of each page.</p>\n");
	put_figure(d, runs, count, figure_of_curves,
		   "The further left a line rises, the closer together entries and contents were "
		   "read. Acquisitions with the same name have the same colour and number. Lines "
		   "are exact "
		   "at each doubling of time and straight in between.");
	put_figure(d, runs, count, figure_of_spread,
		   "Acquisitions with the same name share a line.");
	doc_put(d, "<details><summary>The same as histograms</summary>\n");
	put_figure(d, runs, count, figure_of_windows, "");
	doc_put(d, "</details>\n");
}

static void put_verdicts(struct doc *d, const struct report_run *runs, size_t count)
{
	put_figure(d, runs, count, figure_of_verdicts, "By the images' own tables.");
}

/*
 * What they are, and what became of them
 */

static void put_run_state(struct html_table *t, const struct report_run *r)
{
	char root[SHA256_HEX_SIZE];

	sha256_hex(r->end.root, root);
	html_cell(t, "wrap");
	doc_put(t->d, "<span>");
	rating_put(t->d, outcome_rating(r), outcome_headline(r));
	doc_put(t->d, "<br>");
	if (run_is_whole(r) && r->sealed_later)
		doc_put(t->d, "sealed later");
	else
		doc_put(t->d, rsz_end_name(r->end.end));
	doc_printf(t->d, ", %s<br><span class=\"mono\">%s</span></span>",
		   r->checked ? "all hashes checked" : "headers and root checked", root);
	html_cell_end(t);
}

static void put_origin(struct html_table *t, const struct report_run *r)
{
	html_cell(t, "wrap");
	doc_put(t->d, "<span>");
	html_strange(t->d, r->path);
	doc_put(t->d, "<br>");
	if (r->origin.image && !r->origin.host)
		doc_put(t->d, "host not known");
	else
		html_strange(t->d, text_or_not_recorded(r->origin.host));
	doc_put(t->d, ", ");
	html_strange(t->d, text_or_not_recorded(run_text(r->begin, "source", "name")));
	doc_put(t->d, "<br>");
	if (r->identity.wall)
		html_time(t->d, r->identity.wall);
	else
		doc_put(t->d, "not recorded");
	doc_put(t->d, "</span>");
	html_cell_end(t);
}

static void put_compared_runs(struct doc *d, const struct report_run *runs, size_t count)
{
	struct html_table t;

	html_table(&t, d, NULL);
	html_column(&t, TERMS, "name");
	html_column(&t, TERM_OUTCOME, "outcome, state, root");
	html_column(&t, TERM_SOURCE, "file, host and source, begun");
	html_table_body(&t);
	for (size_t i = 0; i < count; i++) {
		html_row(&t);
		html_text(&t, runs[i].label);
		put_run_state(&t, &runs[i]);
		put_origin(&t, &runs[i]);
		html_row_end(&t);
	}
	html_table_end(&t);
}

static void put_glossary(struct doc *d, const struct report_run *runs, size_t count)
{
	(void)runs, (void)count;
	glossary_put(d, GLOSSARY_OF_ACQUISITION);
}

static const struct {
	const char *id, *title;
	bool (*has)(const struct report_run *runs, size_t count); /* NULL: always */
	void (*put)(struct doc *d, const struct report_run *runs, size_t count);
} sections[] = {
	{ "compared", "Side by side", NULL, put_compared_numbers },
	{ "windows", "Mapping windows", any_measured, put_curves },
	{ "verdicts", "Safe, at risk, wrong", any_measured, put_verdicts },
	{ "runs", "The acquisitions", NULL, put_compared_runs },
	{ "glossary", "Definitions", NULL, put_glossary },
};

static bool is_section_of_several(size_t i, const struct report_run *runs, size_t count)
{
	return !sections[i].has || sections[i].has(runs, count);
}

/* How many of them are as they should be; the worst of them colours it. */
static void put_outcome_of_runs(struct doc *d, const struct report_run *runs, size_t count)
{
	enum rating worst = RATING_GOOD;
	char headline[64];
	size_t good = 0;

	for (size_t i = 0; i < count; i++) {
		const enum rating j = outcome_rating(&runs[i]);

		good += j == RATING_GOOD;
		worst = MAX(worst, j);
	}
	if (good == count)
		snprintf(headline, sizeof(headline), "All %zu complete and sealed", count);
	else
		snprintf(headline, sizeof(headline), "%zu of %zu complete and sealed", good, count);
	doc_printf(d, "<div class=\"outcome %s\" id=\"outcome\">\n<p class=\"headline\">",
		   rating_style(worst));
	rating_put(d, worst, headline);
	doc_put(d, "</p>\n");
	for (size_t i = 0; i < count; i++) {
		const enum rating j = outcome_rating(&runs[i]);

		if (j == RATING_GOOD)
			continue;
		doc_put(d, "<p>");
		html_strange(d, runs[i].label);
		doc_put(d, ": ");
		rating_put(d, j, outcome_headline(&runs[i]));
		doc_put(d, "</p>\n");
	}
	doc_put(d, "</div>\n");
}

static void put_who_did_better(struct doc *d, const struct report_run *runs, size_t count)
{
	_cleanup_families_ struct families f;

	if (families_find(runs, count, &f))
		families_put_sentence(d, &f, runs);
	else
		d->lost = true;
}

void page_of_several(struct doc *d, const struct report_run *runs, size_t count)
{
	page_begin(d, "Memory acquisitions compared", NULL,
		   "ramseal: memory acquisitions compared; their roots: The acquisitions");
	doc_put(d, "<header>\n<h1>");
	doc_count(d, count);
	doc_put(d, " memory acquisitions compared</h1>\n");
	put_outcome_of_runs(d, runs, count);
	put_who_did_better(d, runs, count);
	doc_put(d, "<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (is_section_of_several(i, runs, count))
			doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id,
				   sections[i].title);
	doc_put(d, "</nav>\n</header>\n<main>\n");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (!is_section_of_several(i, runs, count))
			continue;
		page_section(d, sections[i].id, sections[i].title);
		sections[i].put(d, runs, count);
		page_section_end(d);
	}
	page_end(d);
}
