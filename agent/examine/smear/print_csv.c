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
		     "captured_ns,marker\n");
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
