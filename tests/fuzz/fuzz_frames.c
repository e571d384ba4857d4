/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a receiver or a sender takes from the wire (agent/collect/stores/PROTOCOL.md). The first
 * byte says in pieces of which size the others come.
 */
#include <string.h>

#include "agent/collect/wire/frames.h"
#include "tests/fuzz/fuzz.h"

/* What was understood is what was said: it comes out again as the same bytes. */
static void check_frame(const struct frame *f, const uint8_t *bytes)
{
	static uint8_t again[FRAME_MAX];

	if (f->type == FRAME_HELLO && f->hello.version != FRAME_VERSION)
		return;
	MUST(!memcmp(again, bytes, frame_put(f, again)));
}

static enum status take_frames(struct frame_reader *r, const uint8_t *data, size_t *at)
{
	struct err e = ERR_INIT;
	struct frame f;
	enum status st;

	while (!(st = frame_reader_next(r, &f, &e))) {
		check_frame(&f, data + *at);
		*at += r->taken;
	}
	MUST(st == ST_END || (st == ST_CORRUPT && e.message[0]));
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t piece = size && data[0] ? data[0] : FRAME_MAX;
	struct frame_reader r;
	enum status st = ST_END;
	size_t at = 1, taken = 1, room;

	if (!size || frame_reader_init(&r, NULL))
		return 0;
	while (st == ST_END && at < size) {
		uint8_t *to = frame_reader_room(&r, &room);
		size_t n = size - at < piece ? size - at : piece;

		MUST(room);
		n = n < room ? n : room;
		memcpy(to, data + at, n);
		frame_reader_added(&r, n);
		at += n;
		st = take_frames(&r, data, &taken);
	}
	MUST(taken <= at);
	MUST(st != ST_END || frame_reader_is_inside(&r) == (taken < at));
	frame_reader_deinit(&r);
	return 0;
}
