/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of a container that can only be read forward when it has been read: every header,
 * and the payloads of the manifest, the log and the page tables, each at its offset. Whoever needs
 * no more
 * (`info`) can read that as if it were the container.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_OUTLINE_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_OUTLINE_H

#include "formats/base/io.h"

/*
 * So much of it is kept in memory, at most. A header takes some 1.5 KiB for each MiB of memory with
 * many states of pages, and far less as a rule; tables take a few MiB.
 */
#define OUTLINE_MAX ((size_t)512 << 20)

struct outline;

/*
 * Reads `in` to its end. ST_INPUT: it is no container, or one with more to keep than OUTLINE_MAX.
 * It need not be whole, and the outline ends as it does.
 */
enum status outline_read(struct blob *in, struct outline **ret, struct err *e);
void outline_destroy(struct outline *o); /* NULL is fine */

/* To read what was left out is ST_INPUT, unless it follows what was kept: then it is zeros. */
struct blob *outline_blob(struct outline *o);

#endif
