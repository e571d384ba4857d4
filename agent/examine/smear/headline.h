/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report says first about a measured smear: how the processes that lived came out, and what
 * to do about it. METHOD.md, section 8.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_HEADLINE_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_HEADLINE_H

#include "agent/examine/smear/smear.h"
#include "agent/shared/container/origin.h"

/* What an image gets in place of a verdict on how far its tables and pages belong together. */
#define SMEAR_NOT_APPLICABLE "Not applicable: " ORIGIN_STILL_WHY

/*
 * The one sentence, by that copy of the tables, of the processes that lived; of an image, that
 * there is nothing to say, and why. Behind it, why pages are not in the container, if any are not.
 */
#define SMEAR_SENTENCE_MAX   896
void smear_sentence(const struct smear *s, enum copy copy, char ret[static SMEAR_SENTENCE_MAX]);

/*
 * How many pages of processes that lived (of an image: of all) are not in the container for reason
 * `why`, and the reason in words that follow the number.
 */
#define SMEAR_WHYS 7
uint64_t smear_missing(const struct smear *s, enum copy copy, size_t why, const char **ret_text);

/* True if how entries or slots are to be read, or whether all were counted, is not certain. */
bool smear_is_in_doubt(const struct smear *s);

/*
 * {"tables": "before", "safe":, "at-risk":, "wrong":, "sentence":, "in_doubt":, "advice":}; NULL if
 * out of memory.
 */
json_t *smear_headline_json(const struct smear *s, enum copy copy);

/* {"applicable": false, "sentence":} of an image, which has one moment; NULL if out of memory. */
json_t *smear_not_applicable_json(void);

/*
 * A process can be used as it is if at most so many percent of its pages are at risk, or have
 * another capture in a flat image than `ramseal read` gives. Every page that a flat image has wrong
 * is among these (METHOD.md, section 8; docs/RESULTS.md has the processes).
 */
#define SMEAR_USABLE 1

/* A second acquisition is worth it if more percent of all pages are at risk (docs/RESULTS.md). */
#define SMEAR_AGAIN  10

struct smear_advice {
	size_t processes; /* that lived, and have pages */
	size_t usable;    /* of them: at most SMEAR_USABLE percent at risk, or captured otherwise */
	size_t risky;     /* of the others: more than that is at risk, whatever a flat image has */
	uint64_t at_risk; /* pages of the others */
	uint64_t older;   /* pages of which a flat image has another capture, of all that lived */
	bool again;       /* more than SMEAR_AGAIN percent of all pages are at risk */
};

void smear_advise(const struct smear *s, enum copy copy, struct smear_advice *ret);

/* "a second acquisition is …", by the image's own tables. */
const char *smear_again_text(const struct smear *s, const struct smear_advice *a);

/*
 * The same in a sentence; "" where there is no advice to give: for an image, or without pages.
 * Whether a second acquisition is worth it is said only by the image's own tables (COPY_IMAGE).
 */
#define SMEAR_ADVICE_MAX 512
void smear_advice_text(const struct smear *s, enum copy copy, char ret[static SMEAR_ADVICE_MAX]);

/*
 * A note about Linux entries in the image's tables whose meaning is not known: a sentence without a
 * full stop; "" if there are none.
 */
#define SMEAR_UNKNOWN_MAX 256
void smear_unknown_text(const struct smear *s, char ret[static SMEAR_UNKNOWN_MAX]);

/* A tenth of a percent; "-" of nothing. */
void smear_percent(uint64_t part, uint64_t whole, char ret[static 16]);
uint64_t trust_sum(const uint64_t trust[TRUSTS]);

#endif
