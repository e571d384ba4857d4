/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first reads of a driver: do pages come, and are they the ones that were asked for?
 */
#include "driver-interface/winpmem_internal.h"

#include <inttypes.h>
#include <string.h>

/* Enough to find one page among those that a hypervisor keeps for itself. */
#define PROBES 64

/*
 * Their first pages, then others spread over each: later drivers refuse page 0, which may be one.
 */
static uint64_t probe_address(const struct range_list *l, size_t i, size_t probes)
{
	const struct range *r = &l->at[i % l->count];
	const uint64_t pages = range_bytes(*r) / PAGE_SIZE;

	return r->first + pages * (i / l->count) / (probes / l->count + 1) * PAGE_SIZE;
}

/* At least one page must come before this counts as a source. */
static enum status probe_winpmem(struct winpmem *w, uint8_t *page, struct err *e)
{
	const struct range_list *l = &w->drv.info.maps[0].ranges;
	struct drv_result r = { 0 };

	for (size_t i = 0; i < PROBES; i++) {
		r = winpmem_read(&w->drv, probe_address(l, i, PROBES), page, PAGE_SIZE);
		if (r.good == PAGE_SIZE)
			return ST_OK;
		if (r.dead)
			break;
	}
	return err_set(e, ST_NO_SOURCE,
		       "%s: no page of RAM that was tried can be read (win32 %" PRIu32 ")",
		       w->drv.info.path, r.error);
}

/*
 * A driver that maps one page after the other at one address, and does not clear the TLB between
 * them, gives the bytes of an earlier one. 4.0.1 built from source does not (src/pte_mmap.c has its
 * invlpg commented out); a TLB that is cleared meanwhile by something else hides that now and then.
 */

/* Neighbours whose contents differ; so many of them are tried before the driver is believed. */
#define PAIRS       8
/*
 * So many places are looked at for them. A machine whose memory is the same at all of them is none.
 */
#define PAIR_PROBES 1024

/* Two neighbours: one after the other, twice, and both in one request. */
struct pair {
	uint8_t single[2][2][PAGE_SIZE]; /* time, page */
	uint8_t both[2][PAGE_SIZE];
};

static bool read_pair(struct winpmem *w, uint64_t addr, struct pair *p)
{
	for (unsigned i = 0; i < 4; i++)
		if (winpmem_read(&w->drv, addr + i % 2 * PAGE_SIZE, p->single[i / 2][i % 2],
				 PAGE_SIZE)
			    .good != PAGE_SIZE)
			return false;
	return winpmem_read(&w->drv, addr, p->both, sizeof(p->both)).good == sizeof(p->both);
}

static bool is_same_page(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, PAGE_SIZE) == 0;
}

/*
 * A page that came as its neighbour and not as itself. Live pages change, but not into each other.
 */
static bool is_mixed(const struct pair *p)
{
	const uint8_t *const a = p->single[0][0], *const b = p->single[0][1];

	return (is_same_page(p->single[1][0], b) && !is_same_page(p->single[1][0], a)) ||
	       (is_same_page(p->single[1][1], a) && !is_same_page(p->single[1][1], b)) ||
	       (is_same_page(p->both[0], b) && !is_same_page(p->both[0], a)) ||
	       (is_same_page(p->both[1], a) && !is_same_page(p->both[1], b)) ||
	       (is_same_page(p->both[0], p->both[1]) && !is_same_page(a, b) &&
		(is_same_page(p->both[0], a) || is_same_page(p->both[0], b)));
}

static bool differs_in_pair(const struct pair *p)
{
	return !is_same_page(p->single[0][0], p->single[0][1]) ||
	       !is_same_page(p->both[0], p->both[1]);
}

/* What was seen of neighbours. */
struct pairs {
	size_t different;
	size_t equal;          /* both have the same bytes, */
	size_t equal_not_zero; /* which is rare in memory unless it is zero */
};

static void count_pair(const struct pair *p, struct pairs *n)
{
	static const uint8_t zero[PAGE_SIZE];

	n->different += differs_in_pair(p);
	n->equal += !differs_in_pair(p);
	n->equal_not_zero += !differs_in_pair(p) && !is_same_page(p->both[0], zero);
}

static enum status err_stale(const struct winpmem *w, const char *what, struct err *e)
{
	return err_set(e, ST_NO_SOURCE,
		       "%s: %s: the driver does not clear the processor's TLB, so what it reads is "
		       "not evidence; use another version",
		       w->drv.info.path, what);
}

static enum status check_pairs(struct winpmem *w, const struct pairs *n, struct err *e)
{
	if (n->different)
		return ST_OK;
	if (n->equal_not_zero >= PAIRS)
		return err_stale(w, "pages are returned with the bytes of their neighbours", e);
	if (n->equal >= PAIR_PROBES / 2)
		return err_stale(w, "pages are zero wherever they are tried", e);
	winpmem__note(w, "cannot tell whether the driver mixes pages up: no two neighbours differ");
	return ST_OK;
}

/* Pages that fail are passed over: there is one that did not. */
static enum status check_pages(struct winpmem *w, struct pair *p, struct err *e)
{
	const struct range_list *l = &w->drv.info.maps[0].ranges;
	struct pairs n = { 0 };

	for (size_t i = 0; i < PAIR_PROBES && n.different < PAIRS; i++) {
		const uint64_t addr = probe_address(l, i, PAIR_PROBES);
		const struct range *r = range_list_find(l, addr);

		if (!r || r->last - addr < 2 * PAGE_SIZE - 1 || !read_pair(w, addr, p))
			continue;
		if (is_mixed(p))
			return err_stale(w, "a page was returned with the bytes of its neighbour",
					 e);
		count_pair(p, &n);
	}
	return check_pairs(w, &n, e);
}

enum status winpmem__try(struct winpmem *w, struct err *e)
{
	_cleanup_free_ struct pair *p = malloc(sizeof(*p));
	enum status st;

	if (!p)
		return err_nomem(e);
	st = probe_winpmem(w, p->both[0], e);
	if (st || (w->mode != WINPMEM_PTE && w->mode != WINPMEM_MODE_UNKNOWN))
		return st;
	return check_pages(w, p, e);
}
