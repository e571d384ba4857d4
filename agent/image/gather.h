/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a stream of a container in order of address, although the container has it in the order of
 * acquisition: with `guided`, a chunk has pages from all over the machine. Read page by page, such
 * a chunk would be decoded again for almost each of its pages. So pages are gathered for a window
 * of addresses at a time, and each chunk is decoded once per window. Long runs are read in place.
 */
#ifndef RAMSEAL_AGENT_IMAGE_GATHER_H
#define RAMSEAL_AGENT_IMAGE_GATHER_H

#include "formats/rsz/rsz_reader.h"

/* The bytes gathered in one window, which export needs besides its pieces. */
#define GATHER_BYTES ((size_t)256 << 20)

struct gather;

/*
 * `r` is borrowed. `bytes`: GATHER_BYTES, or less for more windows; allocated only as needed.
 * ST_NOMEM.
 */
enum status gather_create(const struct rsz_reader *r, uint32_t stream, unsigned workers,
			  size_t bytes, struct gather **ret, struct err *e);
void gather_destroy(struct gather *g); /* NULL is fine; nobody may still read */

/*
 * As rsz_cursor_read(). From all workers at once, `worker` < workers; addresses in any order, but
 * pages are gathered only if addresses rise, as in a pipeline.
 */
enum status gather_read(struct gather *g, unsigned worker, uint64_t address, uint8_t *data,
			size_t pages, struct page_status *status, struct rsz_times *times,
			struct err *e);

/* How many times a chunk was decoded; call it when nobody reads. */
uint64_t gather_decoded(const struct gather *g);

#endif
