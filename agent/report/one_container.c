/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was acquired, when, and whether it is whole.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/program/clock.h"
#include "agent/report/one.h"

/* How much of a list is shown. */
#define FILES_MAX 40
#define FACTS_MAX 16

/* A row of a name and a value, which the caller puts in. */
static void fact_begin(struct doc *d, const char *name)
{
	doc_printf(d, "<tr><th scope=\"row\">%s</th><td class=\"wrap\">", name);
}

static void fact_end(struct doc *d)
{
	doc_put(d, "</td></tr>\n");
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

void put_seal_state(struct doc *d, const struct run *r)
{
	if (!run_is_whole(r))
		doc_text(d, rsz_end_name(r->end.end));
	else
		doc_put(d, r->sealed_later ? "sealed later" : "sealed");
}

void section_integrity(struct doc *d, const struct run *r)
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
		put_seal_state(d, r);
		doc_put(d, ": ");
		html_strange(d, r->end.reason);
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
		html_strange(d, run_outcome(r));
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
	html_strange(d, text);
	fact_end(d);
}

/* Two texts of a manifest line, such as the name and the path of the source. */
static void fact_of_two(struct doc *d, const char *name, const char *one, const char *two)
{
	if (!one && !two)
		return;
	fact_begin(d, name);
	html_strange(d, one ? one : two);
	if (one && two) {
		doc_put(d, " (");
		html_strange(d, two);
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
	fact(d, "", run_text(r->begin, "source", "lost"));
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
	html_strange(d, json_string_value(json_object_get(map, "origin")));
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
		html_strange(d, key);
		doc_put(d, ": ");
		html_strange(d, json_is_string(value) ? json_string_value(value)
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

	html_strange(d, run_order(r) ? run_order(r) : "not recorded");
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

	html_table(d, "What the container holds", "stream");
	doc_put(d, "<th scope=\"col\">kind</th>");
	html_column(d, TERM_READ, "read");
	html_column(d, TERM_CONTAINER, "stored");
	html_column(d, TERM_AGAIN, "read again");
	html_column(d, TERM_CAPTURE, "read within");
	html_table_body(d);
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct run_stream *s = &r->streams[i];
		uint64_t again = 0;

		rest.captured += i < ONE_STREAMS ? 0 : run_stream_read(s);
		rest.stored += i < ONE_STREAMS ? 0 : s->stored;
		if (i >= ONE_STREAMS)
			continue;
		for (size_t k = 0; k < RUN_REASONS; k++)
			again += s->again[k];
		doc_put(d, "<tr><td class=\"wrap\">");
		html_strange(d, s->name);
		doc_printf(d, "</td><td class=\"kind\">%s</td>", rsz_kind_name(s->kind));
		html_size(d, run_stream_read(s));
		html_size(d, s->stored);
		html_size(d, again);
		if (s->paged)
			html_duration(d, s->end - s->start);
		else
			doc_put(d, "<td class=\"n\">-</td>");
		doc_put(d, "</tr>\n");
	}
	if (r->n_streams > ONE_STREAMS) {
		doc_put(d, "<tr class=\"sum\"><td>");
		doc_count(d, r->n_streams - ONE_STREAMS);
		doc_put(d, " more</td><td></td>");
		html_size(d, rest.captured);
		html_size(d, rest.stored);
		doc_put(d, "<td></td><td></td></tr>\n");
	}
	html_table_end(d);
}

/* The machine whose memory it is; of an image, also the one that made the container. */
static void put_machine(struct doc *d, const struct run *r)
{
	const struct origin *o = &r->origin;
	const char *unknown = o->image ? "not known" : NULL;

	fact_of_two(d, "host", o->host ? o->host : unknown, o->image ? o->host_by : o->product);
	fact(d, "system", o->system[0] ? o->system : unknown);
	fact_of_two(d, "kernel", o->kernel ? o->kernel : unknown, o->kernel_version);
	fact(d, "processor", o->cpu ? o->cpu : unknown);
	if (o->image)
		fact_of_two(d, "container made on", o->made_on, o->made_on_system);
}

void section_acquisition(struct doc *d, const struct run *r)
{
	const int64_t end = run_integer(r->finish, "clocks", "wall_ns");

	doc_put(d, "<div class=\"scroll\"><table><tbody>\n");
	fact(d, "file", r->path);
	put_machine(d, r);
	put_source(d, r);
	put_map(d, r);
	put_facts(d, "security", origin_facts(r->begin, "security"));
	fact(d, "tool", r->identity.text);
	fact_of_time(d, "begun", r->identity.wall);
	fact_of_time(d, "ended", end > 0 ? (uint64_t)end : 0);
	put_wall(d, r);
	fact(d, "<a class=\"term\" href=\"#d-outcome\">outcome</a>", run_outcome(r));
	fact(d, "", json_string_value(json_object_get(r->finish, "message")));
	doc_put(d, "</tbody></table></div>\n");
	put_streams(d, r);
	glossary_links(d, TERMS_OF(TERM_CONTAINER, TERM_STREAM, TERM_SOURCE, TERM_OUTCOME,
				   TERM_WALL, TERM_ORDER, TERM_READ, TERM_AGAIN));
}

/*
 * When
 */

void section_timeline(struct doc *d, const struct run *r)
{
	if (!r->timeline.n_bands || !r->timeline.end) {
		doc_put(d, "<p>Nothing was captured that has a physical address and a time.</p>\n");
		return;
	}
	doc_put(d, "<figure>");
	figure_of_timeline(d, r, 1, SVG_WIDE);
	doc_put(d,
		"<figcaption>A mark: something was captured there then, or given up. It covers ");
	doc_duration(d, timeline_cell_ns(&r->timeline));
	doc_put(d, " and at most ");
	doc_size(d, timeline_cell_bytes(&r->timeline));
	doc_put(d, " of addresses, however many captures fall into it. Long stretches of addresses "
		   "that nobody captured are left out. Below: when each stream was read.");
	if (r->n_streams > ONE_STREAMS)
		doc_put(d, " Only the first streams are shown.");
	doc_put(d, "</figcaption></figure>\n");
	glossary_links(d, TERMS_OF(TERM_CAPTURE, TERM_COPY, TERM_AGAIN));
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
		const bool guided = json_integer_value(json_object_get(line, "guided_pages"));

		if (!event || strcmp(event, "file") != 0)
			continue;
		files++;
		if (files > FILES_MAX)
			continue;
		shown++;
		doc_put(d, "<tr><td class=\"wrap\">");
		html_strange(d, json_string_value(json_object_get(line, "path")));
		doc_put(d, "</td><td class=\"mono\">");
		doc_text_cut(d,
			     hash     ? hash
			     : guided ? "none: parts of it were read before the rest"
				      : "none: it changed, or is not complete",
			     80);
		doc_put(d, "</td></tr>\n");
	}
	if (files > shown) {
		doc_put(d, "<tr class=\"sum\"><td colspan=\"2\">");
		doc_count(d, files - shown);
		doc_put(d, " more files</td></tr>\n");
	}
}

void section_hashes(struct doc *d, const struct run *r)
{
	const char *tool = run_text(r->begin, "tool", "sha256");
	char id[2 * RSZ_ID_SIZE + 1];

	for (size_t i = 0; i < RSZ_ID_SIZE; i++)
		snprintf(id + 2 * i, 3, "%02x", r->identity.id[i]);
	html_table(d, NULL, "of");
	doc_put(d, "<th scope=\"col\">SHA-256 (the identity is random)</th>");
	html_table_body(d);
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
	html_table_end(d);
	doc_put(d, "<p class=\"soft\">Hashes of the program and of files are what the acquisition "
		   "wrote "
		   "into its manifest.</p>\n");
	glossary_links(d, TERMS_OF(TERM_ROOT, TERM_CHECKED, TERM_SEALED));
}
