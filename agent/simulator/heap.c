/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps as a program has them: they are made, it allocates and frees, and they are written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/simulator/heap_page.h"
#include "agent/simulator/heap_segment.h"
#include "formats/base/array.h"

#define RESERVE_DEFAULT UINT64_C(0x100000)
#define EXTRA_UNITS     2

/*
 * The program's side
 */

/* Requests above it go to VirtualAlloc(); a little below Windows' own FF000 (x86 7F000). */
static uint64_t virtual_threshold(const struct sim_heap_builder *b)
{
	return by_width(b, 0xfd000, 0x7e000);
}

static uint32_t virtual_entry(const struct sim_heap_builder *b)
{
	return by_width(b, 0x40, 0x20);
}

/* From 8 on so many pages lie before a virtual block; one behind it is never there either. */
static uint32_t draw_virtual_lead(struct sim_heap_builder *b)
{
	return b->plan.layout == SIM_HEAP_7 ? 0 : (uint32_t)sim_below(&b->random, 16);
}

uint64_t sim__virtual_bytes(const struct sim_heap_builder *b, const struct block *of)
{
	const struct sim_heap_region *r = &b->regions[of->place];

	return ((uint64_t)r->pages - of->lead - (b->plan.layout != SIM_HEAP_7)) << PAGE_SHIFT;
}

uint64_t sim__virtual_va(const struct sim_heap_builder *b, const struct block *of)
{
	return b->regions[of->place].va + ((uint64_t)of->lead << PAGE_SHIFT);
}

/*
 * Its Size is what is left of the last page. PreviousSize has none to tell of, and is 0 as it is
 * stored, not once it is decoded.
 */
static void put_virtual_header(const struct sim_heap_builder *b, const struct block *of,
			       uint32_t units)
{
	uint8_t *at = sim__heap_at(b, sim__virtual_va(b, of)) + virtual_entry(b) - 8;

	sim__header_put(b, at, (uint32_t)(sim__virtual_bytes(b, of) - of->requested),
			FLAG_BUSY | FLAG_EXTRA, 0, (uint8_t)units, 4);
	put_le16(at + 4, 0);
}

/*
 * _HEAP_VIRTUAL_ALLOC_ENTRY: lists, sizes, a header. `extra` bytes lie between it and the data.
 */
static bool take_virtual(struct sim_heap_builder *b, uint64_t size, uint32_t extra,
			 struct block *ret)
{
	const uint64_t commit =
		(size + extra + virtual_entry(b) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
	const uint32_t lead = draw_virtual_lead(b);
	const uint64_t reserve = commit + ((uint64_t)lead << PAGE_SHIFT) +
				 (b->plan.layout == SIM_HEAP_7 ? 0 : PAGE_SIZE);
	struct sim_heap_region *r;
	uint8_t *at;

	if (!sim__heap_region_add(b, sim__heap_region_place(b, reserve), reserve, 0))
		return false;
	r = &b->regions[b->region_count - 1];
	memset(r->committed + lead, 1, commit >> PAGE_SHIFT);
	*ret = (struct block){ .requested = size,
			       .place = (uint32_t)b->region_count - 1,
			       .lead = lead,
			       .kind = SIM_HEAP_VIRTUAL };
	ret->address = sim__virtual_va(b, ret) + virtual_entry(b);
	at = r->bytes + ((uint64_t)lead << PAGE_SHIFT);
	put_heap_pointer(b, at + 4 * b->pointer, commit);
	put_heap_pointer(b, at + 5 * b->pointer, reserve);
	put_virtual_header(b, ret, 0);
	return true;
}

static bool take_back_end_chunk(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint32_t chunk = sim__chunk_take(b, size, CHUNK_BUSY, 0);

	if (chunk == NO_CHUNK)
		return false;
	*ret = (struct block){ .address = sim__chunk_va(b, chunk) + b->header,
			       .requested = size,
			       .place = chunk,
			       .kind = SIM_HEAP_BACK_END };
	return true;
}

uint16_t sim__trace_function(const struct sim_heap_builder *b)
{
	return b->plan.layout == SIM_HEAP_7 ? 2 : 1;
}

/*
 * Units of a block's extra. From Vista on an interceptor of the heap's asks for room before the
 * data: "Leak checking" (2010) has the layout of 7, shanepowell/DbgHelpUtils c62b5a8
 * (heap_entry.cpp) that of 10, and of virtual blocks; genuine heaps of both have it so.
 */
uint32_t sim__extra_units(struct sim_heap_builder *b)
{
	/* Some came before there was an interceptor. */
	if (!b->plan.trace_count || b->hp || b->plan.page_heap || !sim_below(&b->random, 32))
		return 0;
	return EXTRA_UNITS;
}

/* Of whatever kind. */
static bool take_heap_block(struct sim_heap_builder *b, uint64_t size, uint32_t extra,
			    struct block *ret)
{
	if (b->hp)
		return sim__hp_alloc(b, size, ret);
	if (b->plan.page_heap == SIM_PAGE_HEAP_FULL)
		return sim__page_heap_alloc(b, size, ret);
	if (b->plan.page_heap == SIM_PAGE_HEAP_LIGHT)
		size += PAGE_HEAP_LIGHT;
	if (size > virtual_threshold(b))
		return take_virtual(b, size, extra, ret);
	return sim__lfh_alloc(b, size + extra, ret) || take_back_end_chunk(b, size + extra, ret);
}

/* Blocks of one size come from few places. 0: the database was full. */
uint64_t sim__extra_trace(struct sim_heap_builder *b, uint64_t size)
{
	const uint64_t place = size * 7 + sim_below(&b->random, 3);

	if (!sim_below(&b->random, 16))
		return 0;
	return b->plan.traces[place % b->plan.trace_count];
}

/*
 * _HEAP_ENTRY's names: behind the block's header the trace, right before the data FunctionIndex,
 * ContextValue, UnusedBytesLength (of the whole block), EntryOffset, ExtendedBlockSignature.
 */
void sim__extra_put(const struct sim_heap_builder *b, uint8_t *at, uint32_t units, uint64_t whole,
		    uint64_t requested, uint64_t trace)
{
	uint8_t *entry = at + units * b->unit - 8;

	memset(at, 0, units * b->unit);
	put_heap_pointer(b, at, trace);
	put_le16(entry, sim__trace_function(b));
	put_le16(entry + 4, (uint16_t)(whole - requested));
	entry[6] = (uint8_t)units;
	entry[7] = 5;
}

/*
 * The block's own UnusedBytes says how long that is, with 40 (hexadecimal). That of a virtual block
 * stays, and SegmentOffset says it: genuine ones of 7601 and 22000 have 2 there.
 */
static void put_extra(struct sim_heap_builder *b, uint32_t block, uint32_t units)
{
	struct block *of = &b->blocks[block];
	uint8_t *at = sim__heap_bytes(b, block);
	uint64_t whole;

	if (of->kind == SIM_HEAP_BACK_END) {
		b->chunks[of->place].unused = (uint8_t)(0x40 | units);
		sim__chunk_put(b, of->place);
		whole = (uint64_t)b->chunks[of->place].size * b->unit;
	} else if (of->kind == SIM_HEAP_LFH) {
		at[-1] = (uint8_t)(0xc0 | units);
		whole = b->user_blocks[of->place].stride;
	} else {
		whole = sim__virtual_bytes(b, of) + units * b->unit;
		put_virtual_header(b, of, units);
	}
	sim__extra_put(b, at, units, whole, of->requested, of->trace);
	of->address += units * b->unit;
}

/* A block with room for an extra, which is not written yet. */
static uint32_t add_heap_block(struct sim_heap_builder *b, uint64_t size, uint32_t units)
{
	struct block *more;

	if (b->failed)
		return SIM_HEAP_NO_BLOCK;
	if (!ARRAY_ROOM(b->blocks, b->block_count, b->block_room) ||
	    b->block_room >= SIM_HEAP_NO_BLOCK) {
		sim__heap_fail(b, NULL);
		return SIM_HEAP_NO_BLOCK;
	}
	more = &b->blocks[b->block_count];
	if (!take_heap_block(b, size, units * b->unit, more)) {
		sim__heap_fail(b, NULL);
		return SIM_HEAP_NO_BLOCK;
	}
	more->busy = true;
	more->requested = size;
	if (more->kind == SIM_HEAP_LFH)
		b->lfh_owner[(b->hp ? b->hp->lfh[more->place].blocks
				    : b->user_blocks[more->place].blocks) +
			     more->index] = (uint32_t)b->block_count;
	return (uint32_t)b->block_count++;
}

uint32_t sim__heap_alloc(struct sim_heap_builder *b, uint64_t size)
{
	const uint32_t units = sim__extra_units(b), block = add_heap_block(b, size, units);

	if (block == SIM_HEAP_NO_BLOCK)
		return block;
	if (b->plan.page_heap) {
		b->blocks[block].trace = b->plan.trace_count ? sim__extra_trace(b, size) : 0;
		sim__page_heap_put(b, block);
	}
	if (units) {
		b->blocks[block].trace = sim__extra_trace(b, size);
		put_extra(b, block, units);
	}
	return block;
}

uint32_t sim__heap_alloc_traced(struct sim_heap_builder *b, uint64_t size, uint64_t trace)
{
	const uint32_t block = add_heap_block(b, size, EXTRA_UNITS);

	if (block == SIM_HEAP_NO_BLOCK)
		return block;
	b->blocks[block].trace = trace;
	put_extra(b, block, EXTRA_UNITS);
	return block;
}

void sim__heap_free(struct sim_heap_builder *b, uint32_t block)
{
	struct block *of = &b->blocks[block];

	if (b->failed || !of->busy)
		return;
	of->busy = false;
	if (b->plan.page_heap && sim__page_heap_free(b, block))
		return;
	if (b->hp)
		sim__hp_free(b, of);
	else if (of->kind == SIM_HEAP_LFH)
		sim__lfh_free(b, of);
	else if (of->kind == SIM_HEAP_BACK_END)
		sim__chunk_free(b, of->place);
	else
		memset(b->regions[of->place].committed, 0, b->regions[of->place].pages);
}

uint64_t sim__heap_address(const struct sim_heap_builder *b, uint32_t block)
{
	return b->blocks[block].address;
}

uint8_t *sim__heap_bytes(struct sim_heap_builder *b, uint32_t block)
{
	const struct block *of = &b->blocks[block];
	const struct sim_heap_region *r;

	if (b->hp || of->kind == SIM_HEAP_PAGE)
		return sim__heap_at(b, of->address);
	r = &b->regions[of->place];
	if (of->kind == SIM_HEAP_BACK_END)
		r = sim__heap_segment(b, of->place);
	else if (of->kind == SIM_HEAP_LFH)
		r = sim__heap_segment(b, b->user_blocks[of->place].chunk);
	return r->bytes + (of->address - r->va);
}

void sim__heap_refer(struct sim_heap_builder *b, uint32_t from, uint64_t at, uint32_t to,
		     uint64_t into)
{

	if (b->failed)
		return;
	if (!ARRAY_ROOM(b->edges, b->edge_count, b->edge_room)) {
		sim__heap_fail(b, NULL);
		return;
	}
	b->edges[b->edge_count++] = (struct edge){ .from = from, .to = to, .at = at };
	put_heap_pointer(b, sim__heap_bytes(b, from) + at, b->blocks[to].address + into);
}

void sim__heap_root(struct sim_heap_builder *b, uint32_t block)
{
	b->blocks[block].root = true;
}

/*
 * The whole
 */

/* Where the first chunk of a first segment lies: 7 and 10 as WinDbg shows it, 8 as 10. */
static uint32_t head_units(const struct sim_heap_builder *b)
{
	if (b->plan.layout == SIM_HEAP_7)
		return by_width(b, 0xa80, 0x588) / b->unit;
	return by_width(b, 0x740, 0x4a8) / b->unit;
}

static enum status check_heap_plan(const struct sim_heap_plan *p, struct err *e)
{
	if ((unsigned)p->layout >= SIM_HEAP_LAYOUTS)
		return err_set(e, ST_USAGE, "no such layout");
	if (p->base % GRANULARITY || !p->base || p->more % GRANULARITY)
		return err_set(e, ST_USAGE, "a heap starts at a multiple of 64 KiB");
	if (p->reserve % GRANULARITY || p->commit % PAGE_SIZE || p->reserve > RESERVE_MAX)
		return err_set(e, ST_USAGE, "reserve and commit are whole, at most 0xfd0000");
	if (p->size_max > 0x80000 || p->size_min > 0x80000)
		return err_set(e, ST_USAGE, "sizes above 512 KiB");
	if (p->page_heap && (p->x86 || p->hp_keys))
		return err_set(e, ST_USAGE, "page heap is x64, before an NT heap");
	if (p->hp_keys && (p->x86 || p->trace_count))
		return err_set(e, ST_USAGE, "a segment heap is x64, and has no extras");
	if (p->churn > 45 || p->lfh > 100 || p->segments > 64 || p->released > 1000)
		return err_set(e, ST_USAGE, "churn, lfh, released or segments are too many");
	return ST_OK;
}

static void draw_heap_keys(struct sim_heap_builder *b)
{
	const uint64_t key = sim_draw(&b->random);

	b->lfh_key = b->plan.lfh_key ? (uint32_t)b->plan.lfh_key : (uint32_t)sim_draw(&b->random);
	if (b->plan.plain)
		return;
	/*
	 * Of 8 bytes, 6 are drawn: SegmentOffset and UnusedBytes stay readable, and the bit of
	 * EncodeFlagMask is set, so that a header tells that it is encoded. So it was in the
	 * fragment.
	 */
	put_le32(b->encoding, (uint32_t)key | 0x100000);
	put_le16(b->encoding + 4, (uint16_t)(key >> 32));
}

enum status sim__heap_create(const struct sim_heap_plan *plan, struct sim_heap_builder **ret,
			     struct err *e)
{
	struct sim_heap_builder *b;
	enum status st = check_heap_plan(plan, e);
	uint64_t reserve, commit;

	if (st)
		return st;
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, ST_NOMEM, "a heap");
	b->plan = *plan;
	b->random = plan->seed ^ plan->base;
	b->pointer = plan->x86 ? 4 : 8;
	b->header = b->unit = 2 * b->pointer;
	b->spare = NO_CHUNK;
	for (size_t i = 0; i < BINS; i++)
		b->bins[i] = NO_CHUNK;
	for (size_t i = 0; i < LFH_BUCKETS; i++)
		b->buckets[i].newest = b->buckets[i].open = NO_USER_BLOCKS;
	draw_heap_keys(b);
	reserve = plan->reserve ? plan->reserve : RESERVE_DEFAULT;
	commit = plan->commit ? plan->commit : COMMIT_DEFAULT;
	b->next_reserve = MAX(reserve, RESERVE_DEFAULT);
	b->next_va = plan->more ? plan->more : plan->base + reserve;
	b->page_region = SIZE_MAX;
	if (plan->hp_keys) {
		if (!sim__hp_create(b))
			sim__heap_fail(b, NULL);
	} else if (sim__heap_add_segment(b, plan->base, reserve, MIN(commit, reserve),
					 head_units(b))) {
		while (b->segment_count < plan->segments && sim__heap_more(b, PAGE_SIZE))
			;
	}
	if (plan->page_heap)
		sim__page_heap_create(b);
	*ret = b;
	return ST_OK;
}

void sim__heap_destroy(struct sim_heap_builder *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->region_count; i++) {
		free(b->regions[i].bytes);
		free(b->regions[i].committed);
	}
	free(b->regions);
	free(b->segments);
	free(b->chunks);
	free(b->blocks);
	free(b->edges);
	free(b->user_blocks);
	free(b->lfh_owner);
	sim__hp_destroy(b->hp);
	free(b);
}

void sim__heap_deinit(struct sim_heap *h)
{
	for (size_t i = 0; i < h->region_count; i++) {
		free(h->regions[i].bytes);
		free(h->regions[i].committed);
	}
	free(h->regions);
	free(h->allocations);
	free(h->roots);
	free(h->page_blocks);
	*h = (struct sim_heap){ 0 };
}

static enum status finish_heap_build(struct sim_heap_builder *b, struct sim_heap *ret,
				     struct err *e)
{
	enum status st;

	*ret = (struct sim_heap){ 0 };
	if (!b->failed)
		sim__heap_write(b, ret);
	st = !b->failed ? ST_OK
	     : b->why ? err_set(e, ST_USAGE, "the heap at 0x%" PRIx64 ": %s", b->plan.base, b->why)
		      : err_set(e, ST_NOMEM, "the heap at 0x%" PRIx64, b->plan.base);
	if (st)
		sim__heap_deinit(ret);
	return st;
}

enum status sim__heap_finish(struct sim_heap_builder *b, struct sim_heap *ret, struct err *e)
{
	const enum status st = finish_heap_build(b, ret, e);

	sim__heap_destroy(b);
	return st;
}

enum status sim__heap_build_live(const struct sim_heap_plan *plan, struct sim_heap *ret,
				 struct sim_heap_builder **ret_builder, struct err *e)
{
	struct sim_heap_builder *b = NULL;
	enum status st = sim__heap_create(plan, &b, e);

	if (st)
		return st;
	b->live = true;
	st = sim__heap_work(b, e);
	/* Room to go on: later on there can be no more segments, which would need VADs. */
	if (!st && !b->failed)
		sim__heap_more(b, PAGE_SIZE);
	if (!st)
		st = finish_heap_build(b, ret, e);
	if (st)
		sim__heap_destroy(b);
	else
		*ret_builder = b;
	return st;
}

enum status sim__heap_build(const struct sim_heap_plan *plan, struct sim_heap *ret, struct err *e)
{
	struct sim_heap_builder *b = NULL;
	enum status st = sim__heap_create(plan, &b, e);

	if (st)
		return st;
	st = sim__heap_work(b, e);
	if (st) {
		sim__heap_destroy(b);
		return st;
	}
	return sim__heap_finish(b, ret, e);
}
