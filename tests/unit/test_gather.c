/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that were acquired in a scattered order, read in order of address: the same bytes, states
 * and times as the cursor gives, and no chunk decoded more often than there are windows.
 */
#include "tests/unit/test.h"

#include <pthread.h>
#include <string.h>

#include "agent/image/gather.h"
#include "tests/unit/rsz_build.h"

#define CHUNKS    40
#define PER_CHUNK 60
#define PAGES     (CHUNKS * PER_CHUNK)
#define PIECE     16 /* pages */
#define WORKERS   4

struct scattered {
	struct build b;
	struct mem_blob blob;
	struct rsz_reader *reader;
	uint32_t stream;
	uint64_t records[CHUNKS];
};

/* So that neighbours are in different chunks: 7 and PAGES have no divisor in common. */
static uint64_t page_of(unsigned chunk, unsigned i)
{
	return (chunk * PER_CHUNK + i) * UINT64_C(7) % PAGES;
}

static void add_page(struct scattered *s, unsigned n, uint64_t page)
{
	const char states[2] = { n % 11 == 3 ? '?' : n % 13 == 5 ? '.' : (char)('A' + n % 26) };

	build_extent(&s->b, page * PAGE_SIZE, states);
}

/* `again`: three pages are captured again at the end, over what there is. */
static void scatter(struct scattered *s, bool again)
{
	struct err e = ERR_INIT;

	build_begin(&s->b, 9, 1);
	s->stream = build_stream(&s->b, RSZ_KIND_MEMORY, "memory");
	for (unsigned c = 0; c < CHUNKS; c++) {
		build_chunk(&s->b, s->stream, 1000 * (c + 1));
		for (unsigned i = 0; i < PER_CHUNK; i++)
			add_page(s, c * PER_CHUNK + i, page_of(c, i));
		s->records[c] = s->b.out.len;
		build_put(&s->b);
	}
	if (again) {
		build_chunk(&s->b, s->stream, 1000 * (CHUNKS + 1));
		build_extent(&s->b, 100 * PAGE_SIZE, "aaa");
		build_put(&s->b);
	}
	build_close(&s->b);
	mem_blob_init(&s->blob, s->b.out.at, s->b.out.len);
	CHECK_OK(rsz_reader_open(&s->blob.blob, RSZ_TRUST_NOTHING, &s->reader, &e), &e);
}

static void forget(struct scattered *s)
{
	rsz_reader_close(s->reader);
	build_deinit(&s->b);
}

struct got {
	uint8_t data[PAGES * PAGE_SIZE];
	struct page_status status[PAGES];
	struct rsz_times times;
};

static void read_directly(const struct scattered *s, struct got *ret)
{
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(rsz_cursor_create(s->reader, CHUNKS, &c, &e), &e);
	CHECK_OK(rsz_cursor_read(c, s->stream, 0, ret->data, PAGES, ret->status, &ret->times, &e),
		 &e);
	rsz_cursor_destroy(c);
}

static struct got wanted, got;

static void check_same(void)
{
	assert_memory_equal(got.data, wanted.data, sizeof(got.data));
	for (size_t i = 0; i < PAGES; i++) {
		assert_int_equal(got.status[i].state, wanted.status[i].state);
		assert_int_equal(got.status[i].detail, wanted.status[i].detail);
	}
	assert_int_equal(got.times.start, wanted.times.start);
	assert_int_equal(got.times.end, wanted.times.end);
}

static void read_gathered(struct gather *g)
{
	struct err e = ERR_INIT;

	memset(&got, 0xee, sizeof(got));
	got.times = (struct rsz_times){ 0 };
	for (size_t i = 0; i < PAGES; i += PIECE)
		CHECK_OK(gather_read(g, 0, i * PAGE_SIZE, got.data + i * PAGE_SIZE, PIECE,
				     got.status + i, &got.times, &e),
			 &e);
}

/* Windows of all sizes: from one for all down to one for each piece. */
TEST(windows_of_every_size_give_the_same)
{
	static struct scattered s;
	struct err e = ERR_INIT;

	for (int again = 0; again < 2; again++) {
		scatter(&s, again);
		memset(&wanted, 0, sizeof(wanted));
		read_directly(&s, &wanted);
		for (size_t pages = 64; pages <= 2 * PAGES; pages *= 2) {
			const uint64_t windows = (PAGES + pages - 1) / pages;
			struct gather *g = NULL;

			CHECK_OK(gather_create(s.reader, s.stream, 1, pages * PAGE_SIZE, &g, &e),
				 &e);
			read_gathered(g);
			check_same();
			/* What was captured again is in a chunk of its own, between others. */
			assert_in_range(gather_decoded(g), CHUNKS,
					windows * CHUNKS + (again ? 4 : 0));
			gather_destroy(g);
		}
		forget(&s);
	}
}

struct worker {
	pthread_t thread;
	struct gather *g;
	unsigned n;
	struct rsz_times times;
	enum status st;
	struct err e;
};

/* As a pipeline deals pieces out, but that nobody waits for anybody. */
static void *read_some(void *p)
{
	struct worker *w = p;

	for (size_t i = w->n * PIECE; i < PAGES && !w->st; i += WORKERS * PIECE)
		w->st = gather_read(w->g, w->n, i * PAGE_SIZE, got.data + i * PAGE_SIZE, PIECE,
				    got.status + i, &w->times, &w->e);
	return NULL;
}

TEST(workers_share_a_window)
{
	static struct scattered s;
	struct err e = ERR_INIT;

	scatter(&s, false);
	memset(&wanted, 0, sizeof(wanted));
	read_directly(&s, &wanted);
	for (int round = 0; round < 20; round++) {
		struct worker w[WORKERS];
		struct gather *g = NULL;

		memset(&got, 0xee, sizeof(got));
		got.times = (struct rsz_times){ 0 };
		CHECK_OK(gather_create(s.reader, s.stream, WORKERS, 256 * PAGE_SIZE, &g, &e), &e);
		for (unsigned i = 0; i < WORKERS; i++) {
			w[i] = (struct worker){ .g = g, .n = i };
			assert_int_equal(pthread_create(&w[i].thread, NULL, read_some, &w[i]), 0);
		}
		for (unsigned i = 0; i < WORKERS; i++) {
			assert_int_equal(pthread_join(w[i].thread, NULL), 0);
			CHECK_OK(w[i].st, &w[i].e);
			rsz_times_widen(&got.times, w[i].times.start, w[i].times.end);
		}
		check_same();
		gather_destroy(g);
	}
	forget(&s);
}

/* The pages of a damaged chunk are told of as such, and no others. */
TEST(damage_costs_its_own_pages)
{
	static struct scattered s;
	struct err e = ERR_INIT;
	struct gather *g = NULL;
	unsigned lost = 0;

	scatter(&s, false);
	memset(&wanted, 0, sizeof(wanted));
	read_directly(&s, &wanted);
	/* Inside the payload of the third chunk: behind its header, before the next one's. */
	s.b.out.at[s.records[3] - 20] ^= 1;
	CHECK_OK(gather_create(s.reader, s.stream, 1, 256 * PAGE_SIZE, &g, &e), &e);
	for (size_t i = 0; i < PAGES; i++) {
		struct page_status status;
		uint8_t data[PAGE_SIZE];
		struct rsz_times times = { 0 };
		const enum status st =
			gather_read(g, 0, i * PAGE_SIZE, data, 1, &status, &times, &e);

		if (st) {
			CHECK_STATUS(st, ST_CORRUPT, &e);
			lost++;
			continue;
		}
		assert_memory_equal(data, wanted.data + i * PAGE_SIZE, PAGE_SIZE);
	}
	assert_int_equal(lost, PER_CHUNK);
	gather_destroy(g);
	forget(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_of_every_size_give_the_same),
		cmocka_unit_test(workers_share_a_window),
		cmocka_unit_test(damage_costs_its_own_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
