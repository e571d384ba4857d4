/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that have no content.
 */
#include <inttypes.h>

#include "agent/report/one.h"

#define GAPS_MAX 100 /* ranges that are shown */

static void put_page_states(struct doc *d, const struct run *r)
{
	static const enum term terms[PAGE_STATES] = {
		[PAGE_DATA] = TERM_DATA,
		[PAGE_ZERO] = TERM_ZERO,
		[PAGE_UNREADABLE] = TERM_UNREADABLE,
		[PAGE_SKIPPED] = TERM_SKIPPED,
		[PAGE_HOLE] = TERM_HOLE,
	};

	html_table(d, "Pages of 4 KiB by what is known of them; each as often as it was captured",
		   "stream");
	for (uint32_t i = 0; i < PAGE_STATES; i++)
		html_column(d, terms[i], page_state_name(i));
	html_table_body(d);
	for (size_t i = 0; i < MIN(r->n_streams, (size_t)ONE_STREAMS); i++) {
		if (!r->streams[i].paged)
			continue;
		doc_put(d, "<tr><td class=\"wrap\">");
		html_strange(d, r->streams[i].name);
		doc_put(d, "</td>");
		for (size_t k = 0; k < PAGE_STATES; k++)
			html_number(d, r->streams[i].tally.pages[k]);
		doc_put(d, "</tr>\n");
	}
	html_table_end(d);
}

static void put_gap(struct doc *d, const struct run *r, const struct run_stream *s,
		    const struct tally_gap *g)
{
	const char *numbers = run_text(r->begin, "source", "error_numbers");
	const bool skipped = g->status.state == PAGE_SKIPPED;

	doc_put(d, "<tr><td class=\"wrap\">");
	html_strange(d, s->name);
	doc_printf(d, "</td><td class=\"mono\">0x%012" PRIx64 " - 0x%012" PRIx64 "</td>",
		   g->range.first, g->range.last);
	html_number(d, (range_bytes(g->range) + PAGE_SIZE - 1) >> PAGE_SHIFT);
	doc_printf(d, "<td>%s</td><td>", page_state_name(g->status.state));
	if (skipped) {
		doc_text(d, skip_reason_name(g->status.detail));
	} else {
		doc_printf(d, "error %" PRIu32, g->status.detail);
		if (numbers && s->kind == RSZ_KIND_MEMORY) {
			doc_put(d, " (");
			html_strange(d, numbers);
			doc_put(d, ")");
		}
	}
	doc_put(d, "</td></tr>\n");
}

static void put_gap_table(struct doc *d, const struct run *r, uint64_t ranges)
{
	uint64_t shown = 0;

	html_table(d, "Ranges without content", "stream");
	doc_put(d, "<th scope=\"col\">addresses or offsets</th>");
	html_column(d, TERM_PAGE, "pages");
	doc_put(d, "<th scope=\"col\">state</th><th scope=\"col\">why</th>");
	html_table_body(d);
	for (size_t i = 0; i < r->n_streams; i++)
		for (size_t k = 0; k < r->streams[i].tally.n_gaps && shown < GAPS_MAX; k++, shown++)
			put_gap(d, r, &r->streams[i], &r->streams[i].tally.gaps[k]);
	if (ranges > shown) {
		doc_put(d, "<tr class=\"sum\"><td colspan=\"5\">");
		doc_count(d, ranges - shown);
		doc_put(d, " more ranges; their pages are in the table above</td></tr>\n");
	}
	html_table_end(d);
}

void section_unreadable(struct doc *d, const struct run *r)
{
	uint64_t ranges = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		ranges += r->streams[i].tally.n_gaps + r->streams[i].tally.gaps_untold;
	put_page_states(d, r);
	if (ranges)
		put_gap_table(d, r, ranges);
	else
		doc_put(d, "<p>No page of any stream was unreadable or skipped.</p>\n");
	glossary_links(d, TERMS_OF(TERM_PAGE, TERM_DATA, TERM_ZERO, TERM_UNREADABLE, TERM_SKIPPED,
				   TERM_HOLE));
}
