/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file from which an interrupted upload can be completed: an address without secrets, and
 * remote_ops.state(). A JSON object on one line.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_UPLOAD_STATE_H
#define RAMSEAL_AGENT_COLLECT_STORES_UPLOAD_STATE_H

#include "agent/collect/stores/remote.h"

/*
 * Creates a file with mode 0600: `path`, or as in uploader_options if that is taken. *ret is its
 * name, for free(); NULL if this kind of remote has no state. ST_OUTPUT, ST_NOMEM.
 */
enum status upload_state_write(const struct remote *r, const char *path, char **ret, struct err *e);

struct upload_state {
	char *address;           /* as shown, without secrets */
	struct object_lock lock; /* the requested lock */
	json_t *state;           /* for remote_ops.resume() */
};

/* ST_INPUT if it is not such a file. */
enum status upload_state_read(const char *path, struct upload_state *ret, struct err *e);
void upload_state_deinit(struct upload_state *s);

#endif
