/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read and has not gone out yet: the guided order reads all of a group before any of it is
 * compressed.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_STAGE_H
#define RAMSEAL_AGENT_COLLECT_ORDER_STAGE_H

#include "agent/collect/capture/stream_pass.h"

/*
 * Everything of a group is read in one go, before any of it is compressed: the pipeline may be
 * busy, and must not stand between a table and its frames. Only large pages can name more than
 * this.
 */
#define STAGE_PAGES 1024

/* Single pages, such as tables, until there are enough for a piece. Zero-initialise. */
struct batch {
	uint8_t (*bytes)[PAGE_SIZE];
	struct rsz_extent extents[STREAM_EXTENTS];
	size_t n;
};

bool batch_init(struct batch *b); /* false: no memory */
void batch_deinit(struct batch *b);
bool batch_has_room(const struct batch *b, size_t n);
/* There is room. */
void batch_add(struct batch *b, const struct rsz_extent *x, const uint8_t *bytes);
bool batch_has(const struct batch *b, uint64_t address);
/* Makes an empty piece of all of them, with which they are gone. */
void batch_emit(struct batch *b, struct stream_piece *p);

/* Frames that were read, until they have gone out. Zero-initialise. */
struct stage {
	struct stream_piece piece; /* room for STAGE_PAGES extents and pages */
	size_t pages;              /* in it */
	size_t extent;             /* the next extent to go out, and its first page */
	size_t page;
};

bool stage_init(struct stage *stage); /* false: no memory */
void stage_deinit(struct stage *stage);
/* An empty piece of the stage: whole extents, or as much of one as a piece can hold. */
void stage_emit(struct stage *stage, struct stream_piece *p);

#endif
