/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was acquired, when, and its seal.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/host/one.h"
#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/program/clock.h"
#include "formats/base/bytes.h"

/* How much of a list is shown. */
#define FILES_MAX    40
#define FACTS_MAX    16
#define SETTINGS_MAX 2000 /* characters */

/*
 * What was acquired
 */

/* Two texts of a manifest line, such as the name and the path of the source. */
static void fact_of_two(struct doc *d, const char *name, const char *one, const char *two)
{
	if (!one && !two)
		return;
	html_fact_begin(d, name);
	html_strange(d, one ? one : two);
	if (one && two) {
		doc_put(d, " (");
		html_strange(d, two);
		doc_put(d, ")");
	}
	html_fact_end(d);
}

static void fact_of_time(struct doc *d, const char *name, uint64_t wall)
{
	if (!wall)
		return;
	html_fact_begin(d, name);
	html_time(d, wall);
	html_fact_end(d);
}

static void put_source_item(struct doc *d, const char *text)
{
	if (!text || !*text)
		return;
	doc_put(d, "<li>");
	html_strange(d, text);
	doc_put(d, "</li>");
}

/* "KEY=VALUE,…" behind a name, as simulated machines have it: each with its comma, in one line. */
static void put_settings(struct doc *d, const char *path)
{
	doc_put(d, "<li class=\"settings\">");
	for (size_t n; *path; path += n) {
		char setting[200];

		n = strcspn(path, ",");
		n += path[n] == ',';
		snprintf(setting, sizeof(setting), "%.*s", (int)MIN(n, sizeof(setting) - 1), path);
		doc_put(d, "<span class=\"kind\">");
		html_strange(d, setting);
		doc_put(d, "</span> ");
	}
	doc_put(d, "</li>");
}

static void put_container_source(struct doc *d, const struct report_run *r)
{
	const char *name = run_text(r->begin, "source", "name");
	const char *path = run_text(r->begin, "source", "path");

	if (!name && !path)
		return;
	html_fact_begin(d, "source");
	doc_put(d, "<ul class=\"plain\">");
	put_source_item(d, name);
	if (path && name && !strcmp(name, "sim") && strlen(path) <= SETTINGS_MAX)
		put_settings(d, path);
	else
		put_source_item(d, path);
	if (run_is_silent(r))
		put_source_item(d, "it cannot report unreadable pages");
	put_source_item(d, run_text(r->begin, "source", "note"));
	put_source_item(d, run_text(r->begin, "source", "lost"));
	doc_put(d, "</ul>");
	html_fact_end(d);
}

static void put_map(struct doc *d, const struct report_run *r)
{
	const json_t *map = json_array_get(json_object_get(r->begin, "maps"), 0);
	const size_t ranges = json_array_size(json_object_get(map, "ranges"));

	if (!map)
		return;
	html_fact_begin(d, "map of RAM");
	doc_size(d, run_map_bytes(r));
	doc_put(d, " in ");
	doc_count(d, ranges);
	doc_put(d, ranges == 1 ? " range, from " : " ranges, from ");
	html_strange(d, json_string_value(json_object_get(map, "origin")));
	html_fact_end(d);
}

/* Texts and yes or no of an object of the manifest, on one line. */
static void put_facts(struct doc *d, const char *name, const json_t *object)
{
	json_t *facts = json_incref((json_t *)(uintptr_t)object), *value;
	const char *key;
	size_t n = 0;

	if (json_object_size(facts))
		html_fact_begin(d, name);
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
		html_fact_end(d);
	json_decref(facts);
}

/* How much, and why: formats/SPEC.md has the reasons by their numbers. */
static void put_recaptured(struct doc *d, const struct report_run *r)
{
	static const char *const reasons[SUMS_REASONS] = {
		[RSZ_TABLE_CHANGED] = "a page table that names it changed",
		[RSZ_FILE_CHANGED] = "the file changed",
		[RSZ_TABLE_AGAIN] = "a page table, after what it names",
	};

	bool any = false;

	doc_size(d, run_again(r));
	for (size_t i = 0; i < SUMS_REASONS; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < r->sums.count; k++)
			sum += r->sums.streams[k].again[i];
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
static void put_order(struct doc *d, const struct report_run *r)
{
	static const struct {
		const char *key, *text;
	} counts[] = {
		{ "guided_pages", "pages read by way of page tables" },
		{ "retaken_pages", "captured again because their entry had changed" },
		{ "not_retaken", "not captured again, because the limit was reached" },
		{ "tables_changed", "tables that had changed when they were read again" },
		{ "tables_unsettled", "tables that kept changing" },
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

static void put_wall(struct doc *d, const struct report_run *r)
{
	const struct stream_sums *m = run_stream(r, RSZ_KIND_MEMORY);

	html_fact_begin(d, "<a class=\"term\" href=\"#d-wall-time\">wall time</a>");
	if (run_wall(r))
		doc_span(d, run_wall(r));
	else
		doc_put(d, "not recorded");
	if (m && m->end) {
		doc_put(d, ", memory within ");
		doc_span(d, m->end - m->start);
	}
	html_fact_end(d);
	html_fact_begin(d, "<a class=\"term\" href=\"#d-order\">order</a>");
	put_order(d, r);
	html_fact_end(d);
	html_fact_begin(d, "<a class=\"term\" href=\"#d-read-again\">read again</a>");
	put_recaptured(d, r);
	html_fact_end(d);
}

/* Entries that lead elsewhere in the second pass; what it is measured by is named. */
static void put_busy(struct doc *d, const struct report_run *r)
{
	const struct stream_sums *before = run_stream(r, RSZ_KIND_TABLES_BEFORE);
	const struct stream_sums *after = run_stream(r, RSZ_KIND_TABLES_AFTER);
	const uint64_t *change = r->smear.total.pair[PAIR_BEFORE_AFTER].change;
	uint64_t all = 0, same;

	html_fact_begin(d, "how busy the host was");
	for (size_t i = 0; r->has_smear && i < CHANGES; i++)
		all += change[i];
	same = all ? change[CHANGE_STABLE] + change[CHANGE_RIGHTS] : 0;
	if (all && before && after && before->end && after->end > before->end) {
		doc_share(d, all - same, all);
		doc_put(d,
			" of the pages in page tables had <a href=\"#transitions\">changed</a> ");
		doc_span(d, after->end - before->end);
		doc_put(d, " later, in the second pass; processor load: not recorded");
	} else {
		doc_put(d, "not recorded");
	}
	html_fact_end(d);
}

/* What the page rounds elsewhere. */
static void put_exact_times(struct doc *d, const struct report_run *r)
{
	const int64_t end = run_integer(r->finish, "clocks", "wall_ns");
	const struct stream_sums *m = run_stream(r, RSZ_KIND_MEMORY);
	char time[CLOCK_RFC3339_SIZE];

	doc_put(d, "<details><summary>Times in full</summary>\n<table class=\"facts\"><tbody>\n");
	if (r->identity.wall) {
		clock_rfc3339(r->identity.wall, time);
		html_fact(d, "begun", time);
	}
	if (end > 0) {
		clock_rfc3339((uint64_t)end, time);
		html_fact(d, "ended", time);
	}
	if (run_wall(r)) {
		html_fact_begin(d, "wall time");
		doc_count(d, run_wall(r));
		doc_put(d, " ns");
		html_fact_end(d);
	}
	if (m && m->end) {
		html_fact_begin(d, "memory within");
		doc_count(d, m->end - m->start);
		doc_put(d, " ns");
		html_fact_end(d);
	}
	doc_put(d, "</tbody></table></details>\n");
}

/*
 * The strip
 */

static void put_strip(struct doc *d, const struct report_run *r)
{
	const bool silent = run_is_silent(r);
	const struct stream_sums *m = run_stream(r, RSZ_KIND_MEMORY);
	const uint64_t *pages = m ? m->tally.pages : NULL;

	if (!r->strip.bytes)
		return;
	page_figure_begin(d, figure_of_strip, r, 1);
	doc_put(d, "<figcaption>Missing, in pages: ");
	doc_count(d, pages ? pages[PAGE_UNREADABLE] : 0);
	doc_put(d, " unreadable, ");
	doc_count(d, pages ? pages[PAGE_SKIPPED] : 0);
	doc_put(d, " skipped, ");
	doc_count(d, r->missing);
	doc_put(d, " in no record.");
	if (silent)
		doc_put(d, " The source cannot report unreadable pages, so more may be missing.");
	doc_put(d, " A mark stands for at least one page, and covers ");
	doc_size(d, MAX(r->strip.bytes / STRIP_CELLS, PAGE_SIZE));
	doc_put(d, ".</figcaption>");
	page_figure_end(d);
}

static uint64_t stream_again(const struct stream_sums *s)
{
	uint64_t again = 0;

	for (size_t i = 0; i < SUMS_REASONS; i++)
		again += s->again[i];
	return again;
}

static void put_stream(struct html_table *t, const struct stream_sums *s)
{
	const char *kind = rsz_kind_name(s->kind);

	html_row(t);
	html_cell(t, "wrap");
	html_strange(t->d, s->name);
	if (strcmp(s->name, kind) != 0)
		doc_printf(t->d, " <span class=\"soft kind\">%s</span>", kind);
	html_cell_end(t);
	html_size(t, run_stream_read(s));
	html_size(t, s->stored);
	html_size(t, stream_again(s));
	if (s->paged) {
		html_duration(t, s->end - s->start);
	} else {
		html_cell(t, "n");
		doc_put(t->d, "-");
		html_cell_end(t);
	}
	html_row_end(t);
}

static void put_streams(struct doc *d, const struct report_run *r)
{
	struct html_table t;
	uint64_t read = 0, stored = 0;

	html_table(&t, d, "What the container holds");
	html_column(&t, TERM_STREAM, "stream");
	html_column_of_numbers(&t, TERM_READ, "read");
	html_column_of_numbers(&t, TERM_CONTAINER, "stored");
	html_column_of_numbers(&t, TERM_AGAIN, "read again");
	html_column_of_numbers(&t, TERM_CAPTURE, "read within");
	html_table_body(&t);
	for (size_t i = 0; i < MIN(r->sums.count, (size_t)ONE_STREAMS); i++)
		put_stream(&t, &r->sums.streams[i]);
	for (size_t i = ONE_STREAMS; i < r->sums.count; i++) {
		read += run_stream_read(&r->sums.streams[i]);
		stored += r->sums.streams[i].stored;
	}
	if (r->sums.count > ONE_STREAMS) {
		html_row_of_rest(&t);
		html_cell(&t, "");
		doc_count(d, r->sums.count - ONE_STREAMS);
		doc_put(d, " more");
		html_cell_end(&t);
		html_size(&t, read);
		html_size(&t, stored);
		html_cells_empty(&t, 2);
		html_row_end(&t);
	}
	html_table_end(&t);
}

static bool is_linux(const struct report_run *r)
{
	const char *kernel = r->origin.image ? NULL : run_text(r->begin, "os", "kernel");
	const char *os = json_string_value(json_object_get(origin_tables(r->lines), "os"));

	return kernel ? !strcmp(kernel, "Linux") : os && !strcmp(os, "linux");
}

/* The machine whose memory it is; of an image, also the one that made the container. */
static void put_machine(struct doc *d, const struct report_run *r)
{
	const struct origin *o = &r->origin;
	const char *unknown = o->image ? "not known" : NULL;
	char untested[LINUX_UNTESTED_MAX], machine[ORIGIN_MACHINE_MAX];

	origin_machine(o, machine);
	fact_of_two(d, "host", o->host ? o->host : unknown, o->image ? o->host_by : o->product);
	html_fact(d, "system", o->system[0] ? o->system : unknown);
	fact_of_two(d, "kernel", o->kernel ? o->kernel : unknown, o->kernel_version);
	if (is_linux(r) && linux_is_untested(o->kernel, untested))
		html_fact(d, "", untested);
	html_fact(d, "architecture", *machine ? machine : NULL);
	html_fact(d, "processor", o->cpu ? o->cpu : unknown);
	if (o->image)
		fact_of_two(d, "container made on", o->made_on, o->made_on_system);
}

void section_acquisition(struct doc *d, const struct report_run *r)
{
	const int64_t end = run_integer(r->finish, "clocks", "wall_ns");

	put_strip(d, r);
	doc_put(d, "<table class=\"facts\"><tbody>\n");
	html_fact(d, "file", r->path);
	put_machine(d, r);
	put_container_source(d, r);
	put_map(d, r);
	put_facts(d, "security", origin_facts(r->begin, "security"));
	html_fact(d, "tool", r->identity.text);
	fact_of_time(d, "begun", r->identity.wall);
	fact_of_time(d, "ended", end > 0 ? (uint64_t)end : 0);
	put_wall(d, r);
	put_busy(d, r);
	doc_put(d, "</tbody></table>\n");
	put_exact_times(d, r);
	put_streams(d, r);
	put_page_states(d, r);
}

/*
 * When
 */

bool has_timeline(const struct report_run *r)
{
	return r->timeline.n_bands && r->timeline.end;
}

void section_timeline(struct doc *d, const struct report_run *r)
{
	page_figure_begin(d, figure_of_timeline, r, 1);
	doc_put(d, "<figcaption>Each mark means that something was ");
	glossary_link(d, TERM_CAPTURE, "captured");
	doc_put(d, " there at that time, or given up. It covers ");
	doc_duration(d, timeline_cell_ns(&r->timeline));
	doc_put(d, " and at most ");
	doc_size(d, timeline_cell_bytes(&r->timeline));
	doc_put(d, " of addresses (on a small screen twice as much of both), however many captures "
		   "fall into it. Long ranges of addresses without a capture are left out. Below: "
		   "when each stream was read.");
	if (r->sums.count > ONE_STREAMS)
		doc_put(d, " Only the first streams are shown.");
	doc_put(d, "</figcaption>");
	page_figure_end(d);
}

/*
 * Seal and hashes
 */

/* A row of what it is (ours) and of its hash, which is text or a reason why there is none. */
static void put_hash_row(struct html_table *t, enum term term, const char *of, const char *hash)
{
	html_row(t);
	html_cell(t, "");
	if (term == TERMS)
		doc_put(t->d, of);
	else
		glossary_link(t->d, term, of);
	html_cell_end(t);
	html_cell(t, "mono");
	doc_text_cut(t->d, hash, 80);
	html_cell_end(t);
	html_row_end(t);
}

static void put_file_hash(struct html_table *t, const json_t *line)
{
	const char *hash = json_string_value(json_object_get(line, "sha256"));
	const bool guided = json_integer_value(json_object_get(line, "guided_pages"));

	html_row(t);
	html_text(t, json_string_value(json_object_get(line, "path")));
	html_cell(t, "mono");
	doc_text_cut(t->d,
		     hash     ? hash
		     : guided ? "none: parts of it were read before the rest"
			      : "none: it changed, or is incomplete",
		     80);
	html_cell_end(t);
	html_row_end(t);
}

static void put_file_hashes(struct html_table *t, const struct report_run *r)
{
	size_t files = 0, i;
	json_t *line;

	json_array_foreach(r->lines, i, line)
	{
		const char *event = json_string_value(json_object_get(line, "event"));

		if (!event || strcmp(event, "file") != 0)
			continue;
		if (files++ < FILES_MAX)
			put_file_hash(t, line);
	}
	if (files <= FILES_MAX)
		return;
	html_row_of_rest(t);
	html_cell(t, "");
	doc_count(t->d, files - FILES_MAX);
	doc_put(t->d, " more files");
	html_cell_end(t);
	html_cells_empty(t, 1);
	html_row_end(t);
}

void section_integrity(struct doc *d, const struct report_run *r)
{
	const char *tool = run_text(r->begin, "tool", "sha256");
	char id[2 * RSZ_ID_SIZE + 1], root[SHA256_HEX_SIZE];
	struct html_table t;

	sha256_hex(r->end.root, root);
	bytes_to_hex(r->identity.id, RSZ_ID_SIZE, id);
	doc_put(d, "<p>");
	glossary_link(d, TERM_CHECKED, r->checked ? "All hashes" : "Headers and root");
	doc_put(d, " of the ");
	doc_count(d, r->end.records);
	doc_put(d, " whole records were checked. To prove that this is the container that was "
		   "sealed, compare its root with the one noted at the time, which this report "
		   "cannot know.</p>\n");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "of");
	html_column(&t, TERMS, "SHA-256 (the identity is random)");
	html_table_body(&t);
	put_hash_row(&t, TERM_ROOT, "root of the container", root);
	put_hash_row(&t, TERMS, "identity of the container", id);
	put_hash_row(&t, TERMS, "the acquiring program", tool ? tool : "not recorded");
	put_file_hashes(&t, r);
	html_table_end(&t);
	doc_put(d, "<p class=\"soft\">The acquisition itself recorded the hashes of the program "
		   "and of files in its manifest.</p>\n");
}
