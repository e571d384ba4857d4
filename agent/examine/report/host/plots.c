/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a report: which numbers of a run go into which form.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/host/pages.h"
#include "agent/shared/program/text.h"

#define LANES_MAX 12

const struct page_figure page_figures[] = {
	{ "timeline", .put = figure_of_timeline },
	{ "windows", .several = true, .wants_smear = true, .put = figure_of_windows },
	{ "curves", .several = true, .wants_smear = true, .put = figure_of_curves },
	{ "spread", .several = true, .wants_smear = true, .put = figure_of_spread },
	{ "verdicts", .several = true, .wants_smear = true, .put = figure_of_verdicts },
	{ "transitions", .wants_smear = true, .put = figure_of_transitions },
	{ "processes", .wants_smear = true, .put = figure_of_processes },
	{ "states", .wants_smear = true, .put = figure_of_states },
};
const size_t page_n_figures = ARRAY_SIZE(page_figures);

void figure_of_timeline(struct doc *d, const struct report_run *runs, size_t count,
			enum svg_form form)
{
	struct timeline_lane lanes[LANES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < runs->sums.count && n < LANES_MAX; i++) {
		const struct stream_sums *s = &runs->sums.streams[i];

		if (s->paged && s->end)
			lanes[n++] = (struct timeline_lane){ s->name, s->kind, s->start, s->end };
	}
	timeline_draw(d, &runs->timeline, lanes, n, form);
}

void figure_of_strip(struct doc *d, const struct report_run *runs, size_t count, enum svg_form form)
{
	const bool silent = run_is_silent(runs);
	const struct stream_sums *m = run_stream(runs, RSZ_KIND_MEMORY);
	uint64_t again = 0, missing = runs->missing;
	char size[STRIP_LANES][TEXT_SIZE_MAX + sizeof(" or more")];
	const char *notes[STRIP_LANES];

	for (size_t i = 0; m && i < SUMS_REASONS; i++)
		again += m->again[i];
	if (m)
		missing += m->tally.pages[PAGE_UNREADABLE] + m->tally.pages[PAGE_SKIPPED];
	text_size(m ? run_stream_read(m) - MIN(again, run_stream_read(m)) : 0,
		  size[STRIP_CAPTURED]);
	text_size(missing * PAGE_SIZE, size[STRIP_MISSING]);
	text_size(again, size[STRIP_AGAIN]);
	if (silent)
		strcat(size[STRIP_MISSING], " or more");
	for (size_t i = 0; i < STRIP_LANES; i++)
		notes[i] = size[i];
	strip_draw(d, &runs->strip, notes, form);
}

void figure_of_moments(struct doc *d, const struct report_run *runs, size_t count,
		       enum svg_form form)
{
	struct figure_share at[SMEAR_MOMENTS] = { 0 };
	const struct figure_shares f = {
		.title = "Pages at risk, by when they were captured",
		.unit = "time since the first page of memory was captured",
		.of = "at risk",
		.span = runs->smear.memory.end - runs->smear.memory.start,
		.at = at,
		.count = SMEAR_MOMENTS,
	};

	for (size_t i = 0; i < SMEAR_MOMENTS; i++) {
		const uint64_t *trust = runs->smear.moments[i].trust;

		at[i].part = trust[TRUST_AT_RISK];
		for (size_t k = 0; k < TRUSTS; k++)
			at[i].whole += trust[k];
	}
	figure_shares(d, &f, form);
}

/* One for each run, by the image's tables; NULL if out of memory. */
static struct figure_window *windows_of(const struct report_run *runs, size_t count)
{
	struct figure_window *at = calloc(count, sizeof(*at));

	for (size_t i = 0; at && i < count; i++) {
		at[i].name = runs[i].label;
		at[i].w = &runs[i].smear.total.copy[COPY_IMAGE].window[WINDOW_FRAMES];
	}
	return at;
}

void figure_of_windows(struct doc *d, const struct report_run *runs, size_t count,
		       enum svg_form form)
{
	static const char *const names[COPIES] = {
		[COPY_BEFORE] = "tables before the memory",
		[COPY_IMAGE] = "tables in the image",
		[COPY_AFTER] = "tables after the memory",
	};
	struct figure_window copies[COPIES];
	_cleanup_free_ struct figure_window *at = count > 1 ? windows_of(runs, count) : NULL;

	for (size_t i = 0; i < COPIES; i++)
		copies[i] =
			(struct figure_window){ names[i],
						&runs->smear.total.copy[i].window[WINDOW_FRAMES] };
	if (count == 1)
		figure_windows(d, copies, COPIES, form);
	else if (at)
		figure_windows(d, at, count, form);
	else
		d->lost = true;
}

void figure_of_curves(struct doc *d, const struct report_run *runs, size_t count,
		      enum svg_form form)
{
	_cleanup_free_ struct figure_window *at = windows_of(runs, count);

	if (at)
		figure_curves(d, at, count, form);
	else
		d->lost = true;
}

void figure_of_spread(struct doc *d, const struct report_run *runs, size_t count,
		      enum svg_form form)
{
	_cleanup_free_ struct figure_window *at = windows_of(runs, count);

	if (at)
		figure_spread(d, at, count, form);
	else
		d->lost = true;
}

/*
 * Verdicts
 */

static const struct svg_legend trust_legends[TRUSTS] = {
	[TRUST_SAFE] = { "safe", 0 },
	[TRUST_AT_RISK] = { "at risk", 1 },
	[TRUST_WRONG] = { "wrong", 2 },
};

static void add_trust(struct figure_bar *b, const struct copy_sums *c)
{
	uint64_t trust[TRUSTS];

	copy_trust(c, trust);
	for (size_t i = 0; i < TRUSTS; i++)
		b->parts[i] += trust[i];
}

static void note_trust(struct figure_bar *b)
{
	const uint64_t all = b->parts[TRUST_SAFE] + b->parts[TRUST_AT_RISK] + b->parts[TRUST_WRONG];
	char risk[NUMBER_MAX], wrong[NUMBER_MAX], size[TEXT_SIZE_MAX];

	number_count(b->parts[TRUST_AT_RISK], risk);
	number_count(b->parts[TRUST_WRONG], wrong);
	text_size(all * PAGE_SIZE, size);
	snprintf(b->note, sizeof(b->note), "%s: %.24s at risk, %.24s wrong", size, risk, wrong);
	snprintf(b->columns[0], sizeof(b->columns[0]), "%s", size);
	snprintf(b->columns[1], sizeof(b->columns[1]), "%.23s", risk);
	snprintf(b->columns[2], sizeof(b->columns[2]), "%.23s", wrong);
}

static void put_trust_bars(struct doc *d, const char *title, const struct figure_bar *at,
			   size_t count, enum svg_form form)
{
	const struct figure_bars f = {
		.title = title,
		.unit = "share of the pages that the image's tables name",
		.series = trust_legends,
		.n_series = TRUSTS,
		.at = at,
		.count = count,
		.percent = true,
		.columns = { "in all", "at risk", "wrong" },
		.n_columns = 3,
	};

	figure_bars(d, &f, form);
}

void figure_of_verdicts(struct doc *d, const struct report_run *runs, size_t count,
			enum svg_form form)
{
	_cleanup_free_ struct figure_bar *at = calloc(count, sizeof(*at));

	for (size_t i = 0; at && i < count; i++) {
		at[i].name = runs[i].label;
		smear_trust(&runs[i].smear, COPY_IMAGE, at[i].parts);
		note_trust(&at[i]);
	}
	if (at)
		put_trust_bars(d, "Safe, at risk and wrong", at, count, form);
	else
		d->lost = true;
}

/*
 * Transitions
 */

/* The states that occur in either copy, in the order of the enum. */
static size_t states_that_occur(const struct transitions *t, uint8_t place[static PTE_STATES],
				const char *names[static PTE_STATES])
{
	bool has[PTE_STATES] = { false };
	size_t n = 0;

	for (size_t i = 0; i < t->n_states; i++)
		has[t->states[i].from] = has[t->states[i].to] = true;
	for (size_t i = 0; i < PTE_STATES; i++) {
		if (!has[i])
			continue;
		place[i] = (uint8_t)n;
		names[n++] = pte_state_name((enum pte_state)i);
	}
	return n;
}

void figure_of_pair(struct doc *d, const struct smear *s, enum pair p, enum svg_form form)
{
	static const struct {
		const char *from, *to, *change;
	} titles[PAIRS] = {
		[PAIR_BEFORE_AFTER] = { "state before", "state after",
					"state before → state after" },
		[PAIR_BEFORE_IMAGE] = { "state before", "state in the image",
					"state before → state in the image" },
		[PAIR_IMAGE_AFTER] = { "state in the image", "state after",
				       "state in the image → state after" },
	};
	const struct transitions *t = &s->total.pair[p];
	uint64_t cells[PTE_STATES * PTE_STATES] = { 0 };
	const char *names[PTE_STATES];
	uint8_t place[PTE_STATES] = { 0 };
	const size_t n = states_that_occur(t, place, names);

	for (size_t i = 0; i < t->n_states; i++)
		cells[place[t->states[i].from] * n + place[t->states[i].to]] += t->states[i].pages;
	figure_matrix(d,
		      &(struct figure_matrix){ "Transitions of page states", titles[p].from,
					       titles[p].to, titles[p].change, names, n, cells },
		      form);
}

void figure_of_transitions(struct doc *d, const struct report_run *runs, size_t count,
			   enum svg_form form)
{
	figure_of_pair(d, &runs->smear, PAIR_BEFORE_AFTER, form);
}

/*
 * Processes
 */

static uint64_t risk_of(const struct smear_space *s)
{
	uint64_t trust[TRUSTS];

	copy_trust(&s->copy[COPY_IMAGE], trust);
	return trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

static uint64_t space_size_of(const struct smear_space *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PTE_STATES; i++)
		sum += i == PTE_EMPTY ? 0 : s->copy[COPY_IMAGE].state[i];
	return sum;
}

static int compare_descending(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

/* The larger first among those that are alike, so that the order says something. */
int compare_risk(const void *a, const void *b)
{
	const struct smear_space *x = *(const struct smear_space *const *)a;
	const struct smear_space *y = *(const struct smear_space *const *)b;
	const int order = compare_descending(risk_of(x), risk_of(y));

	return order ? order : compare_size(a, b);
}

/* The PID last: qsort() keeps no order of its own. */
int compare_size(const void *a, const void *b)
{
	const struct smear_space *x = *(const struct smear_space *const *)a;
	const struct smear_space *y = *(const struct smear_space *const *)b;
	const int order = compare_descending(space_size_of(x), space_size_of(y));

	return order ? order : compare_descending(y->id.dtb, x->id.dtb);
}

const struct smear_space **spaces_sorted(const struct smear *s, space_compare *compare)
{
	const struct smear_space **order = calloc(MAX(s->count, 1), sizeof(*order));

	for (size_t i = 0; order && i < s->count; i++)
		order[i] = &s->at[i];
	if (order)
		qsort(order, s->count, sizeof(const struct smear_space *), compare);
	return order;
}

/* Bars of the first spaces in that order, and one of all others together. */
struct bars {
	struct figure_bar at[PAGE_PROCESSES + 1];
	size_t count;
	char rest[NUMBER_MAX + 16];
};

static bool make_bars(struct bars *b, const struct smear *s, space_compare *compare,
		      void (*add)(struct figure_bar *bar, const struct copy_sums *c))
{
	_cleanup_free_ const struct smear_space **order = spaces_sorted(s, compare);
	char others[NUMBER_MAX];

	if (!order)
		return false;
	*b = (struct bars){ .count = MIN(s->count, (size_t)PAGE_PROCESSES) };
	for (size_t i = 0; i < s->count; i++) {
		struct figure_bar *bar = &b->at[MIN(i, b->count)];

		add(bar, &order[i]->copy[COPY_IMAGE]);
		if (i >= b->count)
			continue;
		bar->name = order[i]->id.listed ? order[i]->id.name : "(not listed)";
		if (order[i]->id.listed)
			snprintf(bar->suffix, sizeof(bar->suffix), " [%" PRIu32 "]",
				 order[i]->id.pid);
	}
	if (s->count <= b->count)
		return true;
	number_count(s->count - b->count, others);
	snprintf(b->rest, sizeof(b->rest), "%s others", others);
	b->at[b->count++].name = b->rest;
	return true;
}

void figure_of_processes(struct doc *d, const struct report_run *runs, size_t count,
			 enum svg_form form)
{
	struct bars b;

	if (!make_bars(&b, &runs->smear, compare_risk, add_trust)) {
		d->lost = true;
		return;
	}
	for (size_t i = 0; i < b.count; i++)
		note_trust(&b.at[i]);
	put_trust_bars(d, "Processes by pages at risk", b.at, b.count, form);
}

/*
 * States
 */

static enum group state_group_of(size_t state)
{
	switch (state) {
	case PTE_VALID:
	case PTE_PROT_NONE:
	case PTE_MIGRATION:
		return GROUP_MEMORY;
	case PTE_TRANSITION:
		return GROUP_TRANSITION;
	case PTE_PAGE_FILE:
	case PTE_SWAP:
	case PTE_COMPRESSED:
		return GROUP_PAGED_OUT;
	case PTE_PROTOTYPE:
	case PTE_VAD_PROTOTYPE:
		return GROUP_PROTOTYPE;
	case PTE_DEMAND_ZERO:
		return GROUP_ZERO;
	default:
		return GROUP_OTHER;
	}
}

void group_states(const struct copy_sums *c, uint64_t ret[static GROUPS])
{
	memset(ret, 0, GROUPS * sizeof(*ret));
	for (size_t i = 0; i < PTE_STATES; i++)
		if (i != PTE_EMPTY)
			ret[state_group_of(i)] += c->state[i];
}

static void add_states(struct figure_bar *b, const struct copy_sums *c)
{
	uint64_t sums[GROUPS];

	group_states(c, sums);
	for (size_t i = 0; i < GROUPS; i++)
		b->parts[i] += sums[i];
}

void figure_of_states(struct doc *d, const struct report_run *runs, size_t count,
		      enum svg_form form)
{
	static const struct svg_legend legends[GROUPS] = {
#define X(name, text, series) [name] = { text, series },
		GROUP_MAP(X)
#undef X
	};
	struct bars b;
	struct figure_bars f = {
		.title = "Page states by process",
		.unit = "share of the pages, by the image's tables",
		.series = legends,
		.n_series = GROUPS,
		.at = b.at,
		.percent = true,
		.columns = { "in all", "pages in", "pages out" },
		.n_columns = 3,
	};

	if (!make_bars(&b, &runs->smear, compare_size, add_states)) {
		d->lost = true;
		return;
	}
	f.count = b.count;
	for (size_t i = 0; i < b.count; i++) {
		char in[NUMBER_MAX], out[NUMBER_MAX], size[TEXT_SIZE_MAX];
		uint64_t all = 0;

		for (size_t k = 0; k < GROUPS; k++)
			all += b.at[i].parts[k];
		number_count(b.at[i].parts[GROUP_MEMORY], in);
		number_count(b.at[i].parts[GROUP_PAGED_OUT], out);
		text_size(all * PAGE_SIZE, size);
		snprintf(b.at[i].note, sizeof(b.at[i].note), "%s: %.24s in, %.24s out", size, in,
			 out);
		snprintf(b.at[i].columns[0], sizeof(b.at[i].columns[0]), "%s", size);
		snprintf(b.at[i].columns[1], sizeof(b.at[i].columns[1]), "%.23s", in);
		snprintf(b.at[i].columns[2], sizeof(b.at[i].columns[2]), "%.23s", out);
	}
	figure_bars(d, &f, form);
}

void page_figure_begin(struct doc *d, figure_put *put, const struct report_run *runs, size_t count)
{
	doc_put(d, "<figure>");
	put(d, runs, count, SVG_WIDE);
	put(d, runs, count, SVG_NARROW);
}

void page_figure_end(struct doc *d)
{
	doc_put(d, "</figure>\n");
}
