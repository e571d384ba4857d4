/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/io.h"

struct memory_reader {
	struct reader reader;
	const uint8_t *at;
};

static uint32_t memory_reader_read(struct reader *r, uint64_t off, void *buf, size_t len,
				   size_t *good)
{
	const struct memory_reader *m = (struct memory_reader *)r;

	memcpy(buf, m->at + off, len);
	*good = len;
	return 0;
}

static void memory_close(struct reader *r)
{
	free(r);
}

enum status reader_open_memory(const void *p, size_t len, uint32_t sector, struct reader **ret,
			       struct err *e)
{
	static const struct reader_ops ops = { .kind = "memory",
					       .read = memory_reader_read,
					       .close = memory_close };
	struct memory_reader *m = calloc(1, sizeof(*m));

	if (!m)
		return err_nomem(e);
	m->reader = (struct reader){ .ops = &ops, .size = len, .sector = sector };
	m->at = p;
	*ret = &m->reader;
	return ST_OK;
}

enum status reader_open(const char *const *paths, size_t n, struct reader **ret, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < n && !st; i++)
		st = input_is_no_pipe(paths[i], e);
	if (st)
		return st;
	if (n == 1) {
		st = reader__open_ewf(paths[0], ret, e);
		if (st != ST_NOT_MINE)
			return st;
	}
	st = reader__open_split(paths, n, ret, e);
	if (st != ST_NOT_MINE)
		return st;
	return reader__open_system(paths[0], ret, e);
}

void reader_close(struct reader *r)
{
	if (r)
		r->ops->close(r);
}

uint32_t reader_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	const size_t inside = off < r->size ? (size_t)MIN(len, r->size - off) : 0;
	uint32_t error = 0;

	*good = 0;
	if (inside)
		error = r->ops->read(r, off, buf, inside, good);
	if (error) { /* a torn sector is no good */
		*good -= MIN(*good, (size_t)((off + *good) % r->sector));
		return error;
	}
	return inside < len ? READ_PAST_END : 0;
}

/* Merges neighbouring bad sectors before they are told. */
struct bad_run {
	reader_bad_fn told;
	void *arg;
	uint64_t off;
	size_t len;
	uint32_t error;
};

static void bad_flush(struct bad_run *b)
{
	if (b->len && b->told)
		b->told(b->arg, b->off, b->len, b->error);
	b->len = 0;
}

static void bad_add(struct bad_run *b, uint64_t off, size_t len, uint32_t error)
{
	if (b->len && (b->off + b->len != off || b->error != error))
		bad_flush(b);
	if (!b->len) {
		b->off = off;
		b->error = error;
	}
	b->len += len;
}

/*
 * Bytes up to the next unit's boundary. The first failing unit was found by the failed read, so
 * it is left out alone; then large reads go on behind it. A device that fails for a whole region
 * would be asked sector by sector, which is what a single bad sector costs everyone else too.
 */
void reader_read_around(struct reader *r, uint64_t off, void *buf, size_t len, reader_bad_fn bad,
			void *arg)
{
	struct bad_run run = { .told = bad, .arg = arg };
	const uint32_t unit = r->unit ? r->unit : r->sector;
	uint8_t *at = buf;

	while (len) {
		size_t good = 0, skip;
		const uint32_t error = reader_read(r, off, at, len, &good);

		at += good;
		off += good;
		len -= good;
		if (!error)
			break;
		skip = error == READ_PAST_END ? len : (size_t)MIN(len, unit - off % unit);
		memset(at, 0, skip);
		bad_add(&run, off, skip, error);
		at += skip;
		off += skip;
		len -= skip;
	}
	bad_flush(&run);
}

enum target_risk reader_target_risk(const struct reader *r, const char *path)
{
	return reader__system_target_risk(r, path);
}

static uint32_t read_through(struct reader *r, const struct bounce *b, uint64_t off, void *buf,
			     size_t len, size_t *good)
{
	const uint32_t sector = r->sector;

	while (*good < len) {
		const uint64_t at = off + *good;
		const size_t lead = (size_t)(at % sector);
		const size_t want = MIN(len - *good, b->size - lead);
		const size_t whole = (lead + want + sector - 1) / sector * sector;
		size_t got = 0;
		const uint32_t error = b->read(r, at - lead, b->at, whole, &got);
		const size_t use = got > lead ? MIN(got - lead, want) : 0;

		memcpy((uint8_t *)buf + *good, b->at + lead, use);
		*good += use;
		if (error && use < want)
			return error;
	}
	return 0;
}

uint32_t reader__read_aligned(struct reader *r, const struct bounce *b, uint64_t off, void *buf,
			      size_t len, size_t *good)
{
	const uint64_t mask = r->sector - 1;

	if ((off & mask) || (len & mask) || ((uintptr_t)buf & mask))
		return read_through(r, b, off, buf, len, good);
	return b->read(r, off, buf, len, good);
}
