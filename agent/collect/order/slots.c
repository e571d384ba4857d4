/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/slots_internal.h"

#include <string.h>

#include "agent/shared/paging/walk.h"
#include "agent/shared/program/clock.h"
#include "formats/base/bytes.h"
#include "formats/base/left.h"

/* The memory waits one part in so many of its time, and this on top in the beginning. */
#define WAIT_SHARE 5
#define WAIT_FIRST (NS_PER_SECOND / 20)
#define WORD_BITS  64

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
 * Wanting
 */

/* What an entry of the lowest level names; NULL if it is no slot of a file that is here. */
static struct slots_area *find_slot(struct slots *s, uint64_t raw, struct slot_want *ret)
{
	struct slots_area *f;
	struct pte p;

	if (!raw || (raw & PTE_PRESENT))
		return NULL;
	p = entry_decode(&s->entries, 1, raw);
	if ((p.state != PTE_PAGE_FILE && p.state != PTE_SWAP) || p.file >= PTE_FILES_MAX)
		return NULL;
	f = &s->files[p.file];
	*ret = (struct slot_want){ s->round, p.file, p.slot };
	return p.slot < f->pages ? f : NULL;
}

size_t slots_count(struct slots *s, const uint8_t *table)
{
	struct slot_want w;
	size_t n = 0;

	for (size_t i = 0; s && i < TABLE_ENTRIES; i++) {
		const struct slots_area *f = find_slot(s, get_le64(table + 8 * i), &w);

		n += f && !has_slot_bit(f->read, w.page);
	}
	return n;
}

bool slots_due(struct slots *s, const uint8_t *table)
{
	struct slot_want w;

	for (size_t i = 0; s && i < TABLE_ENTRIES; i++) {
		const struct slots_area *f = find_slot(s, get_le64(table + 8 * i), &w);

		if (f && has_slot_bit(f->due, w.page))
			return true;
	}
	return false;
}

static int compare_wants(const void *a, const void *b)
{
	const struct slot_want *x = a, *y = b;

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
static bool is_slot_wanted(const struct slots_area *f, uint64_t page, bool changed)
{
	return !has_slot_bit(f->read, page) || (changed && !has_slot_bit(f->again, page));
}

size_t slots_want(struct slots *s, const uint8_t *table, uint64_t changed)
{
	struct slot_want w;
	size_t n = 0;

	/* The oldest make room for a table's. */
	if (s)
		drop_wants(s, SLOTS_WANTS_MAX - TABLE_ENTRIES);
	for (size_t i = 0; s && i < TABLE_ENTRIES; i++) {
		const struct slots_area *f = find_slot(s, get_le64(table + 8 * i), &w);

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
static uint64_t *slot_bits_of(struct slots_area *f, unsigned pass)
{
	return pass ? f->again : f->read;
}

static struct rsz_extent extent_of(const struct slots_area *f, uint64_t page)
{
	const bool again = has_slot_bit(f->read, page);

	return (struct rsz_extent){
		.address = page * PAGE_SIZE,
		.length = PAGE_SIZE,
		.pass = again,
		.reason = again ? RSZ_TABLE_CHANGED : RSZ_FIRST,
	};
}

static void stage_page(struct slots *s, struct slots_area *f, uint64_t page)
{
	const struct rsz_extent one = extent_of(f, page);

	flip_bit(slot_bits_of(f, one.pass), page);
	if (!s->n_extents || !slots_join(&s->extents[s->n_extents - 1], &one))
		s->extents[s->n_extents++] = one;
}

/*
 * How many pages lie between the stage and the next that is wanted, if none was read or wanted yet.
 */
static size_t gap_before(const struct slots *s, const struct slots_area *f, uint64_t page)
{
	const struct rsz_extent *last = s->n_extents ? &s->extents[s->n_extents - 1] : NULL;
	const uint64_t from = last && !last->pass ? slots__end_of(last) / PAGE_SIZE : page;

	if (page <= from || page - from > SLOTS_GAP_PAGES || has_slot_bit(f->read, page))
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
	for (; taken < s->n_wants && pages < SLOTS_STAGE_PAGES; taken++) {
		const struct slot_want *w = &s->wants[taken];
		struct slots_area *f = &s->files[w->file];
		size_t gap;

		if (pages && w->file != s->file)
			break;
		s->file = w->file;
		gap = gap_before(s, f, w->page);
		if (pages + gap < SLOTS_STAGE_PAGES)
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

static void begin_stage(struct slots *s)
{
	if (slots__state(s) != STAGE_EMPTY || cache_lookups_pending(s->lookups) || !take_wants(s))
		return;
	cache_lookups_make(s->lookups, s->file, s->extents, s->n_extents, &s->counts);
	if (s->patient) {
		slots__read_stage(s);
		slots__set_state(s, STAGE_FULL);
	} else {
		slots__set_state(s, STAGE_READING);
	}
}

/*
 * Moves what was read into `p`. False: none of it could be. A run that could not even be tried has
 * no end, and its pages are the rest's.
 */
static bool take_stage(struct slots *s, struct stream_piece *p)
{
	struct slots_area *f = &s->files[s->file];
	size_t pages = 0;

	for (size_t i = 0; i < s->n_extents; i++) {
		const struct rsz_extent *x = &s->extents[i];

		flip_bits(f->due, x);
		if (!x->end) {
			flip_bits(slot_bits_of(f, x->pass), x);
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
	slots__set_state(s, STAGE_EMPTY);
	begin_stage(s);
	return pages != 0;
}

/*
 * Waiting
 */

/* How long the memory may wait now. */
static uint64_t wait_allowance(struct slots *s)
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
	most = wait_allowance(s);
	begin_stage(s);
	if (cache_lookups_take(s->lookups, &s->files[s->file].file, p))
		return true;
	if (most && slots__state(s) == STAGE_READING)
		s->counts.waited_ns += slots__wait(s, most);
	return slots__state(s) == STAGE_FULL && take_stage(s, p);
}

bool slots_end(struct slots *s, struct stream_piece *p)
{
	if (!s)
		return false;
	drop_wants(s, 0);
	if (cache_lookups_take(s->lookups, &s->files[s->file].file, p))
		return true;
	if (slots__state(s) == STAGE_READING)
		slots__wait(s, UINT64_MAX);
	return slots__state(s) == STAGE_FULL && take_stage(s, p);
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
	struct slots_area *to = &s->files[number];

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

enum status slots_create(const struct entry_reader *entries, bool patient, struct slots **ret,
			 struct err *e)
{
	struct slots *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	s->entries = *entries;
	s->patient = patient;
	slots__init_reader(s);
	s->memory = malloc(STREAM_CHUNK + PAGE_SIZE);
	if (!s->memory) {
		slots_destroy(s);
		return err_nomem(e);
	}
	s->data = (uint8_t *)s->memory + PAGE_SIZE - (uintptr_t)s->memory % PAGE_SIZE;
	st = patient ? ST_OK : slots__start_reader(s, e);
	if (st)
		slots_destroy(s);
	else
		*ret = s;
	return st;
}

enum status slots_use_cache(struct slots *s, struct swap_cache *cache, struct err *e)
{
	return cache_lookups_create(cache, &s->lookups, e);
}

void slots_leave(struct slots *s)
{
	if (!s)
		return;
	slots__end_reader(s);
	left_keep(s);
}

void slots_destroy(struct slots *s)
{
	if (!s)
		return;
	slots__end_reader(s);
	cache_lookups_destroy(s->lookups);
	slots__deinit_reader(s);
	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		free(s->files[i].read);
		free(s->files[i].again);
		free(s->files[i].due);
	}
	free(s->memory);
	free(s);
}
