/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/process_list.h"

#include <string.h>

#include "formats/base/array.h"

const char *list_end_name(enum list_end end)
{
	return NAME_IN(LIST_END_MAP, end, "unknown");
}

bool process_list_is_whole(const struct process_list *l)
{
	return l->end == LIST_CLOSED || l->backwards == LIST_CLOSED;
}

void process_list_deinit(struct process_list *l)
{
	free(l->at);
	*l = (struct process_list){ 0 };
}

bool paging__is_pointer(const struct virt *v, uint64_t va)
{
	return va >> 63 && va % 8 == 0 && paging_canonical(v->mode, va) == va;
}

void paging__set_name(struct process *p, const uint8_t *bytes)
{
	const size_t len = strnlen((const char *)bytes, PROCESS_NAME_MAX - 1);

	memcpy(p->name, bytes, len);
	p->name[len] = '\0';
}

static enum status append_process(struct process_list *l, const struct process *p, struct err *e)
{
	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return err_nomem(e);
	l->at[l->count++] = *p;
	return ST_OK;
}

/*
 * One direction. Brent's method notices a circle that does not lead back to the start: a mark is
 * left behind, ever further apart, and met again.
 */
struct ring_way {
	uint64_t at;
	uint64_t mark;
	size_t steps;
	size_t mark_again; /* at this many steps */
};

/* Why a read failed: a budget that is spent makes all memory look unreadable. */
static enum list_end why_unreadable(const struct process_ring *r)
{
	return walk_budget_spent(r->v->budget) ? LIST_OUT_OF_BUDGET : LIST_UNREADABLE;
}

/* False if the way ended; `*end` says how. */
static bool advance_on_ring(const struct process_ring *r, struct ring_way *w, bool forwards,
			    size_t *torn, enum list_end *end)
{
	uint64_t next, back;

	if (!virt_u64(r->v, w->at + (forwards ? 0 : 8), &next) || !paging__is_pointer(r->v, next) ||
	    !virt_u64(r->v, next + (forwards ? 8 : 0), &back)) {
		*end = why_unreadable(r);
		return false;
	}
	*torn += back != w->at;
	w->at = next;
	*end = LIST_CLOSED;
	if (next == r->start)
		return false;
	*end = LIST_TORN;
	if (next == w->mark)
		return false;
	*end = LIST_TOO_LONG;
	if (++w->steps >= PROCESSES_MAX)
		return false;
	if (w->steps == w->mark_again) {
		w->mark = next;
		w->mark_again *= 2;
	}
	return true;
}

static enum status add_link(const struct process_ring *r, uint64_t link, struct process_list *l,
			    bool *bad, struct err *e)
{
	struct process p = { 0 };
	const enum link_kind kind = r->read(r, link, &p);

	*bad = kind == LINK_BAD;
	return kind == LINK_PROCESS ? append_process(l, &p, e) : ST_OK;
}

static bool is_on_list(const struct process_list *l, size_t count, uint64_t object)
{
	for (size_t i = 0; i < count; i++)
		if (l->at[i].object == object)
			return true;
	return false;
}

/* Comparisons that looking for doubles may cost; only a hostile list comes near. */
#define DOUBLES_MAX ((size_t)1 << 26)

/*
 * The way back from the start, for what the broken way did not reach. It ends where the two meet.
 */
static enum status follow_backwards(const struct process_ring *r, struct process_list *l,
				    struct err *e)
{
	struct ring_way w = { .at = r->start, .mark_again = 1 };
	const size_t first_way = l->count;
	size_t compared = 0;

	while (advance_on_ring(r, &w, false, &l->torn, &l->backwards)) {
		const size_t before = l->count;
		bool bad;
		enum status st = add_link(r, w.at, l, &bad, e);

		if (st)
			return st;
		if (bad) {
			l->backwards = why_unreadable(r);
			return ST_OK;
		}
		if (l->count > before && is_on_list(l, first_way, l->at[before].object)) {
			l->count--;
			l->backwards = LIST_CLOSED;
			return ST_OK;
		}
		compared += first_way;
		if (compared > DOUBLES_MAX) {
			l->backwards = LIST_TOO_LONG;
			return ST_OK;
		}
	}
	return ST_OK;
}

enum status paging__follow_ring(const struct process_ring *r, struct process_list *ret,
				struct err *e)
{
	struct ring_way w = { .at = r->start, .mark_again = 1 };
	bool bad;
	enum status st = add_link(r, r->start, ret, &bad, e);

	if (st || bad)
		return st;
	while (advance_on_ring(r, &w, true, &ret->torn, &ret->end)) {
		st = add_link(r, w.at, ret, &bad, e);
		if (st)
			return st;
		if (bad) {
			ret->end = why_unreadable(r);
			break;
		}
	}
	if (ret->end == LIST_CLOSED || ret->end == LIST_OUT_OF_BUDGET)
		return ST_OK;
	return follow_backwards(r, ret, e);
}
