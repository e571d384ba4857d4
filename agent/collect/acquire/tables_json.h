/* SPDX-License-Identifier: Apache-2.0 */
/* What the manifest and summaries say of a pass over the page tables (formats/MANIFEST.md). */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_TABLES_JSON_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_TABLES_JSON_H

#include "agent/collect/acquire/tables.h"

/* For summaries. NULL: no memory; so below. */
json_t *tables_json(const struct tables_result *r);

/* The manifest's line; `when`: "before", "after" or "image". */
json_t *tables_line_json(const struct tables_result *r, const char *when);

/* Windows: there is a list of processes, but where their names are is not known. */
bool tables_lack_names(const struct discovery *d);

#endif
