/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/forward_window.h"

#include <inttypes.h>
#include <string.h>

#include "formats/rsz/rsz.h"

#define WINDOW_FIRST ((size_t)1 << 20)
/* Twice the largest record, so that bytes are moved together once for each of them at most. */
#define WINDOW_MAX   (2 * (RSZ_HEADER_MAX + RSZ_STORED_MAX))

static void forget_window_front(struct forward_window *w)
{
	const size_t n = (size_t)MIN(w->low - w->base, w->len);

	memmove(w->window, w->window + n, w->len - n);
	w->base += n;
	w->len -= n;
}

/* Room for at least one byte more. */
static enum status make_room_for_input(struct forward_window *w, struct err *e)
{
	uint8_t *larger;
	size_t room;

	if (w->len < w->room)
		return ST_OK;
	if (w->low > w->base && (w->low - w->base >= w->room / 2 || w->room >= WINDOW_MAX)) {
		forget_window_front(w);
		return ST_OK;
	}
	if (w->room >= WINDOW_MAX)
		return err_set(e, ST_CORRUPT, "a record at offset %" PRIu64 " is too large",
			       w->low);
	room = w->room ? MIN(2 * w->room, WINDOW_MAX) : WINDOW_FIRST;
	larger = realloc(w->window, room);
	if (!larger)
		return err_nomem(e);
	w->window = larger;
	w->room = room;
	return ST_OK;
}

static enum status pull_some(struct forward_window *w, struct err *e)
{
	enum status st = make_room_for_input(w, e);
	size_t got = 0;

	if (!st)
		st = w->pull(w->arg, w->window + w->len, w->room - w->len, &got, e);
	if (st)
		return st;
	if (!got)
		w->blob.size = w->base + w->len;
	w->len += got;
	return ST_OK;
}

static enum status window_reach(struct blob *b, uint64_t end, struct err *e)
{
	struct forward_window *w = (struct forward_window *)b;
	enum status st = ST_OK;

	while (!st && b->size == BLOB_ENDLESS && w->base + w->len < end) {
		if (end == BLOB_ENDLESS)
			w->low = w->base + w->len;
		st = pull_some(w, e);
	}
	return st;
}

static enum status window_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				  struct err *e)
{
	struct forward_window *w = (struct forward_window *)b;
	enum status st;

	*got = 0;
	if (!len)
		return ST_OK;
	if (off < w->base)
		return err_set(e, ST_INPUT, "cannot go back to offset %" PRIu64, off);
	w->low = off;
	st = window_reach(b, off + len, e);
	if (st || off >= w->base + w->len)
		return st;
	*got = (size_t)MIN(len, w->base + w->len - off);
	memcpy(p, w->window + (off - w->base), *got);
	return ST_OK;
}

void forward_window_init(struct forward_window *w,
			 enum status (*pull)(void *arg, void *p, size_t len, size_t *got,
					     struct err *e),
			 void *arg)
{
	*w = (struct forward_window){
		.blob = { .read_at = window_read_at, .reach = window_reach, .size = BLOB_ENDLESS },
		.pull = pull,
		.arg = arg,
	};
}

void forward_window_deinit(struct forward_window *w)
{
	free(w->window);
	w->window = NULL;
}
