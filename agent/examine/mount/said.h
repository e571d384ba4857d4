/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log since the container was mounted. In the background nobody would see messages, so they are
 * in a file next to what they are about. One line of JSON for each event.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_SAID_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_SAID_H

#include "agent/examine/mount/tree.h"

/* Between these two calls all lines of the log are kept, up to a limit. */
void said_begin(void);
void said_end(void);

/* mount.log */
enum status said_add_file(struct node *root, struct err *e);

/*
 * Logs that a file could not be read at an offset. Each cause is logged once, and at most 1,000
 * causes, because a damaged chunk has 256 pages and readers try again.
 */
void said_damage(const struct node *n, uint64_t at, const struct err *why);

#endif
