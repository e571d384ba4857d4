/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many pages at once, in the order in which a container has them. The tables are walked first, and
 * only tell where each page is; then these places are sorted, and their chunks decoded by several
 * threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/virtual/virtual_internal.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/self.h"
#include "formats/base/array.h"

/*
 * So much is walked at once: what is kept of a walk grows with it. The halves of an address space
 * end where one of these does, so that all of a step is an address, or nothing of it.
 */
#define STEP_BYTES (UINT64_C(1) << 26)

/* A page whose content is there, and where. */
struct stored_page {
	uint64_t va;
	uint64_t record; /* offset of the CHUNK; UINT64_MAX: the index has none */
	uint64_t at;     /* in the stream; of an older capture: where its struct older_page is */
	uint32_t stream;
	bool older;
	uint8_t given;
	uint8_t state;
	uint8_t verdict;
};

struct sweep {
	struct virtual_memory *v;
	const struct virtual_reader *reader;
	struct range step;
	struct stored_page *pages;
	size_t count, room;
	struct range_list apart; /* what has to be read as virtual_read() does */

	pthread_mutex_t taking; /* over `next`, `st` and `why` */
	size_t next;            /* the first page that no thread has taken */
	enum status st;
	struct err why;
	pthread_mutex_t telling;
};

struct sweep_thread {
	struct sweep *x;
	struct rsz_cursor *cursor;
	pthread_t thread;
	bool runs;
};

/*
 * What is there is told of in the order of the container
 */

static int stored_page_by_record(const void *a, const void *b)
{
	const struct stored_page *x = a, *y = b;

	if (x->record != y->record)
		return x->record < y->record ? -1 : 1;
	return (x->va > y->va) - (x->va < y->va);
}

/* ST_END: there is no content. ST_CORRUPT: the container is damaged there. */
static enum status read_stored_page(struct rsz_cursor *c, const struct stored_page *s, uint8_t *buf,
				    const uint8_t **ret, struct rsz_times *when, struct err *e)
{
	struct rsz_page p;
	enum status st;

	*ret = buf;
	*when = (struct rsz_times){ 0 };
	if (s->older) {
		const struct older_page *o = (const struct older_page *)(uintptr_t)s->at;

		*when = (struct rsz_times){ o->start, o->end };
		return captures_read_older(c, o, buf, e);
	}
	st = rsz_cursor_page(c, s->stream, s->at, &p, e);
	if (st)
		return st;
	*when = (struct rsz_times){ p.start, p.end };
	if (!p.captured || p.status.state == PAGE_UNREADABLE || p.status.state == PAGE_SKIPPED)
		return ST_END;
	if (p.length == PAGE_SIZE) {
		*ret = p.data;
		return ST_OK;
	}
	memcpy(buf, p.data, p.length);
	memset(buf + p.length, 0, PAGE_SIZE - p.length);
	return ST_OK;
}

static enum status tell_stored(const struct sweep *x, const struct stored_page *s,
			       const uint8_t *bytes, const struct rsz_times *when, bool damaged,
			       struct err *e)
{
	const struct virtual_page p = {
		.va = s->va,
		.pages = 1,
		.given = bytes ? (enum given)s->given : GIVEN_NOTHING,
		.bytes = bytes,
		.damaged = damaged,
		.has_verdict = true,
		.row = {
			.va = s->va,
			.pages = 1,
			.pte = { .state = (enum pte_state)s->state },
			.verdict = (enum verdict)s->verdict,
			.content = *when,
		},
	};

	return x->reader->page(x->reader->context, &p, e);
}

/* The pages of one chunk, which is decoded for the first of them, before anybody has to wait. */
static enum status read_chunk(struct sweep *x, struct rsz_cursor *c, size_t from, size_t end,
			      struct err *e)
{
	uint8_t buf[PAGE_SIZE];
	const uint8_t *bytes;
	struct rsz_times when;
	enum status st = read_stored_page(c, &x->pages[from], buf, &bytes, &when, e), told = ST_OK;

	pthread_mutex_lock(&x->telling);
	for (size_t i = from; i < end && !told; i++) {
		if (i > from)
			st = read_stored_page(c, &x->pages[i], buf, &bytes, &when, e);
		told = st && st != ST_CORRUPT && st != ST_END
			       ? st
			       : tell_stored(x, &x->pages[i], st ? NULL : bytes, &when,
					     st == ST_CORRUPT, e);
	}
	pthread_mutex_unlock(&x->telling);
	return told;
}

/* False: there are none left, or it has failed. */
static bool take_sweep_chunk(struct sweep *x, size_t *ret_from, size_t *ret_end)
{
	bool any;

	pthread_mutex_lock(&x->taking);
	if (!x->st && interrupted())
		x->st = interrupt_status(&x->why);
	any = !x->st && x->next < x->count;
	if (any) {
		*ret_from = x->next;
		while (x->next < x->count && x->pages[x->next].record == x->pages[*ret_from].record)
			x->next++;
		*ret_end = x->next;
	}
	pthread_mutex_unlock(&x->taking);
	return any;
}

static void *read_chunks(void *arg)
{
	struct sweep_thread *t = arg;
	struct sweep *x = t->x;
	size_t from, end;

	while (take_sweep_chunk(x, &from, &end)) {
		struct err e = { 0 };
		const enum status st = read_chunk(x, t->cursor, from, end, &e);

		if (!st)
			continue;
		pthread_mutex_lock(&x->taking);
		if (!x->st) {
			x->st = st;
			x->why = e;
		}
		pthread_mutex_unlock(&x->taking);
	}
	return NULL;
}

static enum status open_cursor(struct virtual_memory *v, size_t i, struct err *e)
{
	return v->sweep_cursors[i]
		       ? ST_OK
		       : rsz_cursor_create(v->m->plan->reader, 1, &v->sweep_cursors[i], e);
}

static void forget_cursor_chunks(struct rsz_cursor *c)
{
	if (c)
		rsz_cursor_forget(c);
}

/* What was decoded for the walk takes megabytes, which whoever is told may need. */
static void forget_chunks(struct virtual_memory *v)
{
	forget_cursor_chunks(v->cursor);
	forget_cursor_chunks(v->m->earlier.cursor);
	for (size_t i = 0; i < COPIES; i++)
		forget_cursor_chunks(v->m->copy[i].cursor);
}

/* One that cannot be started leaves its part to the others. */
static enum status read_swept_pages(struct sweep *x, struct err *e)
{
	const size_t threads = MIN(MAX(self_cpus(), 1), SWEEP_THREADS_MAX);
	struct sweep_thread thread[SWEEP_THREADS_MAX] = { 0 };
	enum status st = open_cursor(x->v, 0, e);

	if (st)
		return st;
	forget_chunks(x->v);
	array_sort(x->pages, x->count, sizeof(*x->pages), stored_page_by_record);
	x->next = 0;
	for (size_t i = 0; i < threads; i++) {
		if (open_cursor(x->v, i, NULL))
			break;
		thread[i].x = x;
		thread[i].cursor = x->v->sweep_cursors[i];
		thread[i].runs =
			i && !pthread_create(&thread[i].thread, NULL, read_chunks, &thread[i]);
	}
	read_chunks(&thread[0]);
	for (size_t i = 1; i < threads; i++)
		if (thread[i].runs)
			pthread_join(thread[i].thread, NULL);
	for (size_t i = 0; i < threads; i++)
		forget_cursor_chunks(x->v->sweep_cursors[i]);
	x->count = 0;
	if (x->st && e)
		*e = x->why;
	return x->st;
}

/*
 * Where it is
 */

static void find_stored_record(const struct sweep *x, struct stored_page *s)
{
	const struct rsz_reader *r = x->v->m->plan->reader;
	struct rsz_segment seg;

	s->record = UINT64_MAX;
	if (s->older)
		s->record = ((const struct older_page *)(uintptr_t)s->at)->record;
	else if (rsz_reader_next(r, s->stream, s->at, &seg) && seg.address <= s->at)
		s->record = rsz_reader_record(r, seg.extent);
}

static enum status note_stored(struct sweep *x, const struct stored_page *s, struct err *e)
{
	enum status st = ST_OK;

	if (x->count == VIRTUAL_SWEEP_PAGES)
		st = read_swept_pages(x, e);
	if (st)
		return st;
	if (x->count == x->room) {
		struct stored_page *grown = array_grow(x->pages, &x->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		x->pages = grown;
	}
	x->pages[x->count] = *s;
	find_stored_record(x, &x->pages[x->count++]);
	return ST_OK;
}

/* Neighbours of one mapping, `first` to `last`. */
static enum status note_captured(struct sweep *x, const struct virtual_page *p, uint64_t first,
				 uint64_t last, struct err *e)
{
	const struct smear_row *row = &p->row;
	struct stored_page s = {
		.stream = row->stream,
		.older = row->older != NULL,
		.given = (uint8_t)p->given,
		.state = (uint8_t)row->pte.state,
		.verdict = (uint8_t)row->verdict,
	};
	enum status st = ST_OK;

	for (uint64_t va = first; va <= last && !st; va += PAGE_SIZE) {
		s.va = va;
		if (row->older)
			s.at = (uintptr_t)row->older;
		else if (pte_place(&row->pte) == PLACE_FRAME)
			s.at = row->pte.frame + (va - p->va);
		else
			s.at = row->pte.slot * PAGE_SIZE + (va - p->va);
		st = note_stored(x, &s, e);
		if (va == last - (PAGE_SIZE - 1)) /* the last page of all addresses */
			break;
	}
	return st;
}

static enum status tell_run(const struct sweep *x, const struct virtual_page *from, uint64_t first,
			    uint64_t last, struct err *e)
{
	static const uint8_t zeros[PAGE_SIZE];
	struct virtual_page p = *from;

	p.va = p.row.va = first;
	p.pages = p.row.pages = ((last - first) >> PAGE_SHIFT) + 1;
	p.bytes = p.given == GIVEN_ZEROS ? zeros : p.bytes;
	return x->reader->page(x->reader->context, &p, e);
}

/* What is in the compression store, or in the mapped file alone. */
static bool is_read_apart(const struct sweep *x, const struct virtual_page *p)
{
	const enum pte_state state = p->row.pte.state;

	return p->has_verdict &&
	       (state == PTE_COMPRESSED || (x->v->files.page && p->row.followed &&
					    (state == PTE_SUBSECTION || state == PTE_FILE_BACKED)));
}

/* A struct virtual_reader's, of one that is told without content. */
static enum status note_swept_page(void *context, const struct virtual_page *p, struct err *e)
{
	struct sweep *x = context;
	const uint64_t end = p->va + ((p->pages << PAGE_SHIFT) - 1);
	const uint64_t first = MAX(p->va, x->step.first), last = MIN(end, x->step.last);

	if (first > last)
		return ST_OK;
	if (is_read_apart(x, p))
		return range_list_add(&x->apart, first, last, e);
	if (p->given == GIVEN_MEMORY || p->given == GIVEN_PAGE_FILE)
		return note_captured(x, p, first, last, e);
	return tell_run(x, p, first, last, e);
}

static enum status tell_apart(void *context, const struct virtual_page *p, struct err *e)
{
	struct sweep *x = context;
	const uint64_t end = p->va + ((p->pages << PAGE_SHIFT) - 1);

	return tell_run(x, p, MAX(p->va, x->step.first), MIN(end, x->step.last), e);
}

/* Out of the compression store and mapped files, which have orders of their own. */
static enum status read_apart(struct sweep *x, struct err *e)
{
	const struct virtual_reader all = { .page = tell_apart, .context = x };
	struct virtual_counts counts = { 0 };
	enum status st = ST_OK;

	for (size_t i = 0; i < x->apart.count && !st; i++) {
		x->step = x->apart.at[i];
		st = virtual_read(x->v, x->step.first, range_bytes(x->step), &all, &counts, e);
	}
	x->apart.count = 0;
	return st;
}

static enum status sweep_step(struct sweep *x, struct err *e)
{
	const struct virtual_reader note = { .page = note_swept_page,
					     .context = x,
					     .unread = true };
	const struct virtual_page none = { .row = { .pte = { .state = PTE_UNKNOWN } } };
	struct virtual_counts counts = { 0 };
	enum status st = virtual_read(x->v, x->step.first, range_bytes(x->step), &note, &counts, e);

	if (st == ST_USAGE)
		st = tell_run(x, &none, x->step.first, x->step.last, e);
	return st ? st : read_apart(x, e);
}

static enum status sweep_range(struct sweep *x, struct range r, struct err *e)
{
	enum status st = ST_OK;

	for (uint64_t va = r.first, last; !st; va = last + 1) {
		last = MIN(r.last, va | (STEP_BYTES - 1));
		x->step = (struct range){ va, last };
		st = sweep_step(x, e);
		if (!st && interrupted())
			st = interrupt_status(e);
		if (last == r.last)
			break;
	}
	return st;
}

enum status virtual_sweep(struct virtual_memory *v, const struct range_list *ranges,
			  const struct virtual_reader *reader, struct err *e)
{
	struct sweep x = { .v = v, .reader = reader };
	enum status st = ST_OK;

	pthread_mutex_init(&x.taking, NULL);
	pthread_mutex_init(&x.telling, NULL);
	for (size_t i = 0; i < ranges->count && !st; i++)
		st = sweep_range(&x, ranges->at[i], e);
	if (!st)
		st = read_swept_pages(&x, e);
	pthread_mutex_destroy(&x.taking);
	pthread_mutex_destroy(&x.telling);
	range_list_deinit(&x.apart);
	free(x.pages);
	return st;
}
