/* SPDX-License-Identifier: Apache-2.0 */
/* Writes uploads to the log and reads them back, for store.c. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_STORE_LOG_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_STORE_LOG_H

#include "agent/collect/receive/journal.h"
#include "agent/collect/receive/store.h"
#include "agent/collect/receive/upload_table.h"

/* For journal_open(): `arg` is the struct upload_table. Other lines are skipped. */
enum status store_log_take(void *arg, json_t *line, struct err *e);

enum status store_log_began(struct journal *j, const struct upload *u, const char *address,
			    struct err *e);
enum status store_log_broke_off(struct journal *j, const struct upload *u,
				const struct store_peer *peer, struct err *e);
/* u->done is set. */
enum status store_log_complete(struct journal *j, const struct upload *u, bool sealed,
			       const struct checked *found, const struct store_peer *peer,
			       struct err *e);

#endif
