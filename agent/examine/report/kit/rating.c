/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/rating.h"

const char *rating_style(enum rating j)
{
	return j == RATING_GOOD ? "good" : j == RATING_FAIR ? "fair" : "bad";
}

void rating_put(struct doc *d, enum rating j, const char *text)
{
	static const char *const signs[] = {
		[RATING_GOOD] = "✓",
		[RATING_FAIR] = "!",
		[RATING_BAD] = "✗",
	};

	doc_printf(d, "<span class=\"judged %s\"><span aria-hidden=\"true\">%s</span> %s</span>",
		   rating_style(j), signs[j], text);
}

/*
 * Safe pages
 */

static uint64_t sum_of_trust(const uint64_t trust[static TRUSTS])
{
	return trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG];
}

enum rating safe_rating(const uint64_t trust[static TRUSTS])
{
	const double safe = 100 * (double)trust[TRUST_SAFE];
	const double all = (double)sum_of_trust(trust);

	return safe >= RATING_SAFE_GOOD * all   ? RATING_GOOD
	       : safe >= RATING_SAFE_FAIR * all ? RATING_FAIR
						: RATING_BAD;
}

const char *safe_word(const uint64_t trust[static TRUSTS])
{
	static const char *const words[] = {
		[RATING_GOOD] = "good",
		[RATING_FAIR] = "fair",
		[RATING_BAD] = "poor",
	};

	return words[safe_rating(trust)];
}

void safe_put_reason(struct doc *d, const uint64_t trust[static TRUSTS])
{
	const bool risk = trust[TRUST_AT_RISK] >= trust[TRUST_WRONG];
	const uint64_t most = trust[risk ? TRUST_AT_RISK : TRUST_WRONG];

	rating_put(d, safe_rating(trust), safe_word(trust));
	if (!most)
		return;
	doc_put(d, ": ");
	doc_share(d, most, sum_of_trust(trust));
	doc_put(d, risk ? " may hold something else" : " are not in this container");
}
