/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/chunk_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * More than there are readers at a time, mostly. A part has more places than a bound in bytes
 * leaves to chunks of 1 MiB, the usual size; smaller ones are few.
 */
#define PARTS       8
#define PART_CHUNKS 256

struct part {
	pthread_mutex_t lock;
	struct rsz_cursor *cursor;
};

struct chunk_cache {
	const struct rsz_reader *reader;
	size_t n_parts; /* that have a lock */
	struct part part[PARTS];
};

enum status chunk_cache_create(const struct rsz_reader *r, size_t bytes, bool glances,
			       struct chunk_cache **ret, struct err *e)
{
	struct chunk_cache *c = calloc(1, sizeof(*c));
	enum status st = c ? ST_OK : err_nomem(e);

	while (!st && c->n_parts < PARTS) {
		struct part *p = &c->part[c->n_parts++];

		c->reader = r;
		pthread_mutex_init(&p->lock, NULL);
		st = rsz_cursor_create(r, PART_CHUNKS, &p->cursor, e);
		if (!st)
			rsz_cursor_bound(p->cursor, MAX(bytes / PARTS, 1));
		if (!st && glances)
			st = rsz_cursor_allow_glances(p->cursor, e);
	}
	if (st)
		chunk_cache_destroy(c);
	else
		*ret = c;
	return st;
}

void chunk_cache_destroy(struct chunk_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_parts; i++) {
		rsz_cursor_destroy(c->part[i].cursor);
		pthread_mutex_destroy(&c->part[i].lock);
	}
	free(c);
}

/* Neighbouring records lie in different parts. */
static struct part *part_of(struct chunk_cache *c, const struct rsz_segment *seg)
{
	const uint64_t record = rsz_reader_record(c->reader, seg->extent);

	return &c->part[(record * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (PARTS - 1)];
}

/* The part that has the page, and how many of the `pages` from there on it has. */
static struct part *find_cache_part(struct chunk_cache *c, uint32_t stream, uint64_t address,
				    size_t pages, size_t *ret_pages)
{
	struct rsz_segment seg;
	uint64_t bytes;

	*ret_pages = pages;
	if (!rsz_reader_next(c->reader, stream, address, &seg))
		return &c->part[0];
	bytes = seg.address > address ? seg.address - address : seg.address + seg.length - address;
	*ret_pages = (size_t)MIN(MAX(bytes >> PAGE_SHIFT, 1), pages);
	return part_of(c, &seg);
}

enum status chunk_cache_read(struct chunk_cache *c, uint32_t stream, uint64_t address, void *buf,
			     size_t pages, struct page_status *status, struct err *e)
{
	uint8_t *to = buf;
	enum status st = ST_OK;

	for (size_t n; pages && !st; pages -= n) {
		struct part *p = find_cache_part(c, stream, address, pages, &n);

		pthread_mutex_lock(&p->lock);
		st = rsz_cursor_read(p->cursor, stream, address, to, n, status, NULL, e);
		pthread_mutex_unlock(&p->lock);
		address += n * PAGE_SIZE;
		to += n * PAGE_SIZE;
		status += n;
	}
	return st;
}

static enum status copy_cached_text(struct part *p, uint32_t stream, uint64_t address, uint8_t *to,
				    size_t *len, struct err *e)
{
	const uint8_t *text;
	uint64_t at = address;
	size_t got;
	const enum status st = rsz_cursor_next_text(p->cursor, stream, &at, &text, &got, e);

	if (st == ST_END || (!st && at - got != address))
		return err_set(e, ST_CORRUPT, "nothing was captured there");
	if (st)
		return st;
	*len = MIN(*len, got);
	memcpy(to, text, *len);
	return ST_OK;
}

enum status chunk_cache_read_text(struct chunk_cache *c, uint32_t stream, uint64_t address,
				  void *buf, size_t len, struct err *e)
{
	uint8_t *to = buf;
	enum status st = ST_OK;

	for (size_t n; len && !st; len -= n, to += n, address += n) {
		struct part *p = find_cache_part(c, stream, address, 1, &n);

		n = len;
		pthread_mutex_lock(&p->lock);
		st = copy_cached_text(p, stream, address, to, &n, e);
		pthread_mutex_unlock(&p->lock);
	}
	return st;
}
