/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/direct_file.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/defs.h"

/*
 * From when on what waits is worth a request: a kill costs what waits. There is room for more than
 * a container's record (1 MiB), so that a request ends where a record does, but for what fills no
 * unit: where a disk is full, the one that did not fit leaves its room for the end.
 */
#define DIRECT_ROOM  ((size_t)1280 << 10)
#define DIRECT_LEAST ((size_t)64 << 10)

/* Of what is read back, or written over. */
#define DIRECT_PIECE DIRECT_UNIT_MAX

struct direct_file {
	struct direct_io *io;
	size_t unit;
	uint64_t at; /* in the file is what comes before; a multiple of the unit */
	size_t len;  /* what waits in the buffer */
	uint8_t *buffer, *piece;
	void *memory;
};

enum status direct_file_create(struct direct_io *io, size_t unit, struct direct_file **ret,
			       struct err *e)
{
	struct direct_file *d = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(e);
	d->io = io;
	d->unit = unit;
	d->memory = malloc(DIRECT_ROOM + DIRECT_PIECE + DIRECT_UNIT_MAX);
	if (!d->memory) {
		direct_file_destroy(d);
		return err_nomem(e);
	}
	d->buffer = (uint8_t *)d->memory + DIRECT_UNIT_MAX - (uintptr_t)d->memory % DIRECT_UNIT_MAX;
	d->piece = d->buffer + DIRECT_ROOM;
	*ret = d;
	return ST_OK;
}

void direct_file_destroy(struct direct_file *d)
{
	if (d)
		free(d->memory);
	free(d);
}

uint64_t direct_file_end(const struct direct_file *d)
{
	return d->at + d->len;
}

/* Of what waits, what fills units. Nothing is lost where it fails. */
static enum status write_whole(struct direct_file *d, struct err *e)
{
	const size_t whole = d->len / d->unit * d->unit;
	const enum status st = whole ? d->io->write(d->io, d->at, d->buffer, whole, e) : ST_OK;

	if (st)
		return st;
	memmove(d->buffer, d->buffer + whole, d->len - whole);
	d->at += whole;
	d->len -= whole;
	return ST_OK;
}

/* NULL: zeros. */
static enum status append_to_buffer(struct direct_file *d, const uint8_t *p, uint64_t len,
				    struct err *e)
{
	enum status st = ST_OK;

	while (len && !st) {
		const size_t n = (size_t)MIN(len, DIRECT_ROOM - d->len);

		if (p)
			memcpy(d->buffer + d->len, p, n);
		else
			memset(d->buffer + d->len, 0, n);
		p = p ? p + n : NULL;
		d->len += n;
		len -= n;
		if (d->len == DIRECT_ROOM)
			st = write_whole(d, e);
	}
	return st || d->len < DIRECT_LEAST ? st : write_whole(d, e);
}

enum status direct_file_write(struct direct_file *d, const void *p, size_t len, struct err *e)
{
	return append_to_buffer(d, p, len, e);
}

enum status direct_file_skip(struct direct_file *d, uint64_t len, struct err *e)
{
	const uint64_t fill = MIN(len, (d->unit - d->len % d->unit) % d->unit);
	const uint64_t whole = (len - fill) / d->unit * d->unit;
	enum status st = append_to_buffer(d, NULL, fill, e);

	if (!st && whole)
		st = write_whole(d, e);
	/* What a cut has left there is to be zeros, too. */
	if (!st && whole)
		st = d->io->resize(d->io, d->at, e);
	if (!st && whole)
		st = d->io->resize(d->io, d->at + whole, e);
	if (st)
		return st;
	d->at += whole;
	return append_to_buffer(d, NULL, len - fill - whole, e);
}

/* The unit at `at`, into the buffer: what comes before what goes on there. */
static enum status read_before_tail(struct direct_file *d, uint64_t at, size_t len, struct err *e)
{
	size_t got = 0;
	const enum status st = len ? d->io->read(d->io, at, d->buffer, d->unit, &got, e) : ST_OK;

	if (!st && got < len)
		return err_set(e, ST_OUTPUT, "what was written cannot be read back");
	return st;
}

enum status direct_file_cut(struct direct_file *d, uint64_t at, bool shorten, struct err *e)
{
	const uint64_t front = at / d->unit * d->unit;
	enum status st = ST_OK;

	if (at >= d->at) {
		d->len = (size_t)(at - d->at);
	} else {
		st = read_before_tail(d, front, (size_t)(at - front), e);
		if (st)
			return st;
		d->at = front;
		d->len = (size_t)(at - front);
	}
	return shorten ? d->io->resize(d->io, d->at, e) : ST_OK;
}

/* A piece of the file that is not in the buffer, around `at`. *ret is where it begins. */
static enum status read_piece(struct direct_file *d, uint64_t at, uint64_t *ret, size_t *ret_len,
			      struct err *e)
{
	*ret = at / d->unit * d->unit;
	return d->io->read(d->io, *ret, d->piece, (size_t)MIN(DIRECT_PIECE, d->at - *ret), ret_len,
			   e);
}

enum status direct_file_rewrite(struct direct_file *d, uint64_t at, const void *p, size_t len,
				struct err *e)
{
	const uint8_t *from = p;

	while (len && at < d->at) {
		uint64_t begin;
		size_t got, n;
		enum status st = read_piece(d, at, &begin, &got, e);

		if (st)
			return st;
		if (got % d->unit || begin + got <= at)
			return err_set(e, ST_OUTPUT, "what was written cannot be read back");
		n = (size_t)MIN(len, begin + got - at);
		memcpy(d->piece + (at - begin), from, n);
		st = d->io->write(d->io, begin, d->piece, got, e);
		if (st)
			return st;
		from += n;
		at += n;
		len -= n;
	}
	if (len)
		memcpy(d->buffer + (at - d->at), from, len);
	return ST_OK;
}

enum status direct_file_read(struct direct_file *d, uint64_t at, void *p, size_t len, size_t *got,
			     struct err *e)
{
	uint8_t *to = p;

	*got = 0;
	while (*got < len && at < d->at) {
		uint64_t begin;
		size_t there, n;
		const enum status st = read_piece(d, at, &begin, &there, e);

		if (st)
			return st;
		if (begin + there <= at)
			return ST_OK;
		n = (size_t)MIN(len - *got, begin + there - at);
		memcpy(to + *got, d->piece + (at - begin), n);
		*got += n;
		at += n;
	}
	if (*got < len && at >= d->at && at < direct_file_end(d)) {
		const size_t n = (size_t)MIN(len - *got, direct_file_end(d) - at);

		memcpy(to + *got, d->buffer + (at - d->at), n);
		*got += n;
	}
	return ST_OK;
}

enum status direct_file_settle(struct direct_file *d, struct err *e)
{
	enum status st = write_whole(d, e);

	if (!st && d->len) {
		memset(d->buffer + d->len, 0, d->unit - d->len);
		st = d->io->write(d->io, d->at, d->buffer, d->unit, e);
	}
	return st ? st : d->io->resize(d->io, direct_file_end(d), e);
}
