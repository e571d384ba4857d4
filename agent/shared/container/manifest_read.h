/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the manifest's "begin" line says, for who needs it as more than JSON (formats/MANIFEST.md).
 * A line that is absent or malformed says nothing: `begin` may be NULL.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_READ_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_READ_H

#include <jansson.h>

#include "formats/base/range.h"

/* kcore's notes are 4 KiB, a kdump's grow by 400 bytes a CPU. */
#define MANIFEST_NOTES_MAX ((size_t)1 << 20)

/*
 * Kernel notes, MANIFEST_NOTES_MAX bytes at most; NULL if there are none or they are malformed. The
 * caller frees *ret.
 */
enum status manifest_get_notes(const json_t *begin, uint8_t **ret, size_t *ret_size, struct err *e);

/* "direct_map" of the source; 0 if it is not known. */
uint64_t manifest_direct_map(const json_t *begin);

/* The map that was acquired, tidy: maps[0]; what is malformed is left out. */
enum status manifest_get_map(const json_t *begin, struct range_list *ret, struct err *e);

#endif
