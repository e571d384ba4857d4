/* SPDX-License-Identifier: Apache-2.0 */
/* What receivers that were killed have left in the folder, and no upload of the log owns. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_LEFTOVERS_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_LEFTOVERS_H

#include "agent/collect/receive/upload.h"

/* Least bytes that a file counts for; each file costs something. */
#define FILE_LEAST 4096

/* The upload with this id, or NULL. */
typedef const struct upload *leftovers_find(void *arg, const char *id);

/*
 * Once, when all uploads are settled. Files without a byte go, and so do the states of what is
 * gone. Whatever holds bytes stays: it may be another log's. *ret: how many bytes these are, each
 * file with at least FILE_LEAST. ST_OUTPUT.
 */
enum status leftovers_settle(const char *dir, leftovers_find *find, void *arg, uint64_t *ret,
			     struct err *e);

/* Of a file; 0 also if it cannot be opened. */
uint64_t leftovers_size_at(const char *path);

/* False also if it cannot be opened, or somebody has it open: a receiver may be about to write. */
bool leftovers_is_empty(const char *path);

#endif
