/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of a memory that is damaged, ends too early or is given up: what is put, and what the
 * result says of each page.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/image/image_pass.h"
#include "agent/image/image_search.h"
#include "agent/shared/program/interrupt.h"
#include "tests/gen/images.h"

/* The first range ends within a page, as a map of RAM may; the second begins within a piece. */
#define FIRST  UINT64_C(0x1000)
#define LAST   (FIRST + 600 * PAGE_SIZE - 0x801)
#define SECOND (FIRST + 700 * PAGE_SIZE)
#define PAGES  (600 + 100)

static struct range two[] = { { FIRST, LAST }, { SECOND, SECOND + 100 * PAGE_SIZE - 1 } };
static const struct range_list ranges = { .at = two, .count = 2 };

/* The memory that is read, and the image that was made of it. */
static struct memory {
	struct image_pages pages;
	uint64_t damaged;  /* address of a page; 0: none */
	size_t fate;       /* as many are damaged with it, from there on */
	uint64_t dies_at;  /* likewise; from there on all is skipped */
	uint64_t stops_at; /* somebody asks to stop when this page is read */
} memory;

static struct {
	size_t pages;
	bool finished, whole;
	uint32_t states[1024]; /* by page number */
	uint8_t first[1024];   /* byte of each */
} image;

static enum status read_memory(struct image_pages *p, unsigned worker, uint64_t address,
			       uint8_t *data, size_t pages, struct page_status *status,
			       struct err *e)
{
	const uint64_t end = address + pages * PAGE_SIZE;
	const uint64_t bad = memory.damaged, bad_end = bad + memory.fate * PAGE_SIZE;

	(void)p;
	(void)worker;
	if (bad && address < bad_end && end > bad)
		return err_set(e, ST_CORRUPT, "the chunk at 0x%llx", (unsigned long long)bad);
	for (size_t i = 0; i < pages; i++, address += PAGE_SIZE) {
		const bool dead = memory.dies_at && address >= memory.dies_at;

		pattern(data + i * PAGE_SIZE, address, PAGE_SIZE);
		data[i * PAGE_SIZE] = 'd';
		status[i] = dead ? (struct page_status){ PAGE_SKIPPED, SKIP_SOURCE_FAILED }
				 : (struct page_status){ PAGE_DATA };
		if (memory.stops_at == address)
			interrupt_ask("the test");
	}
	return memory.dies_at && end > memory.dies_at ? err_set(e, ST_SOURCE_FAILED, "gone")
						      : ST_OK;
}

static size_t together(struct image_pages *p, uint64_t address, size_t pages)
{
	const uint64_t bad = memory.damaged, bad_end = bad + memory.fate * PAGE_SIZE;
	const uint64_t end = address < bad ? bad : address < bad_end ? bad_end : UINT64_MAX;

	(void)p;
	return (size_t)MIN(pages, (end - address) / PAGE_SIZE);
}

static enum status put(struct image_writer *w, const struct image_piece *p, struct err *e)
{
	(void)w;
	(void)e;
	for (size_t i = 0; i < p->pages; i++) {
		const size_t number = (size_t)(p->address / PAGE_SIZE) + i;

		assert_true(number < ARRAY_SIZE(image.states));
		image.states[number] = p->status[i].state;
		image.first[number] = p->data[i * PAGE_SIZE];
		image.pages++;
	}
	return ST_OK;
}

static enum status finish(struct image_writer *w, bool whole, struct err *e)
{
	(void)w;
	(void)e;
	image.finished = true;
	image.whole = whole;
	return ST_OK;
}

static enum status run(struct image_result *ret)
{
	static const struct image_format format = { .name = "test", .put = put, .finish = finish };
	const struct image_spec spec = { .ranges = &ranges, .threads = 2 };
	struct image_writer writer = { .format = &format, .spec = &spec };
	const struct image_plan plan = {
		.pages = &memory.pages,
		.writer = &writer,
		.unreadable = image_unreadable_fill,
		.skipped = image_skipped_fill,
		.progress = PROGRESS_QUIET,
		.phase = "test",
	};
	struct err e = ERR_INIT;
	enum status st;

	memset(&image, 0, sizeof(image));
	*ret = (struct image_result){ .damaged = 0 };
	interrupt_forget();
	st = image_pass(&plan, ret, &e);
	interrupt_forget();
	return st;
}

static void set_up(bool parallel)
{
	memory = (struct memory){
		.pages = { .read = read_memory, .together = together, .parallel = parallel }
	};
}

TEST(every_page_of_the_ranges_is_put)
{
	struct image_result r;

	set_up(true);
	assert_int_equal(run(&r), ST_OK);
	assert_int_equal(image.pages, PAGES);
	assert_true(image.finished && image.whole);
	assert_int_equal(r.tally.pages[PAGE_DATA], PAGES);
	assert_int_equal(tally_pages(&r.tally), PAGES);
	assert_int_equal(r.damaged, 0);
	image_result_deinit(&r);
}

/* It costs its own pages and no others; these are unreadable and counted, and look like it. */
TEST(damage_is_no_hole_and_is_counted)
{
	for (int parallel = 0; parallel < 2; parallel++) {
		struct image_result r;

		set_up(parallel);
		memory.damaged = 0x100000 + 3 * PAGE_SIZE;
		memory.fate = 4;
		assert_int_equal(run(&r), ST_OK);
		assert_true(image.whole);
		assert_int_equal(r.damaged, 4);
		CHECK_HAS(r.why.message, "the chunk at 0x103000");
		assert_int_equal(r.tally.pages[PAGE_UNREADABLE], 4);
		assert_int_equal(r.tally.pages[PAGE_DATA], PAGES - 4);
		assert_int_equal(r.tally.n_gaps, 1);
		assert_int_equal(r.tally.gaps[0].range.first, memory.damaged);
		assert_int_equal(r.tally.gaps[0].status.detail, IMAGE_DAMAGED_CHUNK);
		for (size_t i = 0x101; i < 0x109; i++) {
			const bool bad = i >= 0x103 && i < 0x107;

			assert_int_equal(image.states[i], bad ? PAGE_UNREADABLE : PAGE_DATA);
			assert_int_equal(image.first[i], bad ? 'U' : 'd');
		}
		image_result_deinit(&r);
	}
}

/* Whatever the image does not hold is listed as skipped, to the last page. */
static void check_skipped(const struct image_result *r, uint64_t first, uint32_t why)
{
	const uint64_t read =
		first < SECOND ? (first - FIRST) / PAGE_SIZE : 600 + (first - SECOND) / PAGE_SIZE;

	assert_true(image.finished && !image.whole);
	assert_int_equal(r->tally.pages[PAGE_DATA], read);
	assert_int_equal(r->tally.pages[PAGE_SKIPPED], PAGES - read);
	assert_true(r->tally.n_gaps > 0);
	assert_int_equal(r->tally.gaps[0].range.first, first);
	for (size_t i = 0; i < r->tally.n_gaps; i++)
		assert_int_equal(r->tally.gaps[i].status.detail, why);
}

TEST(what_a_source_that_died_did_not_give_is_skipped)
{
	static const uint64_t at[] = { FIRST, FIRST + 10 * PAGE_SIZE, FIRST + 599 * PAGE_SIZE,
				       SECOND, SECOND + 99 * PAGE_SIZE };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(at); i++) {
		struct image_result r;

		set_up(i >= ARRAY_SIZE(at));
		memory.dies_at = at[i % ARRAY_SIZE(at)];
		assert_int_equal(run(&r), ST_SOURCE_FAILED);
		check_skipped(&r, memory.dies_at, SKIP_SOURCE_FAILED);
		image_result_deinit(&r);
	}
}

/* The piece that is being read then is the last. */
TEST(what_comes_behind_an_interruption_is_skipped)
{
	struct image_result r;

	set_up(false);
	memory.stops_at = 0x105000;
	assert_int_equal(run(&r), ST_INTERRUPTED);
	check_skipped(&r, 2 * IMAGE_PIECE_BYTES, SKIP_INTERRUPTED);
	image_result_deinit(&r);
}

/* A page that says what system this is, and what is damaged or gone beside it. */
static uint64_t text_at;

static enum status read_text(struct image_pages *p, unsigned worker, uint64_t address,
			     uint8_t *data, size_t pages, struct page_status *status, struct err *e)
{
	const enum status st = read_memory(p, worker, address, data, pages, status, e);

	if (!st && text_at >= address && text_at < address + pages * PAGE_SIZE)
		memcpy(data + (text_at - address), "OSRELEASE=6.1.0", 15);
	return st;
}

TEST(pages_that_tell_of_a_kernel_are_collected_by_all)
{
	static const uint64_t at[] = { FIRST, FIRST + 598 * PAGE_SIZE, SECOND,
				       SECOND + 99 * PAGE_SIZE };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(at); i++) {
		struct candidates c = { 0 };
		struct err e = ERR_INIT;

		set_up(i >= ARRAY_SIZE(at));
		memory.pages.read = read_text;
		memory.damaged = FIRST + 300 * PAGE_SIZE; /* in a piece of its own */
		memory.fate = 1;
		text_at = at[i % ARRAY_SIZE(at)];
		interrupt_forget();
		CHECK_OK(image_search_collect((struct image_search_all){ &memory.pages, 3 },
					      &ranges, &c, &e),
			 &e);
		assert_int_equal(c.count, 1);
		assert_int_equal(c.at[0], text_at);
		assert_true(c.complete);
		assert_int_equal(c.pages + c.unreadable, PAGES - 1); /* but a part of one */
		candidates_deinit(&c);
	}
}

TEST(collecting_ends_when_it_is_interrupted)
{
	struct candidates c = { 0 };
	struct err e = ERR_INIT;

	set_up(true);
	interrupt_forget();
	interrupt_ask("the test");
	CHECK_OK(image_search_collect((struct image_search_all){ &memory.pages, 2 }, &ranges, &c,
				      &e),
		 &e);
	interrupt_forget();
	assert_false(c.complete);
	candidates_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_page_of_the_ranges_is_put),
		cmocka_unit_test(damage_is_no_hole_and_is_counted),
		cmocka_unit_test(what_a_source_that_died_did_not_give_is_skipped),
		cmocka_unit_test(what_comes_behind_an_interruption_is_skipped),
		cmocka_unit_test(pages_that_tell_of_a_kernel_are_collected_by_all),
		cmocka_unit_test(collecting_ends_when_it_is_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
