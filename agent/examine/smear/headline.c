/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/headline.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/examine/smear/print.h"
#include "agent/examine/smear/smear_internal.h"

const char *cohort_name(enum cohort g)
{
	static const char *const names[] = {
#define X(name, text) [name] = text,
		COHORT_MAP(X)
#undef X
	};

	return (unsigned)g < COHORTS ? names[g] : "?";
}

/*
 * Who is spoken of
 */

static enum cohort cohort_of(const struct smear_space *s)
{
	switch (s->id.fate) {
	case FATE_ENDED:
		return COHORT_ENDED;
	case FATE_BORN:
		return COHORT_BORN;
	default:
		return s->copy[COPY_IMAGE].no_root ? COHORT_OTHER_ROOT : COHORT_LIVED;
	}
}

static void add_to_cohort(struct smear *r, const struct smear_space *s)
{
	const enum cohort g = cohort_of(s);
	uint64_t trust[TRUSTS], torn = 0;

	r->cohorts[g].spaces++;
	for (size_t c = 0; c < COPIES; c++) {
		/* The passes have the root of a process that lived, whatever the image has. */
		const bool of_lived = g == COHORT_OTHER_ROOT && c != COPY_IMAGE;
		struct cohort_sums *to = &r->cohorts[of_lived ? COHORT_LIVED : g];

		copy_trust(&s->copy[c], trust);
		for (size_t t = 0; t < TRUSTS; t++)
			to->trust[c][t] += trust[t];
	}
	for (size_t t = 0; g == COHORT_LIVED && t < TRUSTS; t++) {
		r->cohorts[COHORT_LIVED].trust[COPY_IMAGE][t] -= s->torn[t];
		r->cohorts[COHORT_TORN].trust[COPY_IMAGE][t] += s->torn[t];
		torn += s->torn[t];
	}
	r->cohorts[COHORT_TORN].spaces += torn > 0;
}

void smear__divide(struct smear *ret)
{
	for (size_t i = 0; i < ret->count && !ret->still; i++)
		add_to_cohort(ret, &ret->at[i]);
}

void smear_trust(const struct smear *s, enum copy copy, uint64_t ret[static TRUSTS])
{
	if (s->still)
		copy_trust(&s->total.copy[copy], ret);
	else
		memcpy(ret, s->cohorts[COHORT_LIVED].trust[copy], TRUSTS * sizeof(*ret));
}

/*
 * In a sentence
 */

void smear_percent(uint64_t part, uint64_t whole, char ret[static 16])
{
	if (whole)
		snprintf(ret, 16, "%.1f %%", 100.0 * (double)part / (double)whole);
	else
		snprintf(ret, 16, "-");
}

uint64_t trust_sum(const uint64_t trust[TRUSTS])
{
	return trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

/* Of a list in a sentence. */
PRINTF_LIKE(2, 3)
static void append_why(char ret[static SMEAR_SENTENCE_MAX], const char *format, ...)
{
	const size_t len = strlen(ret);
	va_list ap;

	va_start(ap, format);
	vsnprintf(ret + len, SMEAR_SENTENCE_MAX - len, format, ap);
	va_end(ap);
}

static uint64_t missing_of(const struct smear *s, enum copy copy, enum verdict v, bool slots)
{
	const struct copy_sums *total = &s->total.copy[copy];
	uint64_t sum = 0;

	if (s->still)
		return slots ? total->slots[v] : total->frames[v];
	for (size_t i = 0; i < s->count; i++) {
		const struct copy_sums *c = &s->at[i].copy[copy];

		if (s->at[i].id.fate == FATE_LIVED)
			sum += slots ? c->slots[v] : c->frames[v];
	}
	return sum;
}

uint64_t smear_missing(const struct smear *s, enum copy copy, size_t why, const char **ret_text)
{
	static const struct {
		enum verdict verdict;
		bool slots;
		const char *text;
	} whys[SMEAR_WHYS] = {
		{ VERDICT_OUTSIDE, false, "at addresses that are no RAM" },
		{ VERDICT_OUTSIDE, true, "behind the end of their page file" },
		{ VERDICT_NO_FILE, true, "in page files that the container does not have" },
		{ VERDICT_UNREADABLE, false, "unreadable" },
		{ VERDICT_UNREADABLE, true, "unreadable in their page file" },
		{ VERDICT_MISSING, false, "not captured" },
		{ VERDICT_MISSING, true, "not captured of their page file" },
	};

	*ret_text = whys[why].text;
	if (s->still && !why)
		*ret_text = "at addresses that the image does not have (it is cut off, or parts "
			    "of it are not in their places)";
	return missing_of(s, copy, whys[why].verdict, whys[why].slots);
}

/* Why pages are not in the container: each of those has one of these reasons. */
static void append_missing(const struct smear *s, enum copy copy,
			   char ret[static SMEAR_SENTENCE_MAX])
{
	bool any = false;

	for (size_t i = 0; i < SMEAR_WHYS; i++) {
		const char *text;
		const uint64_t n = smear_missing(s, copy, i, &text);

		if (!n)
			continue;
		append_why(ret, "%s%" PRIu64 " %s", any ? ", " : " Not there: ", n, text);
		any = true;
	}
	append_why(ret, "%s", any ? "." : "");
}

/* What is there and what is missing is known, whatever moved. */
static void sentence_of_image(const struct smear *s, char ret[static SMEAR_SENTENCE_MAX])
{
	const struct copy_sums *c = &s->total.copy[COPY_IMAGE];
	uint64_t trust[TRUSTS], sum;
	char there[16], missing[16], risk[16], rest[64] = "";

	copy_trust(c, trust);
	sum = trust_sum(trust) + copy_not_applicable(c);
	smear_percent(copy_not_applicable(c), sum, there);
	smear_percent(trust[TRUST_WRONG], sum, missing);
	smear_percent(trust[TRUST_AT_RISK], sum, risk);
	if (trust[TRUST_AT_RISK])
		snprintf(rest, sizeof(rest), "; for %s this cannot be known", risk);
	if (sum)
		snprintf(ret, SMEAR_SENTENCE_MAX,
			 SMEAR_NOT_APPLICABLE ". Of the user pages that its own tables name, %s "
					      "are in this container, and %s are not%s.",
			 there, missing, rest);
	else
		snprintf(ret, SMEAR_SENTENCE_MAX, SMEAR_NOT_APPLICABLE ".");
}

void smear_sentence(const struct smear *s, enum copy copy, char ret[static SMEAR_SENTENCE_MAX])
{
	static const char *const whose[COPIES] = {
		[COPY_BEFORE] = "the page tables read before the memory name",
		[COPY_IMAGE] = "the image's own tables name",
		[COPY_AFTER] = "the page tables read after the memory name",
	};
	uint64_t trust[TRUSTS], sum;
	char safe[16], risk[16], wrong[16];

	if (s->still) {
		sentence_of_image(s, ret);
		append_missing(s, COPY_IMAGE, ret);
		return;
	}
	smear_trust(s, copy, trust);
	sum = trust_sum(trust);
	smear_percent(trust[TRUST_SAFE], sum, safe);
	smear_percent(trust[TRUST_AT_RISK], sum, risk);
	smear_percent(trust[TRUST_WRONG], sum, wrong);
	if (sum) {
		snprintf(ret, SMEAR_SENTENCE_MAX,
			 "Of the user pages that %s in processes that lived, %s certainly belong "
			 "there, %s may hold something else, and %s are not in this container.",
			 whose[copy], safe, risk, wrong);
		append_missing(s, copy, ret);
	} else {
		snprintf(ret, SMEAR_SENTENCE_MAX, "As %s no user pages, nothing can be said.",
			 whose[copy]);
	}
}

void smear_unknown_text(const struct smear *s, char ret[static SMEAR_UNKNOWN_MAX])
{
	const uint64_t pages = s->total.copy[COPY_IMAGE].state[PTE_UNKNOWN];

	*ret = '\0';
	if (!pages || !s->layout.found)
		return;
	snprintf(ret, SMEAR_UNKNOWN_MAX,
		 "%" PRIu64 " page%s an entry of unknown meaning, and %s in no other number: %s",
		 pages, pages == 1 ? " has" : "s have", pages == 1 ? "is" : "are",
		 s->spaces.os == OS_WINDOWS ? "no known Windows writes it so"
		 : s->layout.device_private || s->layout.doubt[0]
			 ? "no fitting layout explains it, or several disagree"
			 : "it is not known whether this kernel has CONFIG_DEVICE_PRIVATE");
}

static json_t *headline_sentence(const struct smear *s, enum copy copy)
{
	char sentence[SMEAR_SENTENCE_MAX];
	char doubt[PTE_REASON_MAX + 128] = "";
	const char *map = "", *numbers = "";

	smear_sentence(s, copy, sentence);
	if (s->layout.doubt[0])
		snprintf(doubt, sizeof(doubt), " In doubt: %s.", s->layout.doubt);
	if (!s->layout.found && s->total.copy[copy].state[PTE_UNKNOWN])
		snprintf(doubt, sizeof(doubt),
			 " How this system writes entries of pages that are not present is not "
			 "known "
			 "(%s): they are in no number.",
			 s->layout.reason);
	if (s->n_file_doubts)
		map = s->n_file_doubts > 1
			      ? " It is not known which part of the swap files each slot is."
			      : " It is not known which part of the swap file each slot is.";
	if (smear_numbers_contradicted(s))
		numbers = " The content of a page file contradicts its number; `ramseal smear` "
			  "says which.";
	else if (s->numbers_unasked)
		numbers = " Numbers of page files were not compared with their content, which is "
			  "not kept when the input is a pipe.";
	return json_sprintf("%s%s%s%s", sentence, map, numbers, doubt);
}

bool smear_is_in_doubt(const struct smear *s)
{
	const struct copy_sums *copies = s->total.copy;

	return s->layout.doubt[0] || copies[COPY_IMAGE].state[PTE_UNKNOWN] || s->slots_doubt ||
	       s->n_file_doubts || smear_numbers_contradicted(s) || s->numbers_unasked ||
	       s->spaces.cut || s->cut || copies[COPY_BEFORE].cut || copies[COPY_AFTER].cut;
}

json_t *smear_headline_json(const struct smear *s, enum copy copy)
{
	json_t *o = json_pack("{s:s}", "tables", copy_name(copy));
	uint64_t trust[TRUSTS];
	char advice[SMEAR_ADVICE_MAX];

	if (!o)
		return NULL;
	smear_trust(s, copy, trust);
	for (size_t i = 0; i < TRUSTS; i++)
		json_object_set_new(o, trust_name((enum trust)i),
				    json_integer((json_int_t)trust[i]));
	json_object_set_new(o, "sentence", headline_sentence(s, copy));
	smear_advice_text(s, copy, advice);
	if (*advice)
		json_object_set_new(o, "advice", json_string(advice));
	json_object_set_new(o, "in_doubt", json_boolean(smear_is_in_doubt(s)));
	if (s->n_file_doubts)
		json_object_set_new(o, "slot_map_doubts", smear_doubts_json(s));
	if (s->n_numbers)
		json_object_set_new(o, "page_files", smear_numbers_json(s));
	return o;
}

json_t *smear_not_applicable_json(void)
{
	return json_pack("{s:b, s:s}", "applicable", false, "sentence", SMEAR_NOT_APPLICABLE ".");
}

/*
 * What to do with it
 */

/* What is not there is known, and leads nobody astray. */
static uint64_t judged_pages(const uint64_t trust[TRUSTS])
{
	return trust[TRUST_SAFE] + trust[TRUST_AT_RISK];
}

static bool is_above(uint64_t part, uint64_t whole, unsigned percent_)
{
	return part > whole / 100 * percent_ + whole % 100 * percent_ / 100;
}

static void advise_on(const struct smear_space *s, enum copy copy, struct smear_advice *ret)
{
	const uint64_t older = s->copy[copy].older; /* some may be at risk, too */
	uint64_t trust[TRUSTS];

	copy_trust(&s->copy[copy], trust);
	ret->older += older;
	if (!judged_pages(trust))
		return;
	ret->processes++;
	ret->risky += is_above(trust[TRUST_AT_RISK], judged_pages(trust), SMEAR_USABLE);
	if (is_above(trust[TRUST_AT_RISK] + older, judged_pages(trust), SMEAR_USABLE))
		ret->at_risk += trust[TRUST_AT_RISK];
	else
		ret->usable++;
}

void smear_advise(const struct smear *s, enum copy copy, struct smear_advice *ret)
{
	uint64_t trust[TRUSTS];

	*ret = (struct smear_advice){ 0 };
	if (s->still)
		return;
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].id.fate == FATE_LIVED)
			advise_on(&s->at[i], copy, ret);
	smear_trust(s, copy, trust);
	ret->again = is_above(trust[TRUST_AT_RISK], judged_pages(trust), SMEAR_AGAIN);
}

/* Part by part; what does not fit is not there. */
PRINTF_LIKE(2, 3)
static void append_advice(char ret[static SMEAR_ADVICE_MAX], const char *format, ...)
{
	const size_t len = strlen(ret);
	va_list ap;

	va_start(ap, format);
	vsnprintf(ret + len, SMEAR_ADVICE_MAX - len, format, ap);
	va_end(ap);
}

const char *smear_again_text(const struct smear *s, const struct smear_advice *a)
{
	if (!a->again)
		return "a second acquisition is not worth it";
	return s->guided ? "a second acquisition is worth it once the machine is less busy"
			 : "a second acquisition is worth it, with --order guided";
}

void smear_advice_text(const struct smear *s, enum copy copy, char ret[static SMEAR_ADVICE_MAX])
{
	struct smear_advice a;

	*ret = '\0';
	smear_advise(s, copy, &a);
	if (!a.processes)
		return;
	append_advice(ret,
		      "%zu of %zu processes that lived can be used as they are (at most %d %% of "
		      "what was captured of them is at risk, or has another capture in a flat "
		      "image); ",
		      a.usable, a.processes, SMEAR_USABLE);
	if (a.at_risk || a.older)
		append_advice(ret, "use `ramseal read` for ");
	if (a.at_risk)
		append_advice(ret, "the %" PRIu64 " page%s at risk in the others%s", a.at_risk,
			      a.at_risk == 1 ? "" : "s", a.older ? " and " : "; ");
	if (a.older)
		append_advice(ret, "%" PRIu64 " page%s of which a flat image has another capture; ",
			      a.older, a.older == 1 ? "" : "s");
	append_advice(ret, "%s.",
		      copy == COPY_IMAGE ? smear_again_text(s, &a)
					 : "`ramseal smear` says more, by the image's own tables");
}
