/* SPDX-License-Identifier: Apache-2.0 */
/* Files in the folder that killed receivers left and no upload in the log owns. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_LEFTOVERS_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_LEFTOVERS_H

#include "agent/collect/receive/upload.h"

/* The least that a file counts for, because each file costs something. */
#define FILE_LEAST 4096

/* The upload with this id, or NULL. */
typedef const struct upload *leftovers_find(void *arg, const char *id);

/*
 * Call once, when all uploads are settled. Removes empty files, and states of files that no longer
 * exist. Files with bytes stay: they may belong to another log. *ret: their bytes, at least
 * FILE_LEAST for each file. ST_OUTPUT.
 */
enum status leftovers_settle(const char *dir, leftovers_find *find, void *arg, uint64_t *ret,
			     struct err *e);

/* The size of a file; also 0 if it cannot be opened. */
uint64_t leftovers_size_at(const char *path);

/* Also false if it cannot be opened or is in use: a receiver may be about to write. */
bool leftovers_is_empty(const char *path);

#endif
