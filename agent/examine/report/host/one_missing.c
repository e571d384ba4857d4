/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that have no content.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/host/one.h"
#include "driver-interface/drv.h"

#define GAPS_MAX 100 /* ranges that are shown */

void put_page_states(struct doc *d, const struct report_run *r)
{
	static const enum term terms[PAGE_STATES] = {
		[PAGE_DATA] = TERM_DATA,
		[PAGE_ZERO] = TERM_ZERO,
		[PAGE_UNREADABLE] = TERM_UNREADABLE,
		[PAGE_SKIPPED] = TERM_SKIPPED,
		[PAGE_HOLE] = TERM_HOLE,
	};
	struct html_table t;

	doc_put(d, "<details><summary>Pages by state</summary>\n");
	html_table(&t, d, "Pages of 4 KiB, counted once for each capture");
	html_column(&t, TERM_STREAM, "stream");
	for (uint32_t i = 0; i < PAGE_STATES; i++)
		html_column_of_numbers(&t, terms[i], page_state_name(i));
	html_table_body(&t);
	for (size_t i = 0; i < MIN(r->sums.count, (size_t)ONE_STREAMS); i++) {
		if (!r->sums.streams[i].paged)
			continue;
		html_row(&t);
		html_text(&t, r->sums.streams[i].name);
		for (size_t k = 0; k < PAGE_STATES; k++)
			html_number(&t, r->sums.streams[i].tally.pages[k]);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</details>\n");
}

static void put_why(struct html_table *t, const struct report_run *r, const struct stream_sums *s,
		    const struct page_status *status)
{
	const char *numbers = run_text(r->begin, "source", "error_numbers");

	html_cell(t, "wrap");
	if (status->state == PAGE_SKIPPED) {
		doc_text(t->d, skip_reason_name(status->detail));
	} else {
		doc_printf(t->d, "error %" PRIu32, status->detail);
		if (numbers && s->kind == RSZ_KIND_MEMORY) {
			const char *meaning =
				strcmp(numbers, "errno") ? NULL : drv_error_meaning(status->detail);

			doc_put(t->d, " (");
			html_strange(t->d, numbers);
			doc_put(t->d, ")");
			if (meaning)
				doc_printf(t->d, ": %s", meaning);
		}
	}
	html_cell_end(t);
}

static void put_gap(struct html_table *t, const struct report_run *r, const struct stream_sums *s,
		    const struct tally_gap *g)
{
	html_row(t);
	html_cell(t, "mono");
	doc_printf(t->d, "0x%012" PRIx64 " - 0x%012" PRIx64, g->range.first, g->range.last);
	html_cell_end(t);
	html_text(t, s->name);
	html_number(t, (range_bytes(g->range) + PAGE_SIZE - 1) >> PAGE_SHIFT);
	html_cell(t, "");
	doc_put(t->d, page_state_name(g->status.state));
	html_cell_end(t);
	put_why(t, r, s, &g->status);
	html_row_end(t);
}

static uint64_t ranges_without(const struct report_run *r)
{
	uint64_t ranges = 0;

	for (size_t i = 0; i < r->sums.count; i++)
		ranges += r->sums.streams[i].tally.n_gaps + r->sums.streams[i].tally.gaps_untold;
	return ranges;
}

bool has_unreadable(const struct report_run *r)
{
	return ranges_without(r) != 0;
}

void section_unreadable(struct doc *d, const struct report_run *r)
{
	const uint64_t ranges = ranges_without(r);
	struct html_table t;
	uint64_t shown = 0;

	html_table(&t, d, "Ranges without content");
	html_column(&t, TERMS, "addresses or offsets");
	html_column(&t, TERM_STREAM, "stream");
	html_column_of_numbers(&t, TERM_PAGE, "pages");
	html_column(&t, TERM_UNREADABLE, "state");
	html_column(&t, TERM_SKIPPED, "why");
	html_table_body(&t);
	for (size_t i = 0; i < r->sums.count; i++)
		for (size_t k = 0; k < r->sums.streams[i].tally.n_gaps && shown < GAPS_MAX;
		     k++, shown++)
			put_gap(&t, r, &r->sums.streams[i], &r->sums.streams[i].tally.gaps[k]);
	html_table_end(&t);
	if (ranges > shown) {
		doc_put(d, "<p>");
		doc_count(d, ranges - shown);
		doc_put(d, " more ranges; their pages are counted <a href=\"#acquisition\">by "
			   "stream</a>.</p>\n");
	}
}
