/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/cache_lookups.h"

#include <errno.h>
#include <string.h>

#include "agent/shared/program/clock.h"

struct cache_lookups {
	struct swap_cache *cache;
	struct swap_lookup lookups[CACHE_LOOKUPS_MAX];
	struct rsz_extent extents[CACHE_LOOKUPS_MAX];
	size_t n_extents; /* that are to go out */
	struct page_status pages[CACHE_LOOKUPS_MAX];
	size_t n_pages;
	uint8_t *data;
};

/*
 * Absence is a hole: the cache has no page there, or one that is only on its way back from the
 * slot. Zeros that were not written to the slot are captured like a page that is held.
 */
static struct page_status status_of(const struct swap_lookup *l)
{
	if (l->state != SWAP_CACHE_HELD && l->state != SWAP_CACHE_ZEROS)
		return (struct page_status){ .state = PAGE_HOLE };
	if (l->readable)
		return (struct page_status){ .state = PAGE_DATA };
	return (struct page_status){ .state = PAGE_UNREADABLE, .detail = EIO };
}

static void count_lookup(struct slots_counts *c, enum swap_cache_state state)
{
	c->absent += state == SWAP_CACHE_ABSENT;
	c->held += state == SWAP_CACHE_HELD;
	c->busy += state == SWAP_CACHE_BUSY;
	c->zeros += state == SWAP_CACHE_ZEROS;
	c->untold += state == SWAP_CACHE_UNKNOWN;
}

/* Adds the page of one look to what goes out. `x` has all but its address. */
static void add_lookup(struct cache_lookups *l, size_t i, const struct rsz_extent *x)
{
	struct rsz_extent one = *x;

	one.address = l->lookups[i].slot * PAGE_SIZE;
	one.length = PAGE_SIZE;
	if (!l->n_extents || !slots_join(&l->extents[l->n_extents - 1], &one))
		l->extents[l->n_extents++] = one;
	memmove(l->data + l->n_pages * PAGE_SIZE, l->data + i * PAGE_SIZE, PAGE_SIZE);
	l->pages[l->n_pages++] = status_of(&l->lookups[i]);
}

static size_t list_lookups(struct cache_lookups *l, uint32_t file, const struct rsz_extent *x,
			   size_t n)
{
	size_t pages = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rsz_extent_pages(&x[i]); k++)
			l->lookups[pages++] = (struct swap_lookup){
				.file = file,
				.slot = x[i].address / PAGE_SIZE + k,
			};
	return pages;
}

void cache_lookups_make(struct cache_lookups *l, uint32_t file, const struct rsz_extent *x,
			size_t n, struct slots_counts *counts)
{
	const size_t pages = l ? list_lookups(l, file, x, n) : 0;
	struct rsz_extent one = { .start = clock_mono_ns() };
	size_t at = 0;

	/* Without memory for it nothing is known, which is what the container says then. */
	if (!pages || swap_cache_lookup(l->cache, l->lookups, pages, l->data, NULL))
		return;
	one.end = clock_mono_ns();
	counts->lookup_ns += one.end - one.start;
	l->n_pages = 0;
	for (size_t i = 0; i < n; i++) {
		one.pass = x[i].pass;
		one.reason = x[i].reason;
		for (size_t k = rsz_extent_pages(&x[i]); k; k--, at++) {
			count_lookup(counts, l->lookups[at].state);
			if (l->lookups[at].state != SWAP_CACHE_UNKNOWN)
				add_lookup(l, at, &one);
		}
	}
}

bool cache_lookups_pending(const struct cache_lookups *l)
{
	return l && l->n_extents;
}

bool cache_lookups_take(struct cache_lookups *l, const struct slots_file *f, struct stream_piece *p)
{
	if (!cache_lookups_pending(l))
		return false;
	memcpy(p->extents, l->extents, l->n_extents * sizeof(*l->extents));
	memcpy(p->pages, l->pages, l->n_pages * sizeof(*l->pages));
	memcpy(p->data, l->data, l->n_pages * PAGE_SIZE);
	p->n_extents = l->n_extents;
	p->stream = f->cache_stream;
	p->result = f->cache_result;
	l->n_extents = 0;
	return true;
}

enum status cache_lookups_create(struct swap_cache *cache, struct cache_lookups **ret,
				 struct err *e)
{
	struct cache_lookups *l = calloc(1, sizeof(*l));

	*ret = NULL;
	if (!l) {
		swap_cache_destroy(cache);
		return err_nomem(e);
	}
	l->cache = cache;
	l->data = malloc(STREAM_CHUNK);
	if (!l->data) {
		cache_lookups_destroy(l);
		return err_nomem(e);
	}
	*ret = l;
	return ST_OK;
}

void cache_lookups_destroy(struct cache_lookups *l)
{
	if (!l)
		return;
	swap_cache_destroy(l->cache);
	free(l->data);
	free(l);
}
