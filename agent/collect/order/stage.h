/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that were read but not yet emitted: the guided order reads a whole group before compressing
 * any of it.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_STAGE_H
#define RAMSEAL_AGENT_COLLECT_ORDER_STAGE_H

#include "agent/collect/capture/stream_pass.h"

/*
 * A whole group is read at once, before compressing any of it: a busy pipeline must not come
 * between a table and its frames. Only large pages can need more than this.
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
/* The caller makes sure that there is room. */
void batch_add(struct batch *b, const struct rsz_extent *x, const uint8_t *bytes);
bool batch_has(const struct batch *b, uint64_t address);
/* Moves all of them into the empty piece. */
void batch_emit(struct batch *b, struct stream_piece *p);

/* Frames that were read, until they are emitted. Zero-initialise. */
struct stage {
	struct stream_piece piece; /* room for STAGE_PAGES extents and pages */
	size_t pages;              /* in it */
	size_t extent;             /* the next extent to emit, and its first page */
	size_t page;
};

bool stage_init(struct stage *stage); /* false: no memory */
void stage_deinit(struct stage *stage);
/* Fills the empty piece from the stage: whole extents, or as much of one as fits. */
void stage_emit(struct stage *stage, struct stream_piece *p);

#endif
