/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_pass.h"

#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/pipeline.h"
#include "formats/base/left.h"

const struct fill_pattern image_unreadable_fill = { "UNREADABLE PAGE ", 16 };
const struct fill_pattern image_skipped_fill = { "SKIPPED PAGE    ", 16 };
const struct fill_pattern image_missing_fill = { "MISSING PAGE    ", 16 };

struct image_item {
	struct image_piece piece;
	size_t range; /* the first that does not end before the piece */
	size_t damaged;
	struct err why;
	enum status failed; /* ST_SOURCE_FAILED: it is the last */
	struct err failure;
	struct page_status status[IMAGE_PIECE_PAGES];
	uint8_t *data; /* IMAGE_PIECE_BYTES */
};

struct image_work {
	const struct image_plan *plan;
	const struct image_format *format;
	const struct range_list *ranges;
	struct image_result *result;
	uint64_t end;       /* of what is put */
	uint64_t next;      /* address to go on from */
	size_t range;       /* the first that does not end before that */
	enum status failed; /* ST_SOURCE_FAILED: what was filled last is the last */
	struct err why;
	struct image_item *items[PIPELINE_WORKERS_MAX + 2];
	struct progress progress;
	uint64_t put;  /* address behind what was put */
	uint64_t done; /* bytes of ranges that were put */
};

/*
 * The pieces of an image
 */

static uint64_t round_up_to_image_page(uint64_t address)
{
	return (address + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}

/* Cuts the next piece off; false at the end. */
static bool next_image_piece(struct image_work *w, struct image_item *it)
{
	const struct range_list *l = w->ranges;
	uint64_t end = w->end;

	while (w->range < l->count && l->at[w->range].last < w->next)
		w->range++;
	if (!w->format->wants_holes) {
		if (w->range == l->count)
			return false;
		w->next = MAX(w->next, l->at[w->range].first);
		end = round_up_to_image_page(l->at[w->range].last + 1);
	}
	if (w->next >= end)
		return false;
	end = MIN(end, (w->next / IMAGE_PIECE_BYTES + 1) * IMAGE_PIECE_BYTES);
	it->piece.address = w->next;
	it->piece.pages = (size_t)((end - w->next) >> PAGE_SHIFT);
	it->range = w->range;
	it->damaged = 0;
	it->failed = ST_OK;
	w->next = end;
	return true;
}

static void set_states(struct image_item *it, size_t page, size_t pages, struct page_status status)
{
	for (size_t i = page; i < page + pages; i++)
		it->status[i] = status;
}

static void make_image_hole(struct image_item *it, size_t page, size_t pages)
{
	memset(it->data + page * PAGE_SIZE, 0, pages * PAGE_SIZE);
	set_states(it, page, pages, (struct page_status){ PAGE_HOLE, 0 });
}

static enum status read_item_pages(struct image_work *w, unsigned worker, struct image_item *it,
				   size_t page, size_t pages, struct err *e)
{
	struct image_pages *from = w->plan->pages;

	return from->read(from, worker, it->piece.address + page * PAGE_SIZE,
			  it->data + page * PAGE_SIZE, pages, it->status + page, e);
}

/* Something in the run is damaged: what does not hang together with it is read all the same. */
static enum status read_around(struct image_work *w, unsigned worker, struct image_item *it,
			       size_t page, size_t pages, struct err *e)
{
	struct image_pages *from = w->plan->pages;

	for (size_t n; pages; page += n, pages -= n) {
		enum status st;

		n = from->together(from, it->piece.address + page * PAGE_SIZE, pages);
		st = read_item_pages(w, worker, it, page, n, e);
		if (st && st != ST_CORRUPT)
			return st;
		if (!st)
			continue;
		it->damaged += n;
		set_states(it, page, n,
			   (struct page_status){ PAGE_UNREADABLE, IMAGE_DAMAGED_CHUNK });
	}
	return ST_OK;
}

/* Damage costs its own pages and no others. */
static enum status read_item_run(struct image_work *w, unsigned worker, struct image_item *it,
				 size_t page, size_t pages, struct err *e)
{
	struct err why = ERR_INIT;
	const enum status st = read_item_pages(w, worker, it, page, pages, &why);

	if (st == ST_CORRUPT) {
		if (!it->damaged)
			it->why = why;
		return read_around(w, worker, it, page, pages, e);
	}
	if (st && e)
		*e = why;
	return st;
}

/*
 * Every range in the piece is read; what lies between them is a hole. A source that failed is asked
 * on: it answers at once, with the states of the rest.
 */
static enum status read_image_piece(struct image_work *w, unsigned worker, struct image_item *it,
				    struct err *e)
{
	const uint64_t first = it->piece.address;
	enum status ret = ST_OK;
	size_t page = 0;

	for (size_t i = it->range; i < w->ranges->count && page < it->piece.pages; i++) {
		const struct range r = w->ranges->at[i];
		const uint64_t from = (MAX(r.first, first) - first) >> PAGE_SHIFT;
		const uint64_t to = (round_up_to_image_page(r.last + 1) - first) >> PAGE_SHIFT;
		enum status st;

		if (from >= it->piece.pages)
			break;
		make_image_hole(it, page, (size_t)from - page);
		page = (size_t)MIN(to, it->piece.pages);
		st = read_item_run(w, worker, it, (size_t)from, page - (size_t)from, e);
		if (st && st != ST_SOURCE_FAILED)
			return st;
		ret = st ? st : ret;
	}
	make_image_hole(it, page, it->piece.pages - page);
	return ret;
}

/*
 * The pipeline
 */

static enum status image_item_fill(void *arg, void *item, struct err *e)
{
	struct image_work *w = arg;
	struct image_item *it = item;
	enum status st;

	if (w->failed) {
		*e = w->why;
		return w->failed;
	}
	if (interrupted())
		return interrupt_status(e);
	if (!next_image_piece(w, it))
		return ST_END;
	st = w->plan->pages->parallel ? ST_OK : read_image_piece(w, 0, it, e);
	if (st != ST_SOURCE_FAILED)
		return st;
	w->failed = st;
	w->why = *e;
	return ST_OK;
}

void image_fill_page(uint8_t *page, const struct fill_pattern *f)
{
	for (size_t i = 0; i < PAGE_SIZE; i++)
		page[i] = f->bytes[i % f->length];
}

bool image_fill_gap(uint8_t *page, struct page_status s, const struct fill_pattern *unreadable,
		    const struct fill_pattern *skipped)
{
	if (!page_is_gap(s) || page_reads_as_zeros(s))
		return false;
	image_fill_page(page, s.state == PAGE_UNREADABLE ? unreadable : skipped);
	return true;
}

/* What every page looks like in the image, and which of those that were read are zeros. */
static void classify_pages(const struct image_plan *plan, struct image_item *it)
{
	for (size_t i = 0; i < it->piece.pages; i++) {
		uint8_t *page = it->data + i * PAGE_SIZE;
		struct page_status *s = &it->status[i];

		if (!image_fill_gap(page, *s, &plan->unreadable, &plan->skipped) &&
		    s->state == PAGE_DATA && bytes_are_zero(page, PAGE_SIZE))
			s->state = PAGE_ZERO;
	}
}

static enum status read_item_in_worker(void *arg, unsigned worker, void *item, struct err *e)
{
	struct image_work *w = arg;
	struct image_item *it = item;
	enum status st = w->plan->pages->parallel ? read_image_piece(w, worker, it, e) : ST_OK;

	/* Its states are true, and it goes out as the last. */
	if (st == ST_SOURCE_FAILED) {
		it->failed = st;
		it->failure = *e;
		st = ST_OK;
	}
	if (st)
		return st;
	classify_pages(w->plan, it);
	return w->format->encode ? w->format->encode(w->plan->writer, worker, &it->piece, e)
				 : ST_OK;
}

/* A hole between the ranges is no page of the stream; one within them is. */
static void count_item_pages(struct image_work *w, const struct image_item *it)
{
	const uint64_t first = it->piece.address;
	const uint64_t last = first + it->piece.pages * PAGE_SIZE - 1;

	for (size_t i = it->range; i < w->ranges->count && w->ranges->at[i].first <= last; i++) {
		const struct range r = w->ranges->at[i];

		for (uint64_t at = MAX(r.first, first); at <= MIN(r.last, last);
		     at += PAGE_SIZE, w->done += PAGE_SIZE) {
			const struct page_status s = it->status[(at - first) >> PAGE_SHIFT];

			w->result->zeros_skipped += page_is_gap(s) && page_reads_as_zeros(s);
			tally_add(&w->result->tally, at, 1, s);
		}
	}
}

static enum status write_item(void *arg, void *item, struct err *e)
{
	struct image_work *w = arg;
	const struct image_item *it = item;
	enum status st = w->format->put(w->plan->writer, &it->piece, e);

	if (st)
		return st;
	if (it->damaged && !w->result->damaged)
		w->result->why = it->why;
	w->result->damaged += it->damaged;
	w->put = it->piece.address + it->piece.pages * PAGE_SIZE;
	count_item_pages(w, it);
	progress_update(&w->progress, w->done, w->result->tally.pages[PAGE_UNREADABLE]);
	if (it->failed)
		*e = it->failure;
	return it->failed;
}

static const struct pipeline_ops image_ops = { .fill = image_item_fill,
					       .work = read_item_in_worker,
					       .drain = write_item };

static void image_item_destroy(struct image_item *it)
{
	if (!it)
		return;
	free(it->piece.code);
	free(it->data);
	free(it);
}

static enum status image_item_create(const struct image_format *f, struct image_item **ret,
				     struct err *e)
{
	struct image_item *it = calloc(1, sizeof(*it));

	if (!it)
		return err_nomem(e);
	it->data = malloc(IMAGE_PIECE_BYTES);
	it->piece.code = f->code_size ? malloc(f->code_size) : NULL;
	it->piece.data = it->data;
	it->piece.status = it->status;
	if (!it->data || (f->code_size && !it->piece.code)) {
		image_item_destroy(it);
		return err_nomem(e);
	}
	*ret = it;
	return ST_OK;
}

/* The image ends here: what it does not hold is skipped, and so the list of gaps has it. */
static void skip_rest(struct image_work *w, enum skip_reason reason)
{
	const struct page_status skipped = { PAGE_SKIPPED, reason };

	for (size_t i = 0; i < w->ranges->count; i++) {
		const struct range r = w->ranges->at[i];
		const uint64_t from = MAX(r.first, w->put);

		if (r.last >= from)
			tally_add(&w->result->tally, from,
				  (round_up_to_image_page(r.last + 1) - from) >> PAGE_SHIFT,
				  skipped);
	}
}

static enum status image_pass_run(struct image_work *w, unsigned threads, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < pipeline_items(threads) && !st; i++)
		st = image_item_create(w->format, &w->items[i], e);
	if (st)
		return st;
	progress_init(&w->progress, w->plan->progress, w->plan->phase, range_list_bytes(w->ranges));
	st = pipeline_run_with(&image_ops, w->plan->pages->filler, w, (void *const *)w->items,
			       pipeline_items(threads), threads, e);
	progress_finish(&w->progress);
	return st;
}

static enum status finish_image_pass(struct image_work *w, enum status st, struct err *e)
{
	struct err late = ERR_INIT;
	enum status ending;

	if (st == ST_INTERRUPTED)
		skip_rest(w, SKIP_INTERRUPTED);
	else if (st == ST_SOURCE_FAILED)
		skip_rest(w, SKIP_SOURCE_FAILED);
	else if (st)
		return st;
	ending = w->format->finish(w->plan->writer, !st, &late);
	if (ending && e)
		*e = late;
	return ending ? ending : st;
}

enum status image_pass(const struct image_plan *plan, struct image_result *ret, struct err *e)
{
	const struct image_spec *spec = plan->writer->spec;
	struct image_work w = {
		.plan = plan,
		.format = plan->writer->format,
		.ranges = spec->ranges,
		.result = ret,
		.end = round_up_to_image_page(image_end(spec)),
	};
	const enum status st = image_pass_run(&w, spec->threads, e);

	/* One of them is still being read into. */
	if (plan->pages->gave_up && plan->pages->gave_up(plan->pages)) {
		for (size_t i = 0; i < ARRAY_SIZE(w.items); i++)
			left_keep(w.items[i]);
		return finish_image_pass(&w, st, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(w.items); i++)
		image_item_destroy(w.items[i]);
	return finish_image_pass(&w, st, e);
}

void image_result_deinit(struct image_result *r)
{
	tally_deinit(&r->tally);
}

/*
 * Where pages come from
 */

static enum status read_container_pages(struct image_pages *base, unsigned worker, uint64_t address,
					uint8_t *data, size_t pages, struct page_status *status,
					struct err *e)
{
	struct container_pages *p = (struct container_pages *)base;

	return gather_read(p->gather, worker, address, data, pages, status, &p->times[worker], e);
}

/* What one chunk holds; and what none does. */
static size_t together_in_container(struct image_pages *base, uint64_t address, size_t pages)
{
	const struct container_pages *p = (const struct container_pages *)base;
	struct rsz_segment seg;
	uint64_t bytes;

	if (!rsz_reader_next(p->reader, p->stream, address, &seg))
		return pages;
	if (seg.address > address)
		bytes = seg.address - address;
	else
		bytes = seg.address + seg.length - address;
	return (size_t)MIN(MAX(bytes >> PAGE_SHIFT, 1), pages);
}

enum status container_pages_init(struct container_pages *p, const struct rsz_reader *r,
				 uint32_t stream, unsigned threads, struct err *e)
{
	*p = (struct container_pages){
		.pages = { .read = read_container_pages,
			   .together = together_in_container,
			   .parallel = true },
		.reader = r,
		.stream = stream,
	};
	return gather_create(r, stream, threads, GATHER_BYTES, &p->gather, e);
}

void container_pages_deinit(struct container_pages *p)
{
	gather_destroy(p->gather);
}
