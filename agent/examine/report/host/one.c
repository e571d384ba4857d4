/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on one acquisition: its head, and the order of its sections.
 */
#include "agent/examine/report/host/outcome.h"
#include "agent/examine/report/host/one.h"
#include "agent/examine/smear/headline.h"

static void put_acquisition_glossary(struct doc *d, const struct report_run *r)
{
	glossary_put(d, GLOSSARY_OF_ACQUISITION);
}

/*
 * The page
 */

static const struct {
	const char *id, *title;
	bool part; /* of the section before it: no link of its own leads there */
	bool (*has)(const struct report_run *r); /* NULL: always */
	void (*put)(struct doc *d, const struct report_run *r);
	const char *of_image; /* the title for an image, which has no risk; NULL: the same */
} sections[] = {
	{ "acquisition", "What was acquired", .put = section_acquisition },
	{ "timeline", "When each address was captured", true, has_timeline, section_timeline },
	{ "unreadable", "What is missing", false, has_unreadable, section_unreadable },
	{ "smear", "Do page tables and pages match?", false, has_tables, section_smear },
	{ "windows", "Mapping windows", true, has_smear, section_windows },
	{ "moments", "At risk, by time of capture", true, has_moments, section_moments },
	{ "transitions", "What changed meanwhile", true, has_transitions, section_transitions },
	{ "processes", "Processes by pages at risk", true, has_tables, section_processes,
	  "Processes by pages that are missing" },
	{ "states", "Page states by process", true, has_tables, section_states },
	{ "integrity", "Seal and hashes", .put = section_integrity },
	{ "glossary", "Definitions", .put = put_acquisition_glossary },
};

static bool is_section_of_one(size_t i, const struct report_run *r)
{
	return !sections[i].has || sections[i].has(r);
}

static const char *title_of(size_t i, const struct report_run *r)
{
	return r->origin.still && sections[i].of_image ? sections[i].of_image : sections[i].title;
}

/*
 * The head
 */

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

/* A judged one has its judgement below. */
static void put_safe_card(struct doc *d, const struct smear *s)
{
	uint64_t trust[TRUSTS];

	smear_trust(s, COPY_IMAGE, trust);
	if (!(trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG]))
		return;
	doc_printf(d, "<div class=\"card first\"><b class=\"%s\">",
		   rating_style(safe_rating(trust)));
	doc_share(d, trust[TRUST_SAFE],
		  trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG]);
	doc_put(d, "</b><span>");
	glossary_link(d, TERM_SAFE, "of user pages safe, by the image's tables");
	doc_put(d, "</span><span class=\"why\">");
	safe_put_reason(d, trust);
	doc_put(d, " · ");
	glossary_link(d, TERM_RATING, "how it is judged");
	doc_put(d, "</span></div>\n");
}

/*
 * Two reasons, which must not be taken for each other: what is at risk, and what a flat image has
 * another capture of.
 */
static void put_processes_card(struct doc *d, const struct smear *s)
{
	struct smear_advice a;
	size_t by_read;

	smear_advise(s, COPY_IMAGE, &a);
	if (!a.processes)
		return;
	by_read = a.processes - a.risky;
	doc_put(d, "<div class=\"card first\"><b>");
	doc_count(d, by_read);
	doc_put(d, " of ");
	doc_count(d, a.processes);
	doc_put(d, "</b><span>");
	glossary_link(d, TERM_USABLE, "processes usable with ramseal read");
	doc_put(d, "</span><span class=\"why\">");
	if (a.risky) {
		doc_count(d, a.risky);
		doc_printf(d, a.risky == 1 ? " has" : " have");
		doc_printf(d, " more than %d %% at risk; ", SMEAR_USABLE);
	}
	if (by_read == a.usable) {
		doc_put(d, "as many in a flat image");
	} else {
		doc_count(d, a.usable);
		doc_put(d, " in a flat image, which has another capture of some pages");
	}
	doc_put(d, "</span></div>\n");
}

static void put_window_card(struct doc *d, const struct window_summary *w)
{
	if (!w->pages)
		return;
	card_begin(d, "");
	doc_duration(d, w->median);
	doc_put(d, "</b><span>");
	glossary_link(d, TERM_QUANTILE, "median mapping window");
	doc_put(d, "; 95 %: ");
	doc_duration(d, w->p95);
	doc_put(d, "</span></div>\n");
}

static void put_image_card(struct doc *d)
{
	card_begin(d, "");
	doc_put(d, "not applicable");
	card_end(d, TERM_NOT_APPLICABLE, "safe or at risk, for an image");
}

/* Of one that is not all of it, how much there would have been. */
static void put_memory_card(struct doc *d, const struct report_run *r)
{
	const struct stream_sums *m = run_stream(r, RSZ_KIND_MEMORY);
	const uint64_t map = run_map_bytes(r);

	card_begin(d, "");
	doc_size(d, m ? run_stream_read(m) : 0);
	doc_put(d, "</b><span>");
	glossary_link(d, TERM_READ, "of memory read");
	if (map && r->partial[0]) {
		doc_put(d, ", of ");
		doc_size(d, map);
	}
	doc_put(d, "</span></div>\n");
}

/*
 * That there are none is not said of what is not all of it: what it did not come to may lack, too.
 */
static void put_gaps_card(struct doc *d, const struct report_run *r)
{
	const uint64_t gaps = run_pages(r, PAGE_UNREADABLE) + run_pages(r, PAGE_SKIPPED);

	if (!gaps && (r->partial[0] || r->missing))
		return;
	card_begin(d, gaps ? "bad" : "");
	doc_count(d, gaps);
	card_end(d, TERM_UNREADABLE,
		 gaps == 1 ? "page unreadable or skipped" : "pages unreadable or skipped");
}

static void put_acquisition_cards(struct doc *d, const struct report_run *r)
{
	doc_put(d, "<div class=\"cards\">\n");
	if (r->has_smear) {
		put_safe_card(d, &r->smear);
		put_processes_card(d, &r->smear);
	} else if (r->origin.still) {
		put_image_card(d);
	}
	put_memory_card(d, r);
	put_gaps_card(d, r);
	if (r->has_smear)
		put_window_card(d, &r->smear.total.copy[COPY_IMAGE].window[WINDOW_FRAMES]);
	doc_put(d, "</div>\n");
	if (has_tables(r))
		return;
	if (r->origin.still) {
		doc_put(d, "<p class=\"soft\">" SMEAR_NOT_APPLICABLE ".</p>\n");
		return;
	}
	doc_put(d, "<p class=\"soft\">Whether page tables and pages match is not known (");
	html_strange(d, r->no_smear);
	doc_put(d, ").</p>\n");
}

static const char *run_name_of(const struct report_run *r)
{
	return r->origin.host ? r->origin.host : r->label;
}

static void put_acquisition_outcome(struct doc *d, const struct report_run *r)
{
	const enum rating j = outcome_rating(r);

	doc_printf(d, "<div class=\"outcome %s\" id=\"outcome\">\n<p class=\"headline\">",
		   rating_style(j));
	rating_put(d, j, outcome_headline(r));
	doc_put(d, "</p>\n");
	outcome_put_reasons(d, r);
	doc_put(d, "</div>\n");
}

static void put_contents(struct doc *d, const struct report_run *r)
{
	doc_put(d, "<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!sections[i].part && is_section_of_one(i, r))
			doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id, title_of(i, r));
	doc_put(d, "</nav>\n");
}

static void put_acquisition_head(struct doc *d, const struct report_run *r)
{
	doc_put(d, "<header>\n<h1>Memory acquisition of ");
	html_strange(d, run_name_of(r));
	doc_put(d, "</h1>\n<p class=\"soft\">");
	html_strange(d, r->path);
	if (r->identity.wall) {
		doc_put(d, " · begun ");
		html_time(d, r->identity.wall);
	}
	doc_put(d, "</p>\n");
	put_acquisition_outcome(d, r);
	put_acquisition_cards(d, r);
	put_contents(d, r);
	doc_put(d, "</header>\n<main>\n");
}

void page_of_one(struct doc *d, const struct report_run *r)
{
	char foot[PAGE_FOOT_MAX];

	page_foot_of_container(&r->end, foot);
	page_begin(d, "Memory acquisition", run_name_of(r), foot);
	put_acquisition_head(d, r);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (!is_section_of_one(i, r))
			continue;
		(sections[i].part ? page_part : page_section)(d, sections[i].id, title_of(i, r));
		sections[i].put(d, r);
		page_section_end(d);
	}
	page_end(d);
}
