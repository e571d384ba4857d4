/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/parts.h"

#include <pthread.h>
#include <stdlib.h>

#include "formats/base/array.h"

/* chain.c has no more sources than this. */
#define SOURCES_MAX 8
#define WORD_BITS   64

struct delivered {
	const char *source;
	uint64_t *bits;
};

struct parts {
	const struct range_list *ranges;
	uint64_t *before; /* pages in the ranges before each */
	uint64_t pages;
	struct delivered by[SOURCES_MAX];
	size_t n_by;
	struct drv_part *at; /* of the bits, unless `stale` */
	size_t count, room;
	bool stale;
};

struct parts *parts_create(const struct range_list *ranges)
{
	struct parts *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ranges = ranges;
	p->before = calloc(ranges->count + 1, sizeof(*p->before));
	if (!p->before) {
		free(p);
		return NULL;
	}
	for (size_t i = 0; i < ranges->count; i++) {
		p->before[i] = p->pages;
		p->pages += range_bytes(ranges->at[i]) >> PAGE_SHIFT;
	}
	return p;
}

void parts_destroy(struct parts *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_by; i++)
		free(p->by[i].bits);
	free(p->before);
	free(p->at);
	free(p);
}

static bool is_delivered(const struct delivered *d, uint64_t n)
{
	return d->bits[n / WORD_BITS] >> n % WORD_BITS & 1;
}

/* NULL: without memory. */
static struct delivered *find_source(struct parts *p, const char *source)
{
	struct delivered *d = p->by;

	for (; d < p->by + p->n_by; d++)
		if (d->source == source)
			return d;
	if (p->n_by == SOURCES_MAX)
		return NULL;
	d->bits = calloc((size_t)(p->pages / WORD_BITS + 1), sizeof(*d->bits));
	if (!d->bits)
		return NULL;
	d->source = source;
	p->n_by++;
	return d;
}

static void note_delivered_page(struct parts *p, const struct delivered *by, uint64_t n)
{
	const uint64_t bit = UINT64_C(1) << n % WORD_BITS;

	for (size_t i = 0; i < p->n_by; i++)
		p->by[i].bits[n / WORD_BITS] &= ~bit;
	if (by)
		by->bits[n / WORD_BITS] |= bit;
}

static void note_pages(struct parts *p, const char *source, uint64_t addr, size_t pages,
		       const struct page_status *status)
{
	const struct delivered *by = NULL;
	const struct range *r = NULL;

	for (size_t i = 0; i < pages; i++, addr += PAGE_SIZE) {
		if (status[i].state != PAGE_DATA)
			continue;
		if (!r || addr < r->first || addr > r->last)
			r = range_list_find(p->ranges, addr);
		if (!r)
			continue;
		if (!by)
			by = find_source(p, source);
		note_delivered_page(
			p, by, p->before[r - p->ranges->at] + ((addr - r->first) >> PAGE_SHIFT));
		p->stale = true;
	}
}

void parts_note(struct parts *p, const char *source, uint64_t addr, size_t pages,
		const struct page_status *status)
{
	static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&noting);
	note_pages(p, source, addr, pages, status);
	pthread_mutex_unlock(&noting);
}

static const char *source_of(const struct parts *p, uint64_t n)
{
	for (size_t i = 0; i < p->n_by; i++)
		if (is_delivered(&p->by[i], n))
			return p->by[i].source;
	return NULL;
}

/* False if there is no room, or no memory. */
static bool add_part_range(struct parts *p, const char *source, struct range r)
{
	struct drv_part *last = p->count ? &p->at[p->count - 1] : NULL;

	if (last && last->source == source && last->range.last + 1 == r.first) {
		last->range.last = r.last;
		return true;
	}
	if (p->count == DRV_PARTS_MAX)
		return false;
	if (!ARRAY_ROOM(p->at, p->count, p->room))
		return false;
	p->at[p->count++] = (struct drv_part){ r, source };
	return true;
}

const struct drv_part *parts_list(struct parts *p, size_t *ret_count)
{
	bool room = true;

	if (p->stale)
		p->count = 0;
	for (size_t i = 0; p->stale && i < p->ranges->count; i++) {
		const struct range r = p->ranges->at[i];
		const uint64_t pages = range_bytes(r) >> PAGE_SHIFT;

		for (uint64_t k = 0; k < pages && room; k++) {
			const char *source = source_of(p, p->before[i] + k);
			const uint64_t addr = r.first + k * PAGE_SIZE;

			if (source)
				room = add_part_range(p, source,
						      (struct range){ addr, addr + PAGE_SIZE - 1 });
		}
	}
	p->stale = false;
	*ret_count = p->count;
	return p->at;
}
