/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values from the manifest's "begin" line in other forms than JSON (formats/MANIFEST.md). `begin`
 * may be NULL; an absent or malformed line has no values.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_READ_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_MANIFEST_READ_H

#include <jansson.h>

#include "formats/base/machine.h"
#include "formats/base/range.h"

/* kcore's notes are 4 KiB, a kdump's grow by 400 bytes a CPU. */
#define MANIFEST_NOTES_MAX ((size_t)1 << 20)

/*
 * Kernel notes, MANIFEST_NOTES_MAX bytes at most; NULL if there are none or they are malformed. The
 * caller frees *ret.
 */
enum status manifest_get_notes(const json_t *begin, uint8_t **ret, size_t *ret_size, struct err *e);

/*
 * "machine" of a "begin" or a "tables" line: what kind of machine the memory is of. False, and
 * x86-64, if the line has none that this version knows.
 */
bool manifest_get_machine(const json_t *line, struct machine_kind *ret);

/* "direct_map" of the source; 0 if it is not known. */
uint64_t manifest_direct_map(const json_t *begin);

/* The acquired map, maps[0], tidy; malformed parts are left out. */
enum status manifest_get_map(const json_t *begin, struct range_list *ret, struct err *e);

#endif
