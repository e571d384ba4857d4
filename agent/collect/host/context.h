/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Windows machine's registry says about how its memory looked: where it was paged to, what
 * guards it, what changes the layout of heaps, which programs once took much of it. From the live
 * registry or from hives (tsk-extract/registry.h); formats/MANIFEST.md names the keys.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_CONTEXT_H
#define RAMSEAL_AGENT_COLLECT_HOST_CONTEXT_H

#include <jansson.h>

#include "tsk-extract/disk.h"
#include "tsk-extract/registry.h"

/* Keys of a list (debugged programs, diagnosed programs) that are kept; the rest is counted. */
#define CONTEXT_LIST_MAX 4096

/*
 * `software` is HKLM\SOFTWARE, `system` HKLM\SYSTEM; either may be NULL. What is not there is left
 * out, but for what people ask for by name ("test_signing", …), which is null. What could not be
 * read because the registry is damaged or not for us stands in "problems". The caller owns *ret.
 * ST_NOMEM is the only failure.
 */
enum status context_read(struct registry *software, struct registry *system, json_t **ret,
			 struct err *e);

/* Puts a sentence into "problems" of such an object. */
void context_add_problem(json_t *context, const char *text);

/* How many there are. */
size_t context_problems(const json_t *context);

/*
 * Of the first Windows on a disk, with the "hives" it was read from. ST_INPUT if there is none,
 * ST_CORRUPT if neither hive can be used; if one cannot, that is a problem of *ret.
 */
enum status context_of_disk(struct disk *d, json_t **ret, struct err *e);

/* Of hives by their paths, in any order, one of each kind at most. ST_INPUT for what is no hive. */
enum status context_of_hives(const char *const *paths, size_t count, json_t **ret, struct err *e);

/*
 * Of this machine. Implemented once per system (registry_*.c); ST_NO_SOURCE where there is no
 * registry.
 */
enum status context_of_host(json_t **ret, struct err *e);

/* For people. */
void context_print(const json_t *context, FILE *out);

#endif
