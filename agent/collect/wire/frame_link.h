/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over a link, for both ends. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_FRAME_LINK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_FRAME_LINK_H

#include "agent/collect/wire/frames.h"
#include "agent/collect/wire/link.h"

struct frame_link {
	struct link *link; /* owned */
	struct frame_reader in;
	uint8_t *out; /* FRAME_MAX */
};

/* Owns the link from now on, even after a failure. */
enum status frame_link_init(struct frame_link *f, struct link *l, struct err *e);
void frame_link_deinit(struct frame_link *f); /* fine on { 0 } */

enum status frame_send(struct frame_link *f, const struct frame *frame, struct err *e);

/*
 * The next frame, valid until the next call. ST_NOT_MINE: none was complete within `wait_ms`.
 * ST_END: the other end has closed between two frames; within one, that is ST_OUTPUT. ST_CORRUPT:
 * not a frame.
 */
enum status frame_receive(struct frame_link *f, unsigned wait_ms, struct frame *ret, struct err *e);

#endif
