/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file by which an upload that was cut off can be completed: an address without what is secret
 * in it, and what remote_ops.state() says. A JSON object of one line.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_UPLOAD_STATE_H
#define RAMSEAL_AGENT_COLLECT_STORES_UPLOAD_STATE_H

#include "agent/collect/stores/remote.h"

/*
 * A new file, mode 0600: `path`, or what uploader_options says if that is taken. *ret is its name,
 * for free(); NULL if this kind of remote has nothing to remember. ST_OUTPUT, ST_NOMEM.
 */
enum status upload_state_write(const struct remote *r, const char *path, char **ret, struct err *e);

struct upload_state {
	char *address;           /* as shown: whole only if nothing in it is secret */
	struct object_lock lock; /* that was asked for */
	json_t *state;           /* for remote_ops.resume() */
};

/* ST_INPUT if it is no such file. */
enum status upload_state_read(const char *path, struct upload_state *ret, struct err *e);
void upload_state_deinit(struct upload_state *s);

#endif
