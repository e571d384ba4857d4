/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory pass and the sealer, from a source that fails by rule into an output that is full at
 * any size. The output is a sink of this file's, and so is the signal, which memory.c asks for.
 */
#include "agent/collect/order/memory.h"
#include "agent/collect/acquire/changes.h"
#include "agent/collect/acquire/missing.h"
#include "agent/collect/capture/reading.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/output/output_sink.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "formats/rsz/rsz_reader.h"
#include "tests/gen/images.h"
#include "tests/unit/fake_drv.h"
#include "tests/unit/rsz_build.h"
#include "tests/unit/scratch.h"

/* Six pages, of which the fourth begins the second chunk. */
#define FIRST  (STREAM_CHUNK - 3 * PAGE_SIZE)
#define LAST   (STREAM_CHUNK + 3 * PAGE_SIZE - 1)
#define PAGES  6
#define PAGE_0 (FIRST / PAGE_SIZE) /* its number, as the fake counts */

/* A disk that takes `limit` bytes, of the write that does not fit as many as there is room for. */
struct disk {
	struct output output;
	struct mem_blob blob;
	uint8_t *at;
	size_t len, room, limit;
	bool kept; /* what is cut gives back room that was kept for the end */
};

static struct blob *disk_blob(struct output *output, uint64_t size)
{
	struct disk *o = (struct disk *)output;

	mem_blob_init(&o->blob, o->at, size);
	return &o->blob.blob;
}

static enum status disk_write(struct output *output, const void *p, size_t len, struct err *e)
{
	struct disk *o = (struct disk *)output;
	const size_t n = MIN(len, o->limit - o->len);

	if (n > o->room - o->len) {
		o->room = 2 * o->room + n;
		o->at = realloc(o->at, o->room);
		assert_non_null(o->at);
	}
	if (n)
		memcpy(o->at + o->len, p, n);
	o->len += n;
	return n < len ? err_set(e, ST_OUTPUT, "disk is full") : ST_OK;
}

static enum status disk_cut(struct output *output, uint64_t len, struct err *e)
{
	struct disk *o = (struct disk *)output;

	(void)e;
	assert_true(len <= o->len);
	o->len = (size_t)len;
	if (o->kept)
		o->limit = SIZE_MAX;
	return ST_OK;
}

static const struct output_ops disk_ops = {
	.name = "disk", .write = disk_write, .cut = disk_cut, .blob = disk_blob
};

static const struct drv_ops fake_ops = {
	.name = "fake", .read_max = 16 * PAGE_SIZE, .read = fake_read, .close = fake_close
};

/* One acquisition and what it left. */
struct acquired {
	struct disk disk;
	struct sealer *sealer;
	uint32_t stream; /* UINT32_MAX: not declared */
	struct memory_result result;
	struct err err;
	char root[SHA256_HEX_SIZE];
};

static void acquired_init(struct acquired *a, size_t limit)
{
	*a = (struct acquired){
		.disk = { .limit = limit },
		.stream = UINT32_MAX,
	};
	output_init(&a->disk.output, &disk_ops, NULL);
	interrupt_forget();
}

static void acquired_deinit(struct acquired *a)
{
	memory_result_deinit(&a->result);
	sealer_destroy(a->sealer);
	free(a->disk.at);
}

/* Everything but the closing. */
static enum status acquire_watched(struct acquired *a, struct fake *f, unsigned threads,
				   const struct reading *reading)
{
	struct memory_plan plan = {
		.source = &f->drv,
		.stream = { .level = 1, .threads = threads, .reading = reading },
	};
	enum status st = sealer_create(&a->disk.output, NULL, &a->sealer, &a->err);

	if (!st)
		st = sealer_manifest(a->sealer, json_pack("{s:s}", "event", "begin"), &a->err);
	if (!st)
		st = sealer_stream(a->sealer, RSZ_KIND_MEMORY, "memory", NULL, &a->stream, &a->err);
	plan.stream.stream = a->stream;
	plan.stream.sealer = a->sealer;
	return st ? st : memory_acquire(&plan, &a->result, &a->err);
}

static enum status acquire(struct acquired *a, struct fake *f, unsigned threads)
{
	return acquire_watched(a, f, threads, NULL);
}

/* Acquires, closes, and checks that the container is whole. */
static void acquire_sealed(struct acquired *a, struct fake *f, unsigned threads)
{
	struct rsz_scan_result end;

	acquired_init(a, SIZE_MAX);
	CHECK_OK(acquire(a, f, threads), &a->err);
	CHECK_OK(sealer_close(a->sealer, a->root, &a->err), &a->err);
	verify_bytes(a->disk.at, a->disk.len, &end);
	assert_int_equal(end.end, RSZ_END_SEALED);
}

/* The pages of the container's memory from `first` on. */
struct pages {
	uint8_t *data;
	struct page_status *status;
};

static void read_back(const struct acquired *a, uint64_t first, size_t pages, struct pages *ret)
{
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct mem_blob blob;
	struct err e = ERR_INIT;

	ret->data = malloc(pages * PAGE_SIZE);
	ret->status = calloc(pages, sizeof(*ret->status));
	mem_blob_init(&blob, a->disk.at, a->disk.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_OK(rsz_cursor_read(c, 2, first, ret->data, pages, ret->status, NULL, &e), &e);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
}

static void pages_free(struct pages *p)
{
	free(p->data);
	free(p->status);
}

static void check_page(const struct pages *p, size_t i, uint64_t address, uint32_t state,
		       uint32_t detail)
{
	uint8_t want[PAGE_SIZE] = { 0 };

	if (state == PAGE_DATA)
		pattern(want, address, PAGE_SIZE);
	assert_int_equal(p->status[i].state, state);
	assert_int_equal(p->status[i].detail, detail);
	assert_memory_equal(p->data + i * PAGE_SIZE, want, PAGE_SIZE);
}

TEST(every_failing_page_is_recorded_and_every_other_page_kept)
{
	for (unsigned threads = 1; threads <= 2; threads++)
		for (size_t k = 0; k < 2 * PAGES; k++) {
			struct acquired a;
			struct pages p;
			struct fake f;

			fake_init(&f, &fake_ops, FIRST, LAST);
			f.fails = fake_fails_at_k;
			f.k = PAGE_0 + k / 2;
			f.exact = k % 2;
			acquire_sealed(&a, &f, threads);
			read_back(&a, FIRST, PAGES, &p);
			for (size_t i = 0; i < PAGES; i++)
				check_page(&p, i, FIRST + i * PAGE_SIZE,
					   i == k / 2 ? PAGE_UNREADABLE : PAGE_DATA,
					   i == k / 2 ? FAKE_ERROR : 0);
			assert_int_equal(a.result.stopped, ST_OK);
			assert_int_equal(a.result.stream.tally.pages[PAGE_UNREADABLE], 1);
			assert_int_equal(a.result.stream.bytes, (PAGES - 1) * PAGE_SIZE);
			assert_true(a.result.stream.start <= a.result.stream.end);
			pages_free(&p);
			acquired_deinit(&a);
			fake_deinit(&f);
		}
}

TEST(zero_pages_are_no_gaps)
{
	struct acquired a;
	struct pages p;
	struct fake f;

	fake_init(&f, &fake_ops, FIRST, LAST);
	f.fails = fake_fails_at_k;
	f.zero_fills = true;
	f.k = PAGE_0 + 2;
	acquire_sealed(&a, &f, 1);
	read_back(&a, FIRST, PAGES, &p);
	check_page(&p, 2, FIRST + 2 * PAGE_SIZE, PAGE_ZERO, 0);
	assert_false(tally_has_gaps(&a.result.stream.tally));
	assert_int_equal(a.result.stream.bytes, PAGES * PAGE_SIZE);
	pages_free(&p);
	acquired_deinit(&a);
	fake_deinit(&f);
}

TEST(source_that_dies_at_any_page_leaves_a_sealed_container)
{
	for (size_t k = 0; k < PAGES; k++) {
		struct acquired a;
		struct pages p;
		struct fake f;

		fake_init(&f, &fake_ops, FIRST, LAST);
		f.dies_at = PAGE_0 + k;
		f.exact = true;
		acquire_sealed(&a, &f, 2);
		read_back(&a, FIRST, PAGES, &p);
		for (size_t i = 0; i < PAGES; i++)
			check_page(&p, i, FIRST + i * PAGE_SIZE, i < k ? PAGE_DATA : PAGE_SKIPPED,
				   i < k ? 0 : SKIP_SOURCE_FAILED);
		assert_int_equal(a.result.stopped, ST_SOURCE_FAILED);
		CHECK_HAS(a.result.why.message, "failed permanently");
		pages_free(&p);
		acquired_deinit(&a);
		fake_deinit(&f);
	}
}

/* Several ranges' worth of states, in chunks that have far more pages than one with content. */
TEST(dead_source_skips_more_pages_than_a_chunk_of_data_has)
{
	const uint64_t last = ((uint64_t)100 << 20) - 1;
	struct acquired a;
	struct fake f;

	fake_init(&f, &fake_ops, 0, last);
	f.dies_at = 5;
	f.exact = true;
	acquire_sealed(&a, &f, 2);
	assert_int_equal(a.result.stream.tally.pages[PAGE_DATA], 5);
	assert_int_equal(a.result.stream.tally.pages[PAGE_SKIPPED], (last + 1) / PAGE_SIZE - 5);
	assert_int_equal(a.result.stream.tally.n_gaps, 1);
	acquired_deinit(&a);
	fake_deinit(&f);
}

/* Asks for the stop from inside the read of page k. */
static bool stop_at_k(const struct fake *f, uint64_t page)
{
	if (page == f->k)
		interrupt_ask("the test");
	return false;
}

TEST(interruption_skips_what_is_left)
{
	struct acquired a;
	struct pages p;
	struct fake f;

	fake_init(&f, &fake_ops, FIRST, LAST);
	f.fails = stop_at_k;
	f.k = PAGE_0 + 1; /* the chunk that is being read is finished */
	acquire_sealed(&a, &f, 2);
	read_back(&a, FIRST, PAGES, &p);
	for (size_t i = 0; i < PAGES; i++)
		check_page(&p, i, FIRST + i * PAGE_SIZE, i < 3 ? PAGE_DATA : PAGE_SKIPPED,
			   i < 3 ? 0 : SKIP_INTERRUPTED);
	assert_int_equal(a.result.stopped, ST_INTERRUPTED);
	pages_free(&p);
	acquired_deinit(&a);
	fake_deinit(&f);
}

/* What fitted is whole; with the room that cutting gives, and some more, it can be sealed. */
static void check_full_disk(struct acquired *a, size_t limit)
{
	struct rsz_scan_result before, after;
	const size_t full = a->disk.len;

	assert_int_equal(full, limit);
	verify_bytes(a->disk.at, full, &before);
	assert_true(before.end == RSZ_END_CUT || before.end == RSZ_END_UNSEALED);
	CHECK_OK(sealer_recover(a->sealer, &a->err), &a->err);
	assert_int_equal(a->disk.len, before.whole);
	a->disk.limit = SIZE_MAX;
	CHECK_OK(sealer_close(a->sealer, a->root, &a->err), &a->err);
	verify_bytes(a->disk.at, a->disk.len, &after);
	assert_int_equal(after.end, RSZ_END_SEALED);
	assert_true(after.records > before.records);
}

TEST(disk_that_is_full_at_any_size_leaves_whole_records_that_can_be_sealed)
{
	struct fake f;

	fake_init(&f, &fake_ops, FIRST, LAST);
	f.fails = fake_fails_from_k; /* one page of data is enough */
	f.zero_fills = true;
	f.k = PAGE_0 + 1;
	f.k2 = PAGE_0 + PAGES;
	for (size_t limit = 0;; limit += test_step()) {
		struct acquired a;
		enum status st;

		acquired_init(&a, limit);
		st = acquire(&a, &f, 1);
		if (st)
			CHECK_STATUS(st, ST_OUTPUT, &a.err);
		if (st && a.sealer)
			check_full_disk(&a, limit);
		acquired_deinit(&a);
		if (!st)
			break;
	}
	fake_deinit(&f);
}

/* With room for the end, every page that did not fit is named in it. */
static void name_missing(struct acquired *a, const struct range_list *ranges, bool full,
			 uint32_t reason)
{
	const struct missing_plan plan = {
		.reason = reason,
		.ranges = ranges,
		.stream = { .sealer = a->sealer, .stream = a->stream, .level = 1, .threads = 1 },
		.result = &a->result.stream,
	};
	uint64_t pages = 0;

	a->disk.kept = true;
	CHECK_OK(missing_settle(&plan, full, &pages, &a->err), &a->err);
	assert_int_equal(a->result.stream.tally.pages[PAGE_SKIPPED], pages);
	CHECK_OK(sealer_close(a->sealer, a->root, &a->err), &a->err);
}

TEST(page_that_a_full_disk_has_no_room_for_is_named_as_skipped)
{
	size_t had_some = 0;
	struct fake f;

	fake_init(&f, &fake_ops, FIRST, LAST);
	for (size_t limit = 2000;; limit += 97 * test_step()) {
		struct acquired a;
		struct pages p;
		size_t data = 0;
		enum status st;

		acquired_init(&a, limit);
		st = acquire(&a, &f, 1);
		if (st && a.sealer) {
			CHECK_STATUS(st, ST_OUTPUT, &a.err);
			name_missing(&a, &f.drv.info.maps[0].ranges, true, SKIP_INTERRUPTED);
			read_back(&a, FIRST, PAGES, &p);
			while (data < PAGES && p.status[data].state == PAGE_DATA)
				data++;
			for (size_t i = 0; i < PAGES; i++)
				check_page(&p, i, FIRST + i * PAGE_SIZE,
					   i < data ? PAGE_DATA : PAGE_SKIPPED,
					   i < data ? 0 : SKIP_INTERRUPTED);
			had_some += data && data < PAGES;
			pages_free(&p);
		}
		acquired_deinit(&a);
		if (!st)
			break;
	}
	assert_true(had_some > 10);
	fake_deinit(&f);
}

#define ADDED 3 /* pages behind the six */

static enum status tell_more(struct drv *d, struct drv_maps *ret, struct err *e)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	enum status st = range_list_add(&l, FIRST, LAST + ADDED * PAGE_SIZE, e);

	return st ? st : drv__maps_add(ret, d->info.maps[0].origin, &l, e);
}

static const struct drv_ops growing_ops = { .name = "fake",
					    .read_max = 16 * PAGE_SIZE,
					    .read = fake_read,
					    .maps_again = tell_more,
					    .close = fake_close };

/* An image that has all of it is what the source is when it is opened again. */
static void make_grown(struct scratch *s, char *spec, size_t room)
{
	const size_t len = LAST + 1 + ADDED * PAGE_SIZE;
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t at = 0; at < len; at += PAGE_SIZE)
		pattern(bytes + at, at, PAGE_SIZE);
	scratch_init(s);
	scratch_write(s, "grown", bytes, len);
	snprintf(spec, room, "file:%s", scratch_path(s, "grown"));
	free(bytes);
}

/* The memory fitted, and what was added to it meanwhile does not. */
static void check_added(struct fake *f, const char *spec, size_t limit)
{
	_cleanup_ranges_ struct range_list all = { 0 };
	struct memory_changes c = { 0 };
	struct acquired a;
	struct pages p;
	struct memory_plan plan = { .source = &f->drv };

	acquired_init(&a, SIZE_MAX);
	CHECK_OK(acquire(&a, f, 1), &a.err);
	plan.stream = (struct stream_plan){
		.sealer = a.sealer, .stream = a.stream, .level = 1, .threads = 1
	};
	a.disk.limit = a.disk.len + limit;
	CHECK_STATUS(changes_acquire(&c, &f->drv, spec, &plan, &a.result, &a.err), ST_OUTPUT,
		     &a.err);
	assert_int_equal(range_list_bytes(&c.missing), ADDED * PAGE_SIZE);
	CHECK_OK(changes_ranges(&c, &f->drv, &all, &a.err), &a.err);
	name_missing(&a, &all, true, SKIP_INTERRUPTED);
	read_back(&a, FIRST, PAGES + ADDED, &p);
	for (size_t i = 0; i < PAGES + ADDED; i++)
		check_page(&p, i, FIRST + i * PAGE_SIZE, i < PAGES ? PAGE_DATA : PAGE_SKIPPED,
			   i < PAGES ? 0 : SKIP_INTERRUPTED);
	pages_free(&p);
	memory_changes_deinit(&c);
	acquired_deinit(&a);
}

TEST(memory_that_was_added_and_a_full_disk_has_no_room_for_is_named_too)
{
	struct scratch s;
	char spec[600];
	struct fake f;

	make_grown(&s, spec, sizeof(spec));
	fake_init(&f, &growing_ops, FIRST, LAST);
	f.drv.info.grows = true;
	for (size_t limit = 0; limit < 300; limit += 30)
		check_added(&f, spec, limit);
	fake_deinit(&f);
	scratch_deinit(&s);
}

/* The records that close a container do not fit either: nothing that was whole is harmed. */
TEST(disk_that_stays_full_keeps_whole_records)
{
	struct rsz_scan_result before, after;
	struct acquired a;
	struct fake f;

	fake_init(&f, &fake_ops, FIRST, LAST);
	acquired_init(&a, 8000);
	CHECK_STATUS(acquire(&a, &f, 2), ST_OUTPUT, &a.err);
	verify_bytes(a.disk.at, a.disk.len, &before);
	CHECK_OK(sealer_recover(a.sealer, &a.err), &a.err);
	a.disk.limit = a.disk.len + 100;
	CHECK_STATUS(sealer_close(a.sealer, a.root, &a.err), ST_OUTPUT, &a.err);
	verify_bytes(a.disk.at, a.disk.len, &after);
	assert_int_equal(after.end, RSZ_END_CUT);
	assert_int_equal(after.whole, before.whole);
	acquired_deinit(&a);
	fake_deinit(&f);
}

/*
 * Reads that do not return
 */

/*
 * A source that hangs in the read of one page: for ever, or until the watchdog took so many steps.
 */
struct hanging {
	struct fake fake; /* first, for drv_ops */
	uint64_t page;
	unsigned lasts; /* steps; 0: for ever */
	atomic_bool hangs;
	atomic_uint steps; /* while it hung */
	/* If every read takes `lasts` steps: when this one ends, and how many are left. */
	atomic_uint until, left;
};

static struct drv_result hanging_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct hanging *h = (struct hanging *)d;
	const uint64_t first = addr / PAGE_SIZE;

	if (h->page >= first && h->page < first + len / PAGE_SIZE) {
		atomic_store(&h->hangs, true);
		while (!h->lasts || atomic_load(&h->steps) < h->lasts)
			usleep(1000);
		atomic_store(&h->hangs, false);
		h->page = UINT64_MAX;
	}
	return fake_read(d, addr, buf, len);
}

static const struct drv_ops hanging_ops = {
	.name = "hanging", .read_max = PAGE_SIZE, .read = hanging_read, .close = fake_close
};

/* A second of the watchdog passes only while the source hangs, however slow this machine is. */
static void step(void *with)
{
	struct hanging *h = with;

	if (!atomic_load(&h->hangs)) {
		usleep(1000);
		return;
	}
	atomic_fetch_add(&h->steps, 1);
	while (h->lasts && atomic_load(&h->hangs) && atomic_load(&h->steps) >= h->lasts)
		usleep(1000);
}

static void step_and_interrupt(void *with)
{
	if (((struct hanging *)with)->steps > 0)
		interrupt_ask("the test");
	step(with);
}

static void hanging_init(struct hanging *h, uint64_t page, unsigned lasts, struct reading *ret)
{
	memset(h, 0, sizeof(*h));
	fake_init(&h->fake, &hanging_ops, FIRST, LAST);
	h->page = page;
	h->lasts = lasts;
	*ret = (struct reading){ .source = &h->fake.drv, .limit_s = 300, .step = step, .with = h };
}

TEST(read_that_never_returns_is_given_up_and_the_rest_is_sealed)
{
	/* Threads that are left behind use them to the end of the program. */
	static struct hanging hung[PAGES];

	for (size_t bad = 0; bad < PAGES; bad++) {
		struct hanging *h = &hung[bad];
		struct reading reading;
		struct acquired a;
		struct pages p;
		char at[32];

		hanging_init(h, PAGE_0 + bad, 0, &reading);
		acquired_init(&a, SIZE_MAX);
		CHECK_OK(acquire_watched(&a, &h->fake, 2, &reading), &a.err);
		assert_int_equal(a.result.stopped, ST_SOURCE_FAILED);
		snprintf(at, sizeof(at), "0x%zx", FIRST + bad * PAGE_SIZE);
		CHECK_HAS(a.result.why.message, "did not return");
		CHECK_HAS(a.result.why.message, at);
		assert_true(drv_is_abandoned(&h->fake.drv));
		name_missing(&a, &h->fake.drv.info.maps[0].ranges, false, SKIP_SOURCE_FAILED);
		read_back(&a, FIRST, PAGES, &p);
		/* A chunk that was not full when it hung is lost with it: three pages here. */
		for (size_t i = 0; i < PAGES; i++) {
			const bool had = i / 3 < bad / 3;

			check_page(&p, i, FIRST + i * PAGE_SIZE, had ? PAGE_DATA : PAGE_SKIPPED,
				   had ? 0 : SKIP_SOURCE_FAILED);
		}
		/* Nobody touches it any more. */
		CHECK_STATUS(drv_read_pages(&h->fake.drv, FIRST, p.data, 1, p.status, &a.err),
			     ST_SOURCE_FAILED, &a.err);
		drv_close(&h->fake.drv);
		pages_free(&p);
		acquired_deinit(&a);
	}
}

static struct drv_result slow_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct hanging *h = (struct hanging *)d;

	atomic_store(&h->until, atomic_load(&h->steps) + h->lasts);
	atomic_store(&h->hangs, true);
	while (atomic_load(&h->steps) < atomic_load(&h->until))
		usleep(1000);
	atomic_store(&h->hangs, false);
	atomic_fetch_sub(&h->left, 1);
	return fake_read(d, addr, buf, len);
}

static const struct drv_ops slow_ops = {
	.name = "slow", .read_max = PAGE_SIZE, .read = slow_read, .close = fake_close
};

/* A second passes only while a read lasts that is still to take one. */
static void slow_step(void *with)
{
	struct hanging *h = with;

	while (atomic_load(&h->left)) {
		if (atomic_load(&h->hangs) && atomic_load(&h->steps) < atomic_load(&h->until)) {
			atomic_fetch_add(&h->steps, 1);
			return;
		}
		usleep(100);
	}
}

/* Each read comes back in time; all of them take longer than one may. */
TEST(source_that_is_slow_all_the_time_is_not_given_up)
{
	struct hanging h;
	struct reading reading;
	struct acquired a;

	hanging_init(&h, UINT64_MAX, 100, &reading);
	h.fake.drv.ops = &slow_ops;
	h.left = PAGES;
	reading.step = slow_step;
	acquired_init(&a, SIZE_MAX);
	CHECK_OK(acquire_watched(&a, &h.fake, 1, &reading), &a.err);
	assert_int_equal(a.result.stopped, ST_OK);
	assert_int_equal(h.steps, 100 * PAGES);
	acquired_deinit(&a);
	fake_deinit(&h.fake);
}

TEST(slow_source_is_not_given_up)
{
	struct hanging h;
	struct reading reading;
	struct acquired a;
	struct pages p;

	/* Once it is seen to be under way, 300 seconds more are too many. */
	hanging_init(&h, PAGE_0 + 1, 299, &reading);
	acquired_init(&a, SIZE_MAX);
	CHECK_OK(acquire_watched(&a, &h.fake, 1, &reading), &a.err);
	assert_int_equal(a.result.stopped, ST_OK);
	CHECK_OK(sealer_close(a.sealer, a.root, &a.err), &a.err);
	read_back(&a, FIRST, PAGES, &p);
	for (size_t i = 0; i < PAGES; i++)
		check_page(&p, i, FIRST + i * PAGE_SIZE, PAGE_DATA, 0);
	pages_free(&p);
	acquired_deinit(&a);
	fake_deinit(&h.fake);
}

TEST(who_interrupts_a_read_that_hangs_need_not_wait_for_long)
{
	static struct hanging h;
	struct reading reading;
	struct acquired a;

	hanging_init(&h, PAGE_0 + 1, 0, &reading);
	acquired_init(&a, SIZE_MAX);
	interrupt_forget();
	h.fake.fails = NULL;
	reading.limit_s = 100000;
	reading.step = step_and_interrupt;
	CHECK_OK(acquire_watched(&a, &h.fake, 1, &reading), &a.err);
	assert_int_equal(a.result.stopped, ST_SOURCE_FAILED);
	assert_true(h.steps < 100);
	acquired_deinit(&a);
}

/* Nor for longer than without having interrupted it. */
TEST(who_interrupts_keeps_a_limit_that_is_short)
{
	static struct hanging h;
	struct reading reading;
	struct acquired a;

	hanging_init(&h, PAGE_0 + 1, 0, &reading);
	acquired_init(&a, SIZE_MAX);
	reading.limit_s = READING_INTERRUPT_S / 2;
	reading.step = step_and_interrupt;
	CHECK_OK(acquire_watched(&a, &h.fake, 1, &reading), &a.err);
	assert_int_equal(a.result.stopped, ST_SOURCE_FAILED);
	assert_true(h.steps < READING_INTERRUPT_S);
	interrupt_forget();
	acquired_deinit(&a);
}

/*
 * Sources that several threads read at once
 */

#define BESIDE_CHUNKS  6
#define BESIDE_PAGES   (BESIDE_CHUNKS * (STREAM_CHUNK / PAGE_SIZE))
#define BESIDE_WORKERS 3

/* Some pages hang, one at which it dies, and how many are read by at a time. */
struct beside {
	struct drv drv;      /* first */
	uint64_t hangs_from; /* these pages, for ever; UINT64_MAX: none */
	uint64_t hangs_to;
	uint64_t dies_at;
	bool wait; /* until two read at once, for 100 s at most */
	atomic_uint inside, most;
};

static void note_readers(struct beside *b)
{
	const unsigned now = atomic_fetch_add(&b->inside, 1) + 1;
	unsigned most = atomic_load(&b->most);

	while (now > most && !atomic_compare_exchange_weak(&b->most, &most, now))
		;
	for (unsigned ms = 0; b->wait && atomic_load(&b->most) < 2 && ms < 100000; ms++)
		usleep(1000);
}

static bool hangs(const struct beside *b, uint64_t addr, size_t len)
{
	const uint64_t first = addr / PAGE_SIZE, last = first + len / PAGE_SIZE - 1;

	return first <= b->hangs_to && last >= b->hangs_from;
}

static struct drv_result beside_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct beside *b = (struct beside *)d;
	const uint64_t first = addr / PAGE_SIZE, last = first + len / PAGE_SIZE - 1;

	while (hangs(b, addr, len))
		usleep(1000);
	if (first <= b->dies_at && last >= b->dies_at) {
		pattern(buf, addr, (b->dies_at - first) * PAGE_SIZE);
		return (struct drv_result){ .good = (b->dies_at - first) * PAGE_SIZE,
					    .error = 19,
					    .exact = true,
					    .dead = true };
	}
	note_readers(b);
	pattern(buf, addr, len);
	atomic_fetch_sub(&b->inside, 1);
	return (struct drv_result){ .good = len };
}

static const struct drv_ops beside_ops = {
	.name = "beside", .read_max = STREAM_CHUNK, .read = beside_read, .close = fake_close
};

static void beside_init(struct beside *b)
{
	struct range_list l = { 0 };
	struct err e = ERR_INIT;

	*b = (struct beside){ .hangs_from = UINT64_MAX, .dies_at = UINT64_MAX };
	CHECK_OK(drv__init(&b->drv, &beside_ops, "beside", &e), &e);
	CHECK_OK(range_list_add(&l, 0, BESIDE_PAGES * PAGE_SIZE - 1, &e), &e);
	CHECK_OK(drv__add_map(&b->drv, "beside", &l, &e), &e);
	b->drv.info.parallel = "a test";
}

static enum status acquire_beside(struct acquired *a, struct beside *b,
				  const struct reading *reading)
{
	acquired_init(a, SIZE_MAX);
	return acquire_watched(a, (struct fake *)b, BESIDE_WORKERS, reading);
}

static void check_sealed(struct acquired *a)
{
	struct rsz_scan_result end;

	CHECK_OK(sealer_close(a->sealer, a->root, &a->err), &a->err);
	verify_bytes(a->disk.at, a->disk.len, &end);
	assert_int_equal(end.end, RSZ_END_SEALED);
}

TEST(workers_read_side_by_side_and_write_in_order)
{
	struct beside b;
	struct acquired a;
	struct pages p;

	beside_init(&b);
	b.wait = true;
	CHECK_OK(acquire_beside(&a, &b, NULL), &a.err);
	check_sealed(&a);
	assert_true(b.most > 1);
	read_back(&a, 0, BESIDE_PAGES, &p);
	for (size_t i = 0; i < BESIDE_PAGES; i++)
		check_page(&p, i, i * PAGE_SIZE, PAGE_DATA, 0);
	assert_int_equal(a.result.stream.bytes, BESIDE_PAGES * PAGE_SIZE);
	assert_true(a.result.stream.start && a.result.stream.start < a.result.stream.end);
	pages_free(&p);
	acquired_deinit(&a);
	drv__deinit(&b.drv);
}

/* What others were reading at that moment is there; every page has a state. */
TEST(source_that_dies_while_several_read_leaves_a_sealed_container)
{
	const size_t chunk = STREAM_CHUNK / PAGE_SIZE;

	for (size_t k = 0; k < BESIDE_PAGES; k += chunk / 2) {
		struct beside b;
		struct acquired a;
		struct pages p;

		beside_init(&b);
		b.dies_at = k;
		CHECK_OK(acquire_beside(&a, &b, NULL), &a.err);
		check_sealed(&a);
		assert_int_equal(a.result.stopped, ST_SOURCE_FAILED);
		read_back(&a, 0, BESIDE_PAGES, &p);
		for (size_t i = 0; i < BESIDE_PAGES; i++) {
			const bool skipped = p.status[i].state == PAGE_SKIPPED;

			if (i / chunk == k / chunk)
				assert_true(skipped == (i >= k));
			check_page(&p, i, i * PAGE_SIZE, skipped ? PAGE_SKIPPED : PAGE_DATA,
				   skipped ? SKIP_SOURCE_FAILED : 0);
		}
		pages_free(&p);
		acquired_deinit(&a);
		drv__deinit(&b.drv);
	}
}

/* A second of the watchdog passes only while nothing is read that will return. */
static void step_beside(void *with)
{
	struct beside *b = with;
	bool busy;

	do {
		busy = false;
		for (unsigned i = 0; i < BESIDE_WORKERS; i++) {
			const struct drv_request q = drv_reading_beside(&b->drv, i);

			busy = busy || (q.number && !hangs(b, q.addr, q.len));
		}
		usleep(busy ? 1000 : 100);
	} while (busy);
}

/* One worker, and all of them. */
TEST(workers_whose_reads_never_return_are_given_up)
{
	static struct beside hung[2]; /* threads that are left behind use them */
	const uint64_t chunk = STREAM_CHUNK / PAGE_SIZE;

	for (size_t k = 0; k < ARRAY_SIZE(hung); k++) {
		struct beside *b = &hung[k];
		const struct reading reading = {
			.source = &b->drv, .limit_s = 300, .step = step_beside, .with = b
		};
		struct acquired a;
		struct pages p;

		beside_init(b);
		b->hangs_from = 2 * chunk + 7;
		b->hangs_to = k ? BESIDE_PAGES : b->hangs_from;
		CHECK_OK(acquire_beside(&a, b, &reading), &a.err);
		assert_int_equal(a.result.stopped, ST_SOURCE_FAILED);
		CHECK_HAS(a.result.why.message, "did not return");
		assert_true(drv_is_abandoned(&b->drv));
		name_missing(&a, &b->drv.info.maps[0].ranges, false, SKIP_SOURCE_FAILED);
		read_back(&a, 0, BESIDE_PAGES, &p);
		for (size_t i = 0; i < 2 * chunk; i++)
			check_page(&p, i, i * PAGE_SIZE, PAGE_DATA, 0);
		for (size_t i = 2 * chunk; i < BESIDE_PAGES; i++)
			check_page(&p, i, i * PAGE_SIZE, PAGE_SKIPPED, SKIP_SOURCE_FAILED);
		CHECK_STATUS(drv_read_pages_beside(&b->drv, 0, 0, p.data, 1, p.status, &a.err),
			     ST_SOURCE_FAILED, &a.err);
		drv_close(&b->drv);
		pages_free(&p);
		acquired_deinit(&a);
	}
}

static int quiet(void **state)
{
	(void)state;
	log_init(&(struct log_config){ .fd = -1, .quiet = true });
	return 0;
}

/* A minute's sleep between any two looks at the clock. */
static uint64_t sleepy(void)
{
	static uint64_t slept;

	return slept += 60 * NS_PER_SECOND;
}

TEST(sleep_while_memory_is_read_is_recorded)
{
	struct acquired a;
	struct fake f;
	json_t *sleeps;

	clock__asleep = sleepy;
	fake_init(&f, &fake_ops, FIRST, LAST);
	acquire_sealed(&a, &f, 1);
	sleeps = sealer_sleeps_json(a.sealer);
	assert_true(json_array_size(sleeps) >= 2); /* two chunks, and now */
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(sleeps, 0), "asleep_ns")),
		60 * NS_PER_SECOND);
	json_decref(sleeps);
	acquired_deinit(&a);
	fake_deinit(&f);
	clock__asleep = clock__slept_ns;
}

/* A stream of text as the container has it, for free(). */
static char *text_of(const struct acquired *a, uint32_t stream)
{
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct mem_blob blob;
	struct err e = ERR_INIT;
	const uint8_t *text;
	uint64_t at = 0;
	size_t len;
	char *ret = strdup("");

	mem_blob_init(&blob, a->disk.at, a->disk.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	while (!rsz_cursor_next_text(c, stream, &at, &text, &len, &e)) {
		char *more = NULL;

		assert_true(asprintf(&more, "%s%.*s", ret, (int)len, (const char *)text) >= 0);
		free(ret);
		ret = more;
	}
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	return ret;
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

/* Long ones, then short ones: of the room for them nothing is left. */
TEST(log_lines_that_come_too_fast_are_counted)
{
	const unsigned each = 200;
	char want[64];
	struct acquired a;
	_cleanup_free_ char *text = NULL;

	acquired_init(&a, SIZE_MAX);
	CHECK_OK(sealer_create(&a.disk.output, NULL, &a.sealer, &a.err), &a.err);
	for (unsigned i = 0; i < each; i++)
		log_warning("flood", "%0400u", i);
	for (unsigned i = 0; i < each; i++)
		log_warning("flood", "%u", i);
	CHECK_OK(sealer_close(a.sealer, a.root, &a.err), &a.err);
	text = text_of(&a, 1);
	snprintf(want, sizeof(want), " %u lines of the log were lost",
		 2 * each - count_of(text, "\"flood\""));
	want[0] = '"';
	CHECK_HAS(text, want);
	acquired_deinit(&a);
}

/* That fills two records and does not compress to less than half. For free(). */
static char *long_text(void)
{
	const size_t len = 200000;
	char *ret = malloc(len + 1);
	uint32_t x = 1;

	assert_non_null(ret);
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		ret[i] = "0123456789abcdef"[x >> 28];
	}
	ret[len] = '\0';
	return ret;
}

/* On a disk that is full behind its first record; then there is the room that was kept. */
TEST(line_that_was_torn_ends_before_the_next_begins)
{
	_cleanup_free_ char *text = long_text(), *got = NULL;
	struct acquired a;

	acquired_init(&a, SIZE_MAX);
	a.disk.kept = true;
	CHECK_OK(sealer_create(&a.disk.output, NULL, &a.sealer, &a.err), &a.err);
	CHECK_OK(sealer_manifest(a.sealer, json_pack("{s:s}", "event", "begin"), &a.err), &a.err);
	a.disk.limit = a.disk.len + 85000;
	CHECK_STATUS(sealer_manifest(a.sealer, json_pack("{s:s}", "torn", text), &a.err), ST_OUTPUT,
		     &a.err);
	CHECK_OK(sealer_recover(a.sealer, &a.err), &a.err);
	CHECK_OK(sealer_manifest(a.sealer, json_pack("{s:s}", "event", "end"), &a.err), &a.err);
	CHECK_OK(sealer_close(a.sealer, a.root, &a.err), &a.err);
	got = text_of(&a, 0);
	assert_true(strlen(got) > 100000);
	CHECK_HAS(got, "\"begin\"}\n{\"torn\":\"");
	CHECK_HAS(got, "\n{\"event\":\"end\"}\n");
	acquired_deinit(&a);
}

/* Of three pages that were read together the middle one is dropped. */
TEST(what_is_kept_of_a_piece_keeps_its_states)
{
	static uint8_t data[3 * PAGE_SIZE];
	struct rsz_extent extents[2];
	struct page_status pages[] = { { PAGE_DATA, 0 }, { PAGE_DATA, 0 }, { PAGE_UNREADABLE, 5 } };
	struct stream_piece p = { .extents = extents, .pages = pages, .data = data };
	const struct rsz_extent first = { .address = PAGE_SIZE, .length = PAGE_SIZE },
				last = { .address = 3 * PAGE_SIZE, .length = PAGE_SIZE };

	data[0] = 1;
	data[PAGE_SIZE] = 2;
	data[2 * PAGE_SIZE] = 3;
	stream_piece_keep(&p, &first, 0, 0);
	stream_piece_keep(&p, &last, 2, 1);
	assert_int_equal(p.n_extents, 2);
	assert_int_equal(extents[1].address, 3 * PAGE_SIZE);
	assert_int_equal(data[0], 1);
	assert_int_equal(data[PAGE_SIZE], 3);
	assert_int_equal(pages[0].state, PAGE_DATA);
	assert_int_equal(pages[1].state, PAGE_UNREADABLE);
	assert_int_equal(pages[1].detail, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_that_was_torn_ends_before_the_next_begins),
		cmocka_unit_test(what_is_kept_of_a_piece_keeps_its_states),
		cmocka_unit_test(log_lines_that_come_too_fast_are_counted),
		cmocka_unit_test(every_failing_page_is_recorded_and_every_other_page_kept),
		cmocka_unit_test(zero_pages_are_no_gaps),
		cmocka_unit_test(sleep_while_memory_is_read_is_recorded),
		cmocka_unit_test(source_that_dies_at_any_page_leaves_a_sealed_container),
		cmocka_unit_test(dead_source_skips_more_pages_than_a_chunk_of_data_has),
		cmocka_unit_test(interruption_skips_what_is_left),
		cmocka_unit_test(
			disk_that_is_full_at_any_size_leaves_whole_records_that_can_be_sealed),
		cmocka_unit_test(page_that_a_full_disk_has_no_room_for_is_named_as_skipped),
		cmocka_unit_test(
			memory_that_was_added_and_a_full_disk_has_no_room_for_is_named_too),
		cmocka_unit_test(disk_that_stays_full_keeps_whole_records),
		cmocka_unit_test(read_that_never_returns_is_given_up_and_the_rest_is_sealed),
		cmocka_unit_test(workers_read_side_by_side_and_write_in_order),
		cmocka_unit_test(source_that_dies_while_several_read_leaves_a_sealed_container),
		cmocka_unit_test(workers_whose_reads_never_return_are_given_up),
		cmocka_unit_test(slow_source_is_not_given_up),
		cmocka_unit_test(source_that_is_slow_all_the_time_is_not_given_up),
		cmocka_unit_test(who_interrupts_keeps_a_limit_that_is_short),
		cmocka_unit_test(who_interrupts_a_read_that_hangs_need_not_wait_for_long),
	};

	return cmocka_run_group_tests(tests, quiet, NULL);
}
