/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far page tables and pages belong together: METHOD.md in numbers.
 */
#include <inttypes.h>

#include "agent/examine/report/host/one.h"
#include "agent/examine/smear/print.h"

#define PROCESS_ROWS 60 /* of the table; the rest is summed */

static void put_copy_row(struct html_table *t, const struct smear *s, enum copy copy)
{
	const struct copy_sums *c = &s->total.copy[copy];
	const struct window_summary *w = &c->window[WINDOW_FRAMES];
	uint64_t trust[TRUSTS], all;

	smear_trust(s, copy, trust);
	all = trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
	html_row(t);
	html_text(t, copy_name(copy));
	html_number(t, c->tables);
	for (size_t i = 0; i < TRUSTS; i++)
		html_number_of(t, trust[i], all);
	html_duration(t, w->median);
	html_duration(t, w->p95);
	html_duration(t, w->max);
	html_row_end(t);
}

static void put_copies(struct doc *d, const struct smear *s)
{
	struct html_table t;

	html_table(&t, d,
		   "Pages of 4 KiB that each copy of the page tables names, in "
		   "processes that lived");
	html_column(&t, TERM_COPY, "copy");
	html_column_of_numbers(&t, TERM_TABLES, "table pages");
	html_column_of_numbers(&t, TERM_SAFE, "safe");
	html_column_of_numbers(&t, TERM_RISK, "at risk");
	html_column_of_numbers(&t, TERM_WRONG, "wrong");
	html_column_of_numbers(&t, TERM_WINDOW, "median window");
	html_column_of_numbers(&t, TERM_QUANTILE, "95 %");
	html_column_of_numbers(&t, TERM_QUANTILE, "maximum");
	html_table_body(&t);
	for (size_t i = 0; i < COPIES; i++)
		put_copy_row(&t, s, (enum copy)i);
	html_table_end(&t);
}

static bool verdict_occurs(const struct smear *s, size_t v)
{
	for (size_t i = 0; i < COPIES; i++)
		if (s->total.copy[i].frames[v] || s->total.copy[i].slots[v])
			return true;
	return false;
}

/* "before: frames" for each copy, and for slots. */
struct column_names {
	char at[2 * COPIES][32];
};

static void put_verdict_row(struct html_table *t, const struct smear *s, enum verdict v)
{
	static const struct {
		enum term term;
		const char *text;
	} trusts[TRUST_KINDS] = {
		[TRUST_SAFE] = { TERM_SAFE, "safe" },
		[TRUST_AT_RISK] = { TERM_RISK, "at risk" },
		[TRUST_WRONG] = { TERM_WRONG, "wrong" },
		[TRUST_NOT_APPLICABLE] = { TERM_NOT_APPLICABLE, "not applicable" },
	};
	const enum trust trust = verdict_trust(v);

	html_row(t);
	html_cell(t, "");
	glossary_link(t->d, trusts[trust].term, trusts[trust].text);
	doc_printf(t->d, "%s%s", v == VERDICT_SAFE ? "" : ": ",
		   v == VERDICT_SAFE ? "" : verdict_name(v));
	html_cell_end(t);
	for (size_t i = 0; i < COPIES; i++) {
		html_number(t, s->total.copy[i].frames[v]);
		html_number(t, s->total.copy[i].slots[v]);
	}
	html_row_end(t);
}

static void put_reasons(struct doc *d, const struct smear *s)
{
	struct column_names names;
	struct html_table t;

	doc_put(d, "<details><summary>Reasons, for frames and for slots</summary>\n");
	html_table(&t, d, "Pages by verdict and reason; the first reason that applies");
	html_column(&t, TERM_TRUST, "verdict");
	for (size_t i = 0; i < 2 * COPIES; i++) {
		snprintf(names.at[i], sizeof(names.at[i]), "%s: %s", copy_name((enum copy)(i / 2)),
			 i % 2 ? "slots" : "frames");
		html_column_of_numbers(&t, TERM_PLACE, names.at[i]);
	}
	html_table_body(&t);
	for (size_t v = 0; v < VERDICTS; v++)
		if (verdict_occurs(s, v))
			put_verdict_row(&t, s, (enum verdict)v);
	html_table_end(&t);
	doc_put(d, "</details>\n");
}

/* What the scan for roots found beside the list of processes. */
static void put_scan(struct doc *d, const struct report_run *r)
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
		glossary_say(d,
			     " Of the roots of address spaces found in memory, %" PRIu64
			     " %s [%u hidden] from the list of processes; of the processes "
			     "listed, %" PRIu64 " %s not found in this way.",
			     (uint64_t)hidden, hidden == 1 ? "is" : "are", TERM_HIDDEN,
			     (uint64_t)missed, missed == 1 ? "was" : "were");
		if (unlisted > 0)
			glossary_say(d,
				     " For %" PRIu64 " more it is not known whether the list has "
				     "them, because the list is incomplete.",
				     (uint64_t)unlisted);
	}
}

bool has_smear(const struct report_run *r)
{
	return r->has_smear;
}

bool has_tables(const struct report_run *r)
{
	return r->has_smear || (r->has_counts && r->smear.count);
}

static void put_layout(struct doc *d, const struct smear *s)
{
	char unknown[SMEAR_UNKNOWN_MAX];

	glossary_say(d, " Entries of %s, [%u layout] %s (", discover_os_name(s->spaces.os),
		     TERM_LAYOUT, s->layout.name);
	html_strange(d, s->layout.reason);
	doc_put(d, ").");
	if (s->layout.doubt[0]) {
		doc_put(d, " <b class=\"bad\">In doubt:</b> ");
		html_strange(d, s->layout.doubt);
		doc_put(d, ".");
	}
	smear_unknown_text(s, unknown);
	if (*unknown)
		glossary_say(d, " Of these tables %s.", unknown);
	if (s->store >= 0)
		glossary_say(d, " Page file %" PRIu64 " is the compression store (%s).",
			     (uint64_t)s->store, s->store_by);
}

static void put_spaces(struct doc *d, const struct smear *s)
{
	glossary_say(d, "%" PRIu64 " [%u address spaces]%s", (uint64_t)s->count, TERM_SPACE,
		     s->still ? "." : ": ");
	if (s->still)
		return;
	for (size_t i = 0; i < FATES; i++)
		glossary_say(d, "%s%" PRIu64 " [%u %s]", i ? ", " : "", (uint64_t)s->fates[i],
			     TERM_FATE, fate_name((enum fate)i));
	doc_put(d, " between the passes.");
}

/* What to do with it, and who is not in the numbers. */
static void put_advice(struct doc *d, const struct smear *s)
{
	static const char *const text[COHORTS] = {
		[COHORT_ENDED] = "ended between the passes",
		[COHORT_BORN] = "were born between the passes",
		[COHORT_OTHER_ROOT] = "have a root page that holds something else in the image",
		[COHORT_TORN] = "have torn tables in the image; pages below these",
	};
	char advice[SMEAR_ADVICE_MAX];

	smear_advice_text(s, COPY_IMAGE, advice);
	if (*advice)
		glossary_say(d, "<p>%s</p>\n", advice);
	for (size_t c = COHORT_LIVED + 1; c < COHORTS; c++) {
		const struct cohort_sums *x = &s->cohorts[c];

		if (x->spaces)
			glossary_say(d,
				     "<p class=\"soft\">Counted separately: %" PRIu64
				     " %s: %" PRIu64 " pages safe, %" PRIu64 " at risk, %" PRIu64
				     " wrong.</p>\n",
				     x->spaces, text[c], x->trust[COPY_IMAGE][TRUST_SAFE],
				     x->trust[COPY_IMAGE][TRUST_AT_RISK],
				     x->trust[COPY_IMAGE][TRUST_WRONG]);
	}
}

/* Which page file a number means, as content says; a contradiction is judged. */
static void put_file_numbers(struct doc *d, const struct smear *s)
{
	char text[SMEAR_NUMBER_MAX];

	for (size_t i = 0; i < s->n_numbers; i++) {
		const bool bad = s->numbers[i].numbering == NUMBERING_CONTRADICTED;

		smear_number_text(&s->numbers[i], text);
		if (bad)
			doc_put(d,
				" <b class=\"bad\">The numbers of page files are mixed up:</b> ");
		glossary_say(d, "%s%s.", bad ? "" : " Judged by content, ", text);
	}
}

void section_smear(struct doc *d, const struct report_run *r)
{
	const struct smear *s = &r->smear;
	char sentence[SMEAR_SENTENCE_MAX];

	smear_sentence(s, COPY_IMAGE, sentence);
	glossary_say(d, "<p>%s [%u How it is measured].</p>\n", sentence, TERM_METHOD);
	put_advice(d, s);
	if (s->spaces.cut || s->cut || s->total.copy[COPY_BEFORE].cut ||
	    s->total.copy[COPY_AFTER].cut)
		doc_put(d, "<p><b class=\"bad\">These numbers do not cover all tables.</b> A pass, "
			   "or the measurement, was cut short.</p>\n");
	if (!s->still) {
		put_copies(d, s);
		put_reasons(d, s);
	}
	doc_put(d, "<p class=\"soft\">");
	put_spaces(d, s);
	put_layout(d, s);
	put_scan(d, r);
	if (s->slots_doubt && !s->still) {
		doc_put(d, s->slots_doubt_looked
				   ? " No slot that was not looked up in the swap cache is called "
				     "safe: "
				   : " No slot is called safe: ");
		html_strange(d, s->slots_doubt);
		doc_put(d, ".");
	}
	put_file_numbers(d, s);
	for (size_t i = 0; i < s->n_file_doubts; i++) {
		doc_put(d, " It is not known which part of ");
		html_strange(d, s->file_doubts[i].file);
		doc_put(d, " each slot is, so none of them is called safe: ");
		html_strange(d, s->file_doubts[i].why);
		doc_put(d, ".");
	}
	doc_put(d, "</p>\n");
}

void section_windows(struct doc *d, const struct report_run *r)
{
	page_figure_begin(d, figure_of_windows, r, 1);
	glossary_say(d,
		     "<figcaption>Each page that an entry names, by its [%u mapping window]: the "
		     "span of time over which the entry and its content were read. Only pages "
		     "whose content was captured.</figcaption>",
		     TERM_WINDOW);
	page_figure_end(d);
}

static uint64_t pages_of_moment(const struct smear_moment *m)
{
	return m->trust[TRUST_SAFE] + m->trust[TRUST_AT_RISK] + m->trust[TRUST_WRONG];
}

bool has_moments(const struct report_run *r)
{
	for (size_t i = 0; r->has_smear && i < SMEAR_MOMENTS; i++)
		if (pages_of_moment(&r->smear.moments[i]))
			return true;
	return false;
}

void section_moments(struct doc *d, const struct report_run *r)
{
	const uint64_t span = r->smear.memory.end - r->smear.memory.start;
	struct html_table t;

	page_figure_begin(d, figure_of_moments, r, 1);
	glossary_say(d,
		     "<figcaption>Of the frames that the image's tables name in processes that "
		     "lived, and that were captured in that part of the time, so many are [%u at "
		     "risk]. Where there is no bar, no such frame was captured.</figcaption>",
		     TERM_RISK);
	page_figure_end(d);
	doc_put(d, "<details><summary>The same in numbers</summary>\n");
	doc_put(d, "<div class=\"slim\">");
	html_table(&t, d, "Frames by when they were captured, since the first page of memory");
	html_column_of_numbers(&t, TERM_CAPTURE, "from");
	html_column_of_numbers(&t, TERM_PAGE, "pages");
	html_column_of_numbers(&t, TERM_RISK, "at risk");
	html_table_body(&t);
	for (size_t i = 0; i < SMEAR_MOMENTS; i++) {
		const struct smear_moment *m = &r->smear.moments[i];

		if (!pages_of_moment(m))
			continue;
		html_row(&t);
		html_duration(&t, span / SMEAR_MOMENTS * i);
		html_number(&t, pages_of_moment(m));
		html_number_of(&t, m->trust[TRUST_AT_RISK], pages_of_moment(m));
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</div></details>\n");
}

/*
 * Changes
 */

static enum term change_term(enum change c)
{
	switch (c) {
	case CHANGE_STABLE:
		return TERM_STABLE;
	case CHANGE_RIGHTS:
		return TERM_RIGHTS;
	case CHANGE_REMAPPED:
		return TERM_REMAPPED;
	case CHANGE_TRIMMED:
	case CHANGE_RECALLED:
		return TERM_TRIMMED;
	case CHANGE_PAGED_OUT:
	case CHANGE_PAGED_IN:
	case CHANGE_MOVED:
		return TERM_PAGED;
	case CHANGE_APPEARED:
	case CHANGE_GONE:
		return TERM_APPEARED;
	default:
		return TERM_OTHER;
	}
}

static void put_changes(struct doc *d, const struct smear *s)
{
	struct html_table t;

	doc_put(d, "<details><summary>Changes in numbers</summary>\n");
	html_table(&t, d, "Pages of address space by how their entry changed");
	html_column(&t, TERM_CHANGE, "change");
	for (size_t p = 0; p < PAIRS; p++)
		html_column_of_numbers(&t, TERM_COPY, pair_name((enum pair)p));
	html_table_body(&t);
	for (size_t i = 0; i < CHANGES; i++) {
		html_row(&t);
		html_cell(&t, "");
		glossary_link(d, change_term((enum change)i), change_name((enum change)i));
		html_cell_end(&t);
		for (size_t p = 0; p < PAIRS; p++)
			html_number(&t, s->total.pair[p].change[i]);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</details>\n");
}

bool has_transitions(const struct report_run *r)
{
	return r->has_smear && r->smear.total.pair[PAIR_BEFORE_AFTER].n_states;
}

static void put_pair(struct doc *d, const struct smear *s, enum pair p)
{
	doc_put(d, "<figure>");
	figure_of_pair(d, s, p, SVG_WIDE);
	figure_of_pair(d, s, p, SVG_NARROW);
}

void section_transitions(struct doc *d, const struct report_run *r)
{
	static const char *const others[PAIRS] = {
		[PAIR_BEFORE_IMAGE] = "The same, from before to the image",
		[PAIR_IMAGE_AFTER] = "The same, from the image to after",
	};
	const struct smear *s = &r->smear;

	put_pair(d, s, PAIR_BEFORE_AFTER);
	glossary_say(d,
		     "<figcaption>Pages of address space by the [%u state of their entry] in the "
		     "pass before and in the pass after: the [%u transition matrix].</figcaption>",
		     TERM_STATE, TERM_MATRIX);
	page_figure_end(d);
	for (size_t p = 0; p < PAIRS; p++) {
		if (!others[p])
			continue;
		doc_printf(d, "<details><summary>%s</summary>\n", others[p]);
		put_pair(d, s, (enum pair)p);
		page_figure_end(d);
		doc_put(d, "</details>\n");
	}
	put_changes(d, s);
}

/*
 * Processes
 */

/* Of one process, or of several. */
struct process_sums {
	uint64_t there; /* of an image: pages that are in it */
	uint64_t trust[TRUSTS];
	uint64_t groups[GROUPS];
};

static void add_process_sums(struct process_sums *sums, const struct copy_sums *c)
{
	uint64_t trust[TRUSTS], groups[GROUPS];

	copy_trust(c, trust);
	group_states(c, groups);
	sums->there += copy_not_applicable(c);
	for (size_t i = 0; i < TRUSTS; i++)
		sums->trust[i] += trust[i];
	for (size_t i = 0; i < GROUPS; i++)
		sums->groups[i] += groups[i];
}

static void put_sums(struct html_table *t, const struct process_sums *sums, bool still)
{
	html_number(t, still ? sums->there : sums->trust[TRUST_SAFE]);
	html_number(t, sums->trust[TRUST_AT_RISK]);
	html_number(t, sums->trust[TRUST_WRONG]);
	for (size_t i = 0; i < GROUPS; i++)
		html_number(t, sums->groups[i]);
}

static void put_process_row(struct html_table *t, const struct smear_space *s, bool still)
{
	const struct copy_sums *c = &s->copy[COPY_IMAGE];
	struct process_sums sums = { 0 };

	add_process_sums(&sums, c);
	html_row(t);
	html_text(t, s->id.listed ? s->id.name : "(not listed)");
	html_cell(t, "n");
	if (s->id.listed)
		doc_printf(t->d, "%" PRIu32, s->id.pid);
	html_cell_end(t);
	html_cell(t, "mono address");
	doc_printf(t->d, "0x%" PRIx64, s->id.dtb);
	html_cell_end(t);
	if (!still) {
		html_cell(t, "");
		doc_put(t->d, fate_name(s->id.fate));
		html_cell_end(t);
	}
	put_sums(t, &sums, still);
	if (!still)
		html_duration(t, c->window[WINDOW_FRAMES].median);
	html_row_end(t);
}

/* The processes that have no row of their own, in one. */
static void put_others(struct html_table *t, const struct smear_space *const *at, size_t count,
		       bool still)
{
	struct process_sums sums = { 0 };

	if (!count)
		return;
	for (size_t k = 0; k < count; k++)
		add_process_sums(&sums, &at[k]->copy[COPY_IMAGE]);
	html_row_of_rest(t);
	html_cell(t, "");
	doc_count(t->d, count);
	doc_put(t->d, " others");
	html_cell_end(t);
	html_cells_empty(t, still ? 2 : 3);
	put_sums(t, &sums, still);
	if (!still)
		html_cells_empty(t, 1);
	html_row_end(t);
}

static void put_process_columns(struct html_table *t, bool still)
{
	static const char *const groups[GROUPS] = {
#define X(name, text, series) [name] = text,
		GROUP_MAP(X)
#undef X
	};

	html_column(t, TERMS, "name");
	html_column_of_numbers(t, TERM_SPACE, "PID");
	html_column(t, TERM_SPACE, "DTB");
	if (!still)
		html_column(t, TERM_FATE, "fate");
	html_column_of_numbers(t, still ? TERM_NOT_APPLICABLE : TERM_SAFE,
			       still ? "in the image" : "safe");
	html_column_of_numbers(t, TERM_RISK, still ? "not known" : "at risk");
	html_column_of_numbers(t, TERM_WRONG, still ? "missing" : "wrong");
	for (size_t i = 0; i < GROUPS; i++)
		html_column_of_numbers(t, TERM_GROUPED, groups[i]);
	if (!still)
		html_column_of_numbers(t, TERM_QUANTILE, "median window");
}

static void put_process_table(struct doc *d, const struct smear *s)
{
	_cleanup_free_ const struct smear_space **order = spaces_sorted(s, compare_risk);
	const size_t shown = MIN(s->count, (size_t)PROCESS_ROWS);
	struct html_table t;

	if (!order) {
		d->lost = true;
		return;
	}
	html_table(&t, d,
		   s->still ? "Pages of 4 KiB by the image's own tables; processes with the most "
			      "missing pages first"
			    : "Pages of 4 KiB by the image's own tables");
	put_process_columns(&t, s->still);
	html_table_body(&t);
	for (size_t i = 0; i < shown; i++)
		put_process_row(&t, order[i], s->still);
	put_others(&t, order + shown, s->count - shown, s->still);
	html_table_end(&t);
}

static void put_rest_note(struct doc *d, const struct smear *s, const char *by)
{
	glossary_say(d,
		     "<figcaption>Address spaces by the image's own tables, %s; PIDs in brackets.",
		     by);
	if (s->count > PAGE_PROCESSES)
		glossary_say(d,
			     " The last bar is the sum of the %" PRIu64
			     " without a bar of their own.",
			     (uint64_t)s->count - PAGE_PROCESSES);
	doc_put(d, "</figcaption>");
	page_figure_end(d);
}

/* The figure is of how far pages can be trusted, and there is none of an image. */
void section_processes(struct doc *d, const struct report_run *r)
{
	const struct smear *s = &r->smear;

	if (s->still) {
		put_process_table(d, s);
		return;
	}
	page_figure_begin(d, figure_of_processes, r, 1);
	put_rest_note(d, s, "those with the most pages at risk or wrong first");
	doc_put(d, "<details><summary>The same in numbers</summary>\n");
	put_process_table(d, s);
	doc_put(d, "</details>\n");
}

static bool state_occurs(const struct smear *s, size_t state)
{
	for (size_t i = 0; i < COPIES; i++)
		if (s->total.copy[i].state[state])
			return true;
	return false;
}

/* An image has its own tables, and no others. */
static bool is_copy_shown(const struct smear *s, size_t copy)
{
	return !s->still || copy == COPY_IMAGE;
}

void section_states(struct doc *d, const struct report_run *r)
{
	const struct smear *s = &r->smear;
	struct html_table t;

	page_figure_begin(d, figure_of_states, r, 1);
	put_rest_note(d, s, "those with the most pages first");
	doc_put(d, "<details><summary>All states in numbers</summary>\n");
	html_table(&t, d, "Pages of 4 KiB by the state of their entry, all address spaces");
	html_column(&t, TERM_STATE, "state");
	for (size_t i = 0; i < COPIES; i++)
		if (is_copy_shown(s, i))
			html_column_of_numbers(&t, TERM_COPY, copy_name((enum copy)i));
	html_table_body(&t);
	for (size_t k = 0; k < PTE_STATES; k++) {
		if (!state_occurs(s, k))
			continue;
		html_row(&t);
		html_text(&t, pte_state_name((enum pte_state)k));
		for (size_t i = 0; i < COPIES; i++)
			if (is_copy_shown(s, i))
				html_number(&t, s->total.copy[i].state[k]);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</details>\n");
}
