/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report's ratings and how they look: a sign, a word and a colour, so that nothing depends on the
 * colour alone, with the reason next to it.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_RATING_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_RATING_H

#include "agent/examine/report/kit/html.h"
#include "agent/examine/smear/smear.h"

/* From the best to the worst. */
enum rating { RATING_GOOD, RATING_FAIR, RATING_BAD };

/* The class of the page's style. */
const char *rating_style(enum rating j);
/* The sign and the text (ours), in one element. */
void rating_put(struct doc *d, enum rating j, const char *text);

/*
 * How many of the user pages are safe, by the image's tables: good from RATING_SAFE_GOOD percent
 * on, bad below RATING_SAFE_FAIR. TERM_RATING explains these limits.
 */
#define RATING_SAFE_GOOD 95
#define RATING_SAFE_FAIR 50

enum rating safe_rating(const uint64_t trust[static TRUSTS]);
const char *safe_word(const uint64_t trust[static TRUSTS]); /* "good", "fair", "poor" */
/* The word, and what most of the others are: "fair: 16.9 % may hold something else". */
void safe_put_reason(struct doc *d, const uint64_t trust[static TRUSTS]);

#endif
