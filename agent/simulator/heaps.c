/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of a process (heap.h): their memory as VADs, their addresses in the PEB's list, and in
 * the process's own memory the pointers that lead to what is in use.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/simulator/heap.h"
#include "agent/simulator/leaker.h"
#include "agent/simulator/live.h"
#include "agent/simulator/making.h"
#include "agent/simulator/resolver.h"
#include "agent/simulator/stack_roots.h"
#include "agent/simulator/traces.h"
#include "agent/simulator/wow64.h"
#include "formats/base/bytes.h"

/* Where segments go that are not the first: 16 GiB for each heap. */
#define MORE_FIRST    UINT64_C(0x30000000000)
#define MORE_STEP     UINT64_C(0x400000000)
#define RESERVE_PAGES 256 /* of a first segment */
/*
 * Of a 32-bit program: below what letters look like as addresses. Its one heap of 64 bits is
 * ntdll's, and small.
 */
#define MORE_NARROW   UINT64_C(0x10000000)
#define MORE_END      UINT64_C(0x20000000)
#define MORE_OWN      UINT64_C(0x0f000000)
#define BLOCKS_OWN    64

/* Of the process's memory, what takes pointers: this part of its program's data, and stacks. */
#define DATA_AT       0x100
#define DATA_END      0x800
#define IN_DATA       (DATA_END - DATA_AT)

static const char *const kinds[] = {
	[SIM_HEAP_BACK_END] = "back-end",
	[SIM_HEAP_LFH] = "lfh",
	[SIM_HEAP_VIRTUAL] = "virtual",
	[SIM_HEAP_OWN] = "own",
	[SIM_HEAP_VS] = "vs",
	[SIM_HEAP_RANGE] = "segment",
	[SIM_HEAP_LARGE] = "large",
	[SIM_HEAP_PAGE] = "page-heap",
};

/*
 * _RTLP_PROCESS_HEAP_DESCRIPTOR (Rickebo/ntoskrnlib 0a72996, of ntdll): DescriptorLink at 0,
 * Heap behind it. _HEAP.UserContext leads to it (winsiderss/systeminformer 103cc43, heapstruct.h;
 * x64dbg/x64dbg 529f36d, src/dbg/memory.cpp, which follows the links until one has no heap: so
 * there is a head that belongs to none). Where they are kept nothing public says.
 */
#define DESCRIPTOR      0x30
#define DESCRIPTOR_HEAP 0x10

static uint64_t descriptor_of(const struct sim_making *x, uint32_t index)
{
	return x->ring + (uint64_t)DESCRIPTOR * (index - 1);
}

/* The last one joins the ring, whose head is in ntdll's data. */
static void link_heap_descriptor(struct sim_making *x, uint32_t index, uint64_t heap)
{
	const uint64_t head = x->ntdll_data + HEAP_RING_AT, at = descriptor_of(x, index);
	uint8_t *ring = x->ntdll_bytes + HEAP_RING_AT, *bytes = x->ring_bytes;
	uint8_t *own = bytes + DESCRIPTOR * (index - 1);

	put_le64(index == 1 ? ring : own - DESCRIPTOR, at);
	put_le64(own, head);
	put_le64(own + 8, index == 1 ? head : at - DESCRIPTOR);
	put_le64(ring + 8, at);
	put_le64(own + DESCRIPTOR_HEAP, heap);
}

static bool make_ring(struct sim_making *x)
{
	if (!x->in->layout->chained)
		return true;
	x->ring = sim__making_place(x, 1);
	x->ring_bytes = sim__making_private(x, x->ring, 1, 0, 1);
	return x->ring_bytes && (!x->narrow || sim__wow64_make_ring(x));
}

static void tell_page_heap(const struct sim_making *x, uint32_t index, const struct sim_heap *h)
{
	static const char *const states[] = {
		[SIM_PAGE_BLOCK_BUSY] = "busy",
		[SIM_PAGE_BLOCK_FREED] = "freed",
		[SIM_PAGE_BLOCK_STALE] = "stale",
	};
	FILE *out = x->in->m->told;

	fprintf(out, "page-heap,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",%s\n", x->p->pid, index,
		h->page_heap, x->in->m->spec.page_heap == SIM_PAGE_HEAP_FULL ? "full" : "light");
	for (size_t i = 0; i < h->page_block_count; i++) {
		const struct sim_page_block *b = &h->page_blocks[i];

		fprintf(out,
			"page-block,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",%" PRIu64 ",%" PRIu64
			",%s,0x%" PRIx64 "\n",
			x->p->pid, index, b->address, b->requested, b->actual, states[b->state],
			b->trace);
	}
}

static void tell_heap(const struct sim_making *x, uint32_t index, bool narrow,
		      const struct sim_heap *h)
{
	FILE *out = x->in->m->told;
	char key[2 * sizeof(h->encoding) + 1];

	bytes_to_hex(h->encoding, sizeof(h->encoding), key);
	fprintf(out,
		"heap,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",%s,0x%" PRIx64 ",0x%" PRIx32 ",%" PRIu32
		",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u\n",
		x->p->pid, index, h->address, key, h->front_end, h->lfh_key, h->segments,
		h->reserved, h->committed, h->total_free, narrow ? 32u : 64u);
	if (x->in->m->spec.segment_heap && index == 1)
		fprintf(out,
			"segment-heap,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64
			",0x%" PRIx64 "\n",
			x->p->pid, index, h->address, x->hp_keys[0], x->hp_keys[1]);
	if (h->page_heap)
		tell_page_heap(x, index, h);
	for (size_t i = 0; i < h->region_count; i++)
		fprintf(out, "heap-region,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 "\n",
			x->p->pid, index, h->regions[i].va,
			h->regions[i].va + (uint64_t)h->regions[i].pages * PAGE_SIZE - 1);
	for (size_t i = 0; i < h->count; i++) {
		const struct sim_allocation *a = &h->allocations[i];

		if (x->n_traces && a->busy && a->kind != SIM_HEAP_OWN)
			fprintf(out, "trace,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 "\n",
				x->p->pid, index, a->address, a->trace);
		fprintf(out,
			"allocation,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",%" PRIu64 ",%" PRIu64
			",%s,%s,0x%" PRIx64 "\n",
			x->p->pid, index, a->address, a->requested, a->block, kinds[a->kind],
			!a->busy    ? "free"
			: a->leaked ? "leaked"
				    : "busy",
			a->referrer);
	}
}

/* The heap's regions become the process's. */
static bool add_regions(struct sim_making *x, struct sim_heap *h)
{
	for (size_t i = 0; i < h->region_count; i++) {
		struct sim_heap_region *of = &h->regions[i];
		struct sim_region r = { .va = of->va,
					.pages = of->pages,
					.bytes = of->bytes,
					.committed = of->committed };
		struct sim_vad vad = { .first = SIM_VPN(of->va),
				       .last = SIM_VPN(of->va) + of->pages - 1,
				       .protection = SIM_RW,
				       .heap = true };
		struct err e;

		for (uint32_t k = 0; k < of->pages; k++)
			vad.charge += of->committed[k] != 0;
		of->bytes = NULL;
		of->committed = NULL;
		if (sim__regions_add(&x->p->regions, &r, &e) || !sim__vads_add(&x->vads, &vad))
			return false;
	}
	return true;
}

/*
 * The handle that programs have is page heap's; the list of these (_DPH_HEAP_ROOT.NextHeap) begins
 * in ntdll's data, as the queue of freed blocks does. `h` still has its bytes.
 */
static void link_page_heap(struct sim_making *x, uint32_t index, const struct sim_heap *h)
{
	const uint64_t link = h->page_heap + PAGE_SIZE + 0x138;
	uint8_t *head = x->ntdll_bytes + PAGE_HEAP_LIST_AT;
	uint8_t *queue = x->ntdll_bytes + PAGE_HEAP_QUEUE_AT, *at = NULL;

	if (index == 1)
		put_le64(x->peb_bytes + 0x30, h->page_heap);
	if (h->queue_first) {
		put_le64(queue, h->queue_first);
		put_le64(queue + 8, h->queue_last);
	}
	for (size_t i = 0; i < h->region_count && !at; i++)
		if (h->regions[i].va == h->page_heap)
			at = h->regions[i].bytes + PAGE_SIZE + 0x138;
	if (!at)
		return;
	put_le64(at, x->ntdll_data + PAGE_HEAP_LIST_AT);
	put_le64(at + 8, get_le64(head + 8));
	put_le64(x->last_page_heap ? x->last_page_heap : head, link);
	put_le64(head + 8, link);
	x->last_page_heap = at;
}

static void put_pointer_word(uint8_t *at, uint64_t word, size_t size)
{
	if (size == 8)
		put_le64(at, word);
	else
		put_le32(at, (uint32_t)word);
}

/* What the program keeps outside its heap: first in its data, then in memory of its own. */
static bool put_roots(struct sim_making *x, uint32_t index, bool narrow, const struct sim_heap *h)
{
	const size_t size = narrow ? 4 : 8;
	size_t i = index == 1 ? sim__stack_roots_put(x, index, h->roots,
						     MIN(h->root_count, x->in->m->spec.stack_roots))
			      : 0;
	uint8_t *bytes;
	uint32_t pages;

	for (; i < h->root_count && x->roots + size <= IN_DATA; i++, x->roots += size)
		put_pointer_word(x->program_bytes + DATA_AT + x->roots, h->roots[i], size);
	if (i == h->root_count)
		return true;
	pages = (uint32_t)(((h->root_count - i) * size + PAGE_SIZE - 1) / PAGE_SIZE);
	bytes = sim__making_private(x, sim__making_place(x, pages), pages, 0, pages);
	for (size_t k = 0; bytes && i < h->root_count; i++, k++)
		put_pointer_word(bytes + size * k, h->roots[i], size);
	return bytes != NULL;
}

static void list_heap(struct sim_making *x, uint32_t index, uint64_t heap)
{
	if (x->ring)
		link_heap_descriptor(x, index, heap);
	if (index == 1 || !x->ring) {
		put_le64(x->ntdll_bytes + HEAPS_AT + 8 * (index - 1), heap);
		put_le32(x->peb_bytes + 0xe8, index); /* NumberOfHeaps */
	}
	if (index == 1)
		put_le64(x->peb_bytes + 0x30, heap); /* ProcessHeap */
}

enum status sim__making_heap(struct sim_making *x, uint32_t index, bool narrow, struct sim_heap *h,
			     struct err *e)
{
	if (x->in->m->told)
		tell_heap(x, index, narrow, h);
	if (narrow)
		sim__wow64_list_heap(x, index, h->address);
	else
		list_heap(x, index, h->address);
	if (h->page_heap)
		link_page_heap(x, index, h);
	return add_regions(x, h) && put_roots(x, index, narrow, h)
		       ? ST_OK
		       : err_set(e, ST_USAGE, "there is not enough RAM for the heaps");
}

/* Blocks are the main process's, which has eight times as many as another. */
static struct sim_heap_plan heap_plan_of(struct sim_making *x, uint32_t index)
{
	const struct sim_spec *s = &x->in->m->spec;
	const bool main = x->process == x->in->m->main;
	const uint64_t blocks = main ? s->heap_blocks : s->heap_blocks / 8;
	/* The first heap, the process's own, has half of all. */
	const uint64_t share = s->heaps == 1 ? blocks
			       : index == 1  ? blocks / 2
					     : blocks / 2 / (s->heaps - 1);

	return (struct sim_heap_plan){
		.layout = x->in->layout->seven     ? SIM_HEAP_7
			  : x->in->layout->chained ? SIM_HEAP_26100
						   : SIM_HEAP_17763,
		.seed = sim_draw(&x->in->random),
		.more = MORE_FIRST + index * MORE_STEP,
		.index = index,
		.allocations = MAX(share, 16),
		.size_min = 8,
		.size_max = (uint32_t)s->heap_max,
		.churn = 30,
		.lfh = (uint32_t)s->heap_lfh,
		.lfh_key = x->lfh_key,
		.holes = index == 1 ? 3 : 0,
		.virtual_blocks = index != 1        ? 0
				  : s->segment_heap ? main ? 9 : 3
				  : main            ? 2
						    : 0,
		.leaks = index == 1 ? (uint32_t)MIN(s->heap_leaks, share) : 0,
		.kept = index == 1 ? (uint32_t)s->stack_roots : 0,
		.user_context = x->ring ? descriptor_of(x, index) : 0,
		.page_heap = main ? (enum sim_page_heap)s->page_heap : SIM_PAGE_HEAP_NONE,
		.page_heap_queue = index == 1 ? x->ntdll_data + PAGE_HEAP_QUEUE_AT : 0,
		.hp_keys = s->segment_heap && index == 1 ? x->hp_keys : NULL,
		.hp_layout = x->in->layout->build >= 20348 ? SIM_HP_20348 : SIM_HP_17763,
		.hp_padded = s->segment_heap == 2,
		.traces = x->traces,
		.trace_count = x->n_traces,
	};
}

static enum status start_page_heap(struct sim_making *x, struct err *e)
{
	const uint64_t lists[] = { PAGE_HEAP_LIST_AT, PAGE_HEAP_QUEUE_AT };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (unsigned k = 0; k < 16; k += 8)
			put_le64(x->ntdll_bytes + lists[i] + k, x->ntdll_data + lists[i]);
	put_le32(x->peb_bytes + 0xbc, get_le32(x->peb_bytes + 0xbc) | FLG_HEAP_PAGE_ALLOCS);
	return sim__traces_make(x, true, e);
}

/* With heap_writes the main process's go on (live.h). */
static enum status build_heap(struct sim_making *x, uint32_t index,
			      const struct sim_heap_plan *plan, struct sim_heap *ret, struct err *e)
{
	struct machine *m = x->in->m;
	struct sim_heap_builder *b = NULL;
	enum status st;

	if (!m->spec.heap_writes || x->process != m->main)
		return sim__heap_build(plan, ret, e);
	st = sim__heap_build_live(plan, ret, &b, e);
	if (!st && !sim__live_add(m, index, b))
		st = err_nomem(e);
	return st;
}

static void make_narrow(const struct sim_making *x, uint32_t index, struct sim_heap_plan *plan)
{
	const uint64_t step = (MORE_END - MORE_NARROW) / x->in->m->spec.heaps & ~UINT64_C(0xffff);

	plan->x86 = true;
	plan->more = MORE_NARROW + (index - 1) * step;
	plan->user_context = sim__wow64_descriptor(x, index);
}

static enum status make_sim_heap(struct sim_making *x, uint32_t index, struct sim_heap_plan *plan,
				 struct err *e)
{
	struct sim_heap h = { 0 };
	enum status st;

	plan->base = sim__making_place(x, RESERVE_PAGES);
	st = build_heap(x, index, plan, &h, e);
	if (!st)
		st = sim__making_heap(x, index, plan->x86, &h, e);
	sim__heap_deinit(&h);
	return st;
}

/* That of ntdll's other half. */
static enum status make_own(struct sim_making *x, struct err *e)
{
	struct sim_heap_plan plan = heap_plan_of(x, 1);

	plan.allocations = BLOCKS_OWN;
	plan.more = MORE_OWN;
	plan.virtual_blocks = 0;
	plan.leaks = 0;
	return make_sim_heap(x, 1, &plan, e);
}

enum status sim__making_heaps(struct sim_making *x, struct err *e)
{
	const struct sim_spec *s = &x->in->m->spec;
	enum status st = ST_OK;

	x->lfh_key = sim_draw(&x->in->random) | 1;
	if (s->resolver && x->process == x->in->m->main)
		return sim__resolver_make(x, e);
	if (s->heaps && !make_ring(x))
		return err_set(e, ST_USAGE, "there is not enough RAM for the heaps");
	if (s->segment_heap) /* RtlpHpHeapGlobals: HeapKey, LfhKey */
		for (size_t i = 0; i < ARRAY_SIZE(x->hp_keys); i++) {
			x->hp_keys[i] = sim_draw(&x->in->random);
			put_le64(x->ntdll_bytes + HP_GLOBALS_AT + 8 * i, x->hp_keys[i]);
		}
	if (s->heap_ust)
		st = sim__traces_make(x, false, e);
	if (s->page_heap && x->process == x->in->m->main)
		st = start_page_heap(x, e);
	if (s->heaps && x->narrow)
		st = make_own(x, e);
	if (!st && sim__leaker_is(x))
		return sim__leaker_make(x, e);
	for (uint32_t i = 1; i <= s->heaps && !st; i++) {
		struct sim_heap_plan plan = heap_plan_of(x, i);

		if (x->narrow)
			make_narrow(x, i, &plan);
		st = make_sim_heap(x, i, &plan, e);
	}
	return st;
}
