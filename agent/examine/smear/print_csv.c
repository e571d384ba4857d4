/* SPDX-License-Identifier: Apache-2.0 */
/* As RFC 4180 has it. */
#include "agent/examine/smear/print.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/text.h"

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

/* "4,"System",0x1aa000,": the PID is left out where the process is in no list. */
static void print_csv_process(const struct smear_id *id, FILE *out)
{
	if (id->listed)
		fprintf(out, "%" PRIu32, id->pid);
	fputc(',', out);
	print_quoted(id->name, out);
	fprintf(out, ",0x%" PRIx64 ",", id->dtb);
}

static void print_csv_id(const struct smear_id *id, FILE *out)
{
	print_csv_process(id, out);
	fputs(fate_name(id->fate), out);
}

static void print_csv_counts(const struct smear_id *id, const char *copy, const char *place,
			     const uint64_t counts[VERDICTS], FILE *out)
{
	for (size_t v = 0; v < VERDICTS; v++) {
		if (!counts[v])
			continue;
		print_csv_id(id, out);
		fprintf(out, ",%s,%s,%s,%s,%" PRIu64 "\n", copy, place,
			trust_name(verdict_trust((enum verdict)v)), verdict_name((enum verdict)v),
			counts[v]);
	}
}

void smear_print_csv(const struct smear *s, FILE *out)
{
	fprintf(out, "pid,name,dtb,fate,copy,place,verdict,reason,pages\n");
	for (size_t i = 0; i < s->count; i++) {
		for (size_t c = 0; c < COPIES; c++) {
			const struct copy_sums *sums = &s->at[i].copy[c];

			print_csv_counts(&s->at[i].id, copy_name((enum copy)c), "memory",
					 sums->frames, out);
			print_csv_counts(&s->at[i].id, copy_name((enum copy)c), "page-file",
					 sums->slots, out);
		}
	}
}

void smear_print_changes(const struct smear *s, FILE *out)
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
		     "captured_ns,marker\n");
}

void smear_print_all_rows_head(FILE *out)
{
	fputs("pid,name,dtb,", out);
	smear_print_rows_head(out);
}

void smear_print_row_of_all(const struct smear_row *r, FILE *out)
{
	print_csv_process(r->id, out);
	smear_print_row(r, out);
}

void smear_print_row(const struct smear_row *r, FILE *out)
{
	char marker[PTE_MARKER_NAME_MAX] = "";

	fprintf(out, "%s,0x%" PRIx64 ",%" PRIu64 ",%s,0x%" PRIx64 ",", copy_name(r->copy), r->va,
		r->pages, pte_state_name(r->pte.state), r->pte.raw);
	if (pte_place(&r->pte) == PLACE_FRAME)
		fprintf(out, "0x%" PRIx64 ",,", r->pte.frame);
	else if (pte_place(&r->pte) == PLACE_SLOT)
		fprintf(out, ",%" PRIu32 ",0x%" PRIx64, r->pte.file, r->pte.slot);
	else
		fputs(",,", out);
	fprintf(out, ",%s,%s,%s,%" PRIu64 ",", smear_row_change(r),
		trust_name(verdict_trust(r->verdict)), verdict_name(r->verdict), r->window);
	if (r->captured)
		fprintf(out, "%" PRIu64, r->content.start);
	if (r->pte.state == PTE_MARKER)
		pte_marker_name(r->pte.marker, marker);
	fprintf(out, ",%s\n", marker);
}
