/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that reads slots, and waiting for it. */
#include "agent/collect/order/slots_internal.h"

#include <errno.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/timed_cond.h"

/*
 * How many extents from `i` on are read by one request: near neighbours for which there is `room`.
 * What lies between them was read before, and is dropped.
 */
static size_t request_at(const struct slots *s, size_t i, size_t room)
{
	const struct rsz_extent *first = &s->extents[i];
	const size_t gap = read_cost_gap(&s->cost, SLOTS_GAP_PAGES, SLOTS_GAP_PAGES);
	size_t n = 1;

	for (; i + n < s->n_extents; n++) {
		const struct rsz_extent *x = first + n;

		if (x->address < slots__end_of(x - 1) ||
		    x->address - slots__end_of(x - 1) > gap * PAGE_SIZE ||
		    slots__end_of(x) - first->address > room * PAGE_SIZE)
			break;
	}
	return n;
}

/* Reads `n` extents to `at`, and drops what lies between them. Returns where the next goes. */
static size_t read_request(struct slots *s, struct rsz_extent *x, size_t n, size_t at)
{
	const uint64_t first = x->address, start = clock_mono_ns();
	const size_t bytes = (size_t)(slots__end_of(&x[n - 1]) - first), to = at;
	struct extract_piece piece;
	uint64_t end;

	if (extract_read(s->files[s->file].file.source, first, s->data + to * PAGE_SIZE, bytes,
			 s->pages + to, &piece, NULL) ||
	    piece.length != bytes)
		return at;
	end = clock_mono_ns();
	read_cost_add(&s->cost, bytes / PAGE_SIZE, end - start);
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

void slots__read_stage(struct slots *s)
{
	size_t at = 0;

	for (size_t i = 0, n; i < s->n_extents; i += n) {
		n = request_at(s, i, SLOTS_STAGE_PAGES - at);
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
		slots__read_stage(s);
		pthread_mutex_lock(&s->lock);
		s->state = STAGE_FULL;
		pthread_cond_signal(&s->done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

enum stage_state slots__state(struct slots *s)
{
	enum stage_state ret;

	pthread_mutex_lock(&s->lock);
	ret = s->state;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

void slots__set_state(struct slots *s, enum stage_state state)
{
	pthread_mutex_lock(&s->lock);
	s->state = state;
	pthread_cond_signal(&s->asked);
	pthread_mutex_unlock(&s->lock);
}

uint64_t slots__wait(struct slots *s, uint64_t most)
{
	const uint64_t begin = clock_mono_ns();
	const struct timespec until = timed_cond_until(s->clock, most == UINT64_MAX ? 0 : most);
	int error = 0;

	pthread_mutex_lock(&s->lock);
	while (s->state == STAGE_READING && error != ETIMEDOUT)
		error = most == UINT64_MAX ? pthread_cond_wait(&s->done, &s->lock)
					   : pthread_cond_timedwait(&s->done, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
	return clock_mono_ns() - begin;
}

void slots__init_reader(struct slots *s)
{
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->asked, NULL);
	s->clock = timed_cond_init(&s->done);
}

enum status slots__start_reader(struct slots *s, struct err *e)
{
	const int error = pthread_create(&s->thread, NULL, reader_thread, s);

	s->has_thread = !error;
	return error ? err_from_errno(e, ST_SYSTEM, error, "a thread for page files") : ST_OK;
}

void slots__end_reader(struct slots *s)
{
	if (!s->has_thread)
		return;
	pthread_mutex_lock(&s->lock);
	s->quit = true;
	pthread_cond_signal(&s->asked);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
}

void slots__deinit_reader(struct slots *s)
{
	pthread_cond_destroy(&s->done);
	pthread_cond_destroy(&s->asked);
	pthread_mutex_destroy(&s->lock);
}
