/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of the report on one acquisition. Internal to it.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_HOST_ONE_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_HOST_ONE_H

#include "agent/examine/report/host/pages.h"
#include "agent/examine/report/kit/html.h"

/*
 * has_...: true if the section has content; otherwise the page lacks it. The page's head says why
 * there is nothing about page tables.
 */

/* one_container.c */
void section_acquisition(struct doc *d, const struct report_run *r);
bool has_timeline(const struct report_run *r);
void section_timeline(struct doc *d, const struct report_run *r);
void section_integrity(struct doc *d, const struct report_run *r);

/* one_missing.c: pages without content. */
void put_page_states(struct doc *d, const struct report_run *r);
bool has_unreadable(const struct report_run *r);
void section_unreadable(struct doc *d, const struct report_run *r);

/* one_smear.c: page tables and pages. */
bool has_smear(const struct report_run *r);
/* has_smear(), or an image, in which the pages that its own tables name are counted. */
bool has_tables(const struct report_run *r);
void section_smear(struct doc *d, const struct report_run *r);
void section_windows(struct doc *d, const struct report_run *r);
bool has_moments(const struct report_run *r);
void section_moments(struct doc *d, const struct report_run *r);
bool has_transitions(const struct report_run *r);
void section_transitions(struct doc *d, const struct report_run *r);
void section_processes(struct doc *d, const struct report_run *r);
void section_states(struct doc *d, const struct report_run *r);

/* How many streams are listed; the rest is summed. */
#define ONE_STREAMS 40

#endif
