/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From single reads that may fail anywhere to the state of every page.
 */
#include <inttypes.h>

#include "driver-interface/parts.h"
#include "driver-interface/source.h"

static void mark_pages(struct page_status *at, size_t n, uint32_t state, uint32_t detail)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (struct page_status){ .state = state, .detail = detail };
}

/* How many of the next `pages` pages lie in one range of maps[0]; 0 if the first does not. */
static size_t mapped_run(const struct drv *d, uint64_t addr, size_t pages)
{
	const struct range *r =
		d->info.n_maps ? range_list_find(&d->info.maps[0].ranges, addr) : NULL;

	return r ? (size_t)MIN(pages, (r->last - addr) / PAGE_SIZE + 1) : 0;
}

/* Who reads, and where he says so. */
struct source_reader {
	struct drv *d;
	struct drv_watch *watch;
	unsigned number; /* DRV_BESIDE: not beside others */
};

static struct drv_result ask_source(const struct source_reader *by, uint64_t addr, void *buf,
				    size_t len)
{
	const struct drv_ops *ops = by->d->ops;

	return by->number < DRV_BESIDE && ops->read_beside
		       ? ops->read_beside(by->d, by->number, addr, buf, len)
		       : ops->read(by->d, addr, buf, len);
}

/*
 * One read of `pages` pages. Returns how many pages now have a status, and in *whole whether that
 * is all of them. Bytes behind `good` are never looked at.
 */
static size_t read_source_once(const struct source_reader *by, uint64_t addr, uint8_t *buf,
			       size_t pages, struct page_status *status, bool *whole,
			       uint32_t *error)
{
	struct drv *d = by->d;
	struct drv_result r;
	size_t good, bad;

	watch_begin(by->watch, addr, pages * PAGE_SIZE);
	r = ask_source(by, addr, buf, pages * PAGE_SIZE);
	watch_end(by->watch);
	good = MIN(r.good / PAGE_SIZE, pages);

	mark_pages(status, good, PAGE_DATA, 0);
	*whole = good == pages;
	*error = r.error;
	if (r.dead)
		d->dead = true;
	if (*whole || r.dead)
		return good;
	bad = r.exact ? MIN(MAX(r.bad, 1), pages - good) : 1;
	if (r.exact && r.not_offered)
		mark_pages(status + good, bad, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	else if (r.exact || pages - good == 1)
		mark_pages(status + good, bad, PAGE_UNREADABLE, r.error);
	else
		return good;
	return good + bad;
}

static enum status report_source_death(const struct drv *d, uint64_t addr, uint32_t error,
				       struct err *e)
{
	if (d->death)
		return err_set(e, ST_SOURCE_FAILED, "%s: %s (at 0x%" PRIx64 ")", d->info.path,
			       d->death, addr);
	return err_set(e, ST_SOURCE_FAILED,
		       "%s: failed permanently at 0x%" PRIx64 " (%s %" PRIu32 ")", d->info.path,
		       addr, d->info.error_numbers, error);
}

/*
 * Reads `pages` pages of one range; on return *settled of them have a status, all of them unless
 * the device died. The size of a read is halved where one failed and the bad page is not known, and
 * doubled again where one succeeded: a lone bad page costs about 3 log2(n) reads, a bad region one
 * read a page.
 */
static enum status read_page_run(const struct source_reader *by, uint64_t addr, uint8_t *buf,
				 size_t pages, struct page_status *status, size_t *settled,
				 struct err *e)
{
	struct drv *d = by->d;
	const size_t most = MAX(d->ops->read_max / PAGE_SIZE, 1);
	size_t step = most;
	size_t at = 0;

	while (at < pages) {
		const size_t n = MIN(step, pages - at);
		uint32_t error = 0;
		bool whole;
		const size_t moved =
			read_source_once(by, addr + at * PAGE_SIZE, buf + at * PAGE_SIZE, n,
					 status + at, &whole, &error);

		at += moved;
		*settled = at;
		if (d->dead)
			return report_source_death(d, addr + at * PAGE_SIZE, error, e);
		if (whole)
			step = MIN(2 * step, most);
		else if (!moved)
			step = n / 2;
	}
	return ST_OK;
}

/* Pages whose states are asked for at once, on the stack. */
#define WITHHOLD_PAGES 256

/*
 * A page that went while it was read may have come as zeros, from whoever gives those instead of an
 * error: zeros are none of a page that is withheld now.
 */
static void drop_withheld_zeros(struct drv *d, uint64_t addr, const uint8_t *buf, size_t pages,
				struct page_status *status)
{
	struct page_status now[WITHHOLD_PAGES];

	for (size_t at = 0, n; at < pages; at += n) {
		bool asked = false;

		n = MIN(pages - at, WITHHOLD_PAGES);
		for (size_t i = 0; i < n; i++) {
			if (status[at + i].state != PAGE_DATA ||
			    !bytes_are_zero(buf + (at + i) * PAGE_SIZE, PAGE_SIZE))
				continue;
			if (!asked)
				d->ops->withhold(d, addr + at * PAGE_SIZE, n, now);
			asked = true;
			if (now[i].state != PAGE_DATA)
				status[at + i] = now[i];
		}
	}
}

/* Pages of one range: those that may be read, in runs. As read_page_run(). */
static enum status read_allowed(const struct source_reader *by, uint64_t addr, uint8_t *buf,
				size_t pages, struct page_status *status, size_t *settled,
				struct err *e)
{
	struct drv *d = by->d;
	enum status st = ST_OK;
	size_t at = 0;

	if (!d->ops->withhold)
		return read_page_run(by, addr, buf, pages, status, settled, e);
	d->ops->withhold(d, addr, pages, status);
	while (at < pages && !st) {
		size_t n = 0, done = 1;

		while (at + n < pages && status[at + n].state == PAGE_DATA)
			n++;
		if (n)
			st = read_page_run(by, addr + at * PAGE_SIZE, buf + at * PAGE_SIZE, n,
					   status + at, &done, e);
		at += done;
	}
	*settled = at;
	drop_withheld_zeros(d, addr, buf, at, status);
	return st;
}

static enum status read_source_pages(const struct source_reader *by, uint64_t addr, void *buf,
				     size_t pages, struct page_status *status, struct err *e)
{
	struct drv *d = by->d;
	enum status st = ST_OK;
	size_t at = 0;

	if (drv_is_abandoned(d)) {
		mark_pages(status, pages, PAGE_SKIPPED, SKIP_SOURCE_FAILED);
		return err_set(e, ST_SOURCE_FAILED, "%s: a read was abandoned", d->info.path);
	}
	if (d->ops->read_pages)
		return d->ops->read_pages(d, by->number, addr, buf, pages, status, e);
	if (d->dead)
		st = err_set(e, ST_SOURCE_FAILED, "%s: had failed permanently", d->info.path);
	while (at < pages && !st) {
		const uint64_t from = addr + at * PAGE_SIZE;
		const size_t run = mapped_run(d, from, pages - at);
		size_t settled = 1;

		if (run)
			st = read_allowed(by, from, (uint8_t *)buf + at * PAGE_SIZE, run,
					  status + at, &settled, e);
		else
			mark_pages(status + at, 1, PAGE_SKIPPED, SKIP_NOT_MAPPED);
		at += settled;
	}
	mark_pages(status + at, pages - at, PAGE_SKIPPED, SKIP_SOURCE_FAILED);
	if (d->noting_parts)
		parts_note(d->parts, d->info.source, addr, pages, status);
	return st;
}

enum status drv_read_pages(struct drv *d, uint64_t addr, void *buf, size_t pages,
			   struct page_status *status, struct err *e)
{
	const struct source_reader by = { d, d->watch, DRV_BESIDE };

	return read_source_pages(&by, addr, buf, pages, status, e);
}

enum status drv_read_pages_beside(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				  size_t pages, struct page_status *status, struct err *e)
{
	const struct source_reader by = { d, &d->beside[reader], reader };

	return read_source_pages(&by, addr, buf, pages, status, e);
}
