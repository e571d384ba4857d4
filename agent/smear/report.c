/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/smear/report.h"

#include <inttypes.h>
#include <string.h>

#include "agent/program/json.h"
#include "agent/program/text.h"

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static void put_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, integer(v));
}

/*
 * JSON
 */

static json_t *window_json(const struct window_summary *w)
{
	json_t *o = json_object(), *list = json_array();

	put_number(o, "pages", w->pages);
	put_number(o, "median_ns", w->median);
	put_number(o, "p95_ns", w->p95);
	put_number(o, "max_ns", w->max);
	for (unsigned i = 0; i < WINDOW_OCTAVES; i++)
		if (w->octave[i])
			json_array_append_new(list, json_pack("{s:o, s:o}", "from_ns",
							      integer(i ? UINT64_C(1) << i : 0),
							      "pages", integer(w->octave[i])));
	json_object_set_new(o, "histogram", list);
	return o;
}

/* {"safe": N, "changed": N, …}, those that occurred. */
static json_t *verdicts_json(const uint64_t verdicts[VERDICTS])
{
	json_t *o = json_object();

	for (size_t i = 0; i < VERDICTS; i++)
		if (verdicts[i])
			put_number(o, verdict_name((enum verdict)i), verdicts[i]);
	return o;
}

static json_t *copy_json(const struct copy_sums *c)
{
	json_t *o = json_object(), *states = json_object(), *trusts = json_object();
	uint64_t trust[TRUSTS];

	copy_trust(c, trust);
	for (size_t i = 0; i < TRUSTS; i++)
		put_number(trusts, trust_name((enum trust)i), trust[i]);
	if (copy_not_applicable(c))
		put_number(trusts, trust_name(TRUST_NOT_APPLICABLE), copy_not_applicable(c));
	for (size_t i = 0; i < PTE_STATES; i++)
		if (c->state[i])
			put_number(states, pte_state_name((enum pte_state)i), c->state[i]);
	put_number(o, "tables", c->tables);
	put_number(o, "entries", c->entries);
	put_number(o, "not_followed", c->not_followed);
	put_number(o, "away", c->away);
	put_number(o, "older_captures", c->older);
	json_object_set_new(o, "cut", json_boolean(c->cut));
	json_object_set_new(o, "no_root", json_boolean(c->no_root));
	json_object_set_new(o, "states", states);
	json_object_set_new(o, "trust", trusts);
	json_object_set_new(o, "frames", verdicts_json(c->frames));
	json_object_set_new(o, "slots", verdicts_json(c->slots));
	json_object_set_new(o, "window", window_json(&c->window[WINDOW_FRAMES]));
	json_object_set_new(o, "slot_window", window_json(&c->window[WINDOW_SLOTS]));
	return o;
}

static json_t *pair_json(const struct transitions *t)
{
	json_t *o = json_object(), *changes = json_object(), *states = json_array();

	for (size_t i = 0; i < CHANGES; i++)
		if (t->change[i])
			put_number(changes, change_name((enum change)i), t->change[i]);
	for (size_t i = 0; i < t->n_states; i++)
		json_array_append_new(
			states, json_pack("{s:s, s:s, s:o}", "from",
					  pte_state_name((enum pte_state)t->states[i].from), "to",
					  pte_state_name((enum pte_state)t->states[i].to), "pages",
					  integer(t->states[i].pages)));
	json_object_set_new(o, "changes", changes);
	json_object_set_new(o, "states", states);
	return o;
}

static json_t *space_json(const struct smear_space *s)
{
	json_t *o = json_object(), *copies = json_object(), *list = json_object();

	for (size_t c = 0; c < COPIES; c++)
		json_object_set_new(copies, copy_name((enum copy)c), copy_json(&s->copy[c]));
	for (size_t i = 0; i < PAIRS; i++)
		json_object_set_new(list, pair_name((enum pair)i), pair_json(&s->pair[i]));
	json_object_set_new(o, "copies", copies);
	json_object_set_new(o, "transitions", list);
	json_object_set_new(o, "tables",
			    json_pack("{s:o, s:o, s:o}", "kept", integer(s->tables.kept), "freed",
				      integer(s->tables.freed), "created",
				      integer(s->tables.created)));
	return o;
}

static void put_id(json_t *o, const struct smear_id *id)
{
	put_number(o, "dtb", id->dtb);
	json_object_set_new(o, "fate", json_string(fate_name(id->fate)));
	json_object_set_new(o, "listed", json_boolean(id->listed));
	if (!id->listed)
		return;
	put_number(o, "pid", id->pid);
	json_object_set_new(o, "name", json_text(id->name));
	put_number(o, "sharers", id->sharers);
}

static json_t *layout_json(const struct smear *s)
{
	return json_pack("{s:s, s:s, s:b, s:o, s:s?}", "name", s->layout.name, "reason",
			 s->layout.reason, "by_version_only", s->layout.by_version, "store",
			 s->store < 0 ? json_null() : json_integer(s->store), "store_by",
			 s->store_by);
}

json_t *smear_doubts_json(const struct smear *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_file_doubts; i++)
		json_array_append_new(list, json_pack("{s:o, s:o}", "file",
						      json_text(s->file_doubts[i].file), "why",
						      json_text(s->file_doubts[i].why)));
	return list;
}

static json_t *trust_json(const uint64_t trust[TRUSTS])
{
	json_t *o = json_object();

	for (size_t i = 0; i < TRUSTS; i++)
		put_number(o, trust_name((enum trust)i), trust[i]);
	return o;
}

/* {"lived": {"spaces":, "before": {"safe":, …}, "image":, "after":}, "ended":, …} */
static json_t *cohorts_json(const struct smear *s)
{
	json_t *all = json_object();

	for (size_t g = 0; g < COHORTS; g++) {
		json_t *o = json_object();

		put_number(o, "spaces", s->cohorts[g].spaces);
		for (size_t c = 0; c < COPIES; c++)
			json_object_set_new(o, copy_name((enum copy)c),
					    trust_json(s->cohorts[g].trust[c]));
		json_object_set_new(all, cohort_name((enum cohort)g), o);
	}
	return all;
}

static json_t *advice_json(const struct smear *s)
{
	char text[SMEAR_ADVICE_MAX];
	struct smear_advice a;

	smear_advise(s, COPY_IMAGE, &a);
	smear_advice_text(s, COPY_IMAGE, text);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "sentence", text, "processes",
			 integer(a.processes), "usable", integer(a.usable), "at_risk_of_others",
			 integer(a.at_risk), "older_captures", integer(a.older), "again", a.again);
}

json_t *smear_json(const struct smear *s, const char *path)
{
	json_t *doc = json_object(), *list = json_array();

	if (!doc || !list)
		return NULL;
	for (size_t i = 0; i < s->count; i++) {
		json_t *o = space_json(&s->at[i]);

		put_id(o, &s->at[i].id);
		json_array_append_new(list, o);
	}
	json_object_set_new(doc, "file", json_text(path));
	json_object_set_new(doc, "os", json_string(discover_os_name(s->spaces.os)));
	put_number(doc, "levels", (uint64_t)s->spaces.mode);
	put_number(doc, "page_bytes", PAGE_SIZE);
	json_object_set_new(doc, "tables_cut", json_boolean(s->spaces.cut));
	json_object_set_new(doc, "cut", json_boolean(s->cut));
	json_object_set_new(doc, "layout", layout_json(s));
	if (s->slots_doubt)
		json_object_set_new(doc, "slots_doubt", json_string(s->slots_doubt));
	if (s->n_file_doubts)
		json_object_set_new(doc, "slot_map_doubts", smear_doubts_json(s));
	if (s->n_numbers)
		json_object_set_new(doc, "page_files", smear_numbers_json(s));
	put_number(doc, "memory_start_ns", s->memory.start);
	put_number(doc, "memory_end_ns", s->memory.end);
	json_object_set_new(doc, "applicable", json_boolean(!s->still));
	if (s->still)
		json_object_set_new(doc, "why", json_string(ORIGIN_STILL_WHY));
	for (size_t i = 0; i < FATES && !s->still; i++)
		put_number(doc, fate_name((enum fate)i), s->fates[i]);
	json_object_set_new(doc, "named",
			    json_pack("{s:o, s:o, s:o, s:o}", "frames", integer(s->frames.named),
				      "frames_by_several", integer(s->frames.several), "slots",
				      integer(s->slots.named), "slots_by_several",
				      integer(s->slots.several)));
	if (!s->still) {
		json_object_set_new(doc, "cohorts", cohorts_json(s));
		json_object_set_new(doc, "advice", advice_json(s));
	}
	json_object_set_new(doc, "total", space_json(&s->total));
	json_object_set_new(doc, "spaces", list);
	return doc;
}

/*
 * Text
 */

/* "12.345 s", "3.2 ms", "810 ns". */
static void duration(uint64_t ns, char ret[static 32])
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
	duration(w->median, median);
	duration(w->p95, p95);
	duration(w->max, max);
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
	duration(c->window[WINDOW_FRAMES].median, median);
	duration(c->window[WINDOW_FRAMES].p95, p95);
	duration(c->window[WINDOW_FRAMES].max, max);
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
static uint64_t badness(const struct smear_space *s)
{
	uint64_t trust[TRUSTS];

	copy_trust(&s->copy[COPY_IMAGE], trust);
	return trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

static int compare_badness(const void *a, const void *b)
{
	const uint64_t x = badness(*(const struct smear_space *const *)a);
	const uint64_t y = badness(*(const struct smear_space *const *)b);

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

static void print_space(const struct smear_space *s, FILE *out)
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
		fprintf(out, "\nProcesses that lack the most, by the image's tables (pages)\n"
			     "    PID name             in the image   missing not known  resident"
			     " transition paged out\n");
	else
		fprintf(out,
			"\nWorst processes, by the image's tables (pages)\n"
			"    PID name             fate       safe   at risk     wrong   safe %%  "
			"resident transition paged out\n");
	for (size_t i = 0; order && i < MIN(s->count, (size_t)WORST_SHOWN); i++)
		(s->still ? print_space_of_image : print_space)(order[i], out);
	free(order);
}

static void print_file_doubts(const struct smear *s, FILE *out)
{
	char file[256], why[ERR_MESSAGE_MAX];

	for (size_t i = 0; i < s->n_file_doubts; i++) {
		text_printable(s->file_doubts[i].file, file, sizeof(file));
		text_printable(s->file_doubts[i].why, why, sizeof(why));
		fprintf(out,
			"no slot of %s is called safe, because it is not known which part of the "
			"file each is: %s\n",
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

/* What is not in the headline, and why, by the image's tables. */
static void print_apart(const struct smear *s, FILE *out)
{
	static const char *const text[COHORTS] = {
		[COHORT_ENDED] = "ended between the passes",
		[COHORT_BORN] = "were born between the passes",
		[COHORT_OTHER_ROOT] = "have a root that is something else in the image",
		[COHORT_TORN] = "have torn tables in the image, from which hang",
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
		fprintf(out, "no slot is called safe: %s\n", s->slots_doubt);
	print_file_doubts(s, out);
	print_numbers(s, out);
	if (s->spaces.cut || s->cut || t->copy[COPY_BEFORE].cut || t->copy[COPY_AFTER].cut)
		fprintf(out, "not all tables are in these numbers\n");
	print_worst(s, out);
	smear_advice_text(s, COPY_IMAGE, advice);
	fprintf(out, "\n%s\n%s%s", sentence, advice, *advice ? "\n" : "");
}

/*
 * CSV (RFC 4180)
 */

/* A name is a stranger's: quotes are doubled, what a spreadsheet would run is put off. */
static void print_quoted(const char *text, FILE *out)
{
	char shown[256];

	text_printable(text, shown, sizeof(shown));
	fputc('"', out);
	if (shown[0] && strchr("=+-@", shown[0]))
		fputc('\'', out);
	for (const char *c = shown; *c; c++) {
		if (*c == '"')
			fputc('"', out);
		fputc(*c, out);
	}
	fputc('"', out);
}

static void print_csv_id(const struct smear_id *id, FILE *out)
{
	if (id->listed)
		fprintf(out, "%" PRIu32, id->pid);
	fputc(',', out);
	print_quoted(id->name, out);
	fprintf(out, ",0x%" PRIx64 ",%s", id->dtb, fate_name(id->fate));
}

void smear_print_csv(const struct smear *s, FILE *out)
{
	fprintf(out, "pid,name,dtb,fate,copies,from,to,pages\n");
	for (size_t i = 0; i < s->count; i++) {
		for (size_t p = 0; p < PAIRS; p++) {
			const struct transitions *t = &s->at[i].pair[p];

			for (size_t k = 0; k < t->n_states; k++) {
				print_csv_id(&s->at[i].id, out);
				fprintf(out, ",%s,%s,%s,%" PRIu64 "\n", pair_name((enum pair)p),
					pte_state_name((enum pte_state)t->states[k].from),
					pte_state_name((enum pte_state)t->states[k].to),
					t->states[k].pages);
			}
		}
	}
}

/*
 * Mappings
 */

const char *smear_row_change(const struct smear_row *r)
{
	return r->id->fate == FATE_NOT_APPLICABLE ? "not-applicable" : change_name(r->change);
}

void smear_print_rows_head(FILE *out)
{
	fprintf(out, "copy,va,pages,state,raw,frame,file,slot,change,trust,verdict,window_ns,"
		     "captured_ns\n");
}

void smear_print_row(const struct smear_row *r, FILE *out)
{
	fprintf(out, "%s,0x%" PRIx64 ",%" PRIu64 ",%s,0x%" PRIx64 ",", copy_name(r->copy), r->va,
		r->pages, pte_state_name(r->pte.state), r->pte.raw);
	if (pte_place(&r->pte) == PLACE_FRAME)
		fprintf(out, "0x%" PRIx64 ",,", r->pte.frame);
	else
		fprintf(out, ",%" PRIu32 ",0x%" PRIx64, r->pte.file, r->pte.slot);
	fprintf(out, ",%s,%s,%s,%" PRIu64 ",", smear_row_change(r),
		trust_name(verdict_trust(r->verdict)), verdict_name(r->verdict), r->window);
	if (r->captured)
		fprintf(out, "%" PRIu64, r->content.start);
	fputc('\n', out);
}

json_t *smear_row_json(const struct smear_row *r)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "copy", copy_name(r->copy), "state",
			      pte_state_name(r->pte.state), "change", smear_row_change(r), "trust",
			      trust_name(verdict_trust(r->verdict)), "verdict",
			      verdict_name(r->verdict));

	if (!o)
		return NULL;
	put_number(o, "va", r->va);
	put_number(o, "pages", r->pages);
	json_object_set_new(o, "raw", json_sprintf("0x%" PRIx64, r->pte.raw));
	if (pte_place(&r->pte) == PLACE_FRAME) {
		put_number(o, "frame", r->pte.frame);
	} else {
		put_number(o, "file", r->pte.file);
		put_number(o, "slot", r->pte.slot);
	}
	put_number(o, "window_ns", r->window);
	if (r->captured)
		put_number(o, "captured_ns", r->content.start);
	return o;
}
