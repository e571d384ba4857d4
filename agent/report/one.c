/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on one acquisition: its head, and the order of its sections.
 */
#include "agent/program/clock.h"
#include "agent/report/one.h"

static void section_glossary(struct doc *d, const struct run *r)
{
	(void)r;
	glossary_put(d);
}

/*
 * The page
 */

static const struct {
	const char *id, *title;
	void (*put)(struct doc *d, const struct run *r);
	const char *
		of_image; /* its title in a report on an image, which has no risk; NULL: the same */
} sections[] = {
	{ "integrity", "Is it whole?", section_integrity },
	{ "acquisition", "What was acquired", section_acquisition },
	{ "timeline", "When each address was captured", section_timeline },
	{ "smear", "Do page tables and pages belong together?", section_smear },
	{ "windows", "Mapping windows", section_windows },
	{ "transitions", "What changed meanwhile", section_transitions },
	{ "processes", "Processes by pages at risk", section_processes,
	  "Processes by pages that are missing" },
	{ "states", "Page states by process", section_states },
	{ "unreadable", "Unreadable and skipped pages", section_unreadable },
	{ "hashes", "Hashes", section_hashes },
	{ "glossary", "Definitions", section_glossary },
};

static const char *title_of(size_t i, const struct run *r)
{
	return r->origin.still && sections[i].of_image ? sections[i].of_image : sections[i].title;
}

static void card_begin(struct doc *d, const char *style)
{
	doc_printf(d, "<div class=\"card\"><b class=\"%s\">", style);
}

static void card_end(struct doc *d, enum term t, const char *text)
{
	doc_put(d, "</b><span>");
	glossary_link(d, t, text);
	doc_put(d, "</span></div>\n");
}

static void put_smear_cards(struct doc *d, const struct smear *s)
{
	const struct copy_sums *c = &s->total.copy[COPY_IMAGE];
	uint64_t trust[TRUSTS], all;

	copy_trust(c, trust);
	all = trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
	card_begin(d, "");
	doc_share(d, trust[TRUST_SAFE], all);
	card_end(d, TERM_SAFE, "of user pages safe, by the image's tables");
	card_begin(d, "");
	doc_duration(d, c->window[WINDOW_FRAMES].median);
	card_end(d, TERM_QUANTILE, "median mapping window");
	card_begin(d, "");
	doc_duration(d, c->window[WINDOW_FRAMES].p95);
	card_end(d, TERM_QUANTILE, "95 % of windows at most");
}

static void put_image_card(struct doc *d)
{
	card_begin(d, "");
	doc_put(d, "not applicable");
	card_end(d, TERM_NOT_APPLICABLE, "safe or at risk, of an image");
}

static void put_cards(struct doc *d, const struct run *r)
{
	const struct run_stream *m = run_stream(r, RSZ_KIND_MEMORY);
	const uint64_t gaps = run_pages(r, PAGE_UNREADABLE) + run_pages(r, PAGE_SKIPPED);

	doc_put(d, "<div class=\"cards\">\n");
	card_begin(d, run_is_whole(r) ? "good" : "bad");
	put_seal_state(d, r);
	card_end(d, TERM_CHECKED, r->checked ? "all hashes checked" : "headers and root checked");
	if (!run_is_complete(r)) {
		card_begin(d, "bad");
		doc_put(d, "incomplete");
		card_end(d, TERM_OUTCOME, "the acquisition did not complete");
	}
	card_begin(d, "");
	doc_size(d, m ? run_stream_read(m) : 0);
	card_end(d, TERM_READ, "of memory read");
	card_begin(d, gaps ? "bad" : "");
	doc_count(d, gaps);
	card_end(d, TERM_UNREADABLE, "pages unreadable or skipped");
	if (r->has_smear)
		put_smear_cards(d, &r->smear);
	else if (r->origin.still)
		put_image_card(d);
	doc_put(d, "</div>\n");
}

static const char *name_of(const struct run *r)
{
	return r->origin.host ? r->origin.host : r->label;
}

static void put_head(struct doc *d, const struct run *r)
{
	char time[CLOCK_RFC3339_SIZE];

	doc_put(d, "<header>\n<h1>Memory acquisition of ");
	html_strange(d, name_of(r));
	doc_put(d, "</h1>\n<p class=\"soft\">");
	html_strange(d, r->path);
	if (r->identity.wall) {
		clock_rfc3339(r->identity.wall, time);
		doc_printf(d, " · begun %s", time);
	}
	doc_put(d, "</p>\n");
	put_cards(d, r);
	doc_put(d, "<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id, title_of(i, r));
	doc_put(d, "</nav>\n</header>\n<main>\n");
}

void page_of_one(struct doc *d, const struct run *r)
{
	page_begin(d, "Memory acquisition", name_of(r));
	put_head(d, r);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		page_section(d, sections[i].id, title_of(i, r));
		sections[i].put(d, r);
		page_section_end(d);
	}
	page_end(d);
}
