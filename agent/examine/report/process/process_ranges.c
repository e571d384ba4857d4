/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address ranges of a process, drawn and in tables.
 */
#include <inttypes.h>

#include "agent/examine/report/kit/figures.h"
#include "agent/examine/report/process/process_map.h"
#include "agent/examine/report/process/process_sections.h"

/*
 * Tables of where pages are
 */

void counts_table(struct counts_table *t, struct doc *d, const struct report_process *r,
		  const struct pages_counts *total, const char *caption, enum term term,
		  const char *first)
{
	*t = (struct counts_table){ .still = r->still };
	html_table(&t->t, d, caption);
	html_column(&t->t, term, first);
	html_column_of_numbers(&t->t, TERMS, "pages");
	for (size_t i = 0; i < PAGES_STATES; i++) {
		if (!total->state[i])
			continue;
		t->columns[t->count++] = (enum pages_state)i;
		html_column_of_numbers(&t->t, TERM_WHERE, map_state_text((enum pages_state)i));
	}
	if (!r->still)
		html_column_of_numbers(&t->t, TERM_SAFE, "safe");
	html_column_of_numbers(&t->t, TERM_RISK, "at risk");
	html_table_body(&t->t);
}

void counts_row(struct counts_table *t, const struct pages_counts *c)
{
	const struct report_data data = report_data_of(c);

	html_number(&t->t, pages_counts_sum(c));
	for (size_t i = 0; i < t->count; i++)
		html_number(&t->t, c->state[t->columns[i]]);
	if (!t->still)
		html_number(&t->t, data.trust[TRUST_SAFE]);
	html_number(&t->t, data.trust[TRUST_AT_RISK]);
	html_row_end(&t->t);
}

void counts_table_end(struct counts_table *t)
{
	html_table_end(&t->t);
}

/*
 * The map
 */

bool has_ranges(const struct report_process *r)
{
	return r->vads->count != 0;
}

static void put_caption(struct doc *d, const struct report_process *r)
{
	const size_t wide = map_fold(r, SVG_WIDE), narrow = map_fold(r, SVG_NARROW);

	doc_put(d, "<figcaption>Each block is an ");
	glossary_link(d, TERM_VAD, "address range");
	doc_put(d, "; addresses rise from left to right, row by row, and each block is in the lane "
		   "of its ");
	glossary_link(d, TERM_REGION, "kind");
	doc_put(d,
		". Its width is the logarithm of its number of pages. It is filled with the states "
		"of its pages by their share; the empty part is only reserved. An address is shown "
		"where a row begins, and where two ranges are at least 1 GiB apart.");
	if (wide > 1)
		doc_printf(d, " Up to %zu neighbouring ranges share a column.", wide);
	else if (narrow > 1)
		doc_printf(d, " On a small screen up to %zu neighbouring ranges share a column.",
			   narrow);
	doc_put(d, "</figcaption>");
}

static void put_kinds(struct doc *d, const struct report_process *r)
{
	struct counts_table t;

	counts_table(&t, d, r, &r->pages.total, "Pages of 4 KiB by kind of range and by state",
		     TERM_REGION, "kind");
	for (size_t i = 0; i < REGIONS; i++) {
		const struct report_sum *s = &r->by_region[i];

		if (!s->vads)
			continue;
		html_row(&t.t);
		html_cell(&t.t, "");
		doc_put(d, region_name((enum region)i));
		doc_printf(d, " <span class=\"soft kind\">%" PRIu64 " range%s</span>", s->vads,
			   s->vads == 1 ? "" : "s");
		html_cell_end(&t.t);
		counts_row(&t, &s->pages);
	}
	if (r->pages.outside.count) {
		html_row(&t.t);
		html_text(&t.t, "in no range");
		counts_row(&t, &r->outside);
	}
	html_row_of_rest(&t.t);
	html_text(&t.t, "the process");
	counts_row(&t, &r->pages.total);
	counts_table_end(&t);
}

static void put_owner(struct doc *d, const struct report_process *r, size_t i)
{
	const struct report_region *at = &r->regions[i];

	doc_put(d, region_name(at->kind));
	if (at->kind == REGION_HEAP)
		doc_printf(d, " 0x%" PRIx64, heaps_at(r->heaps, at->of)->address);
	else if (at->kind == REGION_STACK)
		doc_printf(d, " of thread %" PRIu64, at->of);
}

static void put_range_row(struct counts_table *t, const struct report_process *r, size_t i)
{
	const struct vad *v = &r->vads->at[i];
	char protection[VAD_PROTECTION_MAX];
	struct doc *d = t->t.d;

	vad_protection_text(v->protection, protection);
	html_row(&t->t);
	html_cell(&t->t, "wrap");
	doc_printf(d,
		   "<span class=\"mono\">0x%" PRIx64 "-0x%" PRIx64 "</span><br><span "
		   "class=\"soft\">",
		   v->start, v->end);
	put_owner(d, r, i);
	doc_printf(d, ", %s", protection);
	if (v->file) {
		doc_put(d, ", ");
		html_strange(d, v->file);
	} else if (v->lost_part) {
		doc_put(d, ", what is mapped cannot be read");
	}
	doc_put(d, v->torn ? ", its parent in the tree is a different one</span>" : "</span>");
	html_cell_end(&t->t);
	counts_row(t, &r->pages.each[i]);
}

static void put_ranges(struct doc *d, const struct report_process *r)
{
	const size_t shown = MIN(r->vads->count, (size_t)PROCESS_RANGES);
	struct pages_counts rest = { 0 };
	struct counts_table t;

	doc_put(d, "<details><summary>Each address range</summary>\n");
	counts_table(&t, d, r, &r->pages.total, NULL, TERM_VAD, "range");
	for (size_t i = 0; i < shown; i++)
		put_range_row(&t, r, i);
	for (size_t i = shown; i < r->vads->count; i++)
		pages_counts_add(&rest, &r->pages.each[i]);
	if (shown < r->vads->count) {
		html_row_of_rest(&t.t);
		html_cell(&t.t, "");
		doc_count(d, r->vads->count - shown);
		doc_put(d, " more");
		html_cell_end(&t.t);
		counts_row(&t, &rest);
	}
	counts_table_end(&t);
	if (shown < r->vads->count)
		doc_put(d, "<p><code>ramseal vad --pages</code> lists them all.</p>\n");
	doc_put(d, "</details>\n");
}

static void put_left_out(struct doc *d, const struct report_process *r)
{
	bool any = false;

	for (size_t i = 0; i < PAGES_STATES; i++) {
		if (r->pages.total.state[i])
			continue;
		doc_put(d, any ? ", " : "<p class=\"soft\">No page was found that is: ");
		doc_put(d, map_state_text((enum pages_state)i));
		any = true;
	}
	doc_put(d, any ? ".</p>\n" : "");
}

void section_map(struct doc *d, const struct report_process *r)
{
	doc_put(d, "<figure>");
	map_draw(d, r, SVG_WIDE);
	map_draw(d, r, SVG_NARROW);
	put_caption(d, r);
	doc_put(d, "</figure>\n");
	put_kinds(d, r);
	put_left_out(d, r);
	put_ranges(d, r);
}

/*
 * What can be relied on
 */

enum kept { KEPT_SAFE, KEPT_RISK, KEPT_NOT_JUDGED, KEPT_STORE, KEPT_LOST, KEPT_UNKNOWN, KEPTS };

static const struct svg_legend kept_legend[KEPTS] = {
	[KEPT_SAFE] = { "safe", 0 },
	[KEPT_RISK] = { "at risk", 1 },
	[KEPT_NOT_JUDGED] = { "in the container, not judged", 5 },
	[KEPT_STORE] = { "compressed", 6 },
	[KEPT_LOST] = { "not captured", 2 },
	[KEPT_UNKNOWN] = { "unknown", 7 },
};

static void make_parts(const struct report_data *x, uint64_t ret[static SVG_SERIES])
{
	const uint64_t judged = x->trust[TRUST_SAFE] + x->trust[TRUST_AT_RISK];

	ret[KEPT_SAFE] = x->trust[TRUST_SAFE];
	ret[KEPT_RISK] = x->trust[TRUST_AT_RISK];
	ret[KEPT_NOT_JUDGED] = x->kept - MIN(judged, x->kept);
	ret[KEPT_STORE] = x->compressed;
	ret[KEPT_LOST] = x->lost;
	ret[KEPT_UNKNOWN] = x->unknown;
}

/* Only what occurs, so that nobody looks for a colour that is not there. */
static size_t keep_used(struct figure_bar *at, size_t count, struct svg_legend ret[static KEPTS])
{
	size_t n = 0;

	for (size_t k = 0; k < KEPTS; k++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < count; i++)
			sum += at[i].parts[k];
		if (!sum)
			continue;
		for (size_t i = 0; i < count; i++)
			at[i].parts[n] = at[i].parts[k];
		ret[n++] = kept_legend[k];
	}
	return n;
}

bool has_trust(const struct report_process *r)
{
	return report_data_of(&r->pages.total).pages != 0;
}

void section_trust(struct doc *d, const struct report_process *r)
{
	struct svg_legend legend[KEPTS];
	struct figure_bar at[REGIONS] = { 0 };
	struct figure_bars f = {
		.title = "Pages with data, by how reliable they are",
		.unit = "share of the pages with data",
		.series = legend,
		.at = at,
		.percent = true,
		.columns = { "with data", "here" },
		.n_columns = 2,
	};

	for (size_t i = 0; i < REGIONS; i++) {
		const struct report_data x = report_data_of(&r->by_region[i].pages);
		struct figure_bar *b = &at[f.count];
		char kept[NUMBER_MAX], all[NUMBER_MAX];

		if (!x.pages)
			continue;
		b->name = region_name((enum region)i);
		make_parts(&x, b->parts);
		number_count(x.kept, kept);
		number_count(x.pages, all);
		snprintf(b->note, sizeof(b->note), "%.24s of %.24s are here", kept, all);
		snprintf(b->columns[0], sizeof(b->columns[0]), "%.23s", all);
		snprintf(b->columns[1], sizeof(b->columns[1]), "%.23s", kept);
		f.count++;
	}
	f.n_series = keep_used(at, f.count, legend);
	doc_put(d, "<figure>");
	figure_bars(d, &f, SVG_WIDE);
	figure_bars(d, &f, SVG_NARROW);
	doc_put(d, "<figcaption>");
	glossary_link(d, TERM_DATA_PAGES, "Pages with data");
	doc_put(d, " only. ");
	glossary_link(d, TERM_SAFE, "safe");
	doc_put(d, ": what was captured there belonged to the process. ");
	glossary_link(d, TERM_RISK, "at risk");
	doc_put(d, ": it may be something else; a page that only a prototype entry leads to, which "
		   "several processes share, always counts as such.</figcaption></figure>\n");
}
