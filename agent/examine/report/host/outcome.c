/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/host/outcome.h"

static bool run_has_gaps(const struct report_run *r)
{
	const json_t *code = json_object_get(r->finish, "exit_code");

	return json_integer_value(code) == EXIT_GAPS || r->missing;
}

enum rating outcome_rating(const struct report_run *r)
{
	if (!run_is_whole(r) || r->partial[0])
		return RATING_BAD;
	return run_has_gaps(r) || r->sealed_later ? RATING_FAIR : RATING_GOOD;
}

static const char *end_headline(enum rsz_end end)
{
	switch (end) {
	case RSZ_END_UNSEALED:
		return "Not sealed";
	case RSZ_END_CUT:
		return "Cut off";
	default:
		return "Damaged";
	}
}

const char *outcome_headline(const struct report_run *r)
{
	if (!run_is_whole(r))
		return end_headline(r->end.end);
	if (r->partial[0])
		return "Sealed, but incomplete";
	if (run_has_gaps(r))
		return "Complete, with gaps";
	return r->sealed_later ? "Complete, sealed later" : "Complete";
}

static void put_not_whole(struct doc *d, const struct report_run *r)
{
	doc_put(d, "<p>The container is ");
	doc_put(d, rsz_end_name(r->end.end));
	doc_put(d, ": ");
	html_strange(d, r->end.reason);
	doc_put(d, ". Everything before offset ");
	doc_count(d, r->end.whole);
	doc_put(d, r->checked ? " is whole; all hashes were checked.</p>"
			      : " is whole according to its headers; not all hashes of the "
				"contents were checked.</p>");
}

static void put_early_end(struct doc *d, const struct report_run *r)
{
	const char *message = json_string_value(json_object_get(r->finish, "message"));

	if (!r->finish) {
		doc_put(d, "<p>The acquisition did not finish.</p>");
		return;
	}
	doc_put(d, "<p>The acquisition did not complete: ");
	html_strange(d, run_outcome(r));
	doc_put(d, ".");
	if (message) {
		doc_put(d, " Its message: ");
		html_strange(d, message);
		doc_put(d, ".");
	}
	doc_put(d, "</p>");
}

static void put_partial(struct doc *d, const struct report_run *r)
{
	doc_put(d, "<p>The acquisition finished, but is incomplete: it ");
	html_strange(d, r->partial);
	doc_put(d, ".</p>");
}

static void put_missing_from_map(struct doc *d, const struct report_run *r)
{
	if (!r->missing)
		return;
	doc_put(d, "<p>");
	doc_count(d, r->missing);
	doc_put(d, r->missing == 1 ? " page" : " pages");
	doc_put(d, " of the map of RAM ");
	doc_put(d, r->missing == 1 ? "is" : "are");
	doc_put(d, " in no record.</p>");
}

static void put_gaps(struct doc *d, const struct report_run *r)
{
	const uint64_t unreadable = run_pages(r, PAGE_UNREADABLE);
	const uint64_t skipped = run_pages(r, PAGE_SKIPPED);

	doc_put(d, "<p>The acquisition finished. ");
	if (unreadable || skipped) {
		doc_count(d, unreadable);
		doc_put(d, unreadable == 1 ? " page was unreadable and "
					   : " pages were unreadable and ");
		doc_count(d, skipped);
		doc_put(d, skipped == 1 ? " was skipped" : " were skipped");
		doc_put(d, "; <a href=\"#unreadable\">each is recorded</a>. ");
	}
	if (run_is_silent(r))
		doc_put(d, "Its source cannot report unreadable pages: they look like zeros.");
	doc_put(d, "</p>");
}

static void put_seal(struct doc *d, const struct report_run *r)
{
	if (r->sealed_later)
		doc_put(d, "<p>The container was not sealed by the acquisition but later. Nothing "
			   "shows what happened to it in between. ");
	else
		doc_put(d, "<p>The container is sealed. ");
	doc_put(d, r->checked ? "All its hashes were checked and match.</p>"
			      : "Its headers match its root; not all hashes of the contents were "
				"checked.</p>");
}

void outcome_put_reasons(struct doc *d, const struct report_run *r)
{
	if (!run_is_whole(r))
		put_not_whole(d, r);
	if (!run_is_complete(r))
		put_early_end(d, r);
	else if (run_is_whole(r) && r->partial[0])
		put_partial(d, r);
	else if (run_has_gaps(r))
		put_gaps(d, r);
	else
		doc_put(d, "<p>The acquisition finished and recorded no gap.</p>");
	put_missing_from_map(d, r);
	if (run_is_whole(r))
		put_seal(d, r);
}
