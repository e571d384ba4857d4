/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/print.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/clock.h"
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
	fprintf(out, "image, to the slot of %" PRIu64 " pages: window %s, %s, %s\n", w->pages,
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
	fprintf(out,
		"%-7s %9" PRIu64 " %9" PRIu64 " (%s) %9" PRIu64 " (%s) %9" PRIu64
		" (%s)   window %s, %s, %s\n",
		copy_name(copy), c->tables, trust[TRUST_SAFE], share[TRUST_SAFE],
		trust[TRUST_AT_RISK], share[TRUST_AT_RISK], trust[TRUST_WRONG], share[TRUST_WRONG],
		median, p95, max);
}

static void print_counts(const char *label, const char *(*name)(size_t), const uint64_t *counts,
			 size_t n, FILE *out)
{
	bool any = false;

	fprintf(out, "%-14s", label);
	for (size_t i = 0; i < n; i++) {
		if (!counts[i])
			continue;
		fprintf(out, "%s %" PRIu64 " %s", any ? "," : "", counts[i], name(i));
		any = true;
	}
	fprintf(out, "%s\n", any ? "" : " none");
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
static void print_space_of_image(const struct smear_space *s, FILE *out)
{
	const struct copy_sums *c = &s->copy[COPY_IMAGE];
	uint64_t trust[TRUSTS];
	char name[64];

	copy_trust(c, trust);
	text_printable(s->id.listed ? s->id.name : "(not listed)", name, sizeof(name));
	fprintf(out,
		"%7" PRIu32 " %-16s %12" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
		" %9" PRIu64 "\n",
		s->id.pid, name, copy_not_applicable(c), trust[TRUST_WRONG], trust[TRUST_AT_RISK],
		c->state[PTE_VALID] + c->state[PTE_PROT_NONE], c->state[PTE_TRANSITION],
		c->state[PTE_PAGE_FILE] + c->state[PTE_SWAP] + c->state[PTE_COMPRESSED]);
}

static void print_smear_space(const struct smear_space *s, FILE *out)
{
	const struct copy_sums *c = &s->copy[COPY_IMAGE];
	const uint64_t *state = c->state;
	char name[64], share[16];
	uint64_t trust[TRUSTS];

	copy_trust(c, trust);
	smear_percent(trust[TRUST_SAFE], trust_sum(trust), share);
	text_printable(s->id.listed ? s->id.name : "(not listed)", name, sizeof(name));
	fprintf(out,
		"%7" PRIu32 " %-16s %-5s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %8s %9" PRIu64
		" %9" PRIu64 " %9" PRIu64 "\n",
		s->id.pid, name, fate_name(s->id.fate), trust[TRUST_SAFE], trust[TRUST_AT_RISK],
		trust[TRUST_WRONG], share, state[PTE_VALID] + state[PTE_PROT_NONE],
		state[PTE_TRANSITION],
		state[PTE_PAGE_FILE] + state[PTE_SWAP] + state[PTE_COMPRESSED]);
}

static void print_worst(const struct smear *s, FILE *out)
{
	const struct smear_space **order = calloc(MAX(s->count, 1), sizeof(*order));

	for (size_t i = 0; order && i < s->count; i++)
		order[i] = &s->at[i];
	if (order)
		qsort(order, s->count, sizeof(const struct smear_space *), compare_badness);
	if (s->still)
		fprintf(out, "\nProcesses with the most missing pages, by the image's tables\n    "
			     "PID name             in the image   missing not known  resident "
			     "transition paged out\n");
	else
		fprintf(out,
			"\nWorst processes, by the image's tables (pages)\n"
			"    PID name             fate       safe   at risk     wrong   safe %%  "
			"resident transition paged out\n");
	for (size_t i = 0; order && i < MIN(s->count, (size_t)WORST_SHOWN); i++)
		(s->still ? print_space_of_image : print_smear_space)(order[i], out);
	free(order);
}

static void print_slots_doubt(const struct smear *s, FILE *out)
{
	char why[ERR_MESSAGE_MAX];

	text_printable(s->slots_doubt, why, sizeof(why));
	fprintf(out, "no slot%s is called safe: %s\n",
		s->slots_doubt_looked ? " that was not looked up in the swap cache" : "", why);
}

static void print_file_doubts(const struct smear *s, FILE *out)
{
	char file[256], why[ERR_MESSAGE_MAX];

	for (size_t i = 0; i < s->n_file_doubts; i++) {
		text_printable(s->file_doubts[i].file, file, sizeof(file));
		text_printable(s->file_doubts[i].why, why, sizeof(why));
		fprintf(out,
			"no slot of %s is called safe, because it is not known which part of the "
			"file each slot is: %s\n",
			file, why);
	}
}

static void print_numbers(const struct smear *s, FILE *out)
{
	char text[SMEAR_NUMBER_MAX];

	for (size_t i = 0; i < s->n_numbers; i++) {
		smear_number_text(&s->numbers[i], text);
		fprintf(out, "%s\n", text);
	}
}

/* What cannot be read for certain, and why. */
static void print_layout_doubts(const struct smear *s, FILE *out)
{
	char unknown[SMEAR_UNKNOWN_MAX], doubt[PTE_REASON_MAX];

	text_printable(s->layout.doubt, doubt, sizeof(doubt));
	if (*doubt)
		fprintf(out, "in doubt: %s\n", doubt);
	smear_unknown_text(s, unknown);
	if (*unknown)
		fprintf(out, "%s\n", unknown);
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
			fprintf(out,
				"apart: %zu %s: %" PRIu64 " safe, %" PRIu64 " at risk, %" PRIu64
				" wrong\n",
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
	fprintf(out, "copy       tables      safe           at risk             wrong   "
		     "(4 KiB pages of processes that lived; window to the frame, of all: median, "
		     "95th percentile, maximum)\n");
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
		fprintf(out, "%s\n", sentence);
		return;
	}
	text_printable(s->layout.reason, reason, sizeof(reason));
	if (s->still)
		fprintf(out, "%zu address spaces of an image\n", s->count);
	else
		fprintf(out,
			"%zu address spaces: %zu lived, %zu ended, %zu born between the passes\n",
			s->count, s->fates[FATE_LIVED], s->fates[FATE_ENDED], s->fates[FATE_BORN]);
	fprintf(out, "entries of %s, layout %s (%s)\n", discover_os_name(s->spaces.os),
		s->layout.name, reason);
	print_layout_doubts(s, out);
	if (s->store >= 0)
		fprintf(out, "page file %d is the compression store (%s)\n", s->store, s->store_by);
	if (s->still)
		fprintf(out, "table pages: %" PRIu64 "\n\n", t->copy[COPY_IMAGE].tables);
	else
		print_comparison(s, out);
	print_counts("image states", name_of_state, t->copy[COPY_IMAGE].state, PTE_STATES, out);
	print_counts("image frames", name_of_verdict, t->copy[COPY_IMAGE].frames, VERDICTS, out);
	print_counts("image slots", name_of_verdict, t->copy[COPY_IMAGE].slots, VERDICTS, out);
	fprintf(out,
		"named by several entries: %" PRIu64 " of %" PRIu64 " frames, %" PRIu64
		" of %" PRIu64 " slots\n",
		s->frames.several, s->frames.named, s->slots.several, s->slots.named);
	if (s->slots_doubt)
		print_slots_doubt(s, out);
	print_file_doubts(s, out);
	if (s->clock_steps && !s->still)
		fprintf(out,
			"the machine's counter went back %" PRIu64 " times, by %.3f s in all: what "
			"is called safe does not depend on it, windows are right to %u ms\n",
			s->clock_steps, (double)s->clock_back_ns / 1e9,
			(unsigned)(CLOCK_SLACK_NS / 1000000));
	print_numbers(s, out);
	if (s->spaces.cut || s->cut || t->copy[COPY_BEFORE].cut || t->copy[COPY_AFTER].cut)
		fprintf(out, "not all tables are in these numbers\n");
	print_worst(s, out);
	smear_advice_text(s, COPY_IMAGE, advice);
	fprintf(out, "\n%s\n%s%s", sentence, advice, *advice ? "\n" : "");
}
