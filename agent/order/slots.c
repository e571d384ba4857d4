/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/order/slots.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "agent/order/cache_lookups.h"
#include "agent/paging/walk.h"
#include "agent/program/clock.h"
#include "formats/base/bytes.h"
#include "formats/base/left.h"

/* Wanted at once at most: some groups' worth, 32 MiB. Later they would not be near any more. */
#define WANTS_MAX   8192
/* Pages that are read in one go: a piece. */
#define STAGE_PAGES CACHE_LOOKUPS_MAX
/* What lies between two wanted ones costs less than another request. */
#define GAP_PAGES   8
/* The memory waits one part in so many of its time, and this on top in the beginning. */
#define WAIT_SHARE  5
#define WAIT_FIRST  (NS_PER_SECOND / 20)
#define WORD_BITS   64

struct file {
	struct slots_file file;
	uint64_t pages;  /* whole ones; 0: there is no such file */
	uint64_t *read;  /* one bit each: read, or being read */
	uint64_t *again; /* likewise, and it had been read before */
	uint64_t *due;   /* likewise: wanted, or being read */
};

struct want {
	uint32_t round; /* what was asked for together; the newest is the nearest */
	uint32_t file;
	uint64_t page;
};

/* Whose the stage is. */
enum stage_state {
	STAGE_EMPTY,   /* the feed's */
	STAGE_READING, /* the reader's */
	STAGE_FULL,    /* the feed's, to go out */
};

struct slots {
	struct entry_reader entries;
	bool patient;
	struct file files[PTE_FILES_MAX];
	struct want wants[WANTS_MAX];
	size_t n_wants;
	bool sorted;
	uint32_t round;
	struct slots_counts counts;
	uint64_t begun; /* monotonic ns: when somebody first asked; 0: nobody has */

	/* What is read in one go, of one file; the extents say what, before it is. */
	struct rsz_extent extents[STAGE_PAGES];
	size_t n_extents;
	struct page_status pages[STAGE_PAGES];
	void *memory;
	uint8_t *data; /* in it, on a page, as unbuffered devices want it */
	uint32_t file;
	struct cache_lookups *lookups; /* at them, by the feed's thread; NULL: nobody looks */

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t asked;
	pthread_cond_t done;
	clockid_t clock; /* that `done` waits by */
	enum stage_state state;
	bool quit;
};

/*
 * Bits
 */

static bool has_slot_bit(const uint64_t *bits, uint64_t page)
{
	return bits[page / WORD_BITS] >> page % WORD_BITS & 1;
}

static void flip_bit(uint64_t *bits, uint64_t page)
{
	bits[page / WORD_BITS] ^= UINT64_C(1) << page % WORD_BITS;
}

static void flip_bits(uint64_t *bits, const struct rsz_extent *x)
{
	for (uint64_t page = x->address / PAGE_SIZE, n = rsz_extent_pages(x); n; n--, page++)
		flip_bit(bits, page);
}

bool slots_has(const struct slots *s, uint32_t number, uint64_t page)
{
	return s && number < PTE_FILES_MAX && page < s->files[number].pages &&
	       has_slot_bit(s->files[number].read, page);
}

/*
 * The reader
 */

static uint64_t end_of(const struct rsz_extent *x)
{
	return x->address + x->length;
}

/*
 * How many extents from `i` on are read by one request: near neighbours for which there is `room`.
 */
static size_t request_at(const struct slots *s, size_t i, size_t room)
{
	const struct rsz_extent *first = &s->extents[i];
	size_t n = 1;

	for (; i + n < s->n_extents; n++) {
		const struct rsz_extent *x = first + n;

		if (x->address < end_of(x - 1) ||
		    x->address - end_of(x - 1) > GAP_PAGES * PAGE_SIZE ||
		    end_of(x) - first->address > room * PAGE_SIZE)
			break;
	}
	return n;
}

/* Reads `n` extents to `at`, and drops what lies between them. Returns where the next goes. */
static size_t read_request(struct slots *s, struct rsz_extent *x, size_t n, size_t at)
{
	const uint64_t first = x->address, start = clock_mono_ns();
	const size_t bytes = (size_t)(end_of(&x[n - 1]) - first), to = at;
	struct extract_piece piece;
	uint64_t end;

	if (extract_read(s->files[s->file].file.source, first, s->data + to * PAGE_SIZE, bytes,
			 s->pages + to, &piece, NULL) ||
	    piece.length != bytes)
		return at;
	end = clock_mono_ns();
	for (size_t i = 0; i < n; i++, x++) {
		const size_t from = to + (size_t)((x->address - first) / PAGE_SIZE);
		const size_t pages = rsz_extent_pages(x);

		x->start = start;
		x->end = end;
		memmove(s->data + at * PAGE_SIZE, s->data + from * PAGE_SIZE, x->length);
		memmove(s->pages + at, s->pages + from, pages * sizeof(*s->pages));
		at += pages;
	}
	return at;
}

static void read_stage(struct slots *s)
{
	size_t at = 0;

	for (size_t i = 0, n; i < s->n_extents; i += n) {
		n = request_at(s, i, STAGE_PAGES - at);
		at = read_request(s, &s->extents[i], n, at);
	}
}

static void *reader_thread(void *arg)
{
	struct slots *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->state != STAGE_READING && !s->quit)
			pthread_cond_wait(&s->asked, &s->lock);
		if (s->state != STAGE_READING)
			break;
		pthread_mutex_unlock(&s->lock);
		read_stage(s);
		pthread_mutex_lock(&s->lock);
		s->state = STAGE_FULL;
		pthread_cond_signal(&s->done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/*
 * Wanting
 */

/* What an entry of the lowest level names; NULL if it is no slot of a file that is here. */
static struct file *find_slot(struct slots *s, uint64_t raw, struct want *ret)
{
	struct file *f;
	struct pte p;

	if (!raw || (raw & PTE_PRESENT))
		return NULL;
	p = entry_decode(&s->entries, 1, raw);
	if ((p.state != PTE_PAGE_FILE && p.state != PTE_SWAP) || p.file >= PTE_FILES_MAX)
		return NULL;
	f = &s->files[p.file];
	*ret = (struct want){ s->round, p.file, p.slot };
	return p.slot < f->pages ? f : NULL;
}

size_t slots_count(struct slots *s, const uint8_t *table)
{
	struct want w;
	size_t n = 0;

	for (size_t i = 0; s && i < TABLE_ENTRIES; i++) {
		const struct file *f = find_slot(s, get_le64(table + 8 * i), &w);

		n += f && !has_slot_bit(f->read, w.page);
	}
	return n;
}

bool slots_due(struct slots *s, const uint8_t *table)
{
	struct want w;

	for (size_t i = 0; s && i < TABLE_ENTRIES; i++) {
		const struct file *f = find_slot(s, get_le64(table + 8 * i), &w);

		if (f && has_slot_bit(f->due, w.page))
			return true;
	}
	return false;
}

static int compare_wants(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	if (x->round != y->round)
		return x->round > y->round ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->page < y->page ? -1 : x->page > y->page;
}

static void sort_wants(struct slots *s)
{
	if (!s->sorted)
		qsort(s->wants, s->n_wants, sizeof(*s->wants), compare_wants);
	s->sorted = true;
}

/* All but the newest `keep` are not wanted any more. */
static void drop_wants(struct slots *s, size_t keep)
{
	if (s->n_wants <= keep)
		return;
	sort_wants(s);
	for (size_t i = keep; i < s->n_wants; i++)
		flip_bit(s->files[s->wants[i].file].due, s->wants[i].page);
	s->counts.dropped += s->n_wants - keep;
	s->n_wants = keep;
}

/* Once for everybody, and once more for those whose entry came to name it later. */
static bool is_slot_wanted(const struct file *f, uint64_t page, bool changed)
{
	return !has_slot_bit(f->read, page) || (changed && !has_slot_bit(f->again, page));
}

size_t slots_want(struct slots *s, const uint8_t *table, uint64_t changed)
{
	struct want w;
	size_t n = 0;

	/* The oldest make room for a table's. */
	if (s)
		drop_wants(s, WANTS_MAX - TABLE_ENTRIES);
	for (size_t i = 0; s && i < TABLE_ENTRIES; i++) {
		const struct file *f = find_slot(s, get_le64(table + 8 * i), &w);

		if (f && has_slot_bit(f->due, w.page)) {
			n++;
			continue;
		}
		if (!f || !is_slot_wanted(f, w.page, changed >> i / 8 & 1))
			continue;
		flip_bit(f->due, w.page);
		s->wants[s->n_wants++] = w;
		s->sorted = false;
		n++;
	}
	return n;
}

/*
 * The stage
 */

/* The bits that say that it was read so often. */
static uint64_t *bits_of(struct file *f, unsigned pass)
{
	return pass ? f->again : f->read;
}

static struct rsz_extent extent_of(const struct file *f, uint64_t page)
{
	const bool again = has_slot_bit(f->read, page);

	return (struct rsz_extent){
		.address = page * PAGE_SIZE,
		.length = PAGE_SIZE,
		.pass = again,
		.reason = again ? RSZ_TABLE_CHANGED : RSZ_FIRST,
	};
}

static void stage_page(struct slots *s, struct file *f, uint64_t page)
{
	const struct rsz_extent one = extent_of(f, page);

	flip_bit(bits_of(f, one.pass), page);
	if (!s->n_extents || !slots_join(&s->extents[s->n_extents - 1], &one))
		s->extents[s->n_extents++] = one;
}

/*
 * How many pages lie between the stage and the next that is wanted, if none was read or wanted yet.
 */
static size_t gap_before(const struct slots *s, const struct file *f, uint64_t page)
{
	const struct rsz_extent *last = s->n_extents ? &s->extents[s->n_extents - 1] : NULL;
	const uint64_t from = last && !last->pass ? end_of(last) / PAGE_SIZE : page;

	if (page <= from || page - from > GAP_PAGES || has_slot_bit(f->read, page))
		return 0;
	for (uint64_t i = from; i < page; i++)
		if (has_slot_bit(f->read, i) || has_slot_bit(f->due, i))
			return 0;
	return (size_t)(page - from);
}

/*
 * Fills the stage with the newest wants of one file, neighbours joined. What lies between two near
 * ones is read with them, and kept: else it would be read once more with the rest of the file.
 * Whoever comes to name it later has it captured again, like anything that somebody else had read.
 * False: there are none.
 */
static bool take_wants(struct slots *s)
{
	size_t taken = 0, pages = 0;

	sort_wants(s);
	s->n_extents = 0;
	for (; taken < s->n_wants && pages < STAGE_PAGES; taken++) {
		const struct want *w = &s->wants[taken];
		struct file *f = &s->files[w->file];
		size_t gap;

		if (pages && w->file != s->file)
			break;
		s->file = w->file;
		gap = gap_before(s, f, w->page);
		if (pages + gap < STAGE_PAGES)
			for (; gap; gap--, pages++) {
				flip_bit(f->due, w->page - gap);
				stage_page(s, f, w->page - gap);
			}
		stage_page(s, f, w->page);
		pages++;
	}
	s->n_wants -= taken;
	memmove(s->wants, s->wants + taken, s->n_wants * sizeof(*s->wants));
	return pages != 0;
}

static enum stage_state state_of(struct slots *s)
{
	enum stage_state ret;

	pthread_mutex_lock(&s->lock);
	ret = s->state;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static void set_state(struct slots *s, enum stage_state state)
{
	pthread_mutex_lock(&s->lock);
	s->state = state;
	pthread_cond_signal(&s->asked);
	pthread_mutex_unlock(&s->lock);
}

static void begin_stage(struct slots *s)
{
	if (state_of(s) != STAGE_EMPTY || cache_lookups_pending(s->lookups) || !take_wants(s))
		return;
	cache_lookups_make(s->lookups, s->file, s->extents, s->n_extents, &s->counts);
	if (s->patient) {
		read_stage(s);
		set_state(s, STAGE_FULL);
	} else {
		set_state(s, STAGE_READING);
	}
}

/*
 * Moves what was read into `p`. False: none of it could be. A run that could not even be tried has
 * no end, and its pages are the rest's.
 */
static bool take_stage(struct slots *s, struct stream_piece *p)
{
	struct file *f = &s->files[s->file];
	size_t pages = 0;

	for (size_t i = 0; i < s->n_extents; i++) {
		const struct rsz_extent *x = &s->extents[i];

		flip_bits(f->due, x);
		if (!x->end) {
			flip_bits(bits_of(f, x->pass), x);
			s->counts.failed += rsz_extent_pages(x);
			continue;
		}
		p->extents[p->n_extents++] = *x;
		pages += rsz_extent_pages(x);
		s->counts.again += x->pass ? rsz_extent_pages(x) : 0;
	}
	if (pages) {
		memcpy(p->pages, s->pages, pages * sizeof(*s->pages));
		memcpy(p->data, s->data, pages * PAGE_SIZE);
		p->stream = f->file.stream;
		p->result = f->file.result;
	}
	s->counts.read += pages;
	set_state(s, STAGE_EMPTY);
	begin_stage(s);
	return pages != 0;
}

/*
 * Waiting
 */

static struct timespec time_in(clockid_t clock, uint64_t ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / NS_PER_SECOND);
	t.tv_nsec = (long)(ns % NS_PER_SECOND);
	return t;
}

/* For at most `most` ns; UINT64_MAX: for as long as it takes. Returns how long it was. */
static uint64_t wait_for_reader(struct slots *s, uint64_t most)
{
	const uint64_t begin = clock_mono_ns();
	const struct timespec until = time_in(s->clock, most == UINT64_MAX ? 0 : most);
	int error = 0;

	pthread_mutex_lock(&s->lock);
	while (s->state == STAGE_READING && error != ETIMEDOUT)
		error = most == UINT64_MAX ? pthread_cond_wait(&s->done, &s->lock)
					   : pthread_cond_timedwait(&s->done, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
	return clock_mono_ns() - begin;
}

/* How long the memory may wait now. */
static uint64_t allowance(struct slots *s)
{
	const uint64_t now = clock_mono_ns();
	uint64_t all;

	if (!s->begun)
		s->begun = now;
	all = (now - s->begun) / WAIT_SHARE + WAIT_FIRST;
	return all > s->counts.waited_ns ? all - s->counts.waited_ns : 0;
}

bool slots_next(struct slots *s, struct stream_piece *p)
{
	uint64_t most;

	if (!s)
		return false;
	s->round++;
	most = allowance(s);
	begin_stage(s);
	if (cache_lookups_take(s->lookups, &s->files[s->file].file, p))
		return true;
	if (most && state_of(s) == STAGE_READING)
		s->counts.waited_ns += wait_for_reader(s, most);
	return state_of(s) == STAGE_FULL && take_stage(s, p);
}

bool slots_end(struct slots *s, struct stream_piece *p)
{
	if (!s)
		return false;
	drop_wants(s, 0);
	if (cache_lookups_take(s->lookups, &s->files[s->file].file, p))
		return true;
	if (state_of(s) == STAGE_READING)
		wait_for_reader(s, UINT64_MAX);
	return state_of(s) == STAGE_FULL && take_stage(s, p);
}

struct slots_counts slots_counts(const struct slots *s)
{
	return s ? s->counts : (struct slots_counts){ 0 };
}

/*
 * Life
 */

enum status slots_add_file(struct slots *s, uint32_t number, const struct slots_file *f, bool *ret,
			   struct err *e)
{
	const uint64_t pages = extract_now(f->source)->size / PAGE_SIZE;
	struct file *to = &s->files[number];

	*ret = !to->pages && pages;
	if (!*ret)
		return ST_OK;
	to->read = calloc((size_t)(pages / WORD_BITS + 1), sizeof(*to->read));
	to->again = calloc((size_t)(pages / WORD_BITS + 1), sizeof(*to->again));
	to->due = calloc((size_t)(pages / WORD_BITS + 1), sizeof(*to->due));
	if (!to->read || !to->again || !to->due)
		return err_nomem(e);
	to->file = *f;
	to->pages = pages;
	return ST_OK;
}

/* The clock that nobody sets, where conditions can wait by it. */
static void init_conditions(struct slots *s)
{
	pthread_condattr_t by;

	pthread_condattr_init(&by);
	s->clock = CLOCK_MONOTONIC;
	if (pthread_condattr_setclock(&by, CLOCK_MONOTONIC))
		s->clock = CLOCK_REALTIME;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->asked, NULL);
	pthread_cond_init(&s->done, &by);
	pthread_condattr_destroy(&by);
}

enum status slots_create(const struct entry_reader *entries, bool patient, struct slots **ret,
			 struct err *e)
{
	struct slots *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return err_nomem(e);
	s->entries = *entries;
	s->patient = patient;
	init_conditions(s);
	s->memory = malloc(STREAM_CHUNK + PAGE_SIZE);
	if (!s->memory) {
		slots_destroy(s);
		return err_nomem(e);
	}
	s->data = (uint8_t *)s->memory + PAGE_SIZE - (uintptr_t)s->memory % PAGE_SIZE;
	error = patient ? 0 : pthread_create(&s->thread, NULL, reader_thread, s);
	s->has_thread = !patient && !error;
	if (error) {
		slots_destroy(s);
		return err_from_errno(e, ST_SYSTEM, error, "a thread for page files");
	}
	*ret = s;
	return ST_OK;
}

static void end_thread(struct slots *s)
{
	if (!s->has_thread)
		return;
	pthread_mutex_lock(&s->lock);
	s->quit = true;
	pthread_cond_signal(&s->asked);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
}

enum status slots_use_cache(struct slots *s, struct swap_cache *cache, struct err *e)
{
	return cache_lookups_create(cache, &s->lookups, e);
}

void slots_leave(struct slots *s)
{
	if (!s)
		return;
	end_thread(s);
	left_keep(s);
}

void slots_destroy(struct slots *s)
{
	if (!s)
		return;
	end_thread(s);
	cache_lookups_destroy(s->lookups);
	pthread_cond_destroy(&s->done);
	pthread_cond_destroy(&s->asked);
	pthread_mutex_destroy(&s->lock);
	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		free(s->files[i].read);
		free(s->files[i].again);
		free(s->files[i].due);
	}
	free(s->memory);
	free(s);
}
