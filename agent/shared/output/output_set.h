/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output for a library that creates files itself: STEM.E01, STEM.E02, … It gets a new directory
 * STEM.E01.partial that nobody else can read. When everything is complete and on the disk, the
 * files are moved out of it, the first one last: if STEM.E01 exists, all do. All failures are
 * ST_OUTPUT, except ST_NOMEM.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SET_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SET_H

#include <jansson.h>

#include "agent/shared/output/output.h"

struct output_set;

/*
 * `o->path` names the first file, with or without its ending `suffix`. Refused: "-", a file of the
 * set that exists (with `force` they are all replaced, those that the new set does not need too,
 * unless one is an input), and too little room. A directory of an earlier run stays, and this run's
 * is STEM.E01.2.partial.
 */
enum status output_set_open(const struct output_options *o, const char *suffix,
			    struct output_set **ret, struct err *e);

/* Without an earlier output_set_commit(), this leaves the directory, unless it is empty. */
void output_set_destroy(struct output_set *s); /* NULL is fine */

/* For the library: the beginning of its file names. */
const char *output_set_base(const struct output_set *s);

/* True if `path` is a name of a file of the set. */
bool output_set_has(const struct output_set *s, const char *path);

/* Syncs everything and moves it to its place. If that fails, all files stay in the directory. */
enum status output_set_commit(struct output_set *s, struct err *e);

/* The first file; before the commit, the directory. */
const char *output_set_where(const struct output_set *s);
/* The first file, existing or not. */
const char *output_set_name(const struct output_set *s);
/* The folder of the files, for free(); NULL if out of memory. */
char *output_set_folder(const struct output_set *s);
/* The total size of the files, and their names; after output_set_commit(), even if it failed. */
uint64_t output_set_bytes(const struct output_set *s);
json_t *output_set_files(const struct output_set *s);

#endif
