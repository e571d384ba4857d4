/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: one page of HTML that holds everything it shows. No script, nothing from elsewhere
 * (its content security policy forbids both), light and dark, and on paper. Lists are bounded: what
 * is left out is summed, and it is said.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_PAGE_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_PAGE_H

#include "agent/examine/report/kit/doc.h"

/* `of`: a stranger's text behind the title, or NULL. */
void page_begin(struct doc *d, const char *title, const char *of);
void page_end(struct doc *d);
void page_section(struct doc *d, const char *id, const char *title);
/* What belongs to the section before it. */
void page_part(struct doc *d, const char *id, const char *title);
void page_section_end(struct doc *d);

#endif
