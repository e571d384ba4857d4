/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was written and has not arrived yet: a ring in memory, and behind it a file, if one is asked
 * for. One thread writes, another reads and forgets; both may go on at once. It does not wait.
 *
 *	0 .. begin: forgotten | begin .. resident: in memory | resident .. end: in the file
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_SPOOL_H
#define RAMSEAL_AGENT_COLLECT_STORES_SPOOL_H

#include <stdbool.h>

#include "formats/base/err.h"

struct spool;

/*
 * `memory` is rounded up to a multiple of `piece`, and to two of them. `folder`: where the file
 * goes, which has no name and `most` bytes at most; NULL: none. ST_NOMEM; ST_OUTPUT if there can
 * be no file.
 */
enum status spool_create(size_t memory, size_t piece, const char *folder, uint64_t most,
			 struct spool **ret, struct err *e);
void spool_destroy(struct spool *s); /* NULL is fine */

size_t spool_memory(const struct spool *s); /* bytes of the ring */

/* All offsets count from the first byte that was written. */
uint64_t spool_begin(struct spool *s);
uint64_t spool_end(struct spool *s);
/* So many bytes can be written now; those of a file that turns out to be full, too. */
uint64_t spool_room(struct spool *s);

/*
 * For the writer: accepts what fits, and returns how much. A file that is full, or broken,
 * is not written to any more, which is logged once: then there is as much room as in memory.
 */
size_t spool_write(struct spool *s, const void *p, size_t len);

/*
 * For the reader. spool_fill() moves to memory what fits. spool_at(): those bytes from
 * `at` on that lie in memory in one piece, `len` at most; a `piece` that begins at a multiple of
 * its size always does. They stay until they are forgotten. ST_OUTPUT if the file cannot be read.
 * *ret_moved: there may be more room than before.
 */
enum status spool_fill(struct spool *s, bool *ret_moved, struct err *e);
const void *spool_at(struct spool *s, uint64_t at, size_t len, size_t *ret_len);
void spool_forget(struct spool *s, uint64_t up_to);

#endif
