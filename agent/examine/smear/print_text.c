/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/print.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/table.h"
#include "agent/shared/program/text.h"

/* "12.345 s", "3.2 ms", "810 ns". */
static void smear_duration(uint64_t ns, char ret[static 32])
{
	if (ns >= 1000000000)
		snprintf(ret, 32, "%.3f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(ret, 32, "%.1f ms", (double)ns / 1e6);
	else if (ns >= 1000)
		snprintf(ret, 32, "%.1f us", (double)ns / 1e3);
	else
		snprintf(ret, 32, "%" PRIu64 " ns", ns);
}

static void print_slots(const struct window_summary *w, FILE *out)
{
	char median[32], p95[32], max[32];

	if (!w->pages)
		return;
	smear_duration(w->median, median);
	smear_duration(w->p95, p95);
	smear_duration(w->max, max);
	lines_print(out, 4, "image, to the slot of %" PRIu64 " pages: window %s, %s, %s", w->pages,
		    median, p95, max);
}

/* Trust is of those that lived. */
static void print_copy(const struct smear *s, enum copy copy, FILE *out)
{
	const struct copy_sums *c = &s->total.copy[copy];
	char share[TRUSTS][16], median[32], p95[32], max[32];
	uint64_t trust[TRUSTS];

	smear_trust(s, copy, trust);
	for (size_t i = 0; i < TRUSTS; i++)
		smear_percent(trust[i], trust_sum(trust), share[i]);
	smear_duration(c->window[WINDOW_FRAMES].median, median);
	smear_duration(c->window[WINDOW_FRAMES].p95, p95);
	smear_duration(c->window[WINDOW_FRAMES].max, max);
	lines_print(out, 8,
		    "%-7s %9" PRIu64 " %9" PRIu64 " (%s) %9" PRIu64 " (%s) %9" PRIu64
		    " (%s)   window %s, %s, %s",
		    copy_name(copy), c->tables, trust[TRUST_SAFE], share[TRUST_SAFE],
		    trust[TRUST_AT_RISK], share[TRUST_AT_RISK], trust[TRUST_WRONG],
		    share[TRUST_WRONG], median, p95, max);
}

/* A number and a name for each state, change or verdict. */
#define COUNTS_MAX 2048

static void print_counts(const char *label, const char *(*name)(size_t), const uint64_t *counts,
			 size_t n, FILE *out)
{
	char list[COUNTS_MAX];
	size_t len = 0;

	for (size_t i = 0; i < n && len < sizeof(list); i++)
		if (counts[i])
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%" PRIu64 " %s",
						len ? ", " : "", counts[i], name(i));
	lines_print(out, 15, "%-14s %s", label, len ? list : "none");
}

static const char *name_of_change(size_t i)
{
	return change_name((enum change)i);
}

static const char *name_of_state(size_t i)
{
	return pte_state_name((enum pte_state)i);
}

static const char *name_of_verdict(size_t i)
{
	return verdict_name((enum verdict)i);
}

/* Pages of the image's tables that cannot be relied on. */
static uint64_t space_badness(const struct smear_space *s)
{
	uint64_t trust[TRUSTS];

	copy_trust(&s->copy[COPY_IMAGE], trust);
	return trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

static int compare_badness(const void *a, const void *b)
{
	const uint64_t x = space_badness(*(const struct smear_space *const *)a);
	const uint64_t y = space_badness(*(const struct smear_space *const *)b);

	return x > y ? -1 : x < y;
}

#define WORST_SHOWN 10

/* Of an image: what is there of it, and what is not. */
static const struct table_column image_columns[] = {
	{ "    PID", 7, 0 },     { "name", -16, 0 },    { "in the image", 12, 0 },
	{ "missing", 9, 0 },     { "not known", 9, 0 }, { "resident", 9, 2 },
	{ "transition", 10, 3 }, { "paged out", 9, 1 },
};

static void print_space_of_image(const struct smear_space *s, struct table *t)
{
	const struct copy_sums *c = &s->copy[COPY_IMAGE];
	uint64_t trust[TRUSTS];

	copy_trust(c, trust);
	table_cell(t, "%" PRIu64, copy_not_applicable(c));
	table_cell(t, "%" PRIu64, trust[TRUST_WRONG]);
	table_cell(t, "%" PRIu64, trust[TRUST_AT_RISK]);
}

static const struct table_column space_columns[] = {
	{ "    PID", 7, 0 },     { "name", -16, 0 },    { "fate", -5, 1 },  { "safe", 9, 0 },
	{ "at risk", 9, 0 },     { "wrong", 9, 0 },     { "safe %", 8, 0 }, { "resident", 9, 3 },
	{ "transition", 10, 4 }, { "paged out", 9, 2 },
};

static void print_smear_space(const struct smear_space *s, struct table *t)
{
	uint64_t trust[TRUSTS];
	char share[16];

	copy_trust(&s->copy[COPY_IMAGE], trust);
	smear_percent(trust[TRUST_SAFE], trust_sum(trust), share);
	table_cell(t, "%s", fate_name(s->id.fate));
	table_cell(t, "%" PRIu64, trust[TRUST_SAFE]);
	table_cell(t, "%" PRIu64, trust[TRUST_AT_RISK]);
	table_cell(t, "%" PRIu64, trust[TRUST_WRONG]);
	table_cell(t, "%s", share);
}

static void print_worst_row(const struct smear_space *s, bool still, struct table *t)
{
	const uint64_t *state = s->copy[COPY_IMAGE].state;
	char name[64];

	text_printable(s->id.listed ? s->id.name : "(not listed)", name, sizeof(name));
	table_cell(t, "%" PRIu32, s->id.pid);
	table_cell(t, "%s", name);
	(still ? print_space_of_image : print_smear_space)(s, t);
	table_cell(t, "%" PRIu64, state[PTE_VALID] + state[PTE_PROT_NONE]);
	table_cell(t, "%" PRIu64, state[PTE_TRANSITION]);
	table_cell(t, "%" PRIu64, state[PTE_PAGE_FILE] + state[PTE_SWAP] + state[PTE_COMPRESSED]);
}

static void print_worst(const struct smear *s, FILE *out)
{
	const struct smear_space **order = calloc(MAX(s->count, 1), sizeof(*order));
	struct table t;

	for (size_t i = 0; order && i < s->count; i++)
		order[i] = &s->at[i];
	if (order)
		qsort(order, s->count, sizeof(const struct smear_space *), compare_badness);
	fputs(s->still ? "\nProcesses with the most missing pages, by the image's tables\n"
		       : "\nWorst processes, by the image's tables (pages)\n",
	      out);
	if (s->still)
		table_begin(&t, out, image_columns, ARRAY_SIZE(image_columns));
	else
		table_begin(&t, out, space_columns, ARRAY_SIZE(space_columns));
	for (size_t i = 0; order && i < MIN(s->count, (size_t)WORST_SHOWN); i++)
		print_worst_row(order[i], s->still, &t);
	table_end(&t);
	free(order);
}

static void print_slots_doubt(const struct smear *s, FILE *out)
{
	char why[ERR_MESSAGE_MAX];

	text_printable(s->slots_doubt, why, sizeof(why));
	lines_print(out, 2, "no slot%s is called safe: %s",
		    s->slots_doubt_looked ? " that was not looked up in the swap cache" : "", why);
}

static void print_file_doubts(const struct smear *s, FILE *out)
{
	char file[256], why[ERR_MESSAGE_MAX];

	for (size_t i = 0; i < s->n_file_doubts; i++) {
		text_printable(s->file_doubts[i].file, file, sizeof(file));
		text_printable(s->file_doubts[i].why, why, sizeof(why));
		lines_print(
			out, 2,
			"no slot of %s is called safe, because it is not known which part of the "
			"file each slot is: %s",
			file, why);
	}
}

static void print_numbers(const struct smear *s, FILE *out)
{
	char text[SMEAR_NUMBER_MAX];

	for (size_t i = 0; i < s->n_numbers; i++) {
		smear_number_text(&s->numbers[i], text);
		lines_print(out, 2, "%s", text);
	}
}

/* What cannot be read for certain, and why. */
static void print_layout_doubts(const struct smear *s, FILE *out)
{
	char unknown[SMEAR_UNKNOWN_MAX], doubt[PTE_REASON_MAX];

	text_printable(s->layout.doubt, doubt, sizeof(doubt));
	if (*doubt)
		lines_print(out, 2, "in doubt: %s", doubt);
	smear_unknown_text(s, unknown);
	if (*unknown)
		lines_print(out, 2, "%s", unknown);
}

/* What is not in the headline, and why, by the image's tables. */
static void print_apart(const struct smear *s, FILE *out)
{
	static const char *const text[COHORTS] = {
		[COHORT_ENDED] = "ended between the passes",
		[COHORT_BORN] = "were born between the passes",
		[COHORT_OTHER_ROOT] = "have a root page that holds something else in the image",
		[COHORT_TORN] = "have torn tables in the image, which map",
	};

	for (size_t g = COHORT_LIVED + 1; g < COHORTS; g++) {
		const struct cohort_sums *x = &s->cohorts[g];
		const uint64_t *trust = x->trust[COPY_IMAGE];

		if (x->spaces)
			lines_print(out, 2,
				    "apart: %zu %s: %" PRIu64 " safe, %" PRIu64 " at risk, %" PRIu64
				    " wrong",
				    x->spaces, text[g], trust[TRUST_SAFE], trust[TRUST_AT_RISK],
				    trust[TRUST_WRONG]);
	}
}

/* What is compared of the copies; there is but one of an image. */
static void print_comparison(const struct smear *s, FILE *out)
{
	const struct smear_space *t = &s->total;

	fprintf(out, "table pages: %" PRIu64 " kept, %" PRIu64 " freed, %" PRIu64 " created\n\n",
		t->tables.kept, t->tables.freed, t->tables.created);
	lines_print(out, 8,
		    "copy       tables      safe           at risk             wrong   "
		    "(4 KiB pages of processes that lived; window to the frame, of all: median, "
		    "95th percentile, maximum)");
	for (size_t c = 0; c < COPIES; c++)
		print_copy(s, (enum copy)c, out);
	print_slots(&t->copy[COPY_IMAGE].window[WINDOW_SLOTS], out);
	print_apart(s, out);
	fputc('\n', out);
	for (size_t i = 0; i < PAIRS; i++)
		print_counts(pair_name((enum pair)i), name_of_change, t->pair[i].change, CHANGES,
			     out);
}

void smear_print_text(const struct smear *s, FILE *out)
{
	const struct smear_space *t = &s->total;
	char reason[PTE_REASON_MAX], sentence[SMEAR_SENTENCE_MAX], advice[SMEAR_ADVICE_MAX];

	smear_sentence(s, COPY_IMAGE, sentence);
	if (s->still && !s->count) {
		lines_print(out, 0, "%s", sentence);
		return;
	}
	text_printable(s->layout.reason, reason, sizeof(reason));
	if (s->still)
		fprintf(out, "%zu address spaces of an image\n", s->count);
	else
		lines_print(out, 2,
			    "%zu address spaces: %zu lived, %zu ended, %zu born between the passes",
			    s->count, s->fates[FATE_LIVED], s->fates[FATE_ENDED],
			    s->fates[FATE_BORN]);
	lines_print(out, 2, "entries of %s, layout %s (%s)", discover_os_name(s->spaces.os),
		    s->layout.name, reason);
	print_layout_doubts(s, out);
	if (s->store >= 0)
		lines_print(out, 2, "page file %d is the compression store (%s)", s->store,
			    s->store_by);
	if (s->still)
		fprintf(out, "table pages: %" PRIu64 "\n\n", t->copy[COPY_IMAGE].tables);
	else
		print_comparison(s, out);
	print_counts("image states", name_of_state, t->copy[COPY_IMAGE].state, PTE_STATES, out);
	print_counts("image frames", name_of_verdict, t->copy[COPY_IMAGE].frames, VERDICTS, out);
	print_counts("image slots", name_of_verdict, t->copy[COPY_IMAGE].slots, VERDICTS, out);
	lines_print(out, 2,
		    "named by several entries: %" PRIu64 " of %" PRIu64 " frames, %" PRIu64
		    " of %" PRIu64 " slots",
		    s->frames.several, s->frames.named, s->slots.several, s->slots.named);
	if (s->slots_doubt)
		print_slots_doubt(s, out);
	print_file_doubts(s, out);
	if (s->clock_steps && !s->still)
		lines_print(out, 2,
			    "the machine's counter went back %" PRIu64
			    " times, by %.3f s in all: what "
			    "is called safe does not depend on it, windows are right to %u ms",
			    s->clock_steps, (double)s->clock_back_ns / 1e9,
			    (unsigned)(CLOCK_SLACK_NS / 1000000));
	print_numbers(s, out);
	if (s->spaces.cut || s->cut || t->copy[COPY_BEFORE].cut || t->copy[COPY_AFTER].cut)
		fprintf(out, "not all tables are in these numbers\n");
	print_worst(s, out);
	smear_advice_text(s, COPY_IMAGE, advice);
	fputc('\n', out);
	lines_put(out, lines_text_width(out), 0, sentence);
	if (*advice)
		lines_put(out, lines_text_width(out), 0, advice);
}
