/* SPDX-License-Identifier: Apache-2.0 */
/* What the manifest says of page files and other files (formats/MANIFEST.md). */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_FILES_JSON_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_FILES_JSON_H

#include "agent/collect/acquire/files.h"

/* What a stream's metadata and its manifest line have in common. NULL: no memory; so below. */
json_t *file_identity_json(const struct files_plan *plan, const struct file_copy *c);

/*
 * The manifest's line. `changes`: what the last look at the file found; NULL: there was none,
 * because the file was not opened, and the line says only that and why.
 */
json_t *file_line_json(const struct files_plan *plan, const struct file_copy *c,
		       const struct extract_changes *changes);

#endif
