/* SPDX-License-Identifier: Apache-2.0 */
/* All uploads that a receiver knows; over the years there may be very many. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_UPLOAD_TABLE_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_UPLOAD_TABLE_H

#include "agent/collect/receive/upload.h"

struct upload_table {
	struct upload *first; /* all of them, the newest first: upload.next */
	struct upload **chains;
	size_t n, n_chains;
	uint64_t seed[2]; /* senders choose the ids, so they must not know which share a chain */
};

enum status upload_table_init(struct upload_table *t, struct err *e);
/* Also frees the uploads. Fine on { 0 }. */
void upload_table_deinit(struct upload_table *t);

/* NULL: none. */
struct upload *upload_table_find(const struct upload_table *t, const char *id);

/* `u` has a new id, and is owned from now on. Only ST_NOMEM. */
enum status upload_table_add(struct upload_table *t, struct upload *u, struct err *e);

/* Frees it, and closes what is open. */
void upload_table_remove(struct upload_table *t, struct upload *u);

#endif
