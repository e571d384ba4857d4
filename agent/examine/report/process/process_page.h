/* SPDX-License-Identifier: Apache-2.0 */
/* The page of one process of Windows in one acquisition. */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_PAGE_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_PAGE_H

#include "agent/examine/report/kit/doc.h"
#include "agent/examine/report/process/process_run.h"

void page_of_process(struct doc *d, const struct report_process *r);

#endif
