/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/frame_link.h"

#include "agent/shared/program/clock.h"

enum status frame_link_init(struct frame_link *f, struct link *l, struct err *e)
{
	enum status st;

	*f = (struct frame_link){ .link = l, .out = malloc(FRAME_MAX) };
	st = f->out ? frame_reader_init(&f->in, e) : err_nomem(e);
	if (st)
		frame_link_deinit(f);
	return st;
}

void frame_link_deinit(struct frame_link *f)
{
	link_destroy(f->link);
	frame_reader_deinit(&f->in);
	free(f->out);
	*f = (struct frame_link){ 0 };
}

enum status frame_send(struct frame_link *f, const struct frame *frame, struct err *e)
{
	return link_write(f->link, f->out, frame_put(frame, f->out), e);
}

/* Some more bytes. ST_NOT_MINE: none came. */
static enum status receive_some(struct frame_link *f, unsigned wait_ms, struct err *e)
{
	size_t room, got = 0;
	uint8_t *const to = frame_reader_room(&f->in, &room);
	const enum status st = link_read(f->link, to, room, wait_ms, &got, e);

	if (st == ST_END && frame_reader_is_inside(&f->in))
		return err_set(e, ST_OUTPUT, "the connection ended inside a frame");
	if (st)
		return st;
	frame_reader_added(&f->in, got);
	return got ? ST_OK : ST_NOT_MINE;
}

enum status frame_receive(struct frame_link *f, unsigned wait_ms, struct frame *ret, struct err *e)
{
	const uint64_t until = clock__mono_ns() + wait_ms * (NS_PER_SECOND / 1000);

	for (;;) {
		enum status st = frame_reader_next(&f->in, ret, e);
		uint64_t now;

		if (st != ST_END)
			return st;
		now = clock__mono_ns();
		st = receive_some(f, now < until ? (unsigned)((until - now) / 1000000) : 0, e);
		if (st && (st != ST_NOT_MINE || clock__mono_ns() >= until))
			return st;
	}
}
