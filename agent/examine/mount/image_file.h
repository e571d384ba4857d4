/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A paged stream of a container as the image that `export` and `extract` would write, readable at
 * any offset: padded, so that an address is an offset, or a head followed by pages back to back.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_IMAGE_FILE_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_IMAGE_FILE_H

#include "agent/examine/mount/chunk_cache.h"
#include "agent/image/image_pass.h"
#include "formats/image/dmp.h"

/* What a reader gets where a page has no content. */
struct gap_view {
	bool fail; /* nothing: ST_END */
	struct fill_pattern unreadable;
	struct fill_pattern skipped;
	struct fill_pattern missing; /* of virtual memory */
};

/* Does not change once it is made. */
struct image_file {
	struct chunk_cache *cache;   /* borrowed, */
	const struct gap_view *gaps; /* too */
	uint32_t stream;
	struct range_list ranges; /* pages that it has; between them are holes, if it is padded */
	uint64_t end;             /* of a padded one: its size */

	/* Of one with a head: this, and the offset at which each range begins. */
	uint8_t *head;
	size_t head_size;
	uint64_t *offsets;

	/* Of a crash dump: where it differs from memory; owned. */
	struct dmp_patch *patches;
	size_t n_patches;
};

/*
 * Takes ownership of `head` (released with free()) and `ranges`, also after a failure. `head` may
 * be NULL: padded, up to `end`.
 */
enum status image_file_init(struct image_file *f, uint8_t *head, size_t head_size,
			    struct range_list *ranges, struct err *e);
void image_file_deinit(struct image_file *f);

uint64_t image_file_size(const struct image_file *f);
/* Bytes that are not in holes. */
uint64_t image_file_stored(const struct image_file *f);
/* Implements node_ops.next_data(). */
bool image_file_next_data(const struct image_file *f, uint64_t at, struct range *ret);

/* Implements node_ops.read(). */
enum status image_file_read(const struct image_file *f, uint64_t at, uint8_t *buf, size_t len,
			    struct err *e);

#endif
