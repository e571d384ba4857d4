/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/fleet/fleet.h"

#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/fleet/fleet_internal.h"

/*
 * How one ended
 */

enum rating fleet_rating(const struct fleet_host *h)
{
	if (h->exit_code == EXIT_COMPLETE && h->whole)
		return RATING_GOOD;
	return h->exit_code == EXIT_GAPS && h->whole ? RATING_FAIR : RATING_BAD;
}

static bool is_known_code(int64_t code)
{
	switch (code) {
#define X(name, number, text) case number:
		EXIT_MAP(X)
#undef X
		return true;
	}
	return false;
}

const char *fleet_outcome(const struct fleet_host *h)
{
	if (is_known_code(h->exit_code))
		return exit_code_text((enum exit_code)h->exit_code);
	return h->outcome ? h->outcome : "not known";
}

const char *fleet_name(const struct fleet_host *h)
{
	return h->name ? h->name : "host not known";
}

void fleet_put_number(struct html_table *t, uint64_t n, void (*put)(struct doc *d, uint64_t n))
{
	html_cell(t, "n");
	if (n == FLEET_UNKNOWN)
		doc_put(t->d, "not known");
	else
		put(t->d, n);
	html_cell_end(t);
}

/* What to do about hosts that ended so; the commands that are named have more in their help. */
static const char *advice_by_code(int64_t code)
{
	if (code < 0 || !is_known_code(code))
		return "not known: read the log on the host";
	switch ((enum exit_code)code) {
	case EXIT_COMPLETE:
		return "nothing on the host; check the container with `ramseal verify`";
	case EXIT_INTERNAL:
		return "read the message; acquire again";
	case EXIT_USAGE:
		return "correct the command line; `ramseal acquire --help` has the options";
	case EXIT_GAPS:
		return "use it; `ramseal info` says what is missing";
	case EXIT_NO_SOURCE:
		return "run as root or administrator; `ramseal check` says which source this host "
		       "has";
	case EXIT_SOURCE_FAILED:
		return "keep what there is; acquire again, from another --source if there is one";
	case EXIT_OUTPUT:
		return "make room, or name another -o; acquire again";
	case EXIT_VERIFY:
		return "`ramseal verify` says what is damaged; acquire again";
	case EXIT_INTERRUPTED:
		return "keep what there is; acquire again if nobody meant to stop it";
	case EXIT_INPUT:
		return "check the file that the message names; acquire again";
	case EXIT_PARTIAL:
		return "use what there is; acquire again for the rest";
	case EXIT_STATEMENT:
		return "trust it only as far as `ramseal verify` does; ask who has the statement";
	case EXIT_RUNNING:
		return "wait for the other one (`ramseal status`), or end it (`ramseal stop`)";
	case EXIT_DIED:
		return "seal what it left (`ramseal seal`); acquire again";
	case EXIT_RESTARTS:
	case EXIT_UNKNOWN:
		return "see `ramseal driver inspect --help`";
	}
	return "not known: read the log on the host";
}

/* Text of ours with `commands`. */
static void put_with_commands(struct doc *d, const char *text)
{
	bool code = false;

	for (size_t n; *text; text += n) {
		n = strcspn(text, "`");
		doc_printf(d, "%.*s", (int)n, text);
		if (!text[n])
			break;
		code = !code;
		doc_put(d, code ? "<code>" : "</code>");
		n++;
	}
}

static void put_outcome_cell(struct html_table *t, const struct fleet_host *h)
{
	const enum rating j = fleet_rating(h);
	char code[32];

	if (h->exit_code < 0)
		snprintf(code, sizeof(code), "no exit code");
	else
		snprintf(code, sizeof(code), "exit %" PRId64, h->exit_code);
	html_cell(t, "wrap");
	doc_put(t->d, "<span>");
	rating_put(t->d, j, code);
	if (!is_known_code(h->exit_code) && h->outcome) {
		doc_put(t->d, ": ");
		html_strange(t->d, h->outcome);
	}
	if (j == RATING_BAD && (h->exit_code == EXIT_COMPLETE || h->exit_code == EXIT_GAPS))
		doc_put(t->d, ", but not whole: <code>ramseal verify</code> says why");
	doc_put(t->d, "</span>");
	html_cell_end(t);
}

/* "12 unreadable pages, 1 file"; how many parts it has so far. */
static void put_part(struct doc *d, uint64_t n, const char *one, const char *more, unsigned *parts)
{
	if (!n || n == FLEET_UNKNOWN)
		return;
	if ((*parts)++)
		doc_put(d, ", ");
	doc_count(d, n);
	doc_printf(d, " %s", n == 1 ? one : more);
}

static void put_missing_cell(struct html_table *t, const struct fleet_host *h)
{
	unsigned parts = 0;

	html_cell(t, "wrap");
	put_part(t->d, h->unreadable, "page unreadable", "pages unreadable", &parts);
	put_part(t->d, h->skipped, "page skipped", "pages skipped", &parts);
	put_part(t->d, h->unacquired, "byte of added memory", "bytes of added memory", &parts);
	put_part(t->d, h->files, "file, or a part of it", "files, or parts of them", &parts);
	/* What has no end may lack anything. */
	if (!parts)
		doc_put(t->d, h->whole && h->unreadable != FLEET_UNKNOWN ? "nothing" : "not known");
	html_cell_end(t);
}

/*
 * Sections
 */

/* A name of usual length does not break. */
#define NAME_WHOLE 36

void fleet_put_host(struct html_table *t, const struct fleet_host *h)
{
	html_cell(t, strlen(fleet_name(h)) <= NAME_WHOLE ? "whole" : "wrap");
	html_strange(t->d, fleet_name(h));
	html_cell_end(t);
}

static int compare_rating(const void *a, const void *b)
{
	return fleet_falling(fleet_rating(fleet_host_at(a)), fleet_rating(fleet_host_at(b)), a, b);
}

static bool is_not_good(const struct fleet_host *h)
{
	return fleet_rating(h) != RATING_GOOD;
}

static bool has_failures(const struct fleet *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (is_not_good(&f->hosts[i]))
			return true;
	return false;
}

static bool lacks(uint64_t n)
{
	return n && n != FLEET_UNKNOWN;
}

/* Of gaps that are counted, the numbers are the reason. */
static const char *reason_of(const struct fleet_host *h)
{
	if (h->error)
		return h->error;
	return fleet_rating(h) == RATING_FAIR && (lacks(h->unreadable) || lacks(h->skipped) ||
						  lacks(h->unacquired) || lacks(h->files))
		       ? ""
		       : fleet_outcome(h);
}

static void put_failures(struct doc *d, const struct fleet *f)
{
	const struct ranked r = fleet_ranked(d, f, is_not_good, compare_rating);
	struct html_table t;

	doc_put(d, "<div class=\"brief\">");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "host");
	html_column(&t, TERMS, "outcome");
	html_column(&t, TERMS, "why");
	html_column(&t, TERMS, "missing");
	html_table_body(&t);
	for (size_t i = 0; i < r.count; i++) {
		html_row(&t);
		fleet_put_host(&t, r.at[i]);
		put_outcome_cell(&t, r.at[i]);
		html_text(&t, reason_of(r.at[i]));
		put_missing_cell(&t, r.at[i]);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</div>\n");
	free(r.at);
}

/* A row for each exit code that occurs; what has none comes last. */
static int compare_code(const void *a, const void *b)
{
	const uint64_t x = (uint64_t)fleet_host_at(a)->exit_code,
		       y = (uint64_t)fleet_host_at(b)->exit_code;

	return fleet_falling(~x, ~y, a, b);
}

/* Rated as a container would be that is whole. */
static void put_code_cell(struct html_table *t, int64_t code)
{
	const struct fleet_host whole = { .exit_code = code, .whole = true };
	char text[32] = "none";

	if (code >= 0)
		snprintf(text, sizeof(text), "%" PRId64, code);
	html_cell(t, "kind");
	rating_put(t->d, fleet_rating(&whole), text);
	html_cell_end(t);
}

static void put_codes(struct doc *d, const struct fleet *f)
{
	const struct ranked r = fleet_ranked(d, f, fleet_any, compare_code);
	struct html_table t;

	doc_put(d, "<div class=\"brief\">");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "exit code");
	html_column(&t, TERMS, "what it means");
	html_column(&t, TERMS, "what to do");
	html_column_of_numbers(&t, TERMS, "hosts");
	html_table_body(&t);
	for (size_t i = 0, n; i < r.count; i += n) {
		const int64_t code = r.at[i]->exit_code;

		for (n = 1; i + n < r.count && r.at[i + n]->exit_code == code;)
			n++;
		html_row(&t);
		put_code_cell(&t, code);
		html_text(&t, is_known_code(code) ? exit_code_text((enum exit_code)code)
						  : "not known to this ramseal");
		html_cell(&t, "wrap");
		put_with_commands(d, advice_by_code(code));
		html_cell_end(&t);
		html_number_of(&t, n, f->count);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</div>\n");
	free(r.at);
}

static bool has_faults(const struct fleet *f)
{
	return f->n_faults;
}

static void put_broken_files(struct doc *d, const struct fleet *f)
{
	struct html_table t;

	if (f->n_broken)
		doc_put(d, "<p>If these files come from hosts, it is not known what became of "
			   "those hosts.</p>\n");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "file");
	html_column(&t, TERMS, "why");
	html_table_body(&t);
	for (size_t i = 0; i < f->n_faults; i++) {
		html_row(&t);
		html_text(&t, f->faults[i].file);
		html_text(&t, f->faults[i].why);
		html_row_end(&t);
	}
	html_table_end(&t);
}

/* So many digits tell containers apart; all of them stand below (put_files). */
#define ROOT_SHOWN 12

static void put_root_cell(struct html_table *t, const struct fleet_host *h)
{
	html_cell(t, "mono");
	if (h->root)
		doc_text_cut(t->d, h->root, SHA256_HEX_SIZE);
	else
		doc_put(t->d, "none");
	html_cell_end(t);
}

static void put_host_row(struct html_table *t, const struct fleet_host *h)
{
	char code[32] = "none";

	if (h->exit_code >= 0)
		snprintf(code, sizeof(code), "%" PRId64, h->exit_code);
	html_row(t);
	fleet_put_host(t, h);
	html_cell(t, "kind");
	rating_put(t->d, fleet_rating(h), code);
	html_cell_end(t);
	fleet_put_number(t, h->duration, doc_span);
	fleet_put_number(t, h->memory, doc_size);
	fleet_put_number(t, h->written, doc_size);
	html_cell(t, "mono kind");
	doc_text_cut(t->d, h->root ? h->root : "none", ROOT_SHOWN + 1);
	html_cell_end(t);
	html_row_end(t);
}

static void put_hosts(struct doc *d, const struct fleet *f)
{
	struct html_table t;

	doc_put(d, "<details class=\"fold\"><summary>Each host in a row</summary>\n");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "host");
	html_column(&t, TERMS, "exit");
	html_column_of_numbers(&t, TERMS, "took");
	html_column_of_numbers(&t, TERMS, "memory read");
	html_column_of_numbers(&t, TERMS, "written");
	html_column(&t, TERMS, "root begins");
	html_table_body(&t);
	for (size_t i = 0; i < f->count; i++)
		put_host_row(&t, &f->hosts[i]);
	html_table_end(&t);
	doc_put(d, "</details>\n");
}

static void put_files(struct doc *d, const struct fleet *f)
{
	struct html_table t;

	doc_put(d, "<details><summary>Summary, output and whole root of each</summary>\n");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "host");
	html_column(&t, TERMS, "summary");
	html_column(&t, TERMS, "output");
	html_column(&t, TERMS, "root");
	html_table_body(&t);
	for (size_t i = 0; i < f->count; i++) {
		html_row(&t);
		fleet_put_host(&t, &f->hosts[i]);
		html_text(&t, f->hosts[i].file);
		html_text(&t, f->hosts[i].output ? f->hosts[i].output : "none");
		put_root_cell(&t, &f->hosts[i]);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</details>\n");
}

static const struct section {
	const char *id, *title;
	bool part; /* of the section before it: no link of its own leads there */
	bool (*has)(const struct fleet *f); /* NULL: always */
	void (*put)(struct doc *d, const struct fleet *f);
} sections[] = {
	{ "codes", "How they ended, and what to do", .put = put_codes },
	{ "failures", "Not complete, and why", false, has_failures, put_failures },
	{ "unread", "Files that are not summaries", true, has_faults, put_broken_files },
	{ "twice", "The same identity more than once", false, fleet_has_twice, fleet_put_twice },
	{ "sizes", "Time and size", false, fleet_has_dots, fleet_put_dots },
	{ "smear", "Largest smear", true, NULL, fleet_put_smear },
	{ "kernels", "Kernels and versions", .put = fleet_put_kernels },
	{ "tools", "Versions of ramseal", true, NULL, fleet_put_tools },
	{ "hosts", "All hosts", .put = put_hosts },
	{ "files", "Files and roots", true, NULL, put_files },
};

/*
 * The head
 */

static size_t count_rating(const struct fleet *f, enum rating j)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++)
		n += fleet_rating(&f->hosts[i]) == j;
	return n;
}

static void put_counted(struct doc *d, enum rating j, size_t n, const char *one, const char *more)
{
	char text[128];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%zu %s", n, n == 1 ? one : more);
	doc_put(d, "<p>");
	rating_put(d, j, text);
	doc_put(d, "</p>\n");
}

static void put_fleet_outcome(struct doc *d, const struct fleet *f)
{
	const size_t good = count_rating(f, RATING_GOOD), fair = count_rating(f, RATING_FAIR);
	const size_t bad = f->count - good - fair;
	const enum rating worst = bad || f->n_broken || !f->count ? RATING_BAD
				  : fair                          ? RATING_FAIR
								  : RATING_GOOD;
	char headline[96];

	if (good == f->count && good)
		snprintf(headline, sizeof(headline), "All %zu complete", good);
	else
		snprintf(headline, sizeof(headline), "%zu of %zu complete", good, f->count);
	doc_printf(d, "<div class=\"outcome %s\" id=\"outcome\">\n<p class=\"headline\">",
		   rating_style(worst));
	rating_put(d, worst, headline);
	doc_put(d, "</p>\n");
	put_counted(d, RATING_FAIR, fair, "is complete, with gaps", "are complete, with gaps");
	put_counted(d, RATING_BAD, bad, "is not complete", "are not complete");
	put_counted(d, RATING_BAD, f->n_broken, "file is not a readable summary",
		    "files are not readable summaries");
	doc_put(d, "</div>\n");
}

static uint64_t sum_over_hosts(const struct fleet *f, uint64_t (*of)(const struct fleet_host *h))
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->count; i++) {
		const uint64_t n = of(&f->hosts[i]);

		if (n != FLEET_UNKNOWN && n < UINT64_MAX - sum)
			sum += n;
	}
	return sum;
}

static uint64_t host_memory_of(const struct fleet_host *h)
{
	return h->memory;
}

static uint64_t written_of(const struct fleet_host *h)
{
	return h->written;
}

static void put_fleet_cards(struct doc *d, const struct fleet *f)
{
	doc_put(d, "<div class=\"cards\">\n<div class=\"card\"><b>");
	doc_size(d, sum_over_hosts(f, host_memory_of));
	doc_put(d, "</b><span>of memory read</span></div>\n<div class=\"card\"><b>");
	doc_size(d, sum_over_hosts(f, written_of));
	doc_put(d, "</b><span>written</span></div>\n</div>\n");
}

static bool is_section_there(const struct section *s, const struct fleet *f)
{
	return !s->has || s->has(f);
}

void page_of_fleet(struct doc *d, const struct fleet *f)
{
	page_begin(d, "Memory acquisitions of a fleet", NULL,
		   "ramseal: memory acquisitions of a fleet");
	doc_put(d, "<header>\n<h1>Memory acquisitions of ");
	doc_count(d, f->count);
	doc_put(d, f->count == 1 ? " host</h1>\n" : " hosts</h1>\n");
	doc_put(d, "<p class=\"soft\">This is what ramseal said on each host, and a host under "
		   "somebody else's control can say anything. Only the containers can be "
		   "verified.</p>\n");
	put_fleet_outcome(d, f);
	put_fleet_cards(d, f);
	doc_put(d, "<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!sections[i].part && is_section_there(&sections[i], f))
			doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id,
				   sections[i].title);
	doc_put(d, "</nav>\n</header>\n<main>\n");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (!is_section_there(&sections[i], f))
			continue;
		(sections[i].part ? page_part : page_section)(d, sections[i].id, sections[i].title);
		sections[i].put(d, f);
		page_section_end(d);
	}
	page_end(d);
}
