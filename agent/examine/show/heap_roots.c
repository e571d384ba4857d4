/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_roots.h"

#include "agent/examine/process/threads.h"
#include "agent/shared/program/interrupt.h"

/* Heads of segments, of both widths, have it here (_HEAP_SEGMENT.SegmentSignature). */
#define SEGMENT_SIGNATURE   0xffeeffee
#define SIGNATURE_AT        0x10
#define SIGNATURE_AT_NARROW 8

/* More than Windows gives a thread in the kernel (x64: 24 KiB, 72 of GUI threads). */
#define KERNEL_STACK_MAX    (UINT64_C(128) << 10)

/* Of all images that are looked at page by page, 16 GiB. VADs can say that they are any size. */
#define IMAGE_PAGES_MAX     (UINT64_C(1) << 22)

struct roots_search {
	const struct heap_session *session;
	const struct block_list *list;
	struct heap_roots *ret;
};

static bool read_root_view(void *context, uint64_t va, void *p, size_t len)
{
	return view_read(context, va, p, len);
}

static void note_heap_vad(const struct vad_list *vads, bool *is_heap, uint64_t va)
{
	const struct vad *v = vad_find(vads, va);

	if (v)
		is_heap[v - vads->at] = true;
}

static bool begins_segment(const struct memory_view *m, uint64_t va)
{
	uint32_t wide = 0, narrow = 0;

	return (view_u32(m, va + SIGNATURE_AT, &wide) && wide == SEGMENT_SIGNATURE) ||
	       (view_u32(m, va + SIGNATURE_AT_NARROW, &narrow) && narrow == SEGMENT_SIGNATURE);
}

/* Which VADs are heaps': free blocks, lists and heads in them refer to what nobody uses. */
static void note_heaps(const struct roots_search *x, const struct memory_view *m, bool *is_heap)
{
	const struct vad_list *vads = process_vads(x->session->process->process);
	const struct heaps *heaps = x->session->heaps;

	for (size_t i = 0; i < heaps_count(heaps); i++) {
		note_heap_vad(vads, is_heap, heaps_at(heaps, i)->address);
		note_heap_vad(vads, is_heap, heaps_at(heaps, i)->front_end);
	}
	for (size_t i = 0; i < x->list->count; i++)
		note_heap_vad(vads, is_heap, x->list->at[i].address);
	for (size_t i = 0; i < vads->count; i++)
		if (vads->at[i].is_private && begins_segment(m, vads->at[i].start))
			is_heap[i] = true;
}

/* To whole pages. */
static enum status add_root_range(struct heap_roots *r, uint64_t first, uint64_t last,
				  struct err *e)
{
	return range_list_add(&r->ranges, first & ~(uint64_t)(PAGE_SIZE - 1),
			      last | (PAGE_SIZE - 1), e);
}

/*
 * What of an image may have been written to, where nothing tells its sections. ntdll's own checker
 * takes all of them for that, because code is mapped to be copied when it is written to: then an
 * instruction can look like a pointer ("Leak Checking", adeyblue, 18 January 2010).
 */
static enum status add_written(struct heap_roots *r, const struct heap_session *s,
			       const struct vad *v, struct err *e)
{
	const uint64_t pages = ((v->end - v->start) >> PAGE_SHIFT) + 1;
	uint64_t from = v->start; /* of what is still to be added */
	enum status st = ST_OK;

	if (pages > IMAGE_PAGES_MAX - r->image_pages)
		return add_root_range(r, v->start, v->end, e);
	r->image_pages += pages;
	for (uint64_t va = v->start; va < v->end && !st; va += PAGE_SIZE) {
		if (interrupted())
			return interrupt_status(e);
		if (!peek_is_files(s->peek, va))
			continue;
		if (from < va)
			st = add_root_range(r, from, va - 1, e);
		from = va + PAGE_SIZE;
	}
	if (!st && from < v->end)
		st = add_root_range(r, from, v->end, e);
	return st ? st : peek_failed(s->peek, e);
}

/* Its writable sections, as its headers have them. */
static enum status add_image_roots(struct heap_roots *r, const struct heap_session *s,
				   const struct vad *v, struct err *e)
{
	const struct pe_memory memory = { read_root_view, (void *)(uintptr_t)&s->memory };
	struct range sections[PE_SECTIONS_MAX];
	enum status st = ST_OK;
	size_t n;

	if (!pe_writable(&memory, v->start, sections, ARRAY_SIZE(sections), &n)) {
		r->images_whole++;
		return add_written(r, s, v, e);
	}
	for (size_t i = 0; i < n && !st; i++)
		if (sections[i].first <= v->end)
			st = add_root_range(r, sections[i].first, MIN(sections[i].last, v->end), e);
	return st;
}

/* Anything that a program can have written to. */
static enum status add_vad(struct heap_roots *r, const struct heap_session *s, const struct vad *v,
			   struct err *e)
{
	if (v->type == VAD_IMAGE)
		return add_image_roots(r, s, v, e);
	return v->protection & 4 ? add_root_range(r, v->start, v->end, e) : ST_OK;
}

static enum status add_page_heap(struct roots_search *x, struct err *e)
{
	const struct vad_list *vads = process_vads(x->session->process->process);
	const struct vad *before = NULL;

	for (size_t i = 0; i < x->list->count; i++) {
		const struct heap_allocation *a = &x->list->at[i];
		const struct vad *v = NULL;
		enum status st;

		if (heaps_at(x->session->heaps, a->heap)->kind == HEAP_PAGE)
			v = vad_find(vads, a->address);
		if (!v || v == before) /* the list is sorted */
			continue;
		before = v;
		st = range_list_add(&x->ret->page_heap, v->start, v->end, e);
		if (st)
			return st;
	}
	return ST_OK;
}

static enum status add_user_roots(struct roots_search *x, struct err *e)
{
	const struct vad_list *vads = process_vads(x->session->process->process);
	_cleanup_free_ bool *is_heap = calloc(MAX(vads->count, 1), sizeof(*is_heap));
	enum status st = ST_OK;

	if (!is_heap)
		return err_nomem(e);
	note_heaps(x, &x->session->memory, is_heap);
	for (size_t i = 0; i < vads->count && !st; i++)
		if (!is_heap[i])
			st = add_vad(x->ret, x->session, &vads->at[i], e);
	range_list_tidy(&x->ret->ranges, NULL);
	return st;
}

/* What a thread had in registers when it went into the kernel lies on its stack there. */
static enum status add_kernel_roots(struct roots_search *x, struct err *e)
{
	struct threads threads;
	enum status st = process_threads(x->session->process->process, &threads, e);

	x->ret->whole &= threads.end == LIST_CLOSED;
	for (size_t i = 0; i < threads.count && !st; i++) {
		const struct thread *t = &threads.at[i];
		const uint64_t first = t->kernel_stack & ~(uint64_t)(PAGE_SIZE - 1);

		if (t->kernel_base > first && t->kernel_base - first <= KERNEL_STACK_MAX)
			st = add_root_range(x->ret, first, t->kernel_base - 1, e);
		else
			x->ret->whole = false;
	}
	threads_deinit(&threads);
	return st;
}

enum status heap_roots_find(const struct heap_session *s, const struct block_list *l,
			    struct heap_roots *ret, struct err *e)
{
	struct roots_search x = { .session = s, .list = l, .ret = ret };
	enum status st;

	*ret = (struct heap_roots){ .whole = true };
	st = add_user_roots(&x, e);
	if (!st)
		st = add_page_heap(&x, e);
	return st ? st : add_kernel_roots(&x, e);
}

enum status heap_writable_find(const struct heap_session *s, struct heap_roots *ret, struct err *e)
{
	const struct vad_list *vads = process_vads(s->process->process);
	enum status st = ST_OK;

	*ret = (struct heap_roots){ 0 };
	for (size_t i = 0; i < vads->count && !st; i++)
		st = add_vad(ret, s, &vads->at[i], e);
	range_list_tidy(&ret->ranges, NULL);
	return st;
}

void heap_roots_deinit(struct heap_roots *r)
{
	range_list_deinit(&r->ranges);
	range_list_deinit(&r->page_heap);
}
