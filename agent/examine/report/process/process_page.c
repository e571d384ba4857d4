/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on one process: its head, and the order of its sections.
 */
#include <inttypes.h>

#include "agent/examine/heap/heap_checks.h"
#include "agent/examine/report/kit/page.h"
#include "agent/examine/report/process/process_page.h"
#include "agent/examine/report/process/process_map.h"
#include "agent/examine/report/process/process_sections.h"
#include "agent/examine/report/kit/rating.h"
#include "formats/base/utc.h"

static void put_process_glossary(struct doc *d, const struct report_process *r)
{
	(void)r;
	glossary_put(d, GLOSSARY_OF_PROCESS);
}

static const struct {
	const char *id, *title;
	bool part; /* of the section before it: no link of its own leads there */
	bool (*has)(const struct report_process *r); /* NULL: always */
	void (*put)(struct doc *d, const struct report_process *r);
} sections[] = {
	{ "map", "Its addresses, and where their pages are", false, has_ranges, section_map },
	{ "trust", "What is reliable", true, has_trust, section_trust },
	{ "heaps", "Heaps", .put = section_heaps },
	{ "largest", "Largest allocations", true, has_largest, section_largest },
	{ "names", "Names asked of DNS", true, has_names, section_names },
	{ "leaks", "Blocks that nothing refers to", true, has_leaks, section_leaks },
	{ "modules", "Modules", .put = section_modules },
	{ "threads", "Threads", .put = section_threads },
	{ "process", "Who it is", .put = section_who },
	{ "glossary", "Definitions", .put = put_process_glossary },
};

static bool is_section_of_process(size_t i, const struct report_process *r)
{
	return !sections[i].has || sections[i].has(r);
}

/*
 * Who it is
 */

static void report_created_text(const struct report_process *r, char ret[static UTC_RFC3339_SIZE])
{
	if (r->created)
		utc_rfc3339(r->created, ret);
	else
		snprintf(ret, UTC_RFC3339_SIZE, "not known");
}

static void fact_of_number(struct doc *d, const char *name, uint64_t n)
{
	html_fact_begin(d, name);
	if (n)
		doc_printf(d, "%" PRIu64, n);
	else
		doc_put(d, "not known");
	html_fact_end(d);
}

static void fact_of_address(struct doc *d, const char *name, uint64_t va)
{
	html_fact_begin(d, name);
	if (va)
		doc_printf(d, "<span class=\"mono\">0x%" PRIx64 "</span>", va);
	else
		doc_put(d, "none was found");
	html_fact_end(d);
}

void section_who(struct doc *d, const struct report_process *r)
{
	const struct process_facts *f = r->facts;
	char created[UTC_RFC3339_SIZE];

	report_created_text(r, created);
	doc_put(d, "<table class=\"facts\"><tbody>\n");
	html_fact(d, "name", f->name);
	html_fact_begin(d, "PID");
	doc_printf(d, "%" PRIu32, f->pid);
	html_fact_end(d);
	fact_of_number(d, "parent's PID", f->parent);
	html_fact(d, "created", created);
	html_fact(d, "image", r->start.image ? r->start.image : "not available");
	html_fact(d, "command line",
		  r->start.command_line ? r->start.command_line : "not available");
	html_fact(d, "width",
		  f->wow64 ? "32-bit program (WoW64)" : "64-bit: its EPROCESS names no 32-bit PEB");
	fact_of_address(d, "EPROCESS", f->eprocess);
	if (f->no_peb)
		html_fact(d, "PEB", "none: it runs no program");
	else
		fact_of_address(d, "PEB", f->peb);
	if (f->wow64)
		fact_of_address(d, "PEB of 32 bits", f->peb32);
	fact_of_number(d, "Windows build", f->build);
	html_fact_begin(d, "fields of");
	doc_put(d, "Windows ");
	html_strange(d, f->layout);
	doc_put(d, ", because ");
	html_strange(d, f->layout_reason);
	html_fact_end(d);
	html_fact_begin(d, "page tables");
	doc_put(d, copy_name(r->copy));
	html_fact_end(d);
	html_fact(d, "container", r->path);
	doc_put(d, "</tbody></table>\n<p class=\"soft\">Image and command line come from the "
		   "process itself, which can change them. Not all hashes of the container were "
		   "checked for this page; <code>ramseal verify</code> checks them.</p>\n");
}

/*
 * What can be relied on, in words
 */

/* The heaps, if any data of one was found; else all of it. */
static bool is_about_heaps(const struct report_process *r)
{
	return report_data_of(&r->by_region[REGION_HEAP].pages).pages != 0;
}

static const struct pages_counts *subject_of(const struct report_process *r)
{
	return is_about_heaps(r) ? &r->by_region[REGION_HEAP].pages : &r->pages.total;
}

static enum rating rating_of(const struct report_process *r, const struct report_data *x)
{
	const uint64_t good = r->still ? x->kept : x->trust[TRUST_SAFE];
	const uint64_t trust[TRUSTS] = {
		[TRUST_SAFE] = good,
		[TRUST_WRONG] = x->pages - MIN(good, x->pages),
	};
	const enum rating j = x->pages ? safe_rating(trust) : RATING_BAD;

	return r->still || !report_process_is_whole(r) ? MAX(j, RATING_FAIR) : j;
}

/* There may be more of them where it is not. */
static bool knows_its_heaps(const struct report_process *r)
{
	return r->know_mapped && !heaps_list_lost(r->heaps);
}

static void put_headline(struct doc *d, const struct report_process *r, const struct report_data *x)
{
	const char *are = r->still ? "are in this container" : "are safe";
	char some[NUMBER_MAX], all[NUMBER_MAX], text[160];

	number_count(r->still ? x->kept : x->trust[TRUST_SAFE], some);
	number_count(x->pages, all);
	if (!x->pages)
		snprintf(text, sizeof(text), "No page with data was found");
	else if (is_about_heaps(r) && knows_its_heaps(r))
		snprintf(text, sizeof(text), "%s of %s heap pages with data %s", some, all, are);
	else if (is_about_heaps(r))
		snprintf(text, sizeof(text), "In the heaps found, %s of %s pages with data %s",
			 some, all, are);
	else
		snprintf(text, sizeof(text), "%s of %s pages with data %s", some, all, are);
	rating_put(d, rating_of(r, x), text);
}

static void put_kept_states(struct doc *d, const struct pages_counts *c)
{
	struct pages_counts kept = { 0 };

	kept.state[PAGES_VALID] = c->state[PAGES_VALID];
	kept.state[PAGES_TRANSITION] = c->state[PAGES_TRANSITION];
	kept.state[PAGES_PAGE_FILE] = c->state[PAGES_PAGE_FILE];
	doc_put(d, " (");
	map_put_states(d, &kept);
	doc_put(d, ")");
}

/* "12 such pages are", "1 such page is". */
static void put_page_count(struct doc *d, uint64_t n, const char *one, const char *more)
{
	doc_put(d, " ");
	doc_count(d, n);
	doc_put(d, n == 1 ? one : more);
}

static void put_kept(struct doc *d, const struct report_process *r, const struct report_data *x,
		     const struct pages_counts *c)
{
	doc_put(d, "<p>");
	if (is_about_heaps(r)) {
		if (!knows_its_heaps(r))
			doc_put(d, "Of its heaps, ");
		else
			doc_put(d, "Its ");
		doc_count(d, r->n_heaps);
		if (!knows_its_heaps(r))
			doc_put(d, r->n_heaps == 1 ? " was found. It has data in "
						   : " were found. They have data in ");
		else
			doc_put(d, r->n_heaps == 1 ? " heap has data in " : " heaps have data in ");
	} else {
		doc_put(d, "No data of a heap was found. The process has data in ");
	}
	doc_count(d, x->pages);
	doc_put(d, x->pages == 1 ? " page. " : " pages. ");
	if (x->kept == x->pages && x->pages)
		doc_put(d, "All of them are");
	else
		doc_count(d, x->kept);
	doc_put(d, x->kept == x->pages && x->pages ? " in this container"
		   : x->kept == 1                  ? " is in this container"
						   : " are in this container");
	if (x->kept)
		put_kept_states(d, c);
	doc_put(d, ".");
	if (x->lost)
		put_page_count(d, x->lost,
			       " is not: it is known where it was, but that was not captured.",
			       " are not: it is known where they were, but that was not captured.");
	if (x->compressed)
		put_page_count(
			d, x->compressed,
			" is in Windows' store of compressed memory, which this page does not "
			"look into.",
			" are in Windows' store of compressed memory, which this page does not "
			"look into.");
	if (x->unknown)
		put_page_count(d, x->unknown, " has lost tables: nothing is known about it.",
			       " have lost tables: nothing is known about them.");
	doc_put(d, "</p>");
}

static void put_kept_trust(struct doc *d, const struct report_process *r,
			   const struct report_data *x)
{
	if (!x->kept)
		return;
	doc_put(d, "<p>");
	if (r->still) {
		doc_put(d, "The source was an image: it is not known whether its pages match its "
			   "page tables.");
	} else {
		doc_put(d, "Of those in the container, ");
		doc_count(d, x->trust[TRUST_SAFE]);
		doc_put(d, x->trust[TRUST_SAFE] == 1 ? " is " : " are ");
		glossary_link(d, TERM_SAFE, "safe");
		doc_put(d, ": what was captured there belonged to the process.");
	}
	if (x->trust[TRUST_AT_RISK]) {
		put_page_count(d, x->trust[TRUST_AT_RISK], " is ", " are ");
		glossary_link(d, TERM_RISK, "at risk");
		doc_put(d, x->trust[TRUST_AT_RISK] == 1 ? ": it may hold something else."
							: ": they may hold something else.");
	}
	doc_put(d, "</p>");
}

static void put_empty(struct doc *d, const struct pages_counts *c)
{
	const uint64_t zeros = c->state[PAGES_ZEROS], reserved = c->state[PAGES_RESERVED];

	if (!zeros && !reserved)
		return;
	doc_put(d, "<p>");
	doc_count(d, zeros + reserved);
	doc_put(d,
		zeros + reserved == 1 ? " more page has no data: " : " more pages have no data: ");
	doc_count(d, zeros);
	doc_put(d, zeros == 1 ? " was never touched, " : " were never touched, ");
	doc_count(d, reserved);
	doc_put(d, reserved == 1 ? " is only reserved.</p>" : " are only reserved.</p>");
}

/* What nobody may take these numbers for. */
static void put_limits(struct doc *d, const struct report_process *r)
{
	const struct vad_list *l = r->vads;
	uint64_t lost = 0;

	for (size_t i = 0; i < r->n_heaps; i++)
		lost += heap_stats_lost(&r->stats[i]);
	if (!r->know_mapped) {
		doc_put(d, "<p>The tree of its address ranges is incomplete: ");
		doc_count(d, l->count);
		if (l->has_expected) {
			doc_put(d, " of ");
			doc_count(d, l->expected);
		}
		doc_put(d, " were found. These numbers leave out pages in the others.</p>");
	}
	if (heaps_list_lost(r->heaps))
		doc_put(d, "<p>Its list of heaps cannot be read to its end: some heaps may not "
			   "have been found.</p>");
	if (lost) {
		doc_put(d, "<p>In its heaps, ");
		doc_size(d, lost);
		doc_put(d, " may hold blocks that could not be read; see <a "
			   "href=\"#heaps\">heaps</a>.</p>");
	}
	if (!report_process_has_lists(r))
		doc_put(d, "<p>Its lists of <a href=\"#modules\">modules</a> or <a "
			   "href=\"#threads\">threads</a> could not be followed to their end.</p>");
}

static size_t count_heap_findings(const struct report_process *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_heaps; i++)
		n += heap_finding(r->heaps, heaps_at(r->heaps, i)) != NULL;
	return n;
}

static uint64_t pages_outside(const struct report_process *r)
{
	uint64_t outside = 0;

	/* In a tree of which a part is missing they are what is to be expected. */
	for (size_t i = 0; r->know_mapped && i < r->pages.outside.count; i++)
		outside += range_bytes(r->pages.outside.at[i]) >> PAGE_SHIFT;
	return outside;
}

static bool any_finding(const struct report_process *r)
{
	return count_module_findings(r) || count_heap_findings(r) || pages_outside(r);
}

static void finding_begin(struct doc *d, uint64_t n)
{
	char count[NUMBER_MAX], text[NUMBER_MAX + 16];

	number_count(n, count);
	snprintf(text, sizeof(text), "Finding: %s", count);
	doc_put(d, "<p class=\"finding\">");
	rating_put(d, RATING_FAIR, text);
}

/* They come first: this is what somebody looks for in a process. */
static void put_findings(struct doc *d, const struct report_process *r)
{
	const size_t modules = count_module_findings(r), heaps = count_heap_findings(r);
	const uint64_t outside = pages_outside(r);

	if (modules) {
		finding_begin(d, modules);
		doc_put(d, modules == 1 ? " <a href=\"#modules\">module</a> is"
					: " <a href=\"#modules\">modules</a> are");
		doc_put(d, " only in the loader's list or only among the mapped images");
		put_module_findings(d, r);
		doc_put(d, "</p>\n");
	}
	if (outside) {
		finding_begin(d, outside);
		doc_put(d, outside == 1 ? " page is" : " pages are");
		doc_printf(d,
			   " mapped where the process has no address range, the first at <span "
			   "class=\"mono\">0x%" PRIx64 "</span></p>\n",
			   r->pages.outside.at[0].first);
	}
	if (heaps) {
		finding_begin(d, heaps);
		doc_put(d, heaps == 1 ? " <a href=\"#heaps\">heap</a> is"
				      : " <a href=\"#heaps\">heaps</a> are");
		doc_put(d, " in no list of the process</p>\n");
	}
}

static void put_process_outcome(struct doc *d, const struct report_process *r)
{
	const struct pages_counts *c = subject_of(r);
	const struct report_data x = report_data_of(c);

	doc_printf(d, "<div class=\"outcome %s\" id=\"outcome\">\n",
		   rating_style(any_finding(r) ? MAX(rating_of(r, &x), RATING_FAIR)
					       : rating_of(r, &x)));
	put_findings(d, r);
	doc_put(d, "<p class=\"headline\">");
	put_headline(d, r, &x);
	doc_put(d, "</p>\n");
	put_kept(d, r, &x, c);
	put_kept_trust(d, r, &x);
	put_empty(d, c);
	put_limits(d, r);
	doc_put(d, "</div>\n");
}

/*
 * Cards
 */

static void put_count_card(struct doc *d, uint64_t n, enum term t, const char *one,
			   const char *more)
{
	doc_put(d, "<div class=\"card\"><b>");
	doc_count(d, n);
	doc_put(d, "</b><span>");
	if (t == TERMS)
		doc_put(d, n == 1 ? one : more);
	else
		glossary_link(d, t, n == 1 ? one : more);
	doc_put(d, "</span></div>\n");
}

static void put_process_cards(struct doc *d, const struct report_process *r)
{
	uint64_t busy = 0;

	for (size_t i = 0; i < r->n_heaps; i++)
		for (size_t k = 0; k < HEAP_PLACES; k++)
			busy += r->stats[i].blocks[k][BLOCK_BUSY].blocks;
	doc_put(d, "<div class=\"cards\">\n");
	put_count_card(d, report_data_of(&r->pages.total).pages, TERM_DATA_PAGES,
		       "page with data in all", "pages with data in all");
	put_count_card(d, r->vads->count, TERM_VAD, "address range", "address ranges");
	put_count_card(d, r->n_heaps, TERM_HEAP, "heap found", "heaps found");
	put_count_card(d, busy, TERM_BLOCKS, "busy block found", "busy blocks found");
	put_count_card(d, r->modules.count, TERM_MODULES, "module", "modules");
	if (r->blocks.records)
		put_count_card(d, r->blocks.records, TERMS, "DNS record found",
			       "DNS records found");
	doc_put(d, "</div>\n");
}

static void put_process_head(struct doc *d, const struct report_process *r)
{
	doc_put(d, "<header>\n<h1>Process ");
	doc_printf(d, "%" PRIu32 ", ", r->facts->pid);
	html_strange(d, r->facts->name);
	doc_put(d, "</h1>\n<p class=\"soft\">");
	html_strange(d, r->path);
	doc_put(d, " · created ");
	if (r->created)
		html_time(d, r->created);
	else
		doc_put(d, "not known");
	doc_put(d, r->facts->wow64 ? " · 32-bit" : "");
	if (r->facts->build)
		doc_printf(d, " · Windows build %" PRIu32, r->facts->build);
	doc_put(d, "</p>\n");
	put_process_outcome(d, r);
	put_process_cards(d, r);
	doc_put(d, "<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!sections[i].part && is_section_of_process(i, r))
			doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id,
				   sections[i].title);
	doc_put(d, "</nav>\n</header>\n<main>\n");
}

void page_of_process(struct doc *d, const struct report_process *r)
{
	page_begin(d, "Process", r->facts->name, r->foot);
	put_process_head(d, r);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (!is_section_of_process(i, r))
			continue;
		(sections[i].part ? page_part : page_section)(d, sections[i].id, sections[i].title);
		sections[i].put(d, r);
		page_section_end(d);
	}
	page_end(d);
}
