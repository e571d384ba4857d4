/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/votes.h"

#include <string.h>

#include "agent/examine/smear/mapping_run.h"
#include "formats/base/bytes.h"

/*
 * Pages of each number that are looked at. Two chunks of up to 1 MiB are decoded for each, some
 * milliseconds; one in twelve may be as it was, and the number is still confirmed.
 */
#define SAMPLE   200
/* When so many contents have voted, the rest is not asked. */
#define ENOUGH   (2 * SMEAR_VOTES)
#define CAPTURES 4                            /* of a frame that are tried */
#define MIX      UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / phi, odd */

/* Was in a frame, and in a slot. */
struct moved {
	uint64_t frame;
	uint64_t slot;
};

struct ballot {
	struct moved at[SAMPLE];
	size_t count;
	uint64_t seen;                     /* of which these are a sample */
	uint64_t tried[SAMPLE * CAPTURES]; /* contents, by their hash */
	size_t n_tried;
	uint64_t compared;             /* pages of which some content was tried */
	uint64_t votes[PTE_FILES_MAX]; /* by the file that has the content */
};

struct count {
	struct analysis *m;
	struct ballot ballots[PTE_FILES_MAX];
	struct rsz_cursor *cursor; /* of page files, */
	struct rsz_cursor *memory; /* and of frames */
	uint64_t random;
};

/*
 * Who moved
 */

static uint64_t draw_below(struct count *c, uint64_t n)
{
	c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (c->random >> 33) % n;
}

/* A sample of all, each of which has the same chance to be in it (reservoir, algorithm R). */
static void add_sample(struct count *c, uint32_t number, struct moved x)
{
	struct ballot *b = &c->ballots[number];
	const uint64_t i = b->seen < SAMPLE ? b->seen : draw_below(c, b->seen + 1);

	b->seen++;
	if (i < SAMPLE)
		b->at[i] = x;
	b->count = MIN(b->seen, SAMPLE);
}

/* In a frame by one of two entries, and in a slot by the other. */
static bool moved_between(const struct view *a, const struct view *b, uint32_t *number,
			  struct moved *ret)
{
	const struct view *frame = pte_place(&a->pte) == PLACE_FRAME ? a : b;
	const struct view *slot = frame == a ? b : a;

	if (!a->leaf || !b->leaf || a->leaf->level != 1 || b->leaf->level != 1 ||
	    pte_place(&frame->pte) != PLACE_FRAME || pte_place(&slot->pte) != PLACE_SLOT ||
	    frame->pte.state == PTE_MIGRATION || slot->pte.file >= PTE_FILES_MAX ||
	    slot->pte.slot >> 40)
		return false;
	*number = slot->pte.file;
	*ret = (struct moved){ frame->pte.frame, slot->pte.slot };
	return true;
}

static void count_slice(struct count *c)
{
	static const enum copy pairs[][2] = {
		{ COPY_IMAGE, COPY_AFTER },
		{ COPY_BEFORE, COPY_IMAGE },
		{ COPY_BEFORE, COPY_AFTER },
	};
	size_t at[COPIES] = { 0 };
	struct moved x;
	uint32_t number;
	struct mapping_run p;

	for (uint64_t va = 0; mapping_run_next(c->m, at, va, &p); va = p.va + p.pages * PAGE_SIZE)
		for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
			if (moved_between(&p.view[pairs[i][0]], &p.view[pairs[i][1]], &number,
					  &x)) {
				add_sample(c, number, x);
				break;
			}
}

static enum status count_space(struct count *c, const struct smear_id *id, struct err *e)
{
	enum status st = ST_OK;
	uint64_t last;

	if (id->fate != FATE_LIVED)
		return ST_OK;
	smear__begin_walks(c->m, id, !c->m->plan->tables_only);
	while (!st && smear__next_slice(c->m, &last)) {
		st = smear__take_slice(c->m, last, e);
		if (!st)
			count_slice(c);
	}
	smear__end_walks(c->m);
	return st;
}

/*
 * Their content
 */

/* One word, or a few, again and again; zeros among them. */
static bool is_pattern(const uint8_t *page)
{
	for (size_t period = 8; period < PAGE_SIZE; period *= 2)
		if (!memcmp(page, page + period, PAGE_SIZE - period))
			return true;
	return false;
}

/* A content has one try. Where it lies is then no matter of how many pages have it. */
static bool is_tried(struct ballot *b, const uint8_t *page)
{
	uint64_t h = 0;

	for (size_t i = 0; i < PAGE_SIZE; i += 8) {
		h = (h ^ get_le64(page + i)) * MIX;
		h ^= h >> 29;
	}
	for (size_t i = 0; i < b->n_tried; i++)
		if (b->tried[i] == h)
			return true;
	b->tried[b->n_tried++] = h;
	return false;
}

/* The newest capture; false: it was not captured, or is damaged, or not a whole page. */
static bool read_newest(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint8_t *ret)
{
	struct rsz_page p;

	if (rsz_cursor_page(c, stream, address, &p, NULL) || !p.captured ||
	    p.status.state != PAGE_DATA || p.length != PAGE_SIZE)
		return false;
	memcpy(ret, p.data, PAGE_SIZE);
	return true;
}

static bool read_older(struct rsz_cursor *c, const struct older_page *o, uint8_t *ret)
{
	return o->length == PAGE_SIZE && !captures_read_older(c, o, ret, NULL);
}

/* The one file that has it in that slot; PTE_FILES_MAX: none has, or several. */
static size_t file_with(struct count *c, uint64_t slot, const uint8_t *page)
{
	uint8_t there[PAGE_SIZE];
	size_t ret = PTE_FILES_MAX;

	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		const struct slot_file *f = &c->m->files[i];

		if (!f->captures || (f->slots && slot >= f->slots) ||
		    !read_newest(c->cursor, f->stream, slot * PAGE_SIZE, there) ||
		    memcmp(there, page, PAGE_SIZE) != 0)
			continue;
		if (ret != PTE_FILES_MAX)
			return PTE_FILES_MAX;
		ret = i;
	}
	return ret;
}

static bool vote_of(struct count *c, struct ballot *b, uint64_t slot, const uint8_t *page)
{
	size_t file;

	if (is_pattern(page) || is_tried(b, page))
		return false;
	file = file_with(c, slot, page);
	if (file < PTE_FILES_MAX)
		b->votes[file]++;
	return true;
}

/* All captures of the frame: one of them may be of the time when the page was there. */
static void ask_all_captures(struct count *c, struct ballot *b, const struct moved *x)
{
	const struct analysis *m = c->m;
	uint8_t page[PAGE_SIZE];
	bool compared = false;
	size_t n;
	const struct older_page *older = captures_older(m->memory, x->frame, &n);

	if (read_newest(c->memory, m->memory_stream, x->frame, page))
		compared = vote_of(c, b, x->slot, page);
	for (size_t i = 0; i < MIN(n, CAPTURES - 1); i++)
		if (read_older(c->memory, &older[i], page))
			compared |= vote_of(c, b, x->slot, page);
	b->compared += compared;
}

static int compare_moved(const void *a, const void *b)
{
	const struct moved *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* In the order of slots, so that chunks are decoded once for neighbours. */
static void count_votes(struct count *c, struct ballot *b)
{
	qsort(b->at, b->count, sizeof(*b->at), compare_moved);
	for (size_t i = 0; i < b->count; i++) {
		bool enough = false;

		for (size_t k = 0; k < PTE_FILES_MAX; k++)
			enough |= b->votes[k] >= ENOUGH;
		if (enough)
			break;
		ask_all_captures(c, b, &b->at[i]);
	}
}

/*
 * What follows
 */

static const char *file_name_of(const struct analysis *m, size_t file)
{
	return m->files[file].captures
		       ? rsz_reader_stream(m->plan->reader, m->files[file].stream)->name
		       : NULL;
}

static enum numbering classify_number(const struct slot_file *f, const struct number_votes *v)
{
	if (v->against >= SMEAR_VOTES)
		return NUMBERING_CONTRADICTED;
	if (!f->captures)
		return NUMBERING_NONE;
	if (!f->assumed)
		return NUMBERING_KNOWN;
	return v->votes >= SMEAR_VOTES && !v->against ? NUMBERING_CONFIRMED : NUMBERING_ASSUMED;
}

static enum status tell_number(struct analysis *m, uint32_t number, const struct ballot *b,
			       struct err *e)
{
	struct slot_file *f = &m->files[number];
	struct number_votes *v = &m->ret->numbers[m->ret->n_numbers];
	const char *name = file_name_of(m, number), *other = NULL;

	*v = (struct number_votes){ .number = number,
				    .moved = b->seen,
				    .compared = b->compared,
				    .votes = b->votes[number],
				    .store = m->ret->store == (int)number };
	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		if (i == number || b->votes[i] <= v->against)
			continue;
		v->against = b->votes[i];
		other = file_name_of(m, i);
	}
	v->numbering = classify_number(f, v);
	f->assumed = v->numbering != NUMBERING_KNOWN && v->numbering != NUMBERING_CONFIRMED;
	m->ret->n_numbers++;
	v->file = name ? strdup(name) : NULL;
	v->other = other ? strdup(other) : NULL;
	return (name && !v->file) || (other && !v->other) ? err_nomem(e) : ST_OK;
}

static bool is_of_use(const struct analysis *m)
{
	bool assumed = m->ret->store_by && strcmp(m->ret->store_by, "kernel") != 0, any = false;

	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		any |= m->files[i].captures != NULL;
		assumed |= m->files[i].captures && m->files[i].assumed;
	}
	return any && assumed && m->ret->layout.found && !m->ret->still;
}

static enum status vote_for_numbers(struct count *c, struct err *e)
{
	struct analysis *m = c->m;
	enum status st = rsz_cursor_create(m->plan->reader, PTE_FILES_MAX / 8, &c->cursor, e);

	if (!st)
		st = rsz_cursor_create(m->plan->reader, 2, &c->memory, e);
	smear__begin_budget(m);
	for (size_t i = 0; i < m->ret->spaces.count && !st; i++)
		st = count_space(c, &m->ret->spaces.at[m->order[i].index], e);
	for (uint32_t i = 0; i < PTE_FILES_MAX && !st; i++) {
		count_votes(c, &c->ballots[i]);
		if (m->files[i].captures || c->ballots[i].seen)
			st = tell_number(m, i, &c->ballots[i], e);
	}
	rsz_cursor_destroy(c->cursor);
	rsz_cursor_destroy(c->memory);
	return st;
}

enum status smear__vote(struct analysis *m, struct err *e)
{
	struct count *c;
	enum status st;

	if (!is_of_use(m))
		return ST_OK;
	m->ret->numbers_unasked = m->plan->outline;
	if (m->plan->outline)
		return ST_OK;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(e);
	c->m = m;
	st = vote_for_numbers(c, e);
	free(c);
	return st;
}
