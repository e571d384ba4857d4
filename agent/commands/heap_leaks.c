/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/heap_leaks.h"

#include <inttypes.h>

#include "agent/heap/leaks.h"
#include "agent/process/threads.h"
#include "formats/base/array.h"

/* Heads of segments, of both widths, have it here (_HEAP_SEGMENT.SegmentSignature). */
#define SEGMENT_SIGNATURE   0xffeeffee
#define SIGNATURE_AT        0x10
#define SIGNATURE_AT_NARROW 8

/* More than Windows gives a thread in the kernel (x64: 24 KiB, 72 of GUI threads). */
#define KERNEL_STACK_MAX    (UINT64_C(128) << 10)

struct leak_search {
	struct block_printer *printer;
	const struct heap_session *session;
	const struct block_list *list;
	struct range_list roots;
	uint8_t *marks;
	struct leak_stats stats;
	uint64_t lost;
	bool whole; /* all could be read that can refer to a block */
	uint64_t leaked, leaked_bytes;
};

/*
 * What the process has of its own is what its entries or VADs lead to. Pages that were never
 * touched, were given back, or are as in their file hold no pointers to blocks.
 */
static enum leak_page give_page(void *context, uint64_t va, const uint8_t **ret)
{
	const struct peek_page *p = peek_page(context, va);

	if (!p)
		return LEAK_PAGE_LOST;
	*ret = p->bytes;
	if (p->bytes)
		return p->given == GIVEN_ZEROS ? LEAK_PAGE_NONE : LEAK_PAGE_THERE;
	switch (p->state) {
	case PTE_EMPTY:
	case PTE_DECOMMITTED:
	case PTE_SUBSECTION:
	case PTE_FILE_BACKED:
	case PTE_DEMAND_ZERO:
		return LEAK_PAGE_NONE;
	default:
		return LEAK_PAGE_LOST;
	}
}

/*
 * Roots
 */

static void note_heap(const struct vad_list *vads, bool *is_heap, uint64_t va)
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
static void note_heaps(const struct leak_search *x, const struct memory_view *m, bool *is_heap)
{
	const struct vad_list *vads = process_vads(x->session->process->process);
	const struct heaps *heaps = x->printer->session->heaps;

	for (size_t i = 0; i < heaps_count(heaps); i++) {
		note_heap(vads, is_heap, heaps_at(heaps, i)->address);
		note_heap(vads, is_heap, heaps_at(heaps, i)->front_end);
	}
	for (size_t i = 0; i < x->list->count; i++)
		note_heap(vads, is_heap, x->list->at[i].address);
	for (size_t i = 0; i < vads->count; i++)
		if (vads->at[i].is_private && begins_segment(m, vads->at[i].start))
			is_heap[i] = true;
}

/* Anything that a program can have written to; images as a whole, for their data. */
static bool can_hold(const struct vad *v)
{
	return v->type == VAD_IMAGE || v->protection & 4;
}

static enum status add_user_roots(struct leak_search *x, const struct memory_view *m, struct err *e)
{
	const struct vad_list *vads = process_vads(x->session->process->process);
	_cleanup_free_ bool *is_heap = calloc(MAX(vads->count, 1), sizeof(*is_heap));
	enum status st = ST_OK;

	if (!is_heap)
		return err_nomem(e);
	note_heaps(x, m, is_heap);
	for (size_t i = 0; i < vads->count && !st; i++)
		if (!is_heap[i] && can_hold(&vads->at[i]))
			st = range_list_add(&x->roots, vads->at[i].start, vads->at[i].end, e);
	range_list_tidy(&x->roots, NULL);
	return st;
}

/* What a thread had in registers when it went into the kernel lies on its stack there. */
static enum status add_kernel_roots(struct leak_search *x, const struct memory_view *m,
				    struct err *e)
{
	struct threads threads;
	enum status st = process_threads(x->session->process->process, &threads, e);

	x->whole &= threads.end == LIST_CLOSED;
	for (size_t i = 0; i < threads.count && !st; i++) {
		const struct thread *t = &threads.at[i];
		const uint64_t first = t->kernel_stack & ~(uint64_t)(PAGE_SIZE - 1);

		if (t->kernel_base > first && t->kernel_base - first <= KERNEL_STACK_MAX)
			st = range_list_add(&x->roots, first, t->kernel_base - 1, e);
		else
			x->whole = false;
	}
	threads_deinit(&threads);
	return st;
}

static enum status search(struct leak_search *x, struct err *e)
{
	struct peek *peek = x->printer->session->peek;
	const struct memory_view m = peek_view(peek);
	const struct leak_sources sources = {
		.page = give_page,
		.context = peek,
		.blocks = x->list,
		.roots = &x->roots,
		.narrow = process_facts(x->session->process->process)->peb32 != 0,
	};
	enum status st = add_user_roots(x, &m, e);

	if (!st)
		st = add_kernel_roots(x, &m, e);
	if (!st)
		st = leaks_find(&sources, &x->marks, &x->stats, e);
	if (!st)
		st = peek_failed(peek, e);
	x->whole &= vad_list_is_whole(process_vads(x->session->process->process)) &&
		    !heaps_list_lost(x->printer->session->heaps) && !x->lost &&
		    !x->stats.root_pages_lost && !x->stats.blocks_lost;
	return st;
}

/*
 * Groups
 */

struct group {
	size_t heap;
	uint64_t size;
	size_t first, count; /* in the array of what was not reached */
};

static int by_group(const void *a, const void *b)
{
	const struct heap_allocation *x = *(const struct heap_allocation *const *)a;
	const struct heap_allocation *y = *(const struct heap_allocation *const *)b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	if (block_bytes(x) != block_bytes(y))
		return block_bytes(x) < block_bytes(y) ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static json_t *addresses_json(const struct heap_allocation *const *at, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < count; i++)
		if (json_array_append_new(list, heap_hex(at[i]->address)))
			return json_decref(list), NULL;
	return list;
}

static json_t *group_json(const struct leak_search *x, const struct heap_allocation *const *at,
			  const struct group *g)
{
	return json_fields(JSON_FIELDS(
		field_made("heap",
			   heap_hex(heaps_at(x->printer->session->heaps, g->heap)->address)),
		field_u64("size", g->size), field_u64("blocks", g->count),
		field_made("addresses", addresses_json(at + g->first, g->count))));
}

static void put_group(const struct leak_search *x, const struct heap_allocation *const *at,
		      const struct group *g)
{
	printf("0x%012" PRIx64 "  %10" PRIu64 "  %8zu  %12" PRIu64 "  0x%" PRIx64 "%s\n",
	       heaps_at(x->printer->session->heaps, g->heap)->address, g->size, g->count,
	       g->size * g->count, at[g->first]->address, g->count > 1 ? " ..." : "");
}

/* Each group to `list`, or if that is NULL to stdout. False: no memory. */
static bool tell_groups(const struct leak_search *x, const struct heap_allocation *const *at,
			size_t count, json_t *list)
{
	for (size_t i = 0, next; i < count; i = next) {
		struct group g = { .heap = at[i]->heap, .size = block_bytes(at[i]), .first = i };

		for (next = i;
		     next < count && at[next]->heap == g.heap && block_bytes(at[next]) == g.size;
		     next++)
			g.count++;
		if (!list)
			put_group(x, at, &g);
		else if (json_array_append_new(list, group_json(x, at, &g)))
			return false;
	}
	return true;
}

static enum status print_json(const struct leak_search *x, const struct heap_allocation *const *at,
			      struct err *e)
{
	const struct process_facts *f = process_facts(x->session->process->process);
	json_t *list = json_array();

	if (!list || !tell_groups(x, at, x->leaked, list))
		return json_decref(list), err_nomem(e);
	return json_print(
		json_fields(JSON_FIELDS(
			FIELD_SCHEMA("heap-leaks"), field_text("file", x->session->process->path),
			field_u64("pid", f->pid), field_text("name", f->name),
			field_u64("busy_blocks", x->list->count),
			field_u64("unreferenced_blocks", x->leaked),
			field_u64("unreferenced_bytes", x->leaked_bytes),
			field_bool("all_read", x->whole), field_u64("heap_bytes_lost", x->lost),
			field_u64("root_pages", x->stats.root_pages),
			field_u64("root_pages_lost", x->stats.root_pages_lost),
			field_u64("blocks_lost", x->stats.blocks_lost),
			field_made("groups", list))),
		JSON_INDENT(2), e);
}

static void print_text(const struct leak_search *x, const struct heap_allocation *const *at)
{
	printf("%" PRIu64 " of %zu busy blocks (%" PRIu64
	       " bytes) are referenced by nothing that could be read\n",
	       x->leaked, x->list->count, x->leaked_bytes);
	if (!x->whole)
		printf("that is at most; at least none, because not all could be read: %" PRIu64
		       " of %" PRIu64 " root pages\nand %" PRIu64
		       " referenced blocks are missing in part, and %" PRIu64 " bytes of heaps\n",
		       x->stats.root_pages_lost, x->stats.root_pages + x->stats.root_pages_lost,
		       x->stats.blocks_lost, x->lost);
	if (!x->leaked)
		return;
	printf("%-14s  %10s  %8s  %12s  %s\n", "heap", "size", "blocks", "bytes", "first");
	tell_groups(x, at, x->leaked, NULL);
}

static enum status tell_all(struct leak_search *x, struct err *e)
{
	const struct heap_allocation **at;
	enum status st = ST_OK;

	for (size_t i = 0; i < x->list->count; i++)
		x->leaked += x->marks[i] == LEAK_UNREACHED;
	at = calloc(MAX(x->leaked, 1), sizeof(*at));
	if (!at)
		return err_nomem(e);
	for (size_t i = 0, n = 0; i < x->list->count; i++)
		if (x->marks[i] == LEAK_UNREACHED) {
			at[n++] = &x->list->at[i];
			x->leaked_bytes += block_bytes(&x->list->at[i]);
		}
	array_sort(at, x->leaked, sizeof(const struct heap_allocation *), by_group);
	if (x->printer->json)
		st = print_json(x, at, e);
	else
		print_text(x, at);
	free(at);
	return st;
}

enum status heap_leaks(struct block_printer *p, const struct heap_session *s,
		       const struct block_list *l, struct err *e)
{
	struct leak_search x = {
		.printer = p,
		.session = s,
		.list = l,
		.lost = heap_session_lost(s),
		.whole = true,
	};
	enum status st = search(&x, e);

	if (!st)
		st = tell_all(&x, e);
	free(x.marks);
	range_list_deinit(&x.roots);
	if (!st && !x.whole)
		return err_set(e, ST_UNREADABLE,
			       "%s: not all that can refer to a block could be read",
			       s->process->path);
	return st;
}
