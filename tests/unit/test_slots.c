/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots read by the tables that name them, out of made-up disks: what is asked for is read once, in
 * few requests, and a disk that hangs holds up nobody. Entries are those of Windows 7.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/order/slots.h"
#include "agent/shared/paging/walk.h"
#include "agent/shared/program/clock.h"
#include "formats/base/bytes.h"
#define AREA 0
#include "tests/unit/swap_machine.h"

#define PAGES 16384

/*
 * Page n of disk d holds n and d. It counts its requests, hangs while `hangs`, and has a bad page.
 */
struct made_up {
	struct reader reader;
	uint64_t number;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool hangs;
	unsigned requests;
	uint64_t bad;                 /* page; 0: none */
	uint64_t request_ns, page_ns; /* what a read takes, by the clock below */
};

/* For tests that say how long a read takes. */
static uint64_t made_up_now;

static uint64_t made_up_clock(void *arg)
{
	(void)arg;
	return made_up_now;
}

static uint32_t made_up_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	struct made_up *d = (struct made_up *)r;

	pthread_mutex_lock(&d->lock);
	d->requests++;
	made_up_now += d->request_ns + len / PAGE_SIZE * d->page_ns;
	pthread_cond_broadcast(&d->told);
	while (d->hangs)
		pthread_cond_wait(&d->told, &d->lock);
	pthread_mutex_unlock(&d->lock);
	for (*good = 0; *good < len; *good += 512) {
		const uint64_t page = (off + *good) / PAGE_SIZE;
		uint8_t *at = (uint8_t *)buf + *good;

		if (d->bad && page == d->bad)
			return EIO;
		memset(at, 0, 512);
		put_le64(at, page);
		put_le64(at + 8, d->number);
	}
	return 0;
}

static void made_up_close(struct reader *r)
{
	(void)r;
}

static const struct reader_ops made_up_ops = { .kind = "made up",
					       .read = made_up_read,
					       .close = made_up_close };

static void set_hangs(struct made_up *d, bool hangs)
{
	pthread_mutex_lock(&d->lock);
	d->hangs = hangs;
	pthread_cond_broadcast(&d->told);
	pthread_mutex_unlock(&d->lock);
}

static void await_request(struct made_up *d)
{
	pthread_mutex_lock(&d->lock);
	while (!d->requests)
		pthread_cond_wait(&d->told, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

#define DISKS 2

struct fixture {
	struct made_up disks[DISKS];
	struct extract *files[DISKS];
	struct stream_result results[DISKS];
	struct stream_result cache_results[DISKS];
	struct slots *slots;
	struct rsz_extent extents[STREAM_EXTENTS];
	struct page_status status[STREAM_EXTENTS];
	uint8_t data[STREAM_CHUNK];
	struct stream_piece piece;
	uint8_t table[PAGE_SIZE];
};

static struct fixture *fixture_create(bool patient)
{
	const struct entry_reader entries = {
		.os = OS_WINDOWS,
		.windows = { .layout = &win_pte_layouts[0], .store = -1 },
	};
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	assert_non_null(f);
	CHECK_OK(slots_create(&entries, patient, &f->slots, &e), &e);
	for (unsigned i = 0; i < DISKS; i++) {
		struct made_up *d = &f->disks[i];
		struct slots_file file = { .stream = 7 + i,
					   .result = &f->results[i],
					   .cache_stream = 17 + i,
					   .cache_result = &f->cache_results[i] };
		bool taken = false;

		d->reader = (struct reader){ .ops = &made_up_ops,
					     .size = PAGES * PAGE_SIZE + 100,
					     .sector = 512 };
		d->number = i;
		pthread_mutex_init(&d->lock, NULL);
		pthread_cond_init(&d->told, NULL);
		CHECK_OK(extract_open_whole(&d->reader, "made up", &f->files[i], &e), &e);
		file.source = f->files[i];
		CHECK_OK(slots_add_file(f->slots, i, &file, &taken, &e), &e);
		assert_true(taken);
		CHECK_OK(slots_add_file(f->slots, i, &file, &taken, &e), &e);
		assert_false(taken);
	}
	return f;
}

static void fixture_destroy(struct fixture *f)
{
	slots_destroy(f->slots);
	for (unsigned i = 0; i < DISKS; i++) {
		extract_close(f->files[i]);
		pthread_cond_destroy(&f->disks[i].told);
		pthread_mutex_destroy(&f->disks[i].lock);
	}
	free(f);
}

/* _MMPTE_SOFTWARE of Windows 7: read and write. */
static void name_slot(struct fixture *f, size_t at, unsigned file, uint64_t slot)
{
	put_le64(f->table + 8 * at, slot << 32 | 4 << 5 | (uint64_t)file << 1);
}

static struct stream_piece *empty_piece(struct fixture *f)
{
	f->piece =
		(struct stream_piece){ .extents = f->extents, .pages = f->status, .data = f->data };
	return &f->piece;
}

/* All pages of the piece hold what they should; returns how many. */
static size_t check_piece(const struct fixture *f)
{
	const struct stream_piece *p = &f->piece;
	size_t at = 0;

	assert_in_range(p->n_extents, 1, STREAM_EXTENTS);
	for (size_t i = 0; i < p->n_extents; i++) {
		const struct rsz_extent *x = &p->extents[i];

		assert_int_equal(x->pass != 0, x->reason != 0);
		assert_true(x->start && x->start <= x->end);
		assert_true(!i || x->start >= p->extents[i - 1].start);
		for (size_t k = 0; k < rsz_extent_pages(x); k++, at++) {
			assert_int_equal(p->pages[at].state, PAGE_DATA);
			assert_int_equal(get_le64(p->data + at * PAGE_SIZE),
					 x->address / PAGE_SIZE + k);
			assert_int_equal(get_le64(p->data + at * PAGE_SIZE + 8), p->stream - 7);
		}
	}
	assert_ptr_equal(p->result, &f->results[p->stream - 7]);
	return at;
}

TEST(what_a_table_names_is_read_once_and_neighbours_in_one_request)
{
	struct fixture *f = fixture_create(true);

	/*
	 * Out of order, twice, and what is not to be read: present, zero, frames, behind the end.
	 */
	name_slot(f, 0, 0, 12);
	name_slot(f, 1, 0, 10);
	name_slot(f, 2, 0, 11);
	name_slot(f, 3, 0, 500);
	name_slot(f, 4, 0, 500);
	name_slot(f, 5, 0, PAGES); /* begins inside the file, and does not end there */
	name_slot(f, 6, 2, 10);    /* there is no such file */
	put_le64(f->table + 8 * 7, UINT64_C(0x5000) | PTE_PRESENT);
	put_le64(f->table + 8 * 8, UINT64_C(0x5000) | 0x880); /* in transition */
	name_slot(f, 9, 0, 20);  /* near enough to be read with what is before it, */
	name_slot(f, 10, 0, 30); /* and this is not */
	assert_int_equal(slots_count(f->slots, f->table), 7);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 13);
	assert_int_equal(f->piece.n_extents, 3);
	assert_int_equal(f->extents[0].address, 10 * PAGE_SIZE);
	assert_int_equal(f->extents[0].length, 11 * PAGE_SIZE);
	assert_int_equal(f->extents[1].address, 30 * PAGE_SIZE);
	assert_int_equal(f->extents[2].address, 500 * PAGE_SIZE);
	assert_int_equal(f->disks[0].requests, 3);

	assert_false(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(slots_count(f->slots, f->table), 0);
	slots_want(f->slots, f->table, 0);
	assert_false(slots_end(f->slots, empty_piece(f)));
	for (uint64_t page = 0; page <= PAGES; page++)
		assert_int_equal(slots_has(f->slots, 0, page),
				 (page >= 10 && page <= 20) || page == 30 || page == 500);
	assert_false(slots_has(f->slots, 1, 10));
	assert_false(slots_has(f->slots, 2, 10));
	assert_int_equal(slots_counts(f->slots).read, 13);
	fixture_destroy(f);
}

/* Two slots around one that was read before: how many requests, if one takes so long. */
static unsigned requests_around(uint64_t request_ns, uint64_t page_ns)
{
	struct fixture *f = fixture_create(true);
	struct made_up *d = &f->disks[0];
	unsigned before;

	d->request_ns = request_ns;
	d->page_ns = page_ns;
	made_up_now = 1;
	clock_use(made_up_clock, NULL);
	for (size_t i = 0; i < 100; i++) {
		name_slot(f, 2 * i, 0, 1000 + 20 * i);
		name_slot(f, 2 * i + 1, 0, 1000 + 20 * i + i % 2);
	}
	slots_want(f->slots, f->table, 0);
	while (slots_next(f->slots, empty_piece(f)))
		check_piece(f);
	before = d->requests;
	memset(f->table, 0, sizeof(f->table));
	name_slot(f, 0, 0, 999);
	name_slot(f, 1, 0, 1001);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 2);
	clock_use(NULL, NULL);
	before = d->requests - before;
	fixture_destroy(f);
	return before;
}

TEST(what_was_read_before_is_read_along_where_that_takes_no_longer)
{
	assert_int_equal(requests_around(5000, 4000), 1);
	assert_int_equal(requests_around(3000, 4000), 2);
}

/* What lay between two wanted slots is captured, and like any capture somebody else's. */
TEST(what_lies_between_is_kept_and_read_again_for_who_came_later)
{
	struct fixture *f = fixture_create(true);

	name_slot(f, 0, 0, 10);
	name_slot(f, 1, 0, 14);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 5);

	/* Its entry stood all the time. */
	name_slot(f, 0, 0, 12);
	assert_int_equal(slots_count(f->slots, f->table), 0);
	assert_int_equal(slots_want(f->slots, f->table, 0), 0);
	/* It did not. */
	assert_int_equal(slots_want(f->slots, f->table, 1), 2);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(f->extents[i].pass, 1);
	assert_int_equal(f->disks[0].requests, 2);
	fixture_destroy(f);
}

/* Somebody else waits for what lies between: it is his, and nobody reads it twice for himself. */
TEST(what_lies_between_and_is_wanted_is_read_once)
{
	struct fixture *f = fixture_create(true);
	uint8_t older[PAGE_SIZE];

	name_slot(f, 0, 1, 12);
	memcpy(older, f->table, PAGE_SIZE);
	slots_want(f->slots, older, 0);
	/* Two stages of another file, so that a newer round comes before that page. */
	for (size_t i = 0; i < 300; i++)
		name_slot(f, i, 0, 1 + 10 * i);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	memset(f->table, 0, PAGE_SIZE);
	name_slot(f, 0, 1, 10);
	name_slot(f, 1, 1, 14);
	slots_want(f->slots, f->table, 0);
	while (slots_next(f->slots, empty_piece(f)))
		check_piece(f);
	assert_false(slots_due(f->slots, older));
	assert_false(slots_due(f->slots, f->table));
	assert_true(slots_has(f->slots, 1, 12));
	assert_int_equal(slots_counts(f->slots).read, 303);
	assert_int_equal(slots_counts(f->slots).again, 0);
	fixture_destroy(f);
}

/* Between two that are wanted lies one that was read: it is read through, and not kept again. */
TEST(what_was_read_before_and_lies_between_is_dropped)
{
	struct fixture *f = fixture_create(true);

	name_slot(f, 0, 0, 12);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	name_slot(f, 0, 0, 10);
	name_slot(f, 1, 0, 14);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 2);
	assert_int_equal(f->disks[0].requests, 2);
	assert_false(slots_has(f->slots, 0, 11));
	assert_int_equal(slots_counts(f->slots).again, 0);
	fixture_destroy(f);
}

/* Whoever came to name a slot after it was read may have put something else there. */
TEST(a_slot_is_read_again_for_who_came_later)
{
	struct fixture *f = fixture_create(true);

	name_slot(f, 0, 0, 10);
	name_slot(f, 9, 0, 11);
	assert_int_equal(slots_want(f->slots, f->table, UINT64_MAX), 2);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(f->piece.n_extents, 1);
	assert_int_equal(f->extents[0].pass, 0);

	assert_int_equal(slots_want(f->slots, f->table, UINT64_C(1) << 1), 1); /* entries 8 to 15 */
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 1);
	assert_int_equal(f->extents[0].address, 11 * PAGE_SIZE);
	assert_int_equal(f->extents[0].pass, 1);
	assert_int_equal(f->extents[0].reason, RSZ_TABLE_CHANGED);

	/* Once; and the two are no neighbours, because one had been read and the other had not. */
	name_slot(f, 10, 0, 12);
	assert_int_equal(slots_want(f->slots, f->table, UINT64_MAX), 2);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(f->piece.n_extents, 2);
	assert_int_equal(f->extents[0].pass, 1);
	assert_int_equal(f->extents[1].pass, 0);
	assert_false(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(slots_counts(f->slots).read, 5);
	assert_int_equal(slots_counts(f->slots).again, 2);
	fixture_destroy(f);
}

/* What is measured of a slot: from when it is asked for to when it has come. */
TEST(a_slot_is_read_from_the_request_to_the_answer)
{
	struct fixture *f = fixture_create(true);

	f->disks[0].request_ns = 5000;
	made_up_now = 1000;
	clock_use(made_up_clock, NULL);
	name_slot(f, 0, 0, 10);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	clock_use(NULL, NULL);
	assert_int_equal(check_piece(f), 1);
	assert_int_equal(f->extents[0].start, 1000);
	assert_int_equal(f->extents[0].end, 6000);
	fixture_destroy(f);
}

static void look_into_cache(struct fixture *f)
{
	struct err e = ERR_INIT;

	set_up_swap();
	machine_u64(&m, place_of(10, 10, 12, 0), PAGE(2));
	put_page(2, UPTODATE, entry_of(10));
	machine_u64(&m, place_of(11, 11, 12, 0), PAGE(3));
	put_page(3, 0, entry_of(11)); /* still being read */
	machine_u64(&m, place_of(13, 13, 12, 0), RETRY);
	machine_u64(&m, place_of(15, 15, 12, 0), PAGE(40)); /* a frame that cannot be read */
	put_page(40, UPTODATE, entry_of(15));
	begin_swap();
	CHECK_OK(slots_use_cache(f->slots, cache, &e), &e);
	cache = NULL; /* the slots' now */
}

/* What it held goes out before the slots, and was seen before they were read. */
TEST(the_swap_cache_is_asked_before_slots_are_read)
{
	struct fixture *f = fixture_create(true);
	uint64_t seen;

	look_into_cache(f);
	for (size_t i = 0; i < 5; i++)
		name_slot(f, i, 0, 10 + i);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(f->piece.stream, 17);
	assert_ptr_equal(f->piece.result, &f->cache_results[0]);
	assert_int_equal(f->piece.n_extents, 2); /* of 13 nothing could be told */
	assert_int_equal(f->extents[0].address, 10 * PAGE_SIZE);
	assert_int_equal(f->extents[0].length, 3 * PAGE_SIZE);
	assert_int_equal(f->extents[1].address, 14 * PAGE_SIZE);
	assert_int_equal(f->extents[1].length, PAGE_SIZE);
	assert_int_equal(f->status[0].state, PAGE_DATA);
	assert_int_equal(f->data[0], 'C');
	assert_int_equal(f->data[PAGE_SIZE - 1], 'C');
	assert_int_equal(f->status[1].state, PAGE_HOLE);
	assert_int_equal(f->status[2].state, PAGE_HOLE);
	assert_int_equal(f->status[3].state, PAGE_HOLE);
	seen = f->extents[1].end;
	assert_true(f->extents[0].start && f->extents[0].start <= seen);

	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(check_piece(f), 5);
	assert_true(f->extents[0].start >= seen);
	assert_false(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(slots_counts(f->slots).absent, 2);
	assert_int_equal(slots_counts(f->slots).held, 1);
	assert_int_equal(slots_counts(f->slots).busy, 1);
	assert_int_equal(slots_counts(f->slots).untold, 1);
	fixture_destroy(f);
	end_swap();
}

/* They are what the mapping has, and no hole, which would say that the slot has it. */
TEST(zeros_that_were_not_written_are_captured)
{
	const uint64_t shadow = UINT64_C(1) << 60 | 1, zero_flag = UINT64_C(1) << 59;
	struct fixture *f = fixture_create(true);
	struct err e = ERR_INIT;

	set_up_tables(703, MACHINE_BTF_AREAS | MACHINE_BTF_TABLES, 512);
	machine_u64(&m, entry_at(10), shadow);
	machine_u64(&m, entry_at(11), shadow | zero_flag);
	begin_swap();
	CHECK_OK(slots_use_cache(f->slots, cache, &e), &e);
	cache = NULL;
	name_slot(f, 0, 0, 10);
	name_slot(f, 1, 0, 11);
	slots_want(f->slots, f->table, 0);
	memset(f->data, 'x', 2 * PAGE_SIZE);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(f->piece.stream, 17);
	assert_int_equal(f->status[0].state, PAGE_HOLE);
	assert_int_equal(f->status[1].state, PAGE_DATA);
	for (size_t i = PAGE_SIZE; i < 2 * PAGE_SIZE; i++)
		assert_int_equal(f->data[i], 0);
	assert_int_equal(slots_counts(f->slots).absent, 1);
	assert_int_equal(slots_counts(f->slots).zeros, 1);
	fixture_destroy(f);
	end_swap();
}

/* The page was in the cache, so that its slot may be old. A hole would say that it was not. */
TEST(a_cached_page_that_cannot_be_read_is_no_hole)
{
	struct fixture *f = fixture_create(true);

	look_into_cache(f);
	name_slot(f, 0, 0, 15);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(f->piece.stream, 17);
	assert_int_equal(f->piece.n_extents, 1);
	assert_int_equal(f->extents[0].address, 15 * PAGE_SIZE);
	assert_int_equal(f->status[0].state, PAGE_UNREADABLE);
	assert_int_equal(f->status[0].detail, EIO);
	assert_int_equal(slots_counts(f->slots).held, 1);
	fixture_destroy(f);
	end_swap();
}

TEST(the_swap_cache_is_asked_again_with_its_slot)
{
	struct fixture *f = fixture_create(true);

	look_into_cache(f);
	name_slot(f, 0, 0, 10);
	name_slot(f, 9, 1, 10); /* of an area that the kernel does not have */
	for (uint16_t pass = 0; pass < 2; pass++) {
		slots_want(f->slots, f->table, pass ? UINT64_MAX : 0);
		for (unsigned n = 0; slots_next(f->slots, empty_piece(f));) {
			n += f->piece.stream == 17;
			assert_int_equal(f->extents[0].pass, pass);
			assert_int_equal(f->extents[0].reason,
					 pass ? RSZ_TABLE_CHANGED : RSZ_FIRST);
			assert_in_range(n, f->piece.stream % 10 == 7, 1);
			assert_int_not_equal(f->piece.stream, 18);
		}
	}
	assert_int_equal(slots_counts(f->slots).held, 2);
	assert_int_equal(slots_counts(f->slots).untold, 2);
	fixture_destroy(f);
	end_swap();
}

TEST(what_is_asked_for_is_due_until_it_came_or_was_given_up)
{
	struct fixture *f = fixture_create(false);

	name_slot(f, 0, 0, 10);
	name_slot(f, 1, 1, 10);
	assert_false(slots_due(f->slots, f->table));
	set_hangs(&f->disks[0], true);
	assert_int_equal(slots_want(f->slots, f->table, 0), 2);
	assert_int_equal(slots_want(f->slots, f->table, 0), 2); /* still */
	assert_true(slots_due(f->slots, f->table));
	assert_false(slots_next(f->slots, empty_piece(f)));
	await_request(&f->disks[0]);
	assert_true(slots_due(f->slots, f->table));
	set_hangs(&f->disks[0], false);
	while (slots_end(f->slots, empty_piece(f)))
		check_piece(f);
	assert_false(slots_due(f->slots, f->table));
	assert_int_equal(slots_counts(f->slots).read, 1);
	assert_int_equal(slots_counts(f->slots).dropped, 1);
	fixture_destroy(f);
}

TEST(a_piece_is_of_one_file)
{
	struct fixture *f = fixture_create(true);
	size_t of[DISKS] = { 0 };

	for (size_t i = 0; i < TABLE_ENTRIES; i++)
		name_slot(f, i, i % 2, 1 + i);
	slots_want(f->slots, f->table, 0);
	while (slots_next(f->slots, empty_piece(f)))
		of[f->piece.stream - 7] += check_piece(f);
	/* Each has every other page, and what lies between is kept. */
	assert_in_range(of[0], TABLE_ENTRIES - 2 * DISKS, TABLE_ENTRIES);
	assert_in_range(of[1], TABLE_ENTRIES - 2 * DISKS, TABLE_ENTRIES);
	fixture_destroy(f);
}

TEST(a_page_that_cannot_be_read_is_recorded_like_any)
{
	struct fixture *f = fixture_create(true);

	f->disks[0].bad = 21;
	name_slot(f, 0, 0, 20);
	name_slot(f, 1, 0, 21);
	name_slot(f, 2, 0, 22);
	slots_want(f->slots, f->table, 0);
	assert_true(slots_next(f->slots, empty_piece(f)));
	assert_int_equal(f->piece.n_extents, 1);
	assert_int_equal(f->status[0].state, PAGE_DATA);
	assert_int_equal(f->status[1].state, PAGE_UNREADABLE);
	assert_int_equal(f->status[1].detail, EIO);
	assert_int_equal(f->status[2].state, PAGE_DATA);
	assert_true(slots_has(f->slots, 0, 21));
	fixture_destroy(f);
}

/* Slots `first` and on, as many as a table holds. */
static void want_table(struct fixture *f, uint64_t first)
{
	for (size_t i = 0; i < TABLE_ENTRIES; i++)
		name_slot(f, i, 0, first + i);
	slots_want(f->slots, f->table, 0);
}

TEST(a_disk_that_hangs_holds_up_nobody)
{
	struct fixture *f = fixture_create(false);
	size_t read = 0;

	set_hangs(&f->disks[0], true);
	for (uint64_t i = 0; i < PAGES / TABLE_ENTRIES - 1; i++) {
		want_table(f, 1 + i * TABLE_ENTRIES);
		assert_false(slots_next(f->slots, empty_piece(f)));
	}
	assert_true(slots_counts(f->slots).dropped > 0);
	await_request(&f->disks[0]);
	set_hangs(&f->disks[0], false);
	/* What is being read is waited for in the end, and is the only thing that was read. */
	while (slots_end(f->slots, empty_piece(f)))
		read += check_piece(f);
	assert_int_equal(read, slots_counts(f->slots).read);
	assert_in_range(read, 1, STREAM_CHUNK / PAGE_SIZE);
	for (uint64_t page = 0; page < PAGES; page++)
		read -= slots_has(f->slots, 0, page);
	assert_int_equal(read, 0);
	fixture_destroy(f);
}

TEST(everything_comes_with_a_thread_too)
{
	struct fixture *f = fixture_create(false);
	size_t read = 0;

	for (uint64_t i = 0; i < 8; i++) {
		want_table(f, 1 + i * TABLE_ENTRIES);
		while (slots_next(f->slots, empty_piece(f)))
			read += check_piece(f);
	}
	while (slots_end(f->slots, empty_piece(f)))
		read += check_piece(f);
	assert_int_equal(read, slots_counts(f->slots).read);
	assert_in_range(read, 1, 8 * TABLE_ENTRIES);
	fixture_destroy(f);
}

TEST(given_up_in_the_middle)
{
	struct fixture *f = fixture_create(false);

	want_table(f, 1);
	slots_next(f->slots, empty_piece(f));
	want_table(f, 1 + TABLE_ENTRIES);
	fixture_destroy(f);
}

TEST(nobody_is_there)
{
	struct fixture *f = fixture_create(true);

	name_slot(f, 0, 0, 10);
	assert_int_equal(slots_count(NULL, f->table), 0);
	slots_want(NULL, f->table, 0);
	assert_false(slots_next(NULL, empty_piece(f)));
	assert_false(slots_end(NULL, empty_piece(f)));
	assert_false(slots_has(NULL, 0, 10));
	assert_int_equal(slots_counts(NULL).read, 0);
	slots_destroy(NULL);
	fixture_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_table_names_is_read_once_and_neighbours_in_one_request),
		cmocka_unit_test(what_was_read_before_is_read_along_where_that_takes_no_longer),
		cmocka_unit_test(what_lies_between_is_kept_and_read_again_for_who_came_later),
		cmocka_unit_test(what_lies_between_and_is_wanted_is_read_once),
		cmocka_unit_test(what_was_read_before_and_lies_between_is_dropped),
		cmocka_unit_test(a_slot_is_read_again_for_who_came_later),
		cmocka_unit_test(a_slot_is_read_from_the_request_to_the_answer),
		cmocka_unit_test(the_swap_cache_is_asked_before_slots_are_read),
		cmocka_unit_test(zeros_that_were_not_written_are_captured),
		cmocka_unit_test(a_cached_page_that_cannot_be_read_is_no_hole),
		cmocka_unit_test(the_swap_cache_is_asked_again_with_its_slot),
		cmocka_unit_test(what_is_asked_for_is_due_until_it_came_or_was_given_up),
		cmocka_unit_test(a_piece_is_of_one_file),
		cmocka_unit_test(a_page_that_cannot_be_read_is_recorded_like_any),
		cmocka_unit_test(a_disk_that_hangs_holds_up_nobody),
		cmocka_unit_test(everything_comes_with_a_thread_too),
		cmocka_unit_test(given_up_in_the_middle),
		cmocka_unit_test(nobody_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
