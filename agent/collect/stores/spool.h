/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that was written but has not arrived yet: a ring in memory and, if requested, a file after
 * it. One thread writes, another reads and drops; both may run at once. It never waits.
 *
 *	0 .. begin: forgotten | begin .. resident: in memory | resident .. end: in the file
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_SPOOL_H
#define RAMSEAL_AGENT_COLLECT_STORES_SPOOL_H

#include <stdbool.h>

#include "formats/base/err.h"

struct spool;

/*
 * `memory` is rounded up to a multiple of `piece`, at least two. `folder`: for the file, which has
 * no name and at most `most` bytes; NULL: none. ST_NOMEM; ST_OUTPUT if the file cannot be created.
 */
enum status spool_create(size_t memory, size_t piece, const char *folder, uint64_t most,
			 struct spool **ret, struct err *e);
void spool_destroy(struct spool *s); /* NULL is fine */

size_t spool_memory(const struct spool *s); /* bytes of the ring */

/* All offsets count from the first byte written. */
uint64_t spool_begin(struct spool *s);
uint64_t spool_end(struct spool *s);
/* How many bytes can be written now, including those for a file that may turn out to be full. */
uint64_t spool_room(struct spool *s);

/*
 * For the writer: accepts what fits, and returns how much. A full or failing file is no longer
 * written to, which is logged once; then only the memory is left.
 */
size_t spool_write(struct spool *s, const void *p, size_t len);

/*
 * For the reader. spool_fill() moves what fits into memory. spool_at() returns the contiguous bytes
 * in memory from `at` on, at most `len`; a `piece` that begins at a multiple of its size is always
 * contiguous. They stay until dropped. ST_OUTPUT if the file cannot be read. *ret_moved: there may
 * be more space than before.
 */
enum status spool_fill(struct spool *s, bool *ret_moved, struct err *e);
const void *spool_at(struct spool *s, uint64_t at, size_t len, size_t *ret_len);
void spool_forget(struct spool *s, uint64_t up_to);

#endif
