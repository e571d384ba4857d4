/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "tsk-extract/extract_internal.h"

/* The piece that is being filled. */
struct fill {
	struct extract *x;
	uint64_t offset; /* of the piece, in the file */
	size_t length;
	uint8_t *buf;
	struct page_status *status;
	uint64_t shift; /* file offset minus reader offset, of the extent that is being read */
};

#define UNSET PAGE_STATES /* a page that nothing has been said of yet */

/*
 * Says what bytes [off, off + len) of the file are. A page that is covered in parts is what the
 * header's comment says; the end of the file ends its last page.
 */
static void mark_page_status(struct fill *f, uint64_t off, uint64_t len, struct page_status what)
{
	const uint64_t end = f->offset + f->length;

	for (uint64_t page = off / PAGE_SIZE; page * PAGE_SIZE < off + len; page++) {
		struct page_status *s = &f->status[page - f->offset / PAGE_SIZE];
		const uint64_t first = page * PAGE_SIZE, last = MIN(first + PAGE_SIZE, end);
		const bool whole = off <= first && off + len >= last;

		if (s->state == PAGE_UNREADABLE)
			continue;
		if (what.state == PAGE_UNREADABLE || whole || s->state == UNSET)
			*s = what;
		else if (!page_status_same(*s, what))
			*s = (struct page_status){ .state = PAGE_DATA };
	}
}

static void note_bad(struct extract *x, uint64_t off, uint64_t len, uint32_t error)
{
	struct extract_bad *last = x->n_bad ? &x->bad[x->n_bad - 1] : NULL;

	if (last && last->error == error && last->offset + last->length == off) {
		last->length += len;
		return;
	}
	if (!ARRAY_ROOM(x->bad, x->n_bad, x->bad_room))
		return; /* the page states still say it; only the sectors are lost */
	x->bad[x->n_bad++] = (struct extract_bad){ off, len, error };
}

static void mark_bad(struct fill *f, uint64_t off, uint64_t len, uint32_t error)
{
	mark_page_status(f, off, len, (struct page_status){ PAGE_UNREADABLE, error });
	note_bad(f->x, off, len, error);
}

static void bad_sectors(void *arg, uint64_t off, size_t len, uint32_t error)
{
	struct fill *f = arg;

	mark_bad(f, off + f->shift, len, error);
}

/* Part of an extent on disk, all of it below the initialised size. */
static void fill_from_disk(struct fill *f, uint64_t off, size_t len, uint64_t disk)
{
	const struct volume *v = f->x->volume;
	uint8_t *to = f->buf + (off - f->offset);
	const size_t inside = disk < v->length ? (size_t)MIN(len, v->length - disk) : 0;

	mark_page_status(f, off, len, (struct page_status){ .state = PAGE_DATA });
	f->shift = off - (v->offset + disk);
	if (inside)
		reader_read_around(f->x->reader, v->offset + disk, to, inside, bad_sectors, f);
	if (inside < len) {
		memset(to + inside, 0, len - inside);
		mark_bad(f, off + inside, len - inside, READ_PAST_END);
	}
}

/* Part of one extent. */
static void fill_from_extent(struct fill *f, const struct extent *x, uint64_t off, size_t len)
{
	const struct extract *of = f->x;
	const uint64_t init = of->flags & EXTRACT_RAW_TAIL ? UINT64_MAX : of->now.initialised;
	const size_t below = off < init ? (size_t)MIN(len, init - off) : 0;

	if (x->kind == EXTENT_DISK && below)
		fill_from_disk(f, off, below, x->disk + (off - x->file));
	if (x->kind == EXTENT_DISK && below == len)
		return;
	memset(f->buf + (off - f->offset) + (x->kind == EXTENT_DISK ? below : 0), 0,
	       x->kind == EXTENT_DISK ? len - below : len);
	if (x->kind == EXTENT_HOLE)
		mark_page_status(f, off, len, (struct page_status){ .state = PAGE_HOLE });
	else if (x->kind == EXTENT_LOST)
		mark_bad(f, off, len, EXTRACT_LOST);
	else
		mark_page_status(f, off + below, len - below,
				 (struct page_status){ PAGE_SKIPPED, SKIP_BEYOND_INIT });
}

/*
 * Extents one after the other leave a disk idle between them: the system's own readahead sees no
 * sequence. So it is told of what comes behind this piece. Where that is in memory already the
 * telling would be half of the cost; its last byte stands for all of it.
 */
#define HINT_AHEAD ((uint64_t)4 << 20)

/* Where byte `off` of the file lies for the reader; false if it is not on disk. */
static bool place_on_disk(const struct extract *x, const struct extent *at, uint64_t off,
			  uint64_t *ret)
{
	*ret = x->volume->offset + at->disk + (off - at->file);
	return at->kind == EXTENT_DISK && range_fits(at->disk, at->length, x->volume->length);
}

static void hint_ahead(struct extract *x, uint64_t from)
{
	struct reader *r = x->reader;
	const uint64_t begin = MAX(x->hinted, from), end = MIN(from + HINT_AHEAD, x->now.size);
	const struct extent *at, *last;
	uint64_t disk;

	if (!r->ops->hint || begin >= end || (end - begin < HINT_AHEAD / 4 && end < x->now.size))
		return;
	x->hinted = end;
	last = extent_list_find(&x->now.extents, end - 1);
	if (!place_on_disk(x, last, end - 1, &disk) || r->ops->at_hand(r, disk))
		return;
	for (at = extent_list_find(&x->now.extents, begin); at <= last; at++) {
		const uint64_t off = MAX(at->file, begin);

		if (place_on_disk(x, at, off, &disk))
			r->ops->hint(r, disk, MIN(at->file + at->length, end) - off);
	}
}

static void fill_from_extents(struct fill *f)
{
	const struct extent_list *l = &f->x->now.extents;
	const struct extent *x = extent_list_find(l, f->offset);
	const uint64_t end = f->offset + f->length;

	if (f->offset == f->x->next) /* what is read here and there has nothing behind it */
		hint_ahead(f->x, end);
	for (uint64_t off = f->offset; off < end; x++) {
		const size_t len = (size_t)MIN(end - off, x->file + x->length - off);

		fill_from_extent(f, x, off, len);
		off += len;
	}
}

/* What the extents of one compression unit have to say before libtsk is asked. */
static enum extent_kind unit_kind(const struct extract *x, uint64_t off, uint64_t len)
{
	const struct extent *at = extent_list_find(&x->now.extents, off);
	const enum extent_kind first = at->kind;

	for (; at->file + at->length < off + len; at++)
		if (at[1].kind == EXTENT_LOST)
			return EXTENT_LOST;
	if (first == EXTENT_HOLE && extent_list_find(&x->now.extents, off) == at)
		return EXTENT_HOLE;
	return first == EXTENT_LOST ? EXTENT_LOST : EXTENT_DISK;
}

static enum status read_unit(struct extract *x, uint64_t unit, size_t len)
{
	return x->wof ? wof_read(x->wof, unit, x->unit_bytes, len, NULL)
		      : mft_unit_read(x->mft, unit, x->unit_bytes, len, NULL);
}

/* Part of one compression unit that begins at `unit`. */
static void fill_from_unit(struct fill *f, uint64_t unit, uint64_t off, size_t len)
{
	struct extract *x = f->x;
	const uint64_t whole = MIN(x->unit, x->now.size - unit);
	const enum extent_kind kind = x->wof ? EXTENT_DISK : unit_kind(x, unit, whole);
	uint8_t *to = f->buf + (off - f->offset);

	memset(to, 0, len);
	if (kind == EXTENT_HOLE) {
		mark_page_status(f, off, len, (struct page_status){ .state = PAGE_HOLE });
	} else if (kind == EXTENT_LOST) {
		mark_bad(f, off, len, EXTRACT_LOST);
	} else if (unit >= x->now.initialised) {
		mark_page_status(f, off, len,
				 (struct page_status){ PAGE_SKIPPED, SKIP_BEYOND_INIT });
	} else if (read_unit(x, unit, (size_t)whole)) {
		mark_bad(f, off, len, EIO);
	} else {
		memcpy(to, x->unit_bytes + (off - unit), len);
		mark_page_status(f, off, len, (struct page_status){ .state = PAGE_DATA });
	}
}

static void fill_from_units(struct fill *f)
{
	const uint64_t end = f->offset + f->length;

	for (uint64_t off = f->offset; off < end;) {
		const uint64_t unit = off / f->x->unit * f->x->unit;
		const size_t len = (size_t)MIN(end - off, unit + f->x->unit - off);

		fill_from_unit(f, unit, off, len);
		off += len;
	}
}

enum status extract_read(struct extract *x, uint64_t offset, void *buf, size_t size,
			 struct page_status *status, struct extract_piece *ret, struct err *e)
{
	struct fill f = { .x = x, .offset = offset, .buf = buf, .status = status };

	if (offset >= x->now.size)
		return ST_END;
	if (offset % PAGE_SIZE || size < PAGE_SIZE || size % PAGE_SIZE)
		return err_set(e, ST_SYSTEM, "a read of %zu bytes at %" PRIu64, size, offset);
	f.length = (size_t)MIN(size, x->now.size - offset);
	for (size_t i = 0; i * PAGE_SIZE < f.length; i++)
		status[i] = (struct page_status){ .state = UNSET };
	*ret = (struct extract_piece){ .offset = offset,
				       .length = f.length,
				       .start_ns = extract__now() };
	if (x->now.resident) {
		memcpy(buf, x->value + offset, f.length);
		mark_page_status(&f, offset, f.length, (struct page_status){ .state = PAGE_DATA });
	} else if (x->now.compressed || x->wof) {
		fill_from_units(&f);
	} else {
		fill_from_extents(&f);
	}
	ret->end_ns = extract__now();
	return ST_OK;
}

enum status extract_next(struct extract *x, void *buf, size_t size, struct page_status *status,
			 struct extract_piece *ret, struct err *e)
{
	const enum status st = extract_read(x, x->next, buf, size, status, ret, e);

	if (!st)
		x->next += ret->length;
	return st;
}

void extract_seek(struct extract *x, uint64_t offset)
{
	x->next = offset;
}
