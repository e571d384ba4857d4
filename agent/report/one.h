/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of the report on one acquisition. Internal to it.
 */
#ifndef RAMSEAL_AGENT_REPORT_ONE_H
#define RAMSEAL_AGENT_REPORT_ONE_H

#include "agent/report/html.h"
#include "agent/report/page.h"

/* one_container.c: what it is, and whether it is whole. */
void section_integrity(struct doc *d, const struct run *r);
void section_acquisition(struct doc *d, const struct run *r);
void section_timeline(struct doc *d, const struct run *r);
void section_hashes(struct doc *d, const struct run *r);

/* "sealed", "sealed later", "cut", ... */
void put_seal_state(struct doc *d, const struct run *r);

/* one_missing.c: pages without content. */
void section_unreadable(struct doc *d, const struct run *r);

/* one_smear.c: page tables and pages. */
void section_smear(struct doc *d, const struct run *r);
void section_windows(struct doc *d, const struct run *r);
void section_transitions(struct doc *d, const struct run *r);
void section_processes(struct doc *d, const struct run *r);
void section_states(struct doc *d, const struct run *r);

/* So many streams are listed; the rest is summed. */
#define ONE_STREAMS 40

#endif
