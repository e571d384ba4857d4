/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far page tables and pages belong together: METHOD.md in numbers.
 */
#include <inttypes.h>

#include "agent/report/one.h"
#include "agent/smear/report.h"

#define PROCESS_ROWS 60 /* of the table; the rest is summed */

static void put_copy(struct doc *d, const struct copy_sums *c, enum copy copy)
{
	uint64_t trust[TRUSTS], all;

	copy_trust(c, trust);
	all = trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
	doc_printf(d, "<tr><th scope=\"row\">%s</th>", copy_name(copy));
	html_number(d, c->tables);
	for (size_t i = 0; i < TRUSTS; i++) {
		html_number(d, trust[i]);
		html_share(d, trust[i], all);
	}
	html_duration(d, c->window[WINDOW_FRAMES].median);
	html_duration(d, c->window[WINDOW_FRAMES].p95);
	html_duration(d, c->window[WINDOW_FRAMES].max);
	doc_put(d, "</tr>\n");
}

static void put_copies(struct doc *d, const struct smear *s)
{
	html_table(d, "Pages of 4 KiB that each copy of the page tables names",
		   "<a class=\"term\" href=\"#d-copy\">copy</a>");
	html_column(d, TERM_TABLES, "table pages");
	html_column_of_two(d, TERM_SAFE, "safe");
	html_column_of_two(d, TERM_RISK, "at risk");
	html_column_of_two(d, TERM_WRONG, "wrong");
	html_column(d, TERM_WINDOW, "median window");
	html_column(d, TERM_QUANTILE, "95 %");
	html_column(d, TERM_QUANTILE, "maximum");
	html_table_body(d);
	for (size_t i = 0; i < COPIES; i++)
		put_copy(d, &s->total.copy[i], (enum copy)i);
	html_table_end(d);
}

static bool verdict_occurs(const struct smear *s, size_t v)
{
	for (size_t i = 0; i < COPIES; i++)
		if (s->total.copy[i].frames[v] || s->total.copy[i].slots[v])
			return true;
	return false;
}

static void put_reasons(struct doc *d, const struct smear *s)
{
	doc_put(d, "<details><summary>Reasons, for frames and for slots</summary>\n");
	html_table(d, "Pages by verdict and reason; the first reason that applies",
		   "<a class=\"term\" href=\"#d-trust\">verdict</a>");
	doc_put(d, "<th scope=\"col\">reason</th>");
	for (size_t i = 0; i < COPIES; i++)
		doc_printf(d,
			   "<th class=\"n\" scope=\"col\">%s: frames</th>"
			   "<th class=\"n\" scope=\"col\">%s: slots</th>",
			   copy_name((enum copy)i), copy_name((enum copy)i));
	html_table_body(d);
	for (size_t v = 0; v < VERDICTS; v++) {
		const enum trust t = verdict_trust((enum verdict)v);

		if (!verdict_occurs(s, v))
			continue;
		doc_put(d, "<tr><td>");
		glossary_link(d,
			      t == TRUST_SAFE      ? TERM_SAFE
			      : t == TRUST_AT_RISK ? TERM_RISK
						   : TERM_WRONG,
			      t == TRUST_AT_RISK ? "at risk" : trust_name(t));
		doc_printf(d, "</td><td>%s</td>",
			   v == VERDICT_SAFE ? "" : verdict_name((enum verdict)v));
		for (size_t i = 0; i < COPIES; i++) {
			html_number(d, s->total.copy[i].frames[v]);
			html_number(d, s->total.copy[i].slots[v]);
		}
		doc_put(d, "</tr>\n");
	}
	html_table_end(d);
	doc_put(d, "</details>\n");
}

/* Why a section of smear is empty is said in the first one. */
static bool put_no_smear(struct doc *d, const struct run *r)
{
	if (r->origin.still)
		doc_put(d,
			"<p>Not applicable: <a href=\"#smear\">it is an image's memory</a>.</p>\n");
	else if (!r->has_smear)
		doc_put(d, "<p>Not known: <a href=\"#smear\">page tables and memory could not be "
			   "compared</a>.</p>\n");
	return !r->has_smear;
}

/* What the scan for roots found beside the list of processes. */
static void put_scan(struct doc *d, const struct run *r)
{
	json_t *line;
	size_t i;

	json_array_foreach(r->lines, i, line)
	{
		const int64_t hidden = run_integer(line, "scan", "hidden");
		const int64_t missed = run_integer(line, "scan", "missed");
		const int64_t unlisted = run_integer(line, "scan", "unlisted");

		if (hidden < 0 || missed < 0)
			continue;
		doc_put(d, " Of the roots of address spaces found in memory, ");
		doc_count(d, (uint64_t)hidden);
		doc_put(d, hidden == 1 ? " is " : " are ");
		glossary_link(d, TERM_HIDDEN, "hidden");
		doc_put(d, " from the list of processes; of the processes listed, ");
		doc_count(d, (uint64_t)missed);
		doc_put(d, missed == 1 ? " was" : " were");
		doc_put(d, " not found so.");
		if (unlisted <= 0)
			continue;
		doc_put(d, " Of ");
		doc_count(d, (uint64_t)unlisted);
		doc_put(d,
			" more nobody knows whether the list has them, because it is not whole.");
	}
}

static void put_layout(struct doc *d, const struct smear *s)
{
	doc_put(d, " Entries of ");
	doc_text(d, discover_os_name(s->spaces.os));
	doc_put(d, ", layout ");
	doc_text(d, s->layout.name);
	doc_put(d, " (");
	html_strange(d, s->layout.reason);
	doc_put(d, ").");
}

/*
 * An image has one moment: what is there of what its tables name, and why there is no more to
 * say.
 */
static void put_image(struct doc *d, const struct run *r)
{
	const struct smear *s = &r->smear;
	char sentence[SMEAR_SENTENCE_MAX] = SMEAR_NOT_APPLICABLE ".";

	if (r->has_counts)
		smear_sentence(s, COPY_IMAGE, sentence);
	doc_put(d, "<p>");
	doc_text(d, sentence);
	doc_put(d, "</p>\n<p class=\"soft\">");
	if (r->has_counts && s->count) {
		doc_count(d, s->count);
		doc_put(d, " address spaces.");
		put_layout(d, s);
	}
	put_scan(d, r);
	doc_put(d, "</p>\n");
	glossary_links(d, TERMS_OF(TERM_NOT_APPLICABLE, TERM_WRONG, TERM_SPACE, TERM_HIDDEN,
				   TERM_LAYOUT, TERM_METHOD));
}

void section_smear(struct doc *d, const struct run *r)
{
	const struct smear *s = &r->smear;
	char sentence[SMEAR_SENTENCE_MAX];

	if (r->origin.still) {
		put_image(d, r);
		return;
	}
	if (!r->has_smear) {
		doc_put(d, "<p>Not known: page tables and memory could not be compared: ");
		html_strange(d, r->no_smear);
		doc_put(d, ".</p>\n");
		return;
	}
	smear_sentence(s, COPY_IMAGE, sentence);
	doc_put(d, "<p>");
	doc_text(d, sentence);
	doc_put(d, "</p>\n");
	put_copies(d, s);
	put_reasons(d, s);
	doc_put(d, "<p class=\"soft\">");
	doc_count(d, s->count);
	doc_put(d, " address spaces: ");
	for (size_t i = 0; i < FATES; i++) {
		doc_put(d, i ? ", " : "");
		doc_count(d, s->fates[i]);
		doc_printf(d, " %s", fate_name((enum fate)i));
	}
	doc_put(d, " between the passes.");
	put_layout(d, s);
	put_scan(d, r);
	if (s->slots_doubt) {
		doc_put(d, " No slot is called safe: ");
		doc_text(d, s->slots_doubt);
		doc_put(d, ".");
	}
	for (size_t i = 0; i < s->n_file_doubts; i++) {
		doc_put(d, " Which part of ");
		html_strange(d, s->file_doubts[i].file);
		doc_put(d, " each slot is, is not known, so that none of them is called safe: ");
		html_strange(d, s->file_doubts[i].why);
		doc_put(d, ".");
	}
	doc_put(d, "</p>\n");
	if (s->spaces.cut || s->cut || s->total.copy[COPY_BEFORE].cut ||
	    s->total.copy[COPY_AFTER].cut)
		doc_put(d, "<p><b class=\"bad\">Not all tables are in these numbers.</b> A pass or "
			   "the "
			   "measure was cut short.</p>\n");
	glossary_links(d, TERMS_OF(TERM_COPY, TERM_SAFE, TERM_RISK, TERM_WRONG, TERM_WINDOW,
				   TERM_QUANTILE, TERM_SPACE, TERM_FATE, TERM_HIDDEN, TERM_LAYOUT,
				   TERM_METHOD));
}

void section_windows(struct doc *d, const struct run *r)
{
	if (put_no_smear(d, r))
		return;
	doc_put(d, "<figure>");
	figure_of_windows(d, r, 1, SVG_WIDE);
	doc_put(d, "<figcaption>Each page that an entry names, by the span of time over which the "
		   "entry and its content were read; pages whose content was captured.</figcaption>"
		   "</figure>\n");
	glossary_links(d, TERMS_OF(TERM_WINDOW, TERM_QUANTILE, TERM_COPY, TERM_PAGE));
}

static void put_changes(struct doc *d, const struct smear *s)
{
	doc_put(d, "<details><summary>Changes in numbers</summary>\n");
	html_table(d, "Pages of address space by what became of their entry",
		   "<a class=\"term\" href=\"#d-change\">change</a>");
	for (size_t p = 0; p < PAIRS; p++)
		doc_printf(d, "<th class=\"n\" scope=\"col\">%s</th>", pair_name((enum pair)p));
	html_table_body(d);
	for (size_t i = 0; i < CHANGES; i++) {
		doc_printf(d, "<tr><th scope=\"row\">%s</th>", change_name((enum change)i));
		for (size_t p = 0; p < PAIRS; p++)
			html_number(d, s->total.pair[p].change[i]);
		doc_put(d, "</tr>\n");
	}
	html_table_end(d);
	doc_put(d, "</details>\n");
}

void section_transitions(struct doc *d, const struct run *r)
{
	const struct smear *s = &r->smear;

	if (put_no_smear(d, r))
		return;
	if (!s->total.pair[PAIR_BEFORE_AFTER].n_states) {
		doc_put(d, "<p>No address space lived from one pass to the other with an entry in "
			   "it.</p>\n");
		return;
	}
	doc_put(d, "<figure>");
	figure_of_pair(d, s, PAIR_BEFORE_AFTER, SVG_WIDE);
	doc_put(d,
		"<figcaption>Pages of address space by the state of their entry in the pass before "
		"and in the pass after.</figcaption></figure>\n");
	for (size_t p = PAIR_BEFORE_AFTER + 1; p < PAIRS; p++) {
		doc_printf(d, "<details><summary>The same, %s</summary>\n<figure>",
			   p == PAIR_BEFORE_IMAGE ? "from before to the image"
						  : "from the image to after");
		figure_of_pair(d, s, (enum pair)p, SVG_WIDE);
		doc_put(d, "</figure></details>\n");
	}
	put_changes(d, s);
	glossary_links(d, TERMS_OF(TERM_MATRIX, TERM_STATE, TERM_CHANGE, TERM_STABLE, TERM_RIGHTS,
				   TERM_REMAPPED, TERM_TRIMMED, TERM_PAGED, TERM_APPEARED,
				   TERM_OTHER));
}

/*
 * Processes
 */

static void put_process(struct doc *d, const struct smear_space *s)
{
	const struct copy_sums *c = &s->copy[COPY_IMAGE];
	uint64_t trust[TRUSTS], groups[GROUPS];

	copy_trust(c, trust);
	group_states(c, groups);
	if (s->id.listed)
		doc_printf(d, "<tr><td class=\"n\">%" PRIu32 "</td><td class=\"wrap\">", s->id.pid);
	else
		doc_put(d, "<tr><td></td><td class=\"wrap\">");
	html_strange(d, s->id.listed ? s->id.name : "(not listed)");
	doc_printf(d, "</td><td class=\"mono\">0x%" PRIx64 "</td><td>%s</td>", s->id.dtb,
		   fate_name(s->id.fate));
	for (size_t i = 0; i < TRUSTS; i++)
		html_number(d, trust[i]);
	for (size_t i = 0; i < GROUPS; i++)
		html_number(d, groups[i]);
	html_duration(d, c->window[WINDOW_FRAMES].median);
	doc_put(d, "</tr>\n");
}

/* The processes that have no row of their own, in one. */
static void put_others(struct doc *d, const struct smear_space *const *at, size_t count)
{
	uint64_t trusts[TRUSTS] = { 0 }, groups[GROUPS] = { 0 };

	if (!count)
		return;
	for (size_t k = 0; k < count; k++) {
		uint64_t trust[TRUSTS], group[GROUPS];

		copy_trust(&at[k]->copy[COPY_IMAGE], trust);
		group_states(&at[k]->copy[COPY_IMAGE], group);
		for (size_t i = 0; i < TRUSTS; i++)
			trusts[i] += trust[i];
		for (size_t i = 0; i < GROUPS; i++)
			groups[i] += group[i];
	}
	doc_put(d, "<tr class=\"sum\"><td></td><td>");
	doc_count(d, count);
	doc_put(d, " others</td><td></td><td></td>");
	for (size_t i = 0; i < TRUSTS; i++)
		html_number(d, trusts[i]);
	for (size_t i = 0; i < GROUPS; i++)
		html_number(d, groups[i]);
	doc_put(d, "<td></td></tr>\n");
}

static void put_process_table(struct doc *d, const struct smear *s)
{
	_cleanup_free_ const struct smear_space **order = spaces_sorted(s, compare_risk);
	const size_t shown = MIN(s->count, (size_t)PROCESS_ROWS);

	if (!order) {
		d->lost = true;
		return;
	}
	doc_put(d, "<details><summary>The same in numbers</summary>\n");
	html_table(d, "Pages of 4 KiB by the image's own tables", "PID");
	doc_put(d, "<th scope=\"col\">name</th><th scope=\"col\">DTB</th><th scope=\"col\">");
	glossary_link(d, TERM_FATE, "fate");
	doc_put(d, "</th>");
	html_column(d, TERM_SAFE, "safe");
	html_column(d, TERM_RISK, "at risk");
	html_column(d, TERM_WRONG, "wrong");
#define X(name, text, series) html_column(d, TERM_GROUPED, text);
	GROUP_MAP(X)
#undef X
	html_column(d, TERM_QUANTILE, "median window");
	html_table_body(d);
	for (size_t i = 0; i < shown; i++)
		put_process(d, order[i]);
	put_others(d, order + shown, s->count - shown);
	html_table_end(d);
	doc_put(d, "</details>\n");
}

static void put_rest_note(struct doc *d, const struct smear *s, const char *by)
{
	doc_put(d, "<figcaption>Address spaces by the image's own tables, ");
	doc_put(d, by);
	doc_put(d, "; the PID in brackets.");
	if (s->count > PAGE_PROCESSES) {
		doc_put(d, " The last bar sums the ");
		doc_count(d, s->count - PAGE_PROCESSES);
		doc_put(d, " that have none of their own.");
	}
	doc_put(d, "</figcaption></figure>\n");
}

/* Those of an image: what is there of each. */
static void put_image_process(struct doc *d, const struct smear_space *s)
{
	const struct copy_sums *c = &s->copy[COPY_IMAGE];
	uint64_t trust[TRUSTS], groups[GROUPS];

	copy_trust(c, trust);
	group_states(c, groups);
	if (s->id.listed)
		doc_printf(d, "<tr><td class=\"n\">%" PRIu32 "</td><td class=\"wrap\">", s->id.pid);
	else
		doc_put(d, "<tr><td></td><td class=\"wrap\">");
	html_strange(d, s->id.listed ? s->id.name : "(not listed)");
	doc_printf(d, "</td><td class=\"mono\">0x%" PRIx64 "</td>", s->id.dtb);
	html_number(d, copy_not_applicable(c));
	html_number(d, trust[TRUST_WRONG]);
	html_number(d, trust[TRUST_AT_RISK]);
	for (size_t i = 0; i < GROUPS; i++)
		html_number(d, groups[i]);
	doc_put(d, "</tr>\n");
}

static void put_image_processes(struct doc *d, const struct smear *s)
{
	_cleanup_free_ const struct smear_space **order = spaces_sorted(s, compare_risk);
	const size_t shown = MIN(s->count, (size_t)PROCESS_ROWS);

	if (!order) {
		d->lost = true;
		return;
	}
	html_table(d, "Pages of 4 KiB by the image's own tables; those that lack the most first",
		   "PID");
	doc_put(d, "<th scope=\"col\">name</th><th scope=\"col\">DTB</th>");
	html_column(d, TERM_NOT_APPLICABLE, "in the image");
	html_column(d, TERM_WRONG, "missing");
	html_column(d, TERM_RISK, "not known");
#define X(name, text, series) html_column(d, TERM_GROUPED, text);
	GROUP_MAP(X)
#undef X
	html_table_body(d);
	for (size_t i = 0; i < shown; i++)
		put_image_process(d, order[i]);
	html_table_end(d);
	if (shown < s->count) {
		doc_put(d, "<p class=\"soft\">");
		doc_count(d, s->count - shown);
		doc_put(d, " more have no row of their own.</p>\n");
	}
	glossary_links(d, TERMS_OF(TERM_NOT_APPLICABLE, TERM_WRONG, TERM_SPACE, TERM_GROUPED));
}

void section_processes(struct doc *d, const struct run *r)
{
	if (r->has_counts && r->smear.count) {
		put_image_processes(d, &r->smear);
		return;
	}
	if (put_no_smear(d, r))
		return;
	doc_put(d, "<figure>");
	figure_of_processes(d, r, 1, SVG_WIDE);
	put_rest_note(d, &r->smear, "those with the most pages at risk or wrong first");
	put_process_table(d, &r->smear);
	glossary_links(d, TERMS_OF(TERM_SAFE, TERM_RISK, TERM_WRONG, TERM_SPACE, TERM_FATE,
				   TERM_GROUPED, TERM_WINDOW));
}

/* An image has its own tables, and no others. */
static bool is_shown(const struct run *r, size_t copy)
{
	return !r->has_counts || copy == COPY_IMAGE;
}

void section_states(struct doc *d, const struct run *r)
{
	const struct smear *s = &r->smear;

	if (!(r->has_counts && s->count) && put_no_smear(d, r))
		return;
	doc_put(d, "<figure>");
	figure_of_states(d, r, 1, SVG_WIDE);
	put_rest_note(d, s, "those with the most pages first");
	doc_put(d, "<details><summary>All states in numbers</summary>\n");
	html_table(d, "Pages of 4 KiB by the state of their entry, all address spaces",
		   "<a class=\"term\" href=\"#d-state\">state</a>");
	for (size_t i = 0; i < COPIES; i++)
		if (is_shown(r, i))
			doc_printf(d, "<th class=\"n\" scope=\"col\">%s</th>",
				   copy_name((enum copy)i));
	html_table_body(d);
	for (size_t k = 0; k < PTE_STATES; k++) {
		if (!s->total.copy[COPY_BEFORE].state[k] && !s->total.copy[COPY_IMAGE].state[k] &&
		    !s->total.copy[COPY_AFTER].state[k])
			continue;
		doc_printf(d, "<tr><th scope=\"row\">%s</th>", pte_state_name((enum pte_state)k));
		for (size_t i = 0; i < COPIES; i++)
			if (is_shown(r, i))
				html_number(d, s->total.copy[i].state[k]);
		doc_put(d, "</tr>\n");
	}
	html_table_end(d);
	doc_put(d, "</details>\n");
	glossary_links(d, TERMS_OF(TERM_STATE, TERM_GROUPED, TERM_PLACE, TERM_COPY));
}
