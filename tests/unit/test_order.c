/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders of acquisition, over a memory that changes while it is read: the test's own rules say
 * after which read which entry becomes what. What they deliver is looked at piece by piece. The
 * second search for address spaces is this file's. All of it twice: with one reader, and with three
 * who read what they are given as late as they can, the last piece first.
 */
#include "tests/unit/test.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/order/order.h"
#include "agent/collect/order/slots.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/kernel/prints.h"
#include "agent/shared/program/clock.h"
#include "driver-interface/source.h"
#include "formats/base/bytes.h"

#define PAGES   2048
#define ROOT    1
#define PDPT    2
#define PD      3
#define PT      4 /* PT + n: the n-th page table */
#define FRAMES  64
#define SHARED  UINT64_C(0x5) /* present, user */
#define PRIVATE UINT64_C(0x7) /* and writable */

/* When page `on` has been read `times` times, entry `at` of page `page` becomes `value`. */
struct rule {
	uint64_t on;
	unsigned times;
	uint64_t page;
	size_t at;
	uint64_t value;
};

struct machine {
	struct drv drv;
	uint64_t words[PAGES][TABLE_ENTRIES];
	unsigned reads[PAGES];
	struct rule changes[8];
	size_t n_changes;
	uint64_t churn;   /* this page's entry 0 names another frame after each read; 0: none */
	uint64_t dies_at; /* page; 0: never */
	unsigned stop_at; /* a signal comes with this read of all; 0: none */
	unsigned all;
	uint64_t bad;      /* this page cannot be read; 0: all can */
	bool hangs;        /* its page file does, until */
	sem_t read_all;    /* says that the last page has been read */
	uint64_t requests; /* each takes request_ns, and page_ns for each page */
	uint64_t request_ns, page_ns;
	uint64_t now;
};

/* How many read at once. */
static unsigned readers = 1;
#define READERS 3

static struct discovery found_later;

static enum status find_later(struct drv *source, const struct discovery *earlier,
			      struct discovery *ret, struct err *e)
{
	(void)source;
	(void)earlier;
	(void)e;
	*ret = found_later;
	return ST_OK;
}

static void after_read(struct machine *m, uint64_t page)
{
	m->reads[page]++;
	for (size_t i = 0; i < m->n_changes; i++) {
		const struct rule *c = &m->changes[i];

		if (c->on == page && c->times == m->reads[page])
			m->words[c->page][c->at] = c->value;
	}
	if (m->churn && page == m->churn)
		m->words[page][0] = ((FRAMES + 500 + m->reads[page]) * PAGE_SIZE) | PRIVATE;
	if (++m->all == m->stop_at)
		interrupt_ask("the test");
	if (page == PAGES - 1)
		sem_post(&m->read_all);
}

static struct drv_result machine_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct machine *m = (struct machine *)d;

	m->requests++;
	m->now += m->request_ns + len / PAGE_SIZE * m->page_ns;
	for (size_t at = 0; at < len; at += PAGE_SIZE) {
		const uint64_t page = (addr + at) / PAGE_SIZE;

		if (m->dies_at && page == m->dies_at)
			return (struct drv_result){ .good = at, .error = 19, .dead = true };
		if (m->bad && page == m->bad)
			return (struct drv_result){ .good = at, .error = 5 };
		memcpy((uint8_t *)buf + at, m->words[page], PAGE_SIZE);
		after_read(m, page);
	}
	return (struct drv_result){ .good = len };
}

static const struct drv_ops machine_ops = { .name = "machine",
					    .read_max = 256 * PAGE_SIZE,
					    .read = machine_read };

static void name(struct machine *m, uint64_t page, size_t at, uint64_t frame, uint64_t rights)
{
	m->words[page][at] = frame * PAGE_SIZE | rights;
}

/* One space: root, PDPT, PD, and `tables` page tables with `each` frames in a row. */
static struct machine *machine_create(size_t tables, size_t each)
{
	struct machine *m = calloc(1, sizeof(*m));
	struct range_list l = { 0 };
	struct err e = ERR_INIT;

	assert_non_null(m);
	CHECK_OK(drv__init(&m->drv, &machine_ops, "machine", &e), &e);
	CHECK_OK(range_list_add(&l, 0, PAGES * PAGE_SIZE - 1, &e), &e);
	CHECK_OK(drv__add_map(&m->drv, "test", &l, &e), &e);
	for (uint64_t i = 0; i < PAGES; i++)
		m->words[i][TABLE_ENTRIES - 1] = i << 1; /* not present, and tells pages apart */
	name(m, ROOT, 0, PDPT, PRIVATE);
	name(m, PDPT, 0, PD, PRIVATE);
	for (size_t t = 0; t < tables; t++) {
		name(m, PD, t, PT + t, PRIVATE);
		for (size_t i = 0; i < each; i++)
			name(m, PT + t, i, FRAMES + t * each + i, PRIVATE);
	}
	m->drv.info.parallel = readers > 1 ? "a test" : NULL;
	assert_int_equal(sem_init(&m->read_all, 0, 0), 0);
	interrupt_forget();
	found_later = (struct discovery){ .mode = PAGING_4_LEVEL, .os = OS_WINDOWS };
	return m;
}

static void machine_destroy(struct machine *m)
{
	drv__deinit(&m->drv);
	sem_destroy(&m->read_all);
	free(m);
}

/* One capture of one page, in the order in which they came. */
struct seen {
	uint64_t page;
	uint64_t start, end;
	uint64_t word; /* its first entry, as captured */
	struct page_status status;
	unsigned pass, reason;
};

struct result {
	struct memory_result memory;
	struct seen at[4 * PAGES];
	size_t count;
	size_t captures[PAGES];
	uint64_t last[PAGES]; /* when the newest capture of a page began */
	struct seen slots[64];
	size_t n_slots;
	size_t unread; /* pieces that the feed left to readers beside */
};

static void take_slots(struct result *r, const struct stream_piece *p)
{
	for (size_t i = 0; i < p->n_extents; i++)
		for (size_t k = 0; k < p->extents[i].length / PAGE_SIZE; k++) {
			assert_true(r->n_slots < ARRAY_SIZE(r->slots));
			r->slots[r->n_slots++] =
				(struct seen){ .page = p->extents[i].address / PAGE_SIZE + k,
					       .start = p->extents[i].start,
					       .end = p->extents[i].end,
					       .pass = p->extents[i].pass };
		}
}

static void take_pages(struct result *r, const struct stream_piece *p)
{
	size_t page = 0;

	assert_in_range(p->n_extents, 1, STREAM_EXTENTS);
	for (size_t i = 0; i < p->n_extents; i++) {
		const struct rsz_extent *x = &p->extents[i];

		assert_true(x->start <= x->end);
		/* What one call has read has its times. */
		assert_true(!i || x[-1].end <= x->start ||
			    (x[-1].start == x->start && x[-1].end == x->end));
		for (size_t k = 0; k < x->length / PAGE_SIZE; k++, page++) {
			struct seen *s = &r->at[r->count++];

			assert_true(r->count < 4 * PAGES);
			*s = (struct seen){ .page = x->address / PAGE_SIZE + k,
					    .start = x->start,
					    .end = x->end,
					    .status = p->pages[page],
					    .pass = x->pass,
					    .reason = x->reason };
			if (s->status.state == PAGE_DATA)
				s->word = get_le64(p->data + page * PAGE_SIZE);
			assert_int_equal(s->pass, r->captures[s->page]);
			assert_int_equal(s->pass != 0, s->reason != 0);
			assert_true(!r->captures[s->page] || s->start > r->last[s->page]);
			r->last[s->page] = s->start;
			r->captures[s->page]++;
		}
	}
	assert_true(page <= STREAM_SKIP / PAGE_SIZE);
}

/* And makes it ready for the next. */
static void take_piece(struct result *r, struct stream_piece *p)
{
	r->unread += p->unread;
	if (p->result)
		take_slots(r, p);
	else
		take_pages(r, p);
	p->n_extents = 0;
	p->result = NULL;
	p->unread = false;
}

static struct discovery one_space(uint64_t root)
{
	static struct address_space space[2];

	space[0].process = (struct process){ .has_dtb = true, .dtb = root * PAGE_SIZE };
	return (struct discovery){
		.mode = PAGING_4_LEVEL, .os = OS_WINDOWS, .spaces = space, .n_spaces = 1
	};
}

static void piece_init(struct stream_piece *p)
{
	*p = (struct stream_piece){
		.extents = malloc(STREAM_EXTENTS * sizeof(*p->extents)),
		.pages = malloc(STREAM_SKIP / PAGE_SIZE * sizeof(*p->pages)),
		.data = malloc(STREAM_CHUNK),
	};
	assert_true(p->extents && p->pages && p->data);
}

static void piece_deinit(struct stream_piece *p)
{
	free(p->extents);
	free(p->pages);
	free(p->data);
}

/* Everything that the order delivers. */
static struct result *run_plan(struct machine *m, const struct order *order,
			       struct memory_plan plan)
{
	const struct discovery spaces = one_space(ROOT);
	struct result *r = calloc(1, sizeof(*r));
	struct stream_piece p[READERS] = { 0 };
	struct stream_feed *feed;
	struct err e = ERR_INIT;
	enum status st = ST_OK;

	plan.source = &m->drv;
	plan.spaces = &spaces;
	plan.find_again = find_later;
	plan.stream.threads = readers;
	assert_non_null(r);
	for (size_t i = 0; i < READERS; i++)
		piece_init(&p[i]);
	CHECK_OK(order->open(&plan, &r->memory, &feed, &e), &e);
	while (!st) {
		size_t n = 0;

		while (n < readers && !(st = feed->next(feed, &p[n], &e)))
			n++;
		for (size_t i = n; i--;)
			if (p[i].unread)
				feed->read(feed, &p[i], (unsigned)i);
		for (size_t i = 0; i < n; i++)
			take_piece(r, &p[i]);
	}
	assert_int_equal(st, ST_END);
	order->close(feed);
	for (size_t i = 0; i < READERS; i++)
		piece_deinit(&p[i]);
	for (size_t i = 0; i < PAGES; i++)
		if (!r->captures[i])
			fail_msg("%s leaves out page %zu", order->name, i);
	return r;
}

static struct result *run(struct machine *m, const struct order *order,
			  const struct walk_set *tables)
{
	return run_plan(m, order, (struct memory_plan){ .table_pages = tables });
}

/* The newest capture of a page, as readers have it, or the first one. */
static const struct seen *newest(const struct result *r, uint64_t page)
{
	for (size_t i = r->count; i--;)
		if (r->at[i].page == page)
			return &r->at[i];
	abort(); /* run() has seen every page */
}

static const struct seen *oldest(const struct result *r, uint64_t page)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->at[i].page == page)
			return &r->at[i];
	abort();
}

static void check_between(const struct result *r, uint64_t table, uint64_t frame)
{
	assert_true(oldest(r, table)->end <= newest(r, frame)->start);
	assert_true(newest(r, frame)->end <= newest(r, table)->start);
}

TEST(linear_reads_every_page_once_in_order)
{
	struct machine *m = machine_create(3, 100);
	struct result *r = run(m, &linear_order, NULL);

	assert_int_equal(r->count, PAGES);
	assert_true(readers > 1 ? r->unread > 0 : !r->unread);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(r->at[i].page, i);
	free(r);
	machine_destroy(m);
}

static struct result *run_with_tables(struct machine *m, const struct order *order)
{
	struct walk_set tables;
	struct result *r;
	struct err e = ERR_INIT;

	CHECK_OK(walk_set_init(&tables, &m->drv.info.maps[0].ranges, &e), &e);
	for (uint64_t i = ROOT; i < PT + 3; i++)
		walk_set_mark(&tables, i * PAGE_SIZE);
	walk_set_mark(&tables, (PAGES - 1) * PAGE_SIZE);
	r = run(m, order, &tables);
	walk_set_deinit(&tables);
	return r;
}

TEST(tables_come_first_or_last)
{
	struct machine *m = machine_create(3, 100);
	struct result *first = run_with_tables(m, &tables_first_order);
	struct result *last = run_with_tables(m, &tables_last_order);
	const size_t tables = PT + 3 - ROOT + 1;

	assert_int_equal(first->count, PAGES);
	assert_int_equal(last->count, PAGES);
	for (size_t i = 0; i < tables - 1; i++) {
		assert_int_equal(first->at[i].page, ROOT + i);
		assert_int_equal(last->at[PAGES - tables + i].page, ROOT + i);
	}
	assert_int_equal(first->at[tables - 1].page, PAGES - 1);
	assert_int_equal(first->at[tables].page, 0);
	assert_int_equal(last->at[PAGES - 1].page, PAGES - 1);
	free(first);
	free(last);
	machine_destroy(m);
}

TEST(guided_reads_a_table_before_its_frames_and_behind_them)
{
	struct machine *m = machine_create(5, 150);
	struct result *r = run(m, &guided_order, NULL);

	for (size_t t = 0; t < 5; t++)
		for (size_t i = 0; i < 150; i++) {
			const uint64_t frame = FRAMES + t * 150 + i;

			check_between(r, PT + t, frame);
			check_between(r, PD, frame);
			check_between(r, PDPT, frame);
			check_between(r, ROOT, frame);
			assert_int_equal(r->captures[frame], 1);
		}
	for (uint64_t t = ROOT; t < PT + 5; t++) {
		assert_int_equal(r->captures[t], 2);
		assert_int_equal(m->reads[t], 2);
		assert_int_equal(newest(r, t)->reason, RSZ_TABLE_AGAIN);
	}
	assert_true(readers > 1 ? r->unread > 0 : !r->unread); /* the rest */
	assert_int_equal(r->count, PAGES + 4 + 4);
	assert_int_equal(r->memory.guided_pages, 5 * 150 + 4 + 4);
	assert_int_equal(r->memory.retaken_pages, 0);
	free(r);
	machine_destroy(m);
}

TEST(guided_takes_again_what_changed)
{
	struct machine *m = machine_create(1, 10);
	struct result *r;

	/* While the frames are read, entry 3 comes to name a page that was captured with them. */
	m->changes[m->n_changes++] =
		(struct rule){ FRAMES + 9, 1, PT, 3, (FRAMES + 5) * PAGE_SIZE | PRIVATE };
	m->changes[m->n_changes++] = (struct rule){ FRAMES + 9, 1, FRAMES + 5, 0, 0x77 << 1 };
	r = run(m, &guided_order, NULL);
	assert_int_equal(r->captures[FRAMES + 5], 2);
	assert_int_equal(newest(r, FRAMES + 5)->reason, RSZ_TABLE_CHANGED);
	assert_int_equal(newest(r, FRAMES + 5)->word, 0x77 << 1);
	assert_true(newest(r, FRAMES + 5)->end <= newest(r, PT)->start);
	assert_int_equal(r->memory.retaken_pages, 1);
	assert_int_equal(r->memory.tables_changed, 1);
	assert_int_equal(r->memory.tables_unsettled, 0);
	assert_int_equal(m->reads[PT], 3);
	free(r);
	machine_destroy(m);
}

/* Two neighbours, of which one was captured before: each capture says how many came before it. */
TEST(guided_takes_neighbours_apart_that_were_captured_differently_often)
{
	struct machine *m = machine_create(1, 10);
	struct result *r;

	for (size_t i = 0; i < 2; i++)
		m->changes[m->n_changes++] =
			(struct rule){ FRAMES + 9, 1, PT, i,
				       (FRAMES + 9 + i) * PAGE_SIZE | PRIVATE };
	r = run(m, &guided_order, NULL);
	assert_int_equal(r->captures[FRAMES + 9], 2);
	assert_int_equal(newest(r, FRAMES + 9)->reason, RSZ_TABLE_CHANGED);
	assert_int_equal(r->captures[FRAMES + 10], 1);
	assert_int_equal(newest(r, FRAMES + 10)->reason, RSZ_FIRST);
	check_between(r, PT, FRAMES + 10);
	free(r);
	machine_destroy(m);
}

/*
 * What the pass before saw
 */

/* A group's worth of frames for each table: so each has its own group, and bracket. */
#define EACH 300

static struct table_prints look_before(const struct machine *m, size_t tables)
{
	struct table_prints p = { .entries = { .os = OS_WINDOWS } };

	for (uint64_t page = ROOT; page < PT; page++)
		table_prints_add(&p, &(struct printed_table){ 4 + ROOT - (unsigned)page,
							      page * PAGE_SIZE, 0,
							      (const uint8_t *)m->words[page] });
	for (size_t t = 0; t < tables; t++)
		table_prints_add(&p, &(struct printed_table){ 1, (PT + t) * PAGE_SIZE,
							      t * TABLE_ENTRIES * PAGE_SIZE,
							      (const uint8_t *)m->words[PT + t] });
	return p;
}

static struct result *run_from(struct machine *m, struct table_prints *prints)
{
	struct result *r = run_plan(m, &guided_order, (struct memory_plan){ .prints = prints });

	table_prints_deinit(prints);
	return r;
}

/* With the last frame of the first table, frame 5 becomes what table `t` names at entry `at`. */
static void gets_another(struct machine *m, size_t t, size_t at)
{
	m->changes[m->n_changes++] = (struct rule){ FRAMES + EACH - 1, 1, PT + t, at,
						    (FRAMES + 5) * PAGE_SIZE | PRIVATE };
	m->changes[m->n_changes++] =
		(struct rule){ FRAMES + EACH - 1, 1, FRAMES + 5, 0, 0x77 << 1 };
}

TEST(guided_takes_again_what_another_entry_got)
{
	for (size_t at = EACH - 1; at < TABLE_ENTRIES - 1; at += 53) {
		struct machine *m = machine_create(3, EACH);
		struct table_prints before = look_before(m, 3);
		struct result *r;

		gets_another(m, 2, at);
		r = run_from(m, &before);
		assert_int_equal(r->captures[FRAMES + 5], 2);
		check_between(r, PT + 2, FRAMES + 5);
		assert_true(oldest(r, FRAMES + 5)->end <= newest(r, PT)->start);
		assert_int_equal(newest(r, FRAMES + 5)->reason, RSZ_TABLE_CHANGED);
		assert_int_equal(newest(r, FRAMES + 5)->word, 0x77 << 1);
		assert_int_equal(r->memory.retaken_pages, 1);
		assert_int_equal(r->memory.not_retaken, 0);
		free(r);
		machine_destroy(m);
	}
}

/* What the pass before saw as it is now was captured in between: once is enough. */
TEST(guided_does_not_take_again_what_stood)
{
	struct machine *m = machine_create(3, EACH);
	struct table_prints before;
	struct result *r;

	for (size_t i = 0; i < EACH; i++)
		name(m, PT + 2, i, FRAMES + i, SHARED);
	before = look_before(m, 3);
	for (size_t i = 0; i < EACH; i++)
		m->words[PT + 2][i] |= 0x60 | UINT64_C(5) << 52; /* accessed, dirty, and an age */
	r = run_from(m, &before);
	for (size_t i = 0; i < EACH; i++)
		assert_int_equal(r->captures[FRAMES + i], 1);
	assert_int_equal(r->memory.retaken_pages, 0);
	free(r);
	machine_destroy(m);
}

/* A table that the pass before did not see, or saw at another place, may name anything. */
TEST(guided_takes_again_what_a_new_table_names)
{
	for (int moved = 0; moved < 2; moved++) {
		struct machine *m = machine_create(3, EACH);
		struct table_prints before = look_before(m, 2);
		struct result *r;

		if (moved)
			table_prints_add(&before, &(struct printed_table){
							  1, (PT + 2) * PAGE_SIZE, 0,
							  (const uint8_t *)m->words[PT + 2] });
		name(m, PT + 2, 0, FRAMES + 5, SHARED);
		name(m, PT + 2, 1, FRAMES + 5, SHARED); /* twice: captured once more all the same */
		r = run_from(m, &before);
		assert_int_equal(r->captures[FRAMES + 5], 2);
		check_between(r, PT + 2, FRAMES + 5);
		free(r);
		machine_destroy(m);
	}
}

TEST(guided_takes_large_pages_again)
{
	struct machine *m = machine_create(2, EACH);
	struct table_prints before = look_before(m, 2);
	struct result *r;

	/* The table above the two is read before them: from there the large page is known. */
	name(m, PD, 1, 0, PRIVATE | PTE_LARGE);
	name(m, PDPT, 1, 30, PRIVATE);
	name(m, 30, 0, 0, PRIVATE | PTE_LARGE);
	r = run_from(m, &before);
	for (uint64_t page = FRAMES; page < 512; page++)
		assert_int_equal(r->captures[page], 2);
	check_between(r, 30, FRAMES);
	free(r);
	machine_destroy(m);
}

/* The kernel's half changes all the time, and is in no measure. */
TEST(guided_takes_nothing_again_for_the_kernel)
{
	struct machine *m = machine_create(1, EACH);
	struct table_prints before = look_before(m, 1);
	struct result *r;

	name(m, ROOT, 400, 20, PRIVATE);
	name(m, 20, 0, 21, PRIVATE);
	name(m, 21, 0, 22, PRIVATE);
	name(m, 22, 0, FRAMES + 5, PRIVATE);
	r = run_from(m, &before);
	assert_int_equal(r->captures[FRAMES + 5], 1);
	free(r);
	machine_destroy(m);
}

/* Tables that all came later, and name the same: each page so often, and all of it together. */
TEST(guided_takes_again_within_bounds)
{
	for (uint64_t most = 0; most < 600; most += 150) {
		struct machine *m = machine_create(6, EACH);
		struct table_prints before = look_before(m, 1);
		struct result *r;

		for (size_t t = 1; t < 6; t++)
			for (size_t i = 0; i < EACH; i++)
				name(m, PT + t, i, FRAMES + i, PRIVATE);
		r = run_plan(m, &guided_order,
			     (struct memory_plan){ .prints = &before, .again_max = most });
		assert_int_equal(r->memory.retaken_pages, most ? most : 3 * EACH);
		assert_int_equal(r->memory.not_retaken, 5 * EACH - (most ? most : 3 * EACH));
		for (size_t i = 0; i < EACH; i++)
			assert_in_range(r->captures[FRAMES + i], 1, 4);
		table_prints_deinit(&before);
		free(r);
		machine_destroy(m);
	}
}

/* A page that was a table, was freed, and is a process's now. */
TEST(guided_takes_again_what_was_a_table)
{
	struct machine *m = machine_create(3, EACH);
	struct table_prints before = look_before(m, 3);
	struct result *r;

	m->changes[m->n_changes++] = (struct rule){ FRAMES + EACH - 1, 1, PD, 0, 0 };
	m->changes[m->n_changes++] =
		(struct rule){ FRAMES + EACH - 1, 1, PT + 2, 2, PT * PAGE_SIZE | PRIVATE };
	r = run_from(m, &before);
	/*
	 * Its last reading as a table waits to go out, and the order of captures is that of time.
	 */
	assert_int_equal(r->captures[PT], 2);
	assert_int_equal(r->memory.not_retaken, 1);
	free(r);
	machine_destroy(m);
}

/*
 * Slots
 */

#define SLOT(n) ((uint64_t)(n) << 32 | 4 << 5) /* _MMPTE_SOFTWARE of Windows 7, page file 0 */

/*
 * A page file; its first read sets off the rules for page 0, which nothing else reads. One that
 * hangs is read by a thread of its own, and answers when the last page of memory has been read.
 */
struct page_file {
	struct reader reader;
	struct machine *machine;
	struct extract *file;
	struct slots *slots;
	struct stream_result result;
};

static uint32_t page_file_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	struct page_file *f = (struct page_file *)r;

	(void)off;
	memset(buf, 1, len);
	*good = len;
	if (f->machine->hangs)
		sem_wait(&f->machine->read_all);
	else
		after_read(f->machine, 0);
	return 0;
}

static void page_file_close(struct reader *r)
{
	(void)r;
}

static const struct reader_ops page_file_ops = { .kind = "made up",
						 .read = page_file_read,
						 .close = page_file_close };

static struct result *run_with_slots(struct machine *m)
{
	const struct entry_reader entries = {
		.os = OS_WINDOWS,
		.windows = { .layout = &win_pte_layouts[0], .store = -1 },
	};
	struct page_file f = {
		.reader = { .ops = &page_file_ops, .size = 1024 * PAGE_SIZE, .sector = 512 },
		.machine = m
	};
	struct slots_file file = { .stream = 1, .result = &f.result };
	struct table_prints before = look_before(m, 3);
	struct result *r;
	struct err e = ERR_INIT;
	bool taken;

	CHECK_OK(extract_open_whole(&f.reader, "made up", &f.file, &e), &e);
	CHECK_OK(slots_create(&entries, !m->hangs, &f.slots, &e), &e);
	file.source = f.file;
	CHECK_OK(slots_add_file(f.slots, 0, &file, &taken, &e), &e);
	r = run_plan(m, &guided_order, (struct memory_plan){ .prints = &before, .slots = f.slots });
	slots_destroy(f.slots);
	extract_close(f.file);
	table_prints_deinit(&before);
	return r;
}

/* Of the last two readings of a table, one was over before it, the other began behind it. */
static void check_around(const struct result *r, uint64_t table, const struct seen *slot)
{
	const struct seen *last = newest(r, table), *earlier = NULL;

	for (const struct seen *s = r->at; s < last; s++)
		if (s->page == table)
			earlier = s;
	if (!earlier)
		abort();
	assert_true(earlier->end <= slot->start && slot->end <= last->start);
}

TEST(guided_reads_tables_again_behind_their_slots)
{
	struct machine *m = machine_create(3, EACH);
	struct result *r;

	m->words[PT][400] = SLOT(7);
	m->words[PT][401] = SLOT(8);
	m->words[PT + 2][300] = SLOT(300);
	m->words[PT + 2][301] = SLOT(7); /* as it was before: once will do */
	/* Another one than the pass before saw, beside the two: none of the three twice. */
	m->changes[m->n_changes++] = (struct rule){ ROOT, 1, PT, 402, SLOT(9) };
	r = run_with_slots(m);
	assert_int_equal(r->n_slots, 4);
	for (size_t i = 0; i < 3; i++)
		check_around(r, PT, &r->slots[i]);
	check_around(r, PT + 2, &r->slots[3]);
	for (uint64_t t = ROOT; t < PT; t++)
		check_around(r, t, &r->slots[3]); /* with the way to them */
	assert_int_equal(r->captures[PT], 3);
	assert_int_equal(r->captures[PT + 1], 2);
	assert_int_equal(r->captures[PT + 2], 3);
	assert_int_equal(r->memory.retaken_pages, 0);
	free(r);
	machine_destroy(m);
}

/* While its slot is read, an entry comes back to a frame that was captured for another one. */
TEST(guided_takes_what_came_back_from_a_slot)
{
	struct machine *m = machine_create(3, EACH);
	struct result *r;

	m->words[PT][400] = SLOT(7);
	m->changes[m->n_changes++] =
		(struct rule){ 0, 1, PT, 400, (FRAMES + 5) * PAGE_SIZE | PRIVATE };
	r = run_with_slots(m);
	assert_int_equal(r->captures[FRAMES + 5], 2);
	assert_true(newest(r, FRAMES + 5)->end <= newest(r, PT)->start);
	/* The reading that said so is kept: it is the beginning of a bracket. */
	assert_int_equal(r->captures[PT], 4);
	free(r);
	machine_destroy(m);
}

/* And one goes to another slot meanwhile, which had been read already, and so on for ever. */
TEST(guided_reads_slots_that_are_named_meanwhile)
{
	struct machine *m = machine_create(3, EACH);
	struct result *r;

	m->words[PT][400] = SLOT(7);
	m->words[PT][401] = SLOT(8);
	m->changes[m->n_changes++] = (struct rule){ 0, 1, PT, 400, SLOT(8) };
	m->changes[m->n_changes++] = (struct rule){ 0, 2, PT, 401, SLOT(20) };
	m->changes[m->n_changes++] = (struct rule){ 0, 3, PT, 402, SLOT(21) };
	r = run_with_slots(m);
	assert_int_equal(r->n_slots, 3);
	assert_int_equal(r->slots[2].page, 8);
	assert_int_equal(r->slots[2].pass, 1);
	check_around(r, PT, &r->slots[2]);
	assert_int_equal(r->captures[PT], 4);
	free(r);
	machine_destroy(m);
}

/*
 * A table still waits for its slot when all of the memory has been read. What it comes to name then
 * was captured with the rest, and is captured once more, for the table.
 */
TEST(guided_takes_again_from_the_rest_for_a_table_that_waited)
{
	const uint64_t frame = FRAMES + EACH + 5;
	struct machine *m = machine_create(1, EACH);
	struct result *r;

	m->hangs = true;
	m->words[PT][400] = SLOT(7);
	m->changes[m->n_changes++] =
		(struct rule){ PAGES - 1, 1, PT, 401, frame * PAGE_SIZE | PRIVATE };
	r = run_with_slots(m);
	assert_int_equal(r->n_slots, 1);
	assert_int_equal(r->captures[frame], 2);
	assert_int_equal(newest(r, frame)->reason, RSZ_TABLE_CHANGED);
	assert_true(newest(r, frame)->end <= newest(r, PT)->start);
	free(r);
	machine_destroy(m);
}

/* Accessed, dirty and rights are no other frame. */
TEST(guided_does_not_mind_flags)
{
	struct machine *m = machine_create(1, 10);
	struct result *r;

	m->changes[m->n_changes++] =
		(struct rule){ FRAMES + 9, 1, PT, 3, (FRAMES + 3) * PAGE_SIZE | PRIVATE | 0x60 };
	r = run(m, &guided_order, NULL);
	assert_int_equal(m->reads[PT], 2);
	assert_int_equal(r->memory.tables_changed, 0);
	free(r);
	machine_destroy(m);
}

/* Windows' transition pages, as they stand and with a bit of InvalidPteMask; not prototypes. */
TEST(guided_follows_transition_pages)
{
	struct machine *m = machine_create(1, 10);
	struct result *r;

	m->words[PT][20] = (FRAMES + 900) * PAGE_SIZE | 0x880;
	m->words[PT][21] = ((FRAMES + 901) * PAGE_SIZE | 0x890) ^ UINT64_C(1) << 45;
	m->words[PT][22] = (FRAMES + 902) * PAGE_SIZE | 0xc80;
	r = run(m, &guided_order, NULL);
	check_between(r, PT, FRAMES + 900);
	check_between(r, PT, FRAMES + 901);
	assert_true(newest(r, FRAMES + 902)->start >= newest(r, PT)->end);
	free(r);
	machine_destroy(m);
}

TEST(guided_gives_up_on_a_table_that_never_settles)
{
	struct machine *m = machine_create(2, 10);
	struct result *r;

	m->churn = PT;
	r = run(m, &guided_order, NULL);
	assert_int_equal(r->memory.tables_changed, 1);
	assert_int_equal(r->memory.tables_unsettled, 1);
	assert_int_equal(m->reads[PT], 5);
	assert_int_equal(m->reads[PT + 1], 2);
	free(r);
	machine_destroy(m);
}

TEST(guided_walks_tables_that_appear_meanwhile)
{
	struct machine *m = machine_create(1, 10);
	struct result *r;

	/* A second page table, while the frames of the first are read. */
	name(m, PT + 1, 0, FRAMES + 700, PRIVATE);
	m->changes[m->n_changes++] =
		(struct rule){ FRAMES + 9, 1, PD, 1, (PT + 1) * PAGE_SIZE | PRIVATE };
	r = run(m, &guided_order, NULL);
	check_between(r, PT + 1, FRAMES + 700);
	free(r);
	machine_destroy(m);
}

TEST(guided_walks_spaces_that_begin_meanwhile)
{
	struct address_space *later = calloc(1, sizeof(*later)); /* the feed's to free */
	struct machine *m = machine_create(1, 10);
	struct result *r;

	name(m, 20, 0, 21, PRIVATE);
	name(m, 21, 0, 22, PRIVATE);
	name(m, 22, 0, 23, PRIVATE);
	name(m, 23, 7, FRAMES + 800, PRIVATE);
	assert_non_null(later);
	later->process = (struct process){ .has_dtb = true, .dtb = 20 * PAGE_SIZE };
	found_later.spaces = later;
	found_later.n_spaces = 1;
	r = run(m, &guided_order, NULL);
	check_between(r, 23, FRAMES + 800);
	free(r);
	machine_destroy(m);
}

/* A large page beside page tables: its frames do not wait for theirs, and are read once. */
TEST(guided_reads_large_pages)
{
	struct machine *m = machine_create(2, 10);
	struct result *r;

	name(m, PD, 2, 512, PRIVATE | PTE_LARGE);
	name(m, PD, 3, 1024, PRIVATE | PTE_LARGE);
	name(m, PD, 4, 1536, PRIVATE | PTE_LARGE);
	r = run(m, &guided_order, NULL);
	for (uint64_t page = 512; page < 2048; page++) {
		check_between(r, PD, page);
		assert_int_equal(r->captures[page], 1);
	}
	check_between(r, PD, FRAMES);
	check_between(r, PT, FRAMES);
	assert_int_equal(r->captures[PD], 2);
	/* They come before what lies below the same table. */
	assert_true(newest(r, 2047)->end <= oldest(r, PT)->start);
	free(r);
	machine_destroy(m);
}

TEST(guided_reads_a_shared_frame_once)
{
	struct machine *m = machine_create(2, 200);
	struct result *r;

	for (size_t i = 0; i < 200; i++)
		name(m, PT + 1, i, FRAMES + i, SHARED);
	r = run(m, &guided_order, NULL);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(r->captures[FRAMES + i], 1);
	free(r);
	machine_destroy(m);
}

/* Tables that name themselves, each other, nothing, and everything. */
TEST(guided_ends_on_hostile_tables)
{
	struct machine *m = machine_create(1, 0);
	struct result *r;
	uint64_t x = 1;

	for (uint64_t page = ROOT; page < PAGES; page++)
		for (size_t i = 0; i < TABLE_ENTRIES; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			m->words[page][i] = i % 5 ? (x % (PAGES + 64)) * PAGE_SIZE | PRIVATE |
							    (i % 7 ? 0 : PTE_LARGE)
						  : x;
		}
	r = run(m, &guided_order, NULL);
	for (size_t i = 0; i < PAGES; i++)
		assert_true(m->reads[i] <= 3);
	free(r);
	machine_destroy(m);
}

TEST(guided_keeps_what_it_has_when_a_signal_comes)
{
	for (unsigned at = 1; at < 700; at += 13) {
		struct machine *m = machine_create(5, 150);
		struct result *r;
		size_t skipped = 0;

		m->stop_at = at;
		r = run(m, &guided_order, NULL);
		assert_int_equal(r->memory.stopped, ST_INTERRUPTED);
		for (size_t i = 0; i < r->count; i++)
			skipped += r->at[i].status.state == PAGE_SKIPPED &&
				   r->at[i].status.detail == SKIP_INTERRUPTED;
		assert_true(skipped > 0 && skipped < PAGES);
		free(r);
		machine_destroy(m);
	}
}

TEST(guided_keeps_what_it_has_when_the_source_dies)
{
	static const uint64_t at[] = { ROOT, PD, PT + 2, FRAMES + 1, FRAMES + 740, PAGES - 1 };

	for (size_t k = 0; k < ARRAY_SIZE(at); k++) {
		struct machine *m = machine_create(5, 150);
		struct result *r;

		m->dies_at = at[k];
		r = run(m, &guided_order, NULL);
		assert_int_equal(r->memory.stopped, ST_SOURCE_FAILED);
		assert_int_equal(newest(r, at[k])->status.state, PAGE_SKIPPED);
		free(r);
		machine_destroy(m);
	}
}

TEST(guided_without_spaces_is_linear)
{
	struct machine *m = machine_create(3, 100);
	const struct memory_plan plan = { .source = &m->drv };
	struct memory_result result = { 0 };
	struct rsz_extent extents[STREAM_EXTENTS];
	struct page_status *pages = malloc(STREAM_SKIP / PAGE_SIZE * sizeof(*pages));
	struct stream_piece p = { .extents = extents,
				  .pages = pages,
				  .data = malloc(STREAM_CHUNK) };
	struct stream_feed *feed;
	struct err e = ERR_INIT;
	uint64_t at = 0;

	CHECK_OK(guided_order.open(&plan, &result, &feed, &e), &e);
	for (; !feed->next(feed, &p, &e); p.n_extents = 0) {
		assert_int_equal(p.n_extents, 1);
		assert_int_equal(p.extents[0].address, at);
		at += p.extents[0].length;
	}
	assert_int_equal(at, PAGES * PAGE_SIZE);
	guided_order.close(feed);
	free(p.data);
	free(pages);
	machine_destroy(m);
}

static uint64_t machine_now(void *arg)
{
	return ((struct machine *)arg)->now;
}

/*
 * One page table names the frames FRAMES + 3 * i, so that the rest lies between them in twos. The
 * number of requests, which took so long each and for each page.
 */
static uint64_t requests_for(uint64_t request_ns, uint64_t page_ns, uint64_t bad)
{
	struct machine *m = machine_create(1, 0);
	struct result *r;
	uint64_t ret;

	for (size_t i = 0; i < 200; i++)
		name(m, PT, i, FRAMES + 3 * i, PRIVATE);
	for (size_t i = FRAMES; i < PAGES; i++)
		m->words[i][0] = i << 1;
	m->bad = bad;
	m->request_ns = request_ns;
	m->page_ns = page_ns;
	m->now = 1;
	clock_use(machine_now, m);
	r = run(m, &guided_order, NULL);
	clock_use(NULL, NULL);
	for (size_t i = 0; i < r->count; i++) {
		const struct seen *s = &r->at[i];

		if (bad && s->page == bad) {
			assert_int_equal(s->status.state, PAGE_UNREADABLE);
			continue;
		}
		assert_int_equal(s->status.state, PAGE_DATA);
		if (s->page >= FRAMES)
			assert_int_equal(s->word, s->page << 1);
	}
	for (uint64_t i = FRAMES; i < PAGES; i++)
		assert_int_equal(r->captures[i], 1);
	ret = m->requests;
	free(r);
	machine_destroy(m);
	return ret;
}

/* What was captured before is read along with the rest, and dropped, if that takes no longer. */
TEST(guided_rest_takes_fewer_requests_where_those_cost_more)
{
	const uint64_t cheap = requests_for(1000, 2000, 0);
	const uint64_t dear = requests_for(3000, 2000, 0);

	assert_in_range(cheap, 400, 440);
	/* Three pieces are all there is, and are cut before anybody knows what a read costs. */
	assert_in_range(dear, 200, readers > 1 ? 440 : 240);
}

TEST(guided_reads_nothing_along_once_a_page_could_not_be_read)
{
	assert_true(requests_for(3000, 2000, FRAMES + 3) >= 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linear_reads_every_page_once_in_order),
		cmocka_unit_test(tables_come_first_or_last),
		cmocka_unit_test(guided_reads_a_table_before_its_frames_and_behind_them),
		cmocka_unit_test(guided_takes_again_what_changed),
		cmocka_unit_test(
			guided_takes_neighbours_apart_that_were_captured_differently_often),
		cmocka_unit_test(guided_takes_again_what_another_entry_got),
		cmocka_unit_test(guided_does_not_take_again_what_stood),
		cmocka_unit_test(guided_takes_again_what_a_new_table_names),
		cmocka_unit_test(guided_takes_large_pages_again),
		cmocka_unit_test(guided_takes_nothing_again_for_the_kernel),
		cmocka_unit_test(guided_takes_again_within_bounds),
		cmocka_unit_test(guided_takes_again_what_was_a_table),
		cmocka_unit_test(guided_reads_tables_again_behind_their_slots),
		cmocka_unit_test(guided_takes_what_came_back_from_a_slot),
		cmocka_unit_test(guided_reads_slots_that_are_named_meanwhile),
		cmocka_unit_test(guided_takes_again_from_the_rest_for_a_table_that_waited),
		cmocka_unit_test(guided_does_not_mind_flags),
		cmocka_unit_test(guided_follows_transition_pages),
		cmocka_unit_test(guided_gives_up_on_a_table_that_never_settles),
		cmocka_unit_test(guided_walks_tables_that_appear_meanwhile),
		cmocka_unit_test(guided_walks_spaces_that_begin_meanwhile),
		cmocka_unit_test(guided_reads_large_pages),
		cmocka_unit_test(guided_reads_a_shared_frame_once),
		cmocka_unit_test(guided_ends_on_hostile_tables),
		cmocka_unit_test(guided_keeps_what_it_has_when_a_signal_comes),
		cmocka_unit_test(guided_keeps_what_it_has_when_the_source_dies),
		cmocka_unit_test(guided_without_spaces_is_linear),
		cmocka_unit_test(guided_rest_takes_fewer_requests_where_those_cost_more),
		cmocka_unit_test(guided_reads_nothing_along_once_a_page_could_not_be_read),
	};

	const int alone = cmocka_run_group_tests_name("one reader", tests, NULL, NULL);

	readers = READERS;
	return alone + cmocka_run_group_tests_name("three readers", tests, NULL, NULL);
}
