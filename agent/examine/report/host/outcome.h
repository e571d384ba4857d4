/* SPDX-License-Identifier: Apache-2.0 */
/* How an acquisition ended, as a report rates it. */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_HOST_OUTCOME_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_HOST_OUTCOME_H

#include "agent/examine/report/host/run.h"
#include "agent/examine/report/kit/rating.h"

/*
 * Rates the acquisition as a whole: bad if its container is not whole, or if `verify` calls it
 * incomplete; fair if pages are missing, or if the container was sealed later.
 */
enum rating outcome_rating(const struct report_run *r);
/* In a word or two: "Complete", "Cut off". */
const char *outcome_headline(const struct report_run *r);
/* Why, in paragraphs. */
void outcome_put_reasons(struct doc *d, const struct report_run *r);

#endif
