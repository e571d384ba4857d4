/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crew and its work, and what it reads of a group: everything once, by more than one, with times
 * that hold all of an extent's reads, and captures of the same page in the order in which they go
 * out.
 */
#include "tests/unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/collect/order/stage_read.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/crew.h"
#include "agent/shared/program/pipeline.h"
#include "agent/shared/program/timed_cond.h"
#include "driver-interface/source.h"
#include "formats/base/bytes.h"

#define WORKS   400
#define PAGES   4096
#define READERS 3
#define WAIT_S  60 /* for another reader: more than any machine takes to wake one */

static atomic_uint done[WORKS];
static atomic_uint strangers;

static void note_work(void *arg, unsigned member, size_t i)
{
	atomic_fetch_add(&done[i], 1);
	atomic_fetch_add(&strangers, member >= READERS || arg != done);
}

TEST(a_crew_does_each_work_once)
{
	struct crew *c = crew_create(READERS);

	assert_non_null(c);
	for (size_t count = 0; count < WORKS; count++) {
		for (size_t i = 0; i < WORKS; i++)
			done[i] = 0;
		crew_run(c, note_work, done, count);
		for (size_t i = 0; i < WORKS; i++)
			assert_int_equal(done[i], i < count);
	}
	assert_int_equal(strangers, 0);
	crew_destroy(c);
}

TEST(one_alone_is_no_crew)
{
	assert_null(crew_create(0));
	assert_null(crew_create(1));
	crew_destroy(NULL);
}

/*
 * Reading. Each page begins with its number and how often it was read; time passes with each page.
 */

struct machine {
	struct drv drv;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	clockid_t clock;
	unsigned reads[PAGES];
	unsigned inside, most; /* readers at the same time */
	unsigned wanted;       /* the first so many wait for each other */
	bool by[DRV_BESIDE + 1];
	uint64_t dies_at; /* page; 0: never */
	bool hangs;
	uint64_t now;
};

static uint64_t machine_now(void *arg)
{
	struct machine *m = arg;
	uint64_t ret;

	pthread_mutex_lock(&m->lock);
	ret = ++m->now;
	pthread_mutex_unlock(&m->lock);
	return ret;
}

/* With the lock. */
static void wait_for_others(struct machine *m)
{
	const struct timespec until = timed_cond_until(m->clock, WAIT_S * NS_PER_SECOND);

	m->most = MAX(m->most, m->inside);
	if (m->most >= m->wanted)
		pthread_cond_broadcast(&m->moved);
	while (m->most < m->wanted)
		if (pthread_cond_timedwait(&m->moved, &m->lock, &until))
			break;
}

static struct drv_result read_pages(struct machine *m, unsigned reader, uint64_t addr, uint8_t *to,
				    size_t len)
{
	struct drv_result r = { .good = len };

	pthread_mutex_lock(&m->lock);
	m->by[reader] = true;
	m->inside++;
	wait_for_others(m);
	while (m->hangs)
		pthread_cond_wait(&m->moved, &m->lock);
	for (size_t at = 0; at < len; at += PAGE_SIZE) {
		const uint64_t page = (addr + at) / PAGE_SIZE;

		if (m->dies_at && page == m->dies_at) {
			r = (struct drv_result){ .good = at, .error = 19, .dead = true };
			break;
		}
		put_le64(to + at, page);
		put_le64(to + at + 8, ++m->reads[page]);
		put_le64(to + at + 16, ++m->now);
	}
	m->inside--;
	pthread_mutex_unlock(&m->lock);
	return r;
}

static struct drv_result machine_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	return read_pages((struct machine *)d, DRV_BESIDE, addr, buf, len);
}

static struct drv_result machine_read_beside(struct drv *d, unsigned reader, uint64_t addr,
					     void *buf, size_t len)
{
	return read_pages((struct machine *)d, reader, addr, buf, len);
}

static const struct drv_ops machine_ops = { .name = "machine",
					    .read_max = 256 * PAGE_SIZE,
					    .read = machine_read,
					    .read_beside = machine_read_beside };

struct bench {
	struct machine m;
	struct stage stage;
	struct memory_result result;
	struct sweep sweep;
	struct stage_readers *readers;
};

static struct bench *bench_create(unsigned threads, unsigned wanted)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct memory_plan plan = { .stream.threads = threads };
	struct range_list l = { 0 };
	struct err e = ERR_INIT;

	assert_non_null(b);
	CHECK_OK(drv__init(&b->m.drv, &machine_ops, "machine", &e), &e);
	CHECK_OK(range_list_add(&l, 0, PAGES * PAGE_SIZE - 1, &e), &e);
	CHECK_OK(drv__add_map(&b->m.drv, "test", &l, &e), &e);
	b->m.drv.info.parallel = "a test";
	b->m.clock = timed_cond_init(&b->m.moved);
	pthread_mutex_init(&b->m.lock, NULL);
	b->m.wanted = wanted;
	clock_use(machine_now, &b->m);
	assert_true(stage_init(&b->stage));
	plan.source = &b->m.drv;
	b->readers = stage_readers_create(&plan);
	b->sweep = (struct sweep){ .source = &b->m.drv,
				   .result = &b->result,
				   .ranges = &b->m.drv.info.maps[0].ranges };
	return b;
}

static void bench_destroy(struct bench *b)
{
	clock_use(NULL, NULL);
	stage_readers_destroy(b->readers);
	stage_deinit(&b->stage);
	drv__deinit(&b->m.drv);
	pthread_cond_destroy(&b->m.moved);
	pthread_mutex_destroy(&b->m.lock);
	free(b);
}

static void want(struct bench *b, uint64_t page, size_t pages, unsigned pass)
{
	b->stage.piece.extents[b->stage.piece.n_extents++] =
		(struct rsz_extent){ .address = page * PAGE_SIZE,
				     .length = (uint32_t)(pages * PAGE_SIZE),
				     .pass = (uint16_t)pass };
	b->stage.pages += pages;
}

/* Each page is where it belongs, and was read within its extent's times. */
static void check_stage(const struct bench *b, size_t extent, size_t page)
{
	const struct stream_piece *p = &b->stage.piece;

	for (; extent < p->n_extents; extent++) {
		const struct rsz_extent *x = &p->extents[extent];

		for (size_t i = 0; i < rsz_extent_pages(x); i++, page++) {
			const uint8_t *at = p->data + page * PAGE_SIZE;

			assert_int_equal(p->pages[page].state, PAGE_DATA);
			assert_int_equal(get_le64(at), x->address / PAGE_SIZE + i);
			assert_int_equal(get_le64(at + 8), x->pass + 1);
			assert_true(x->start < get_le64(at + 16) && get_le64(at + 16) < x->end);
		}
	}
	assert_int_equal(page, b->stage.pages);
}

/* Extents of one page, of some, and one that is cut. */
static void want_all_kinds(struct bench *b)
{
	for (uint64_t i = 0; i < 100; i++)
		want(b, 2 * i, 1, 0);
	want(b, 1000, 31, 0);
	want(b, 1100, 32, 0);
	want(b, 1200, 33, 0);
	want(b, 2000, 300, 0);
}

TEST(several_read_each_page_once)
{
	struct bench *b = bench_create(8, READERS);
	unsigned crew = 0;

	assert_non_null(b->readers);
	want_all_kinds(b);
	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	check_stage(b, 0, 0);
	assert_int_equal(b->m.most, READERS);
	for (unsigned i = 0; i < CREW_MAX; i++)
		crew += b->m.by[PIPELINE_WORKERS_MAX + i];
	assert_int_equal(crew, READERS);
	assert_false(b->m.by[DRV_BESIDE]);
	for (unsigned i = 0; i < PIPELINE_WORKERS_MAX; i++)
		assert_false(b->m.by[i]);
	bench_destroy(b);
}

/* What is on the stage already is not read again. */
TEST(only_what_is_new_is_read)
{
	struct bench *b = bench_create(8, READERS);
	size_t extents, pages;

	want_all_kinds(b);
	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	extents = b->stage.piece.n_extents;
	pages = b->stage.pages;
	want(b, 3000, 200, 0);
	stage_read(b->readers, &b->sweep, &b->stage, extents, pages);
	check_stage(b, 0, 0);
	bench_destroy(b);
}

TEST(what_is_captured_again_comes_behind_its_first_capture)
{
	struct bench *b = bench_create(8, READERS);
	const struct stream_piece *p = &b->stage.piece;

	want(b, 500, 1, 0);
	want(b, 500, 1, 1);
	want(b, 0, 200, 0);
	want(b, 500, 1, 2);
	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	check_stage(b, 0, 0);
	assert_true(p->extents[0].end < p->extents[1].start);
	assert_true(p->extents[1].end < p->extents[3].start);
	bench_destroy(b);
}

TEST(few_pages_or_few_threads_are_one_reader)
{
	struct bench *b = bench_create(3, 1);

	assert_null(b->readers);
	want_all_kinds(b);
	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	check_stage(b, 0, 0);
	assert_true(b->m.by[DRV_BESIDE]);
	assert_int_equal(b->m.most, 1);
	bench_destroy(b);

	b = bench_create(4, 1);
	assert_non_null(b->readers);
	want(b, 0, 63, 0);
	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	check_stage(b, 0, 0);
	for (unsigned i = 0; i < DRV_BESIDE; i++)
		assert_false(b->m.by[i]);
	bench_destroy(b);
}

TEST(a_source_that_dies_stops_all_of_them)
{
	struct bench *b = bench_create(8, READERS);
	const struct stream_piece *p = &b->stage.piece;
	size_t skipped = 0;

	b->m.dies_at = 2100;
	want_all_kinds(b);
	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	assert_int_equal(b->result.stopped, ST_SOURCE_FAILED);
	assert_int_equal(b->sweep.skip, SKIP_SOURCE_FAILED);
	for (size_t i = 0; i < b->stage.pages; i++) {
		const uint8_t *at = p->data + i * PAGE_SIZE;

		skipped += p->pages[i].state == PAGE_SKIPPED;
		if (p->pages[i].state == PAGE_DATA)
			assert_int_equal(get_le64(at + 8), 1);
		else
			assert_int_equal(p->pages[i].detail, SKIP_SOURCE_FAILED);
	}
	/* Others may have read all of theirs by then, or nothing. */
	assert_in_range(skipped, 1, b->stage.pages - 1);
	bench_destroy(b);
}

static void *run_stage(void *arg)
{
	struct bench *b = arg;

	stage_read(b->readers, &b->sweep, &b->stage, 0, 0);
	return NULL;
}

/* Whoever watches the one who reads sees it, too, if it is another of the crew who hangs. */
TEST(a_read_that_hangs_can_be_given_up)
{
	struct bench *b = bench_create(8, READERS);
	struct drv_request q;
	pthread_t thread;

	b->m.hangs = true;
	want_all_kinds(b);
	assert_int_equal(pthread_create(&thread, NULL, run_stage, b), 0);
	do {
		q = drv_reading(&b->m.drv);
	} while (!q.number);
	assert_true(drv_abandon(&b->m.drv, q.number));
	assert_true(drv_is_abandoned(&b->m.drv));
	/* It stops for ever, and with it what it uses. */
	pthread_detach(thread);
	clock_use(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crew_does_each_work_once),
		cmocka_unit_test(one_alone_is_no_crew),
		cmocka_unit_test(several_read_each_page_once),
		cmocka_unit_test(only_what_is_new_is_read),
		cmocka_unit_test(what_is_captured_again_comes_behind_its_first_capture),
		cmocka_unit_test(few_pages_or_few_threads_are_one_reader),
		cmocka_unit_test(a_source_that_dies_stops_all_of_them),
		cmocka_unit_test(a_read_that_hangs_can_be_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
