/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives pages of a container to any number of threads and caches the chunks that were decoded last.
 * The cache has parts: each chunk belongs to one, and two threads wait for each other only if their
 * chunks belong to the same part.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_CHUNK_CACHE_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_CHUNK_CACHE_H

#include "formats/rsz/rsz_reader.h"

struct chunk_cache;

/*
 * `bytes` of content in all, and at least one chunk (of 16 MiB at most) for each of 8 parts.
 * `glances`: a few pages may be given before their chunk's SHA-256 is checked, by its CRC-32 (see
 * rsz_cursor_allow_glances()); this needs the buffers of one more chunk in each part.
 */
enum status chunk_cache_create(const struct rsz_reader *r, size_t bytes, bool glances,
			       struct chunk_cache **ret, struct err *e);
void chunk_cache_destroy(struct chunk_cache *c); /* NULL is fine */

/* As rsz_cursor_read(). */
enum status chunk_cache_read(struct chunk_cache *c, uint32_t stream, uint64_t address, void *buf,
			     size_t pages, struct page_status *status, struct err *e);

/* Bytes of a stream that is not paged. ST_CORRUPT also where it has none. */
enum status chunk_cache_read_text(struct chunk_cache *c, uint32_t stream, uint64_t address,
				  void *buf, size_t len, struct err *e);

#endif
