/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on one acquisition.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/clock.h"
#include "agent/report/page.h"
#include "agent/smear/report.h"

/* How much of a list is shown. */
#define STREAMS_MAX   40
#define FILES_MAX     40
#define PROCESS_ROWS  60
#define GAPS_MAX      100
#define FACTS_MAX     16
#define TEXT_MAX      300 /* characters of one value */

#define TERMS_OF(...) ((const enum term[]){ __VA_ARGS__, TERMS })

static void number(struct doc *d, uint64_t n)
{
	doc_put(d, "<td class=\"n\">");
	doc_count(d, n);
	doc_put(d, "</td>");
}

static void share(struct doc *d, uint64_t part, uint64_t whole)
{
	doc_put(d, "<td class=\"n\">");
	doc_share(d, part, whole);
	doc_put(d, "</td>");
}

static void size(struct doc *d, uint64_t bytes)
{
	doc_put(d, "<td class=\"n\">");
	doc_size(d, bytes);
	doc_put(d, "</td>");
}

static void duration(struct doc *d, uint64_t ns)
{
	doc_put(d, "<td class=\"n\">");
	doc_duration(d, ns);
	doc_put(d, "</td>");
}

static void column(struct doc *d, enum term t, const char *text)
{
	doc_put(d, "<th class=\"n\" scope=\"col\">");
	glossary_link(d, t, text);
	doc_put(d, "</th>");
}

/* For a number and its share. */
static void column_of_two(struct doc *d, enum term t, const char *text)
{
	doc_put(d, "<th class=\"n\" scope=\"colgroup\" colspan=\"2\">");
	glossary_link(d, t, text);
	doc_put(d, "</th>");
}

static void table(struct doc *d, const char *caption, const char *first)
{
	doc_put(d, "<div class=\"scroll\"><table>");
	if (caption)
		doc_printf(d, "<caption>%s</caption>", caption);
	doc_printf(d, "<thead><tr><th scope=\"col\">%s</th>", first);
}

static void table_body(struct doc *d)
{
	doc_put(d, "</tr></thead><tbody>\n");
}

static void table_end(struct doc *d)
{
	doc_put(d, "</tbody></table></div>\n");
}

/* A row of a name and a value, which the caller puts in. */
static void fact_begin(struct doc *d, const char *name)
{
	doc_printf(d, "<tr><th scope=\"row\">%s</th><td class=\"wrap\">", name);
}

static void fact_end(struct doc *d)
{
	doc_put(d, "</td></tr>\n");
}

static void strange(struct doc *d, const char *text)
{
	doc_put(d, "<bdi>");
	doc_text_cut(d, text, TEXT_MAX);
	doc_put(d, "</bdi>");
}

static void put_hash(struct doc *d, const uint8_t *hash)
{
	char hex[SHA256_HEX_SIZE];

	sha256_hex(hash, hex);
	doc_printf(d, "<span class=\"mono\">%s</span>", hex);
}

/*
 * Whether it is whole
 */

static void put_state(struct doc *d, const struct run *r)
{
	if (!run_is_whole(r))
		doc_text(d, rsz_end_name(r->end.end));
	else
		doc_put(d, r->sealed_later ? "sealed later" : "sealed");
}

static const char *outcome_of(const struct run *r)
{
	const char *outcome = json_string_value(json_object_get(r->finish, "outcome"));

	return outcome ? outcome : "it did not come to its end";
}

static void put_integrity(struct doc *d, const struct run *r)
{
	const bool whole = run_is_whole(r);

	doc_printf(d, "<div class=\"box %s\"><p><b class=\"%s\">", whole ? "good" : "bad",
		   whole ? "good" : "bad");
	if (whole && r->checked)
		doc_put(d, "Whole and sealed; all hashes were checked.");
	else if (whole)
		doc_put(d,
			"Sealed; its headers and its root agree. The contents' hashes were not all "
			"checked.");
	else
		doc_put(d, "Not whole.");
	doc_put(d, "</b></p>");
	if (!whole) {
		doc_put(d, "<p>It is ");
		put_state(d, r);
		doc_put(d, ": ");
		strange(d, r->end.reason);
		doc_put(d, ". Everything before offset ");
		doc_count(d, r->end.whole);
		doc_put(d, r->checked
				   ? " is whole, all hashes were checked."
				   : " is whole by its headers; the contents' hashes were not all "
				     "checked.");
		doc_put(d, "</p>");
	}
	if (!run_is_complete(r)) {
		doc_put(d, "<p><b class=\"bad\">The acquisition did not complete:</b> ");
		strange(d, outcome_of(r));
		doc_put(d, ".</p>");
	}
	if (r->sealed_later)
		doc_put(d,
			"<p>It was not sealed by the acquisition, but later: nothing proves what "
			"happened to it in between.</p>");
	doc_put(d, "<p>Root over ");
	doc_count(d, r->end.records);
	doc_put(d, " records: ");
	put_hash(d, r->end.root);
	doc_put(d, "</p><p>The root proves that this is the container that was sealed then only if "
		   "it is compared with the root noted then. This report cannot know that one.</p>"
		   "</div>\n");
	glossary_links(d, TERMS_OF(TERM_SEALED, TERM_ROOT, TERM_CHECKED));
}

/*
 * What was acquired
 */

static void fact(struct doc *d, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	fact_begin(d, name);
	strange(d, text);
	fact_end(d);
}

/* Two texts of a manifest line, such as the name and the path of the source. */
static void fact_of_two(struct doc *d, const char *name, const char *one, const char *two)
{
	if (!one && !two)
		return;
	fact_begin(d, name);
	strange(d, one ? one : two);
	if (one && two) {
		doc_put(d, " (");
		strange(d, two);
		doc_put(d, ")");
	}
	fact_end(d);
}

static void fact_of_time(struct doc *d, const char *name, uint64_t wall)
{
	char time[CLOCK_RFC3339_SIZE];

	clock_rfc3339(wall, time);
	if (wall)
		fact(d, name, time);
}

static void put_source(struct doc *d, const struct run *r)
{
	const json_t *source = json_object_get(r->begin, "source");

	fact_of_two(d, "source", run_text(r->begin, "source", "name"),
		    run_text(r->begin, "source", "path"));
	if (json_is_true(json_object_get(source, "silent")))
		fact(d, "", "it cannot report unreadable pages");
	fact(d, "", run_text(r->begin, "source", "note"));
}

static void put_map(struct doc *d, const struct run *r)
{
	const json_t *map = json_array_get(json_object_get(r->begin, "maps"), 0);
	const json_int_t bytes = json_integer_value(json_object_get(map, "bytes"));
	const size_t ranges = json_array_size(json_object_get(map, "ranges"));

	if (!map)
		return;
	fact_begin(d, "map of RAM");
	doc_size(d, bytes > 0 ? (uint64_t)bytes : 0);
	doc_put(d, " in ");
	doc_count(d, ranges);
	doc_put(d, ranges == 1 ? " range, from " : " ranges, from ");
	strange(d, json_string_value(json_object_get(map, "origin")));
	fact_end(d);
}

/* Texts and yes or no of an object of the manifest, on one line. */
static void put_facts(struct doc *d, const char *name, const json_t *object)
{
	json_t *facts = json_incref((json_t *)(uintptr_t)object), *value;
	const char *key;
	size_t n = 0;

	if (json_object_size(facts))
		fact_begin(d, name);
	json_object_foreach(facts, key, value)
	{
		if (n == FACTS_MAX || (!json_is_string(value) && !json_is_boolean(value)))
			continue;
		doc_put(d, n++ ? ", " : "");
		strange(d, key);
		doc_put(d, ": ");
		strange(d, json_is_string(value) ? json_string_value(value)
			   : json_is_true(value) ? "yes"
						 : "no");
	}
	if (json_object_size(facts))
		fact_end(d);
	json_decref(facts);
}

/* How much, and why: formats/SPEC.md has the reasons by their numbers. */
static void put_again(struct doc *d, const struct run *r)
{
	static const char *const reasons[RUN_REASONS] = {
		[RSZ_TABLE_CHANGED] = "a page table that names it changed",
		[RSZ_FILE_CHANGED] = "the file changed",
		[RSZ_TABLE_AGAIN] = "a page table, behind what it names",
	};

	bool any = false;

	doc_size(d, run_again(r));
	for (size_t i = 0; i < RUN_REASONS; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < r->n_streams; k++)
			sum += r->streams[k].again[i];
		if (!sum)
			continue;
		doc_put(d, any ? "; " : " (");
		any = true;
		doc_size(d, sum);
		doc_printf(d, ": %s", reasons[i] ? reasons[i] : "for a reason not known here");
	}
	doc_put(d, any ? ")" : "");
}

/* Its name, and what a guided one counted. */
static void put_order(struct doc *d, const struct run *r)
{
	static const struct {
		const char *key, *text;
	} counts[] = {
		{ "guided_pages", "pages read by the page tables" },
		{ "retaken_pages", "captured again because their entry had changed" },
		{ "tables_changed", "tables that had changed when they were read again" },
		{ "tables_unsettled", "tables that did not settle" },
	};

	strange(d, run_order(r) ? run_order(r) : "not recorded");
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		const int64_t n = run_integer(r->finish, "order", counts[i].key);

		if (n < 0 || run_integer(r->finish, "order", "guided_pages") <= 0)
			continue;
		doc_put(d, i ? ", " : ": ");
		doc_count(d, (uint64_t)n);
		doc_printf(d, " %s", counts[i].text);
	}
}

static void put_wall(struct doc *d, const struct run *r)
{
	const struct run_stream *m = run_stream(r, RSZ_KIND_MEMORY);

	fact_begin(d, "<a class=\"term\" href=\"#d-wall-time\">wall time</a>");
	if (run_wall(r))
		doc_duration(d, run_wall(r));
	else
		doc_put(d, "not recorded");
	if (m && m->end) {
		doc_put(d, ", memory within ");
		doc_duration(d, m->end - m->start);
	}
	fact_end(d);
	fact_begin(d, "<a class=\"term\" href=\"#d-order\">order</a>");
	put_order(d, r);
	fact_end(d);
	fact_begin(d, "<a class=\"term\" href=\"#d-read-again\">read again</a>");
	put_again(d, r);
	fact_end(d);
}

static void put_streams(struct doc *d, const struct run *r)
{
	struct run_stream rest = { 0 };

	table(d, "What the container holds", "stream");
	doc_put(d, "<th scope=\"col\">kind</th>");
	column(d, TERM_READ, "read");
	column(d, TERM_CONTAINER, "stored");
	column(d, TERM_AGAIN, "read again");
	column(d, TERM_CAPTURE, "read within");
	table_body(d);
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct run_stream *s = &r->streams[i];
		uint64_t again = 0;

		rest.captured += i < STREAMS_MAX ? 0 : run_stream_read(s);
		rest.stored += i < STREAMS_MAX ? 0 : s->stored;
		if (i >= STREAMS_MAX)
			continue;
		for (size_t k = 0; k < RUN_REASONS; k++)
			again += s->again[k];
		doc_put(d, "<tr><td class=\"wrap\">");
		strange(d, s->name);
		doc_printf(d, "</td><td class=\"kind\">%s</td>", rsz_kind_name(s->kind));
		size(d, run_stream_read(s));
		size(d, s->stored);
		size(d, again);
		if (s->paged)
			duration(d, s->end - s->start);
		else
			doc_put(d, "<td class=\"n\">-</td>");
		doc_put(d, "</tr>\n");
	}
	if (r->n_streams > STREAMS_MAX) {
		doc_put(d, "<tr class=\"sum\"><td>");
		doc_count(d, r->n_streams - STREAMS_MAX);
		doc_put(d, " more</td><td></td>");
		size(d, rest.captured);
		size(d, rest.stored);
		doc_put(d, "<td></td><td></td></tr>\n");
	}
	table_end(d);
}

static void put_acquisition(struct doc *d, const struct run *r)
{
	const int64_t end = run_integer(r->finish, "clocks", "wall_ns");

	doc_put(d, "<div class=\"scroll\"><table><tbody>\n");
	fact(d, "file", r->path);
	fact_of_two(d, "host", run_text(r->begin, "host", "name"),
		    run_text(r->begin, "host", "product"));
	fact(d, "system", run_text(r->begin, "os", "name"));
	fact_of_two(d, "kernel", run_text(r->begin, "os", "kernel_release"),
		    run_text(r->begin, "os", "kernel_version"));
	fact(d, "processor", run_text(r->begin, "cpu", "model"));
	put_source(d, r);
	put_map(d, r);
	put_facts(d, "security", json_object_get(r->begin, "security"));
	fact(d, "tool", r->identity.text);
	fact_of_time(d, "begun", r->identity.wall);
	fact_of_time(d, "ended", end > 0 ? (uint64_t)end : 0);
	put_wall(d, r);
	fact(d, "<a class=\"term\" href=\"#d-outcome\">outcome</a>", outcome_of(r));
	fact(d, "", json_string_value(json_object_get(r->finish, "message")));
	doc_put(d, "</tbody></table></div>\n");
	put_streams(d, r);
	glossary_links(d, TERMS_OF(TERM_CONTAINER, TERM_STREAM, TERM_SOURCE, TERM_OUTCOME,
				   TERM_WALL, TERM_ORDER, TERM_READ, TERM_AGAIN));
}

/*
 * When
 */

static void put_timeline(struct doc *d, const struct run *r)
{
	if (!r->timeline.n_bands || !r->timeline.end) {
		doc_put(d, "<p>Nothing was captured that has a physical address and a time.</p>\n");
		return;
	}
	doc_put(d, "<figure>");
	figure_of_timeline(d, r, 1, false);
	doc_put(d,
		"<figcaption>A mark: something was captured there then, or given up. It covers ");
	doc_duration(d, timeline_cell_ns(&r->timeline));
	doc_put(d, " and at most ");
	doc_size(d, timeline_cell_bytes(&r->timeline));
	doc_put(d, " of addresses, however many captures fall into it. Long stretches of addresses "
		   "that nobody captured are left out. Below: when each stream was read.");
	if (r->n_streams > STREAMS_MAX)
		doc_put(d, " Only the first streams are shown.");
	doc_put(d, "</figcaption></figure>\n");
	glossary_links(d, TERMS_OF(TERM_CAPTURE, TERM_COPY, TERM_AGAIN));
}

/*
 * Smear
 */

static void put_copy(struct doc *d, const struct copy_sums *c, enum copy copy)
{
	uint64_t trust[TRUSTS], all;

	copy_trust(c, trust);
	all = trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
	doc_printf(d, "<tr><th scope=\"row\">%s</th>", copy_name(copy));
	number(d, c->tables);
	for (size_t i = 0; i < TRUSTS; i++) {
		number(d, trust[i]);
		share(d, trust[i], all);
	}
	duration(d, c->window.median);
	duration(d, c->window.p95);
	duration(d, c->window.max);
	doc_put(d, "</tr>\n");
}

static void put_copies(struct doc *d, const struct smear *s)
{
	table(d, "Pages of 4 KiB that each copy of the page tables names",
	      "<a class=\"term\" href=\"#d-copy\">copy</a>");
	column(d, TERM_TABLES, "table pages");
	column_of_two(d, TERM_SAFE, "safe");
	column_of_two(d, TERM_RISK, "at risk");
	column_of_two(d, TERM_WRONG, "wrong");
	column(d, TERM_WINDOW, "median window");
	column(d, TERM_QUANTILE, "95 %");
	column(d, TERM_QUANTILE, "maximum");
	table_body(d);
	for (size_t i = 0; i < COPIES; i++)
		put_copy(d, &s->total.copy[i], (enum copy)i);
	table_end(d);
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
	table(d, "Pages by verdict and reason; the first reason that applies",
	      "<a class=\"term\" href=\"#d-trust\">verdict</a>");
	doc_put(d, "<th scope=\"col\">reason</th>");
	for (size_t i = 0; i < COPIES; i++)
		doc_printf(d,
			   "<th class=\"n\" scope=\"col\">%s: frames</th>"
			   "<th class=\"n\" scope=\"col\">%s: slots</th>",
			   copy_name((enum copy)i), copy_name((enum copy)i));
	table_body(d);
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
			number(d, s->total.copy[i].frames[v]);
			number(d, s->total.copy[i].slots[v]);
		}
		doc_put(d, "</tr>\n");
	}
	table_end(d);
	doc_put(d, "</details>\n");
}

/* Why a section of smear is empty is said in the first one. */
static bool put_no_smear(struct doc *d, const struct run *r)
{
	if (!r->has_smear)
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
	}
}

static void put_smear(struct doc *d, const struct run *r)
{
	const struct smear *s = &r->smear;
	char sentence[SMEAR_SENTENCE_MAX];

	if (!r->has_smear) {
		doc_put(d, "<p>Not known: page tables and memory could not be compared: ");
		strange(d, r->no_smear);
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
	doc_put(d, " between the passes. Entries of ");
	doc_text(d, discover_os_name(s->spaces.os));
	doc_put(d, ", layout ");
	doc_text(d, s->layout.name);
	doc_put(d, " (");
	strange(d, s->layout.reason);
	doc_put(d, ").");
	put_scan(d, r);
	if (s->slots_doubt) {
		doc_put(d, " No slot is called safe: ");
		doc_text(d, s->slots_doubt);
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

static void put_windows(struct doc *d, const struct run *r)
{
	if (put_no_smear(d, r))
		return;
	doc_put(d, "<figure>");
	figure_of_windows(d, r, 1, false);
	doc_put(d, "<figcaption>Each page that an entry names, by the span of time over which the "
		   "entry and its content were read; pages whose content was captured.</figcaption>"
		   "</figure>\n");
	glossary_links(d, TERMS_OF(TERM_WINDOW, TERM_QUANTILE, TERM_COPY, TERM_PAGE));
}

static void put_changes(struct doc *d, const struct smear *s)
{
	doc_put(d, "<details><summary>Changes in numbers</summary>\n");
	table(d, "Pages of address space by what became of their entry",
	      "<a class=\"term\" href=\"#d-change\">change</a>");
	for (size_t p = 0; p < PAIRS; p++)
		doc_printf(d, "<th class=\"n\" scope=\"col\">%s</th>", pair_name((enum pair)p));
	table_body(d);
	for (size_t i = 0; i < CHANGES; i++) {
		doc_printf(d, "<tr><th scope=\"row\">%s</th>", change_name((enum change)i));
		for (size_t p = 0; p < PAIRS; p++)
			number(d, s->total.pair[p].change[i]);
		doc_put(d, "</tr>\n");
	}
	table_end(d);
	doc_put(d, "</details>\n");
}

static void put_transitions(struct doc *d, const struct run *r)
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
	figure_of_pair(d, s, PAIR_BEFORE_AFTER, false);
	doc_put(d,
		"<figcaption>Pages of address space by the state of their entry in the pass before "
		"and in the pass after.</figcaption></figure>\n");
	for (size_t p = PAIR_BEFORE_AFTER + 1; p < PAIRS; p++) {
		doc_printf(d, "<details><summary>The same, %s</summary>\n<figure>",
			   p == PAIR_BEFORE_IMAGE ? "from before to the image"
						  : "from the image to after");
		figure_of_pair(d, s, (enum pair)p, false);
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
	strange(d, s->id.listed ? s->id.name : "(not listed)");
	doc_printf(d, "</td><td class=\"mono\">0x%" PRIx64 "</td><td>%s</td>", s->id.dtb,
		   fate_name(s->id.fate));
	for (size_t i = 0; i < TRUSTS; i++)
		number(d, trust[i]);
	for (size_t i = 0; i < GROUPS; i++)
		number(d, groups[i]);
	duration(d, c->window.median);
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
		number(d, trusts[i]);
	for (size_t i = 0; i < GROUPS; i++)
		number(d, groups[i]);
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
	table(d, "Pages of 4 KiB by the image's own tables", "PID");
	doc_put(d, "<th scope=\"col\">name</th><th scope=\"col\">DTB</th><th scope=\"col\">");
	glossary_link(d, TERM_FATE, "fate");
	doc_put(d, "</th>");
	column(d, TERM_SAFE, "safe");
	column(d, TERM_RISK, "at risk");
	column(d, TERM_WRONG, "wrong");
#define X(name, text, series) column(d, TERM_GROUPED, text);
	GROUP_MAP(X)
#undef X
	column(d, TERM_QUANTILE, "median window");
	table_body(d);
	for (size_t i = 0; i < shown; i++)
		put_process(d, order[i]);
	put_others(d, order + shown, s->count - shown);
	table_end(d);
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

static void put_processes(struct doc *d, const struct run *r)
{
	if (put_no_smear(d, r))
		return;
	doc_put(d, "<figure>");
	figure_of_processes(d, r, 1, false);
	put_rest_note(d, &r->smear, "those with the most pages at risk or wrong first");
	put_process_table(d, &r->smear);
	glossary_links(d, TERMS_OF(TERM_SAFE, TERM_RISK, TERM_WRONG, TERM_SPACE, TERM_FATE,
				   TERM_GROUPED, TERM_WINDOW));
}

static void put_states(struct doc *d, const struct run *r)
{
	const struct smear *s = &r->smear;

	if (put_no_smear(d, r))
		return;
	doc_put(d, "<figure>");
	figure_of_states(d, r, 1, false);
	put_rest_note(d, s, "those with the most pages first");
	doc_put(d, "<details><summary>All states in numbers</summary>\n");
	table(d, "Pages of 4 KiB by the state of their entry, all address spaces",
	      "<a class=\"term\" href=\"#d-state\">state</a>");
	for (size_t i = 0; i < COPIES; i++)
		doc_printf(d, "<th class=\"n\" scope=\"col\">%s</th>", copy_name((enum copy)i));
	table_body(d);
	for (size_t k = 0; k < PTE_STATES; k++) {
		if (!s->total.copy[COPY_BEFORE].state[k] && !s->total.copy[COPY_IMAGE].state[k] &&
		    !s->total.copy[COPY_AFTER].state[k])
			continue;
		doc_printf(d, "<tr><th scope=\"row\">%s</th>", pte_state_name((enum pte_state)k));
		for (size_t i = 0; i < COPIES; i++)
			number(d, s->total.copy[i].state[k]);
		doc_put(d, "</tr>\n");
	}
	table_end(d);
	doc_put(d, "</details>\n");
	glossary_links(d, TERMS_OF(TERM_STATE, TERM_GROUPED, TERM_PLACE, TERM_COPY));
}

/*
 * What is missing
 */

static void put_page_states(struct doc *d, const struct run *r)
{
	static const enum term terms[PAGE_STATES] = {
		[PAGE_DATA] = TERM_DATA,
		[PAGE_ZERO] = TERM_ZERO,
		[PAGE_UNREADABLE] = TERM_UNREADABLE,
		[PAGE_SKIPPED] = TERM_SKIPPED,
		[PAGE_HOLE] = TERM_HOLE,
	};

	table(d, "Pages of 4 KiB by what is known of them; each as often as it was captured",
	      "stream");
	for (uint32_t i = 0; i < PAGE_STATES; i++)
		column(d, terms[i], page_state_name(i));
	table_body(d);
	for (size_t i = 0; i < MIN(r->n_streams, (size_t)STREAMS_MAX); i++) {
		if (!r->streams[i].paged)
			continue;
		doc_put(d, "<tr><td class=\"wrap\">");
		strange(d, r->streams[i].name);
		doc_put(d, "</td>");
		for (size_t k = 0; k < PAGE_STATES; k++)
			number(d, r->streams[i].tally.pages[k]);
		doc_put(d, "</tr>\n");
	}
	table_end(d);
}

static void put_gap(struct doc *d, const struct run *r, const struct run_stream *s,
		    const struct tally_gap *g)
{
	const char *numbers = run_text(r->begin, "source", "error_numbers");
	const bool skipped = g->status.state == PAGE_SKIPPED;

	doc_put(d, "<tr><td class=\"wrap\">");
	strange(d, s->name);
	doc_printf(d, "</td><td class=\"mono\">0x%012" PRIx64 " - 0x%012" PRIx64 "</td>",
		   g->range.first, g->range.last);
	number(d, (range_bytes(g->range) + PAGE_SIZE - 1) >> PAGE_SHIFT);
	doc_printf(d, "<td>%s</td><td>", page_state_name(g->status.state));
	if (skipped) {
		doc_text(d, skip_reason_name(g->status.detail));
	} else {
		doc_printf(d, "error %" PRIu32, g->status.detail);
		if (numbers && s->kind == RSZ_KIND_MEMORY) {
			doc_put(d, " (");
			strange(d, numbers);
			doc_put(d, ")");
		}
	}
	doc_put(d, "</td></tr>\n");
}

static void put_gap_table(struct doc *d, const struct run *r, uint64_t ranges)
{
	uint64_t shown = 0;

	table(d, "Ranges without content", "stream");
	doc_put(d, "<th scope=\"col\">addresses or offsets</th>");
	column(d, TERM_PAGE, "pages");
	doc_put(d, "<th scope=\"col\">state</th><th scope=\"col\">why</th>");
	table_body(d);
	for (size_t i = 0; i < r->n_streams; i++)
		for (size_t k = 0; k < r->streams[i].tally.n_gaps && shown < GAPS_MAX; k++, shown++)
			put_gap(d, r, &r->streams[i], &r->streams[i].tally.gaps[k]);
	if (ranges > shown) {
		doc_put(d, "<tr class=\"sum\"><td colspan=\"5\">");
		doc_count(d, ranges - shown);
		doc_put(d, " more ranges; their pages are in the table above</td></tr>\n");
	}
	table_end(d);
}

static void put_unreadable(struct doc *d, const struct run *r)
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

/*
 * Hashes
 */

static void put_file_hashes(struct doc *d, const struct run *r)
{
	size_t shown = 0, files = 0, i;
	json_t *line;

	json_array_foreach(r->lines, i, line)
	{
		const char *event = json_string_value(json_object_get(line, "event"));
		const char *hash = json_string_value(json_object_get(line, "sha256"));

		if (!event || strcmp(event, "file") != 0)
			continue;
		files++;
		if (files > FILES_MAX)
			continue;
		shown++;
		doc_put(d, "<tr><td class=\"wrap\">");
		strange(d, json_string_value(json_object_get(line, "path")));
		doc_put(d, "</td><td class=\"mono\">");
		doc_text_cut(d, hash ? hash : "none: it changed, or is not complete", 80);
		doc_put(d, "</td></tr>\n");
	}
	if (files > shown) {
		doc_put(d, "<tr class=\"sum\"><td colspan=\"2\">");
		doc_count(d, files - shown);
		doc_put(d, " more files</td></tr>\n");
	}
}

static void put_hashes(struct doc *d, const struct run *r)
{
	const char *tool = run_text(r->begin, "tool", "sha256");
	char id[2 * RSZ_ID_SIZE + 1];

	for (size_t i = 0; i < RSZ_ID_SIZE; i++)
		snprintf(id + 2 * i, 3, "%02x", r->identity.id[i]);
	table(d, NULL, "of");
	doc_put(d, "<th scope=\"col\">SHA-256 (the identity is random)</th>");
	table_body(d);
	doc_put(d, "<tr><td>");
	glossary_link(d, TERM_ROOT, "root of the container");
	doc_put(d, "</td><td>");
	put_hash(d, r->end.root);
	doc_printf(d,
		   "</td></tr>\n<tr><td>identity of the container</td>"
		   "<td class=\"mono\">%s</td></tr>\n",
		   id);
	doc_put(d, "<tr><td>the acquiring program</td><td class=\"mono\">");
	doc_text_cut(d, tool ? tool : "not recorded", 80);
	doc_put(d, "</td></tr>\n");
	put_file_hashes(d, r);
	table_end(d);
	doc_put(d, "<p class=\"soft\">Hashes of the program and of files are what the acquisition "
		   "wrote "
		   "into its manifest.</p>\n");
	glossary_links(d, TERMS_OF(TERM_ROOT, TERM_CHECKED, TERM_SEALED));
}

static void put_glossary(struct doc *d, const struct run *r)
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
} sections[] = {
	{ "integrity", "Is it whole?", put_integrity },
	{ "acquisition", "What was acquired", put_acquisition },
	{ "timeline", "When each address was captured", put_timeline },
	{ "smear", "Do page tables and pages belong together?", put_smear },
	{ "windows", "Mapping windows", put_windows },
	{ "transitions", "What changed meanwhile", put_transitions },
	{ "processes", "Processes by pages at risk", put_processes },
	{ "states", "Page states by process", put_states },
	{ "unreadable", "Unreadable and skipped pages", put_unreadable },
	{ "hashes", "Hashes", put_hashes },
	{ "glossary", "Definitions", put_glossary },
};

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
	doc_duration(d, c->window.median);
	card_end(d, TERM_QUANTILE, "median mapping window");
	card_begin(d, "");
	doc_duration(d, c->window.p95);
	card_end(d, TERM_QUANTILE, "95 % of windows at most");
}

static void put_cards(struct doc *d, const struct run *r)
{
	const struct run_stream *m = run_stream(r, RSZ_KIND_MEMORY);
	const uint64_t gaps = run_pages(r, PAGE_UNREADABLE) + run_pages(r, PAGE_SKIPPED);

	doc_put(d, "<div class=\"cards\">\n");
	card_begin(d, run_is_whole(r) ? "good" : "bad");
	put_state(d, r);
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
	doc_put(d, "</div>\n");
}

static const char *name_of(const struct run *r)
{
	const char *host = run_text(r->begin, "host", "name");

	return host ? host : r->label;
}

static void put_head(struct doc *d, const struct run *r)
{
	char time[CLOCK_RFC3339_SIZE];

	doc_put(d, "<header>\n<h1>Memory acquisition of ");
	strange(d, name_of(r));
	doc_put(d, "</h1>\n<p class=\"soft\">");
	strange(d, r->path);
	if (r->identity.wall) {
		clock_rfc3339(r->identity.wall, time);
		doc_printf(d, " · begun %s", time);
	}
	doc_put(d, "</p>\n");
	put_cards(d, r);
	doc_put(d, "<nav aria-label=\"Sections\">");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		doc_printf(d, "<a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].title);
	doc_put(d, "</nav>\n</header>\n<main>\n");
}

void page_of_one(struct doc *d, const struct run *r)
{
	page_begin(d, "Memory acquisition", name_of(r));
	put_head(d, r);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		page_section(d, sections[i].id, sections[i].title);
		sections[i].put(d, r);
		page_section_end(d);
	}
	page_end(d);
}
