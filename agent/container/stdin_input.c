/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "-": a container from a pipe. It is read forward, into a window that holds the record that is
 * looked at, with its header and payload; what lies before goes when there is no more room.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/container/input.h"
#include "agent/program/interrupt.h"
#include "formats/base/os.h"
#include "formats/rsz.h"

#define WINDOW_FIRST ((size_t)1 << 20)
/* Twice the largest record, so that bytes are moved together once for each of them at most. */
#define WINDOW_MAX   (2 * (RSZ_HEADER_MAX + RSZ_STORED_MAX))

struct stdin_input {
	struct input input;
	struct blob blob;
	uint8_t *window;
	size_t room;
	size_t len;
	uint64_t base; /* offset of window[0] */
	uint64_t low;  /* nothing before it is wanted any more */
};

static struct stdin_input *of_blob(struct blob *b)
{
	return (struct stdin_input *)(void *)((char *)b - offsetof(struct stdin_input, blob));
}

static void forget(struct stdin_input *s)
{
	const size_t n = (size_t)MIN(s->low - s->base, s->len);

	memmove(s->window, s->window + n, s->len - n);
	s->base += n;
	s->len -= n;
}

/* Room for at least one byte more. */
static enum status make_room_for_input(struct stdin_input *s, struct err *e)
{
	uint8_t *larger;
	size_t room;

	if (s->len < s->room)
		return ST_OK;
	if (s->low > s->base && (s->low - s->base >= s->room / 2 || s->room >= WINDOW_MAX)) {
		forget(s);
		return ST_OK;
	}
	if (s->room >= WINDOW_MAX)
		return err_set(e, ST_CORRUPT, "a record at offset %" PRIu64 " is too large",
			       s->low);
	room = s->room ? MIN(2 * s->room, WINDOW_MAX) : WINDOW_FIRST;
	larger = realloc(s->window, room);
	if (!larger)
		return err_nomem(e);
	s->window = larger;
	s->room = room;
	return ST_OK;
}

/* As much as there is at the moment. */
static enum status read_some(struct stdin_input *s, struct err *e)
{
	enum status st = make_room_for_input(s, e);
	ssize_t n = -1;

	if (st)
		return st;
	while (n < 0) {
		if (interrupted())
			return interrupt_status(e);
		n = read(STDIN_FILENO, s->window + s->len, (unsigned)MIN(s->room - s->len, IO_MAX));
		if (n < 0 && errno != EINTR)
			return err_from_errno(e, ST_INPUT, errno, "read");
	}
	if (!n)
		s->blob.size = s->base + s->len;
	s->len += (size_t)n;
	return ST_OK;
}

static enum status stdin_reach(struct blob *b, uint64_t end, struct err *e)
{
	struct stdin_input *s = of_blob(b);
	enum status st = ST_OK;

	while (!st && b->size == BLOB_ENDLESS && s->base + s->len < end) {
		if (end == BLOB_ENDLESS)
			s->low = s->base + s->len;
		st = read_some(s, e);
	}
	return st;
}

static enum status stdin_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				 struct err *e)
{
	struct stdin_input *s = of_blob(b);
	enum status st;

	*got = 0;
	if (!len)
		return ST_OK;
	if (off < s->base)
		return err_set(e, ST_INPUT, "cannot go back to offset %" PRIu64, off);
	s->low = off;
	st = stdin_reach(b, off + len, e);
	if (st || off >= s->base + s->len)
		return st;
	*got = (size_t)MIN(len, s->base + s->len - off);
	memcpy(p, s->window + (off - s->base), *got);
	return ST_OK;
}

static void stdin_close(struct input *in)
{
	struct stdin_input *s = (struct stdin_input *)in;

	free(s->window);
	free(s);
}

static enum status stdin_open(const struct input_options *o, struct input **ret, struct err *e)
{
	struct stdin_input *s;

	if (strcmp(o->path, "-") != 0)
		return ST_NOT_MINE;
	if (isatty(STDIN_FILENO))
		return err_set(e, ST_INPUT, "stdin: is a terminal; send a container there");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(e);
	s->blob = (struct blob){ .read_at = stdin_read_at,
				 .reach = stdin_reach,
				 .size = BLOB_ENDLESS };
	s->input =
		(struct input){ .ops = &stdin_input, .blob = &s->blob, .forward = true, .fd = -1 };
	*ret = &s->input;
	return ST_OK;
}

const struct input_ops stdin_input = { .name = "stdin", .open = stdin_open, .close = stdin_close };
