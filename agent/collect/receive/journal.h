/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the log of agent/shared/container/witness.h: a line is on the disk when journal_write()
 * returns. Any thread.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_JOURNAL_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_JOURNAL_H

#include "agent/collect/receive/own_file.h"
#include "agent/shared/container/witness.h"
#include "agent/shared/program/json.h"

struct journal;

/*
 * Creates the file with mode 0600, or continues an existing one, whose lines `fn` gets first.
 * ST_OUTPUT, also if another receiver uses it.
 */
enum status journal_open(const char *path, const struct disk *disk,
			 enum status (*fn)(void *arg, json_t *line, struct err *e), void *arg,
			 struct journal **ret, struct err *e);
void journal_close(struct journal *j); /* NULL is fine */

uint64_t journal_size(const struct journal *j); /* bytes */

/* Adds "time" and "event" at the front. ST_OUTPUT: the line was not written, or no more can be. */
enum status journal_write(struct journal *j, const char *event, const struct json_field *fields,
			  struct err *e);

#endif
