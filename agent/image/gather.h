/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of a container in order of address, though the container has it in the order in which
 * it was acquired: `guided` puts pages into a chunk from all over the machine. Read page after
 * page, such a chunk would be decoded again for almost each of its pages. So pages are brought
 * together for a window of addresses at a time, and each chunk is decoded once for each window.
 * What lies in long runs is read where it is.
 */
#ifndef RAMSEAL_AGENT_IMAGE_GATHER_H
#define RAMSEAL_AGENT_IMAGE_GATHER_H

#include "formats/rsz/rsz_reader.h"

/* The bytes of pages that one window brings together: what export takes beyond its pieces. */
#define GATHER_BYTES ((size_t)256 << 20)

struct gather;

/*
 * `r` is borrowed. `bytes`: GATHER_BYTES, or less to have many windows; taken only as far as there
 * are pages to bring together. ST_NOMEM.
 */
enum status gather_create(const struct rsz_reader *r, uint32_t stream, unsigned workers,
			  size_t bytes, struct gather **ret, struct err *e);
void gather_destroy(struct gather *g); /* NULL is fine; no reader may be left */

/*
 * As rsz_cursor_read(). From all workers at once, `worker` < workers; addresses in any order, but
 * only where they rise, as those of a pipeline's items do, are they brought together.
 */
enum status gather_read(struct gather *g, unsigned worker, uint64_t address, uint8_t *data,
			size_t pages, struct page_status *status, struct rsz_times *times,
			struct err *e);

/* How many chunks were decoded, a chunk as often as that was; when nobody reads. */
uint64_t gather_decoded(const struct gather *g);

#endif
