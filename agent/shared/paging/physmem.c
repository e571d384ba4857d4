/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/physmem.h"
#include "formats/base/array.h"

#include <string.h>

size_t physmem_read_run(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
			struct physmem_page *ret)
{
	const struct range *r = range_list_find(m->ranges, pa);
	uint64_t there;

	if (!r || pa % PAGE_SIZE || r->last - pa < PAGE_SIZE - 1)
		return 0;
	there = (r->last - pa + 1) >> PAGE_SHIFT;
	pages = (size_t)MIN(pages, there);
	m->read(m, pa, buf, pages, ret);
	return pages;
}

bool physmem_read_page(struct physmem *m, uint64_t pa, uint8_t *buf, struct physmem_page *ret)
{
	struct physmem_page page = { 0 };
	const bool ok = physmem_read_run(m, pa, buf, 1, &page) == 1 && page.readable;

	if (ret)
		*ret = page;
	return ok;
}

bool physmem_read(struct physmem *m, uint64_t pa, void *buf, size_t len)
{
	uint8_t page[PAGE_SIZE];
	uint8_t *out = buf;

	while (len) {
		const size_t at = pa % PAGE_SIZE;
		const size_t part = MIN(len, PAGE_SIZE - at);

		if (!physmem_read_page(m, pa - at, page, NULL))
			return false;
		memcpy(out, page + at, part);
		out += part;
		pa += part;
		len -= part;
	}
	return true;
}

/* What one call to the driver's reader may cover: the stack holds a status for each. */
#define DRV_RUN 256

static void drv_read(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
		     struct physmem_page *ret)
{
	struct physmem_drv *d = (struct physmem_drv *)m;
	struct page_status status[DRV_RUN];
	size_t n;

	for (; pages; pages -= n, pa += n * PAGE_SIZE, buf += n * PAGE_SIZE, ret += n) {
		uint64_t start;
		uint64_t end;

		n = MIN(pages, (size_t)DRV_RUN);
		start = d->now();
		/* A source that died says so for every page; its message is the acquisition's. */
		(void)drv_read_pages(d->drv, pa, buf, n, status, NULL);
		end = d->now();
		for (size_t i = 0; i < n; i++)
			ret[i] = (struct physmem_page){
				.readable = status[i].state == PAGE_DATA,
				.start = start,
				.end = end,
			};
	}
}

void physmem_drv_init(struct physmem_drv *m, struct drv *d, uint64_t (*now)(void))
{
	*m = (struct physmem_drv){
		.mem = { .read = drv_read, .ranges = &d->info.maps[0].ranges },
		.drv = d,
		.now = now,
	};
}

static void cache_read(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
		       struct physmem_page *ret)
{
	struct physmem_cache *c = (struct physmem_cache *)m;
	const size_t i = (pa >> PAGE_SHIFT) % PHYSMEM_CACHE;

	/* Runs are for those who go through memory once. */
	if (pages != 1) {
		c->under->read(c->under, pa, buf, pages, ret);
		return;
	}
	if (c->pa[i] != pa) {
		c->under->read(c->under, pa, c->bytes[i], 1, &c->page[i]);
		c->pa[i] = pa;
	}
	memcpy(buf, c->bytes[i], PAGE_SIZE);
	*ret = c->page[i];
}

void physmem_cache_forget(struct physmem_cache *c)
{
	for (size_t i = 0; i < PHYSMEM_CACHE; i++)
		c->pa[i] = UINT64_MAX;
}

enum status physmem_cache_init(struct physmem_cache *c, struct physmem *under, struct err *e)
{
	*c = (struct physmem_cache){
		.mem = { .read = cache_read, .ranges = under->ranges },
		.under = under,
		.bytes = malloc(PHYSMEM_CACHE * sizeof(*c->bytes)),
	};
	physmem_cache_forget(c);
	return c->bytes ? ST_OK : err_nomem(e);
}

void physmem_cache_deinit(struct physmem_cache *c)
{
	free(c->bytes);
	c->bytes = NULL;
}

/* From the first stream that captured it. Zero pages and holes have bytes: zeros. */
static struct physmem_page rsz_one(struct physmem_rsz *m, uint64_t pa, uint8_t *buf)
{
	struct rsz_page p;

	for (size_t i = 0; i < m->n_streams; i++) {
		if (rsz_cursor_page(m->cursor, m->streams[i], pa, &p, NULL) || !p.captured)
			continue;
		if (p.status.state != PAGE_DATA && p.status.state != PAGE_ZERO)
			return (struct physmem_page){ .start = p.start, .end = p.end };
		memset(buf + p.length, 0, PAGE_SIZE - p.length);
		memcpy(buf, p.data, p.length);
		return (struct physmem_page){ .readable = true, .start = p.start, .end = p.end };
	}
	return (struct physmem_page){ 0 };
}

static void rsz_read(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
		     struct physmem_page *ret)
{
	for (size_t i = 0; i < pages; i++)
		ret[i] = rsz_one((struct physmem_rsz *)m, pa + i * PAGE_SIZE, buf + i * PAGE_SIZE);
}

enum status physmem_rsz_init(struct physmem_rsz *m, const struct rsz_reader *r,
			     struct rsz_cursor *c, const uint32_t *streams, size_t n_streams,
			     struct err *e)
{
	enum status st = ST_OK;

	*m = (struct physmem_rsz){ .mem = { .read = rsz_read }, .cursor = c };
	m->mem.ranges = &m->ranges;
	for (size_t i = 0; i < n_streams && i < PHYSMEM_STREAMS_MAX && !st; i++) {
		m->streams[m->n_streams++] = streams[i];
		st = rsz_reader_ranges(r, streams[i], &m->ranges, e);
	}
	if (st) {
		physmem_rsz_deinit(m);
		return st;
	}
	range_list_tidy(&m->ranges, NULL);
	range_list_join(&m->ranges);
	return ST_OK;
}

void physmem_rsz_deinit(struct physmem_rsz *m)
{
	range_list_deinit(&m->ranges);
}

static void pieces_read(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
			struct physmem_page *ret)
{
	struct physmem_pieces *p = (struct physmem_pieces *)m;

	for (size_t i = 0; i < pages; i++, pa += PAGE_SIZE, buf += PAGE_SIZE) {
		const size_t n = FIRST_WHERE(k, p->count, p->at[k].pa >= pa);
		const struct physmem_piece *piece =
			n < p->count && p->at[n].pa == pa ? &p->at[n] : NULL;

		ret[i] = (struct physmem_page){ .readable = piece, .start = p->reads };
		ret[i].end = ++p->reads;
		if (piece)
			memcpy(buf, piece->bytes, PAGE_SIZE);
	}
}

void physmem_pieces_init(struct physmem_pieces *m, const struct physmem_piece *at, size_t count,
			 const struct range_list *ranges)
{
	*m = (struct physmem_pieces){
		.mem = { .read = pieces_read, .ranges = ranges },
		.at = at,
		.count = count,
	};
}
