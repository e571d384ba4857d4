/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on several acquisitions, side by side. The first one is what the others are compared
 * with.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/program/clock.h"
#include "agent/report/html.h"
#include "agent/report/page.h"

#define TEXT_MAX      120 /* characters of one value */

#define TERMS_OF(...) ((const enum term[]){ __VA_ARGS__, TERMS })

static const char *recorded(const char *text)
{
	return text ? text : "not recorded";
}

static const struct copy_sums *image_of(const struct run *r)
{
	return &r->smear.total.copy[COPY_IMAGE];
}

/* How many pages its tables name. */
static uint64_t named(const struct run *r)
{
	uint64_t trust[TRUSTS];

	copy_trust(image_of(r), trust);
	return trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

static uint64_t trusted(const struct run *r, enum trust t)
{
	uint64_t trust[TRUSTS];

	copy_trust(image_of(r), trust);
	return trust[t];
}

/*
 * Numbers that are compared: what a run has of each. UINT64_MAX: it is not known.
 */

static uint64_t wall(const struct run *r)
{
	return run_wall(r) ? run_wall(r) : UINT64_MAX;
}

static uint64_t memory(const struct run *r)
{
	const struct run_stream *m = run_stream(r, RSZ_KIND_MEMORY);

	return m ? run_stream_read(m) : UINT64_MAX;
}

static uint64_t unreadable(const struct run *r)
{
	return run_pages(r, PAGE_UNREADABLE);
}

static uint64_t skipped(const struct run *r)
{
	return run_pages(r, PAGE_SKIPPED);
}

static uint64_t if_measured(const struct run *r, uint64_t n)
{
	return r->has_smear ? n : UINT64_MAX;
}

static uint64_t median(const struct run *r)
{
	return if_measured(r, image_of(r)->window[WINDOW_FRAMES].median);
}

static uint64_t p95(const struct run *r)
{
	return if_measured(r, image_of(r)->window[WINDOW_FRAMES].p95);
}

static uint64_t longest(const struct run *r)
{
	return if_measured(r, image_of(r)->window[WINDOW_FRAMES].max);
}

static uint64_t pages_named(const struct run *r)
{
	return if_measured(r, named(r));
}

static uint64_t safe(const struct run *r)
{
	return if_measured(r, trusted(r, TRUST_SAFE));
}

static uint64_t at_risk(const struct run *r)
{
	return if_measured(r, trusted(r, TRUST_AT_RISK));
}

static uint64_t wrong(const struct run *r)
{
	return if_measured(r, trusted(r, TRUST_WRONG));
}

static const struct row {
	enum term term;
	const char *name;
	uint64_t (*value)(const struct run *r);
	void (*put)(struct doc *d, uint64_t n);
	bool of_named; /* with its share of the pages that the tables name */
	bool of_time;  /* of an image, which has one moment, there is none */
} rows[] = {
	{ TERM_WALL, "wall time", wall, doc_duration },
	{ TERM_READ, "memory read", memory, doc_size },
	{ TERM_AGAIN, "read again", run_again, doc_size },
	{ TERM_UNREADABLE, "unreadable pages", unreadable, doc_count },
	{ TERM_SKIPPED, "skipped pages", skipped, doc_count },
	{ TERM_QUANTILE, "median window", median, doc_duration, .of_time = true },
	{ TERM_QUANTILE, "95 % of windows at most", p95, doc_duration, .of_time = true },
	{ TERM_QUANTILE, "longest window", longest, doc_duration, .of_time = true },
	{ TERM_COPY, "pages named", pages_named, doc_count, .of_time = true },
	{ TERM_SAFE, "safe", safe, doc_count, true, true },
	{ TERM_RISK, "at risk", at_risk, doc_count, true, true },
	{ TERM_WRONG, "wrong", wrong, doc_count, true, true },
};

static void put_value(struct doc *d, const struct row *row, const struct run *r,
		      const struct run *first)
{
	const uint64_t n = row->value(r), base = row->value(first);

	doc_put(d, "<td class=\"n\">");
	if (n == UINT64_MAX) {
		doc_put(d,
			row->of_time && r->origin.still ? "not applicable</td>" : "not known</td>");
		return;
	}
	row->put(d, n);
	if (row->of_named) {
		doc_put(d, "<br><span class=\"soft\">");
		doc_share(d, n, named(r));
		doc_put(d, "</span>");
	} else if (r != first && base && base != UINT64_MAX) {
		doc_printf(d, "<br><span class=\"soft\">× %.3g</span>", (double)n / (double)base);
	}
	doc_put(d, "</td>");
}

static void put_heads(struct doc *d, const struct run *runs, size_t count)
{
	doc_put(d, "<thead><tr><th></th>");
	for (size_t i = 0; i < count; i++) {
		doc_put(d, "<th class=\"n\" scope=\"col\">");
		html_strange(d, runs[i].label);
		doc_put(d, "</th>");
	}
	doc_put(d, "</tr></thead><tbody>\n");
}

static void put_numbers(struct doc *d, const struct run *runs, size_t count)
{
	doc_put(d, "<div class=\"scroll\"><table><caption>Windows and verdicts by the images' own "
		   "tables, pages of 4 KiB; × is the multiple of the first column</caption>");
	put_heads(d, runs, count);
	doc_put(d, "<tr><th scope=\"row\">");
	glossary_link(d, TERM_ORDER, "order");
	doc_put(d, "</th>");
	for (size_t i = 0; i < count; i++) {
		doc_put(d, "<td class=\"n\">");
		html_strange(d, recorded(run_order(&runs[i])));
		doc_put(d, "</td>");
	}
	doc_put(d, "</tr>\n");
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		doc_put(d, "<tr><th scope=\"row\">");
		glossary_link(d, rows[k].term, rows[k].name);
		doc_put(d, "</th>");
		for (size_t i = 0; i < count; i++)
			put_value(d, &rows[k], &runs[i], runs);
		doc_put(d, "</tr>\n");
	}
	doc_put(d, "</tbody></table></div>\n");
	glossary_links(d, TERMS_OF(TERM_ORDER, TERM_WALL, TERM_AGAIN, TERM_WINDOW, TERM_QUANTILE,
				   TERM_SAFE, TERM_RISK, TERM_WRONG, TERM_METHOD));
}

/* The runs that were measured, packed; NULL if there are none. */
static struct run *measured(const struct run *runs, size_t count, size_t *ret)
{
	struct run *at = calloc(count, sizeof(*at));
	size_t n = 0;

	for (size_t i = 0; at && i < count; i++)
		if (runs[i].has_smear)
			at[n++] = runs[i];
	*ret = n;
	return at;
}

static void put_figure(struct doc *d, const struct run *runs, size_t count,
		       void (*put)(struct doc *, const struct run *, size_t, enum svg_form),
		       const char *caption)
{
	size_t n;
	_cleanup_free_ struct run *at = measured(runs, count, &n);

	if (!at)
		d->lost = true;
	if (!n) {
		doc_put(d, "<p>Not known: in none of them page tables and memory can be "
			   "compared.</p>\n");
		return;
	}
	doc_put(d, "<figure>");
	put(d, at, n, SVG_WIDE);
	doc_printf(d, "<figcaption>%s", caption);
	if (n < count) {
		doc_put(d, " Left out: ");
		doc_count(d, count - n);
		doc_put(d, " whose page tables and memory cannot be compared.");
	}
	doc_put(d, "</figcaption></figure>\n");
}

static void put_curves(struct doc *d, const struct run *runs, size_t count)
{
	put_figure(d, runs, count, figure_of_curves,
		   "The further left a line rises, the closer entries and contents were read "
		   "together. Exact at every doubling of time, straight between.");
	put_figure(d, runs, count, figure_of_spread,
		   "By the images' own tables. Acquisitions of one name share a line.");
	doc_put(d, "<details><summary>The same as histograms</summary>\n");
	put_figure(d, runs, count, figure_of_windows, "By the images' own tables.");
	doc_put(d, "</details>\n");
	glossary_links(d, TERMS_OF(TERM_WINDOW, TERM_QUANTILE, TERM_COPY));
}

static void put_verdicts(struct doc *d, const struct run *runs, size_t count)
{
	put_figure(d, runs, count, figure_of_verdicts, "By the images' own tables.");
	glossary_links(d, TERMS_OF(TERM_SAFE, TERM_RISK, TERM_WRONG, TERM_PAGE));
}

static void put_row_of_run(struct doc *d, const struct run *r)
{
	char root[SHA256_HEX_SIZE], time[CLOCK_RFC3339_SIZE] = "not recorded";

	if (r->identity.wall)
		clock_rfc3339(r->identity.wall, time);
	sha256_hex(r->end.root, root);
	doc_put(d, "<tr><th scope=\"row\">");
	html_strange(d, r->label);
	doc_put(d, "</th><td class=\"wrap\">");
	html_strange(d, r->path);
	doc_put(d, "<br>");
	if (r->origin.image && !r->origin.host)
		doc_put(d, "host not known");
	else
		html_strange(d, recorded(r->origin.host));
	doc_put(d, ", ");
	html_strange(d, recorded(run_text(r->begin, "source", "name")));
	doc_printf(d, "<br>%s</td><td><b class=\"%s\">", time, run_is_whole(r) ? "good" : "bad");
	doc_put(d, run_is_whole(r) && r->sealed_later ? "sealed later" : rsz_end_name(r->end.end));
	doc_printf(d, "</b>%s, %s<br><span class=\"mono\">%s</span></td></tr>\n",
		   run_is_complete(r) ? "" : ", acquisition not complete",
		   r->checked ? "all hashes checked" : "headers and root checked", root);
}

static void put_runs(struct doc *d, const struct run *runs, size_t count)
{
	doc_put(d, "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">name</th>"
		   "<th scope=\"col\">file, host and source, begun</th><th scope=\"col\">");
	glossary_link(d, TERM_SEALED, "state");
	doc_put(d, " and ");
	glossary_link(d, TERM_ROOT, "root");
	doc_put(d, "</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < count; i++)
		put_row_of_run(d, &runs[i]);
	doc_put(d, "</tbody></table></div>\n");
	glossary_links(d, TERMS_OF(TERM_SEALED, TERM_CHECKED, TERM_ROOT, TERM_SOURCE));
}

static void put_glossary(struct doc *d, const struct run *runs, size_t count)
{
	(void)runs, (void)count;
	glossary_put(d);
}

static const struct {
	const char *id, *title;
	void (*put)(struct doc *d, const struct run *runs, size_t count);
} sections[] = {
	{ "compared", "Side by side", put_numbers },
	{ "windows", "Mapping windows", put_curves },
	{ "verdicts", "Safe, at risk, wrong", put_verdicts },
	{ "runs", "The acquisitions", put_runs },
	{ "glossary", "Definitions", put_glossary },
};

void page_of_several(struct doc *d, const struct run *runs, size_t count)
{
	page_begin(d, "Memory acquisitions compared", NULL);
	doc_put(d, "<header>\n<h1>");
	doc_count(d, count);
	doc_put(d, " memory acquisitions compared</h1>\n<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].title);
	doc_put(d, "</nav>\n</header>\n<main>\n");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		page_section(d, sections[i].id, sections[i].title);
		sections[i].put(d, runs, count);
		page_section_end(d);
	}
	page_end(d);
}
