/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict and what to do about it, in at most a dozen lines of 80 columns. */
#include "agent/examine/smear/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/shared/program/lines.h"

#define SHORT_WIDTH 80
#define ROW_INDENT  12 /* where values begin */

struct short_text {
	const struct smear *s;
	FILE *out;
	size_t width;
};

PRINTF_LIKE(3, 4)
static void put_short(const struct short_text *t, size_t indent, const char *format, ...)
{
	char text[SMEAR_SENTENCE_MAX + 64];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	lines_put(t->out, t->width, indent, text);
}

/* The most frequent reason; the others are in the full text. */
static void why_missing(const struct smear *s, char *ret, size_t size)
{
	uint64_t most = 0, all = 0;
	const char *of_most = "";

	for (size_t i = 0; i < SMEAR_WHYS; i++) {
		const char *text;
		const uint64_t n = smear_missing(s, COPY_IMAGE, i, &text);

		all += n;
		if (n > most) {
			most = n;
			of_most = text;
		}
	}
	if (most && most == all)
		snprintf(ret, size, ": %s", of_most);
	else if (most)
		snprintf(ret, size, ": %" PRIu64 " %s, %" PRIu64 " otherwise", most, of_most,
			 all - most);
}

static void put_short_trust(const struct short_text *t, const char *label, uint64_t pages,
			    uint64_t all, const char *what, const char *why)
{
	char share[16];

	smear_percent(pages, all, share);
	put_short(t, ROW_INDENT, "  %-8s %8s %10" PRIu64 "  %s%s", label, share, pages, what, why);
}

static void put_short_verdict(const struct short_text *t)
{
	const struct smear *s = t->s;
	uint64_t trust[TRUSTS], sum;
	struct smear_advice a;
	char why[160] = "";

	smear_advise(s, COPY_IMAGE, &a);
	smear_trust(s, COPY_IMAGE, trust);
	sum = trust_sum(trust);
	why_missing(s, why, sizeof(why));
	put_short(t, 2, "User pages of %zu process%s that lived, by the image's own page tables:",
		  a.processes, a.processes == 1 ? "" : "es");
	put_short_trust(t, "safe", trust[TRUST_SAFE], sum, "certainly belong there", "");
	put_short_trust(t, "at risk", trust[TRUST_AT_RISK], sum, "may hold something else", "");
	put_short_trust(t, "wrong", trust[TRUST_WRONG], sum, "not in this container", why);
}

static void add_doubt(char *list, size_t size, bool is, const char *text)
{
	const size_t n = strlen(list);

	if (is)
		snprintf(list + n, size - n, "%s%s", n ? "; " : "", text);
}

/* What is in doubt; why is in the full text. */
static void put_short_doubts(const struct short_text *t)
{
	const struct smear *s = t->s;
	const struct smear_space *all = &s->total;
	char list[400] = "";

	add_doubt(list, sizeof(list), s->layout.doubt[0], "how entries are to be read");
	add_doubt(list, sizeof(list), s->total.copy[COPY_IMAGE].state[PTE_UNKNOWN] != 0,
		  "entries of unknown meaning");
	add_doubt(list, sizeof(list), s->slots_doubt != NULL,
		  s->slots_doubt_looked ? "slots that were not looked up are not called safe"
					: "no slot is called safe");
	add_doubt(list, sizeof(list), s->n_file_doubts != 0, "places in swap files");
	add_doubt(list, sizeof(list), smear_numbers_contradicted(s) || s->numbers_unasked,
		  "numbers of page files");
	add_doubt(list, sizeof(list),
		  s->spaces.cut || s->cut || all->copy[COPY_BEFORE].cut ||
			  all->copy[COPY_AFTER].cut,
		  "not all tables are counted");
	if (*list)
		put_short(t, ROW_INDENT, "in doubt    %s", list);
}

static void put_short_advice(const struct short_text *t)
{
	struct smear_advice a;
	char risk[64] = "", older[80] = "";

	smear_advise(t->s, COPY_IMAGE, &a);
	if (!a.processes)
		return;
	put_short(t, ROW_INDENT,
		  "usable      %zu of %zu processes as they are (at most %d %% at risk or older)",
		  a.usable, a.processes, SMEAR_USABLE);
	if (a.at_risk)
		snprintf(risk, sizeof(risk), " %" PRIu64 " page%s at risk in the others%s",
			 a.at_risk, a.at_risk == 1 ? "" : "s", a.older ? ", and" : "");
	if (a.older)
		snprintf(older, sizeof(older),
			 " %" PRIu64 " page%s of which a flat image has another capture", a.older,
			 a.older == 1 ? "" : "s");
	if (a.at_risk || a.older)
		put_short(t, ROW_INDENT, "next        `ramseal read` for%s%s", risk, older);
	put_short(t, ROW_INDENT, "again       %s", smear_again_text(t->s, &a));
}

void smear_print_short(const struct smear *s, FILE *out)
{
	const size_t told = lines_text_width(out);
	const struct short_text t = {
		.s = s,
		.out = out,
		.width = told == LINES_ENDLESS ? SHORT_WIDTH : told,
	};
	uint64_t trust[TRUSTS];
	char sentence[SMEAR_SENTENCE_MAX];

	smear_trust(s, COPY_IMAGE, trust);
	if (s->still || !trust_sum(trust)) {
		smear_sentence(s, COPY_IMAGE, sentence);
		put_short(&t, 0, "%s", sentence);
	} else {
		put_short_verdict(&t);
	}
	put_short_doubts(&t);
	put_short_advice(&t);
	put_short(&t, ROW_INDENT,
		  "more        --full: copies, states, reasons, the worst processes");
}
