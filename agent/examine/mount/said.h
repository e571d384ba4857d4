/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was said since the container was mounted: in the background nobody hears it, so that it is a
 * file beside what it is about. One line of JSON for each event.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_SAID_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_SAID_H

#include "agent/examine/mount/tree.h"

/* From the first to the second all lines of the log are kept, up to a bound. */
void said_begin(void);
void said_end(void);

/* mount.log */
enum status said_add_file(struct node *root, struct err *e);

/*
 * Logs that a file could not be read at an offset. Each cause is told once, and no more than 1,000:
 * a damaged chunk has 256 pages, and readers try again.
 */
void said_damage(const struct node *n, uint64_t at, const struct err *why);

#endif
