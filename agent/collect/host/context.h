/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Windows machine's registry says about its memory: where it is paged to, what protects it,
 * what changes the layout of heaps, and which programs once used much of it. From the live registry
 * or from hives (tsk-extract/registry.h); formats/MANIFEST.md names the keys.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_CONTEXT_H
#define RAMSEAL_AGENT_COLLECT_HOST_CONTEXT_H

#include <jansson.h>

#include "tsk-extract/disk.h"
#include "tsk-extract/registry.h"

/*
 * The most keys of a list (debugged programs, diagnosed programs) that are kept; the rest is
 * counted.
 */
#define CONTEXT_LIST_MAX 4096

/*
 * `software` is HKLM\SOFTWARE, `system` HKLM\SYSTEM; either may be NULL. Missing values are left
 * out, except those that people ask for by name ("test_signing", …), which are null. What could not
 * be read because the registry is damaged or access is denied is in "problems". The caller owns
 * *ret. ST_NOMEM is the only failure.
 */
enum status context_read(struct registry *software, struct registry *system, json_t **ret,
			 struct err *e);

/* Puts a sentence into "problems" of such an object. */
void context_add_problem(json_t *context, const char *text);

/* How many problems it has. */
size_t context_problems(const json_t *context);

/*
 * From the first Windows on a disk, with the "hives" it was read from. ST_INPUT if there is none,
 * ST_CORRUPT if neither hive can be used; if only one can, that is among the problems of *ret.
 */
enum status context_of_disk(struct disk *d, json_t **ret, struct err *e);

/* From hives by path, in any order, at most one of each kind. ST_INPUT if a file is not a hive. */
enum status context_of_hives(const char *const *paths, size_t count, json_t **ret, struct err *e);

/*
 * From this machine. Implemented once per system (registry_*.c); ST_NO_SOURCE where there is no
 * registry.
 */
enum status context_of_host(json_t **ret, struct err *e);

/* As text. */
void context_print(const json_t *context, FILE *out);

#endif
