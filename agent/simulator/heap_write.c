/* SPDX-License-Identifier: Apache-2.0 */
/* What a heap keeps about itself: heads of segments, lists, counters; and the truth of it all. */
#include <stdlib.h>
#include <string.h>

#include "agent/simulator/heap_page.h"
#include "agent/simulator/heap_segment.h"
#include "formats/base/array.h"

/* Of _HEAP_SEGMENT, which a heap starts with, too (x64, x86). */
#define SEGMENT_SIGNATURE 0xffeeffee
#define HEAP_SIGNATURE    0xeeffeeff
#define SEGMENT_SIGNED(b) by_width(b, 0x10, 8)
#define SEGMENT_ENTRY(b)  by_width(b, 0x18, 0x10)
#define SEGMENT_HEAP(b)   by_width(b, 0x28, 0x18)
#define SEGMENT_UCRS(b)   by_width(b, 0x60, 0x38)

/*
 * Of _HEAP: offsets that Windows moved. What is not here follows at a fixed distance: in front of
 * SegmentList from Signature on, and behind it up to FreeLists, records agree. The front end of x86
 * before 19041 is 8.1's, moved as x64's was, which no record confirms; so are x86's counters.
 */
static const struct head {
	uint16_t signature, index, ucr_list, virtual_blocks, segment_list, free_lists;
	uint16_t user_context, front_end, counters, size;
} heads[2][SIM_HEAP_LAYOUTS] = {
	{
		[SIM_HEAP_7] = { 0xa0, 0xd8, 0xf8, 0x118, 0x128, 0x158, 0, 0x178, 0x188, 0x208 },
		[SIM_HEAP_8] = { 0x98, 0xd0, 0xf0, 0x110, 0x120, 0x150, 0, 0x170, 0x210, 0x298 },
		[SIM_HEAP_14393] = { 0x98, 0xd0, 0xf0, 0x110, 0x120, 0x150, 0, 0x178, 0x218,
				     0x2a0 },
		[SIM_HEAP_17763] = { 0x98, 0xd0, 0xf0, 0x110, 0x120, 0x150, 0, 0x198, 0x238,
				     0x2c0 },
		[SIM_HEAP_26100] = { 0x98, 0xd0, 0xf0, 0x110, 0x120, 0x150, 0x188, 0x198, 0x238,
				     0x2c0 },
	},
	{
		[SIM_HEAP_7] = { 0x64, 0x80, 0x90, 0xa0, 0xa8, 0xc4, 0, 0xd4, 0xdc, 0x138 },
		[SIM_HEAP_8] = { 0x60, 0x7c, 0x8c, 0x9c, 0xa4, 0xc0, 0, 0xd0, 0x1e0, 0x248 },
		[SIM_HEAP_14393] = { 0x60, 0x7c, 0x8c, 0x9c, 0xa4, 0xc0, 0, 0xd4, 0x1e4, 0x248 },
		[SIM_HEAP_17763] = { 0x60, 0x7c, 0x8c, 0x9c, 0xa4, 0xc0, 0, 0xe4, 0x1f4, 0x258 },
		[SIM_HEAP_26100] = { 0x60, 0x7c, 0x8c, 0x9c, 0xa4, 0xc0, 0xdc, 0xe4, 0x1f4, 0x258 },
	},
};

void sim__heap_list_init(const struct sim_heap_builder *b, uint64_t head)
{
	uint8_t *at = sim__heap_at(b, head);

	put_heap_pointer(b, at, head);
	put_heap_pointer(b, at + b->pointer, head);
}

void sim__heap_list_append(const struct sim_heap_builder *b, uint64_t head, uint64_t entry)
{
	uint8_t *at = sim__heap_at(b, head), *of = sim__heap_at(b, entry);
	const uint64_t last = get_pointer(b, at + b->pointer);

	put_heap_pointer(b, of, head);
	put_heap_pointer(b, of + b->pointer, last);
	put_heap_pointer(b, sim__heap_at(b, last), entry);
	put_heap_pointer(b, at + b->pointer, entry);
}

/*
 * Holes
 */

/* _HEAP_UCR_DESCRIPTOR, in the chunk before the hole. */
static void write_hole(const struct sim_heap_builder *b, const struct head *h, uint32_t hole,
		       struct sim_heap *ret)
{
	const struct chunk *c = &b->chunks[hole];
	const uint64_t segment = sim__heap_segment(b, hole)->va;
	const uint64_t descriptor = sim__chunk_va(b, c->before) + b->header;
	uint8_t *at = sim__heap_at(b, descriptor);

	put_heap_pointer(b, at + 4 * b->pointer, sim__chunk_va(b, hole));
	put_heap_pointer(b, at + 5 * b->pointer, (uint64_t)c->size * b->unit);
	sim__heap_list_append(b, segment + SEGMENT_UCRS(b), descriptor + 2 * b->pointer);
	if (!c->size) { /* nothing to be found in the list of the heap, we think */
		sim__heap_list_init(b, descriptor);
		return;
	}
	sim__heap_list_append(b, b->plan.base + h->ucr_list, descriptor);
	ret->holes++;
}

/*
 * Heads of segments
 */

static void write_segment(const struct sim_heap_builder *b, const struct head *h, uint32_t i,
			  struct sim_heap *ret)
{
	const struct segment *s = &b->segments[i];
	const struct sim_heap_region *r = &b->regions[s->region];
	const uint32_t entry = SEGMENT_HEAP(b) + b->pointer;
	const uint32_t before = ret->holes;
	uint32_t uncommitted = 0;

	put_le32(r->bytes + SEGMENT_SIGNED(b), SEGMENT_SIGNATURE);
	put_le32(r->bytes + SEGMENT_SIGNED(b) + 4, i ? 0 : 2);
	put_heap_pointer(b, r->bytes + SEGMENT_HEAP(b), b->plan.base);
	put_heap_pointer(b, r->bytes + entry, r->va); /* BaseAddress, and so on */
	put_le32(r->bytes + entry + b->pointer, r->pages);
	put_heap_pointer(b, r->bytes + entry + 2 * b->pointer,
			 r->va + (uint64_t)b->chunks[s->first].size * b->unit);
	put_heap_pointer(b, r->bytes + entry + 3 * b->pointer,
			 r->va + ((uint64_t)r->pages << PAGE_SHIFT));
	sim__heap_list_append(b, b->plan.base + h->segment_list, r->va + SEGMENT_ENTRY(b));
	sim__heap_list_init(b, r->va + SEGMENT_UCRS(b));
	for (uint32_t c = s->first; c != NO_CHUNK; c = b->chunks[c].after)
		if (b->chunks[c].state == CHUNK_HOLE)
			write_hole(b, h, c, ret);
	for (uint32_t p = 0; p < r->pages; p++)
		uncommitted += !r->committed[p];
	put_le32(r->bytes + entry + 4 * b->pointer, uncommitted);
	put_le32(r->bytes + entry + 4 * b->pointer + 4, ret->holes - before);
	ret->segments++;
	ret->reserved += (uint64_t)r->pages << PAGE_SHIFT;
	ret->committed += (uint64_t)(r->pages - uncommitted) << PAGE_SHIFT;
}

/*
 * Free chunks: sorted by size, and an index over them
 */

struct free_chunk {
	uint64_t link; /* of its FreeList */
	uint32_t size;
};

static int compare_free(const void *x, const void *y)
{
	const struct free_chunk *a = x, *b = y;

	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return a->link < b->link ? -1 : a->link > b->link;
}

/*
 * _HEAP_LIST_LOOKUP behind the head, for sizes below 80 units; the last hint is for all above. 7
 * has two words for each hint.
 */
static void write_lookup(const struct sim_heap_builder *b, const struct head *h,
			 const struct free_chunk *free, size_t count)
{
	const uint32_t sizes = 0x80, words = b->plan.layout == SIM_HEAP_7 ? 2 : 1;
	const uint32_t at = (h->size + 15u) & ~15u, bits = at + by_width(b, 0x38, 0x24);
	const uint32_t hints = bits + sizes / 8;
	uint8_t *head = b->regions[b->segments[0].region].bytes;
	uint8_t *fields = head + at + b->pointer;
	uint32_t beyond = 0;

	memset(head + bits, 0, sizes / 8 + (size_t)words * sizes * b->pointer);
	for (size_t i = count; i--;) {
		const uint32_t slot = MIN(free[i].size, sizes - 1);

		beyond += free[i].size >= sizes;
		put_heap_pointer(b, head + hints + words * slot * b->pointer, free[i].link);
		head[bits + slot / 8] |= (uint8_t)(1 << slot % 8);
	}
	put_le32(fields, sizes);
	put_le32(fields + 4, words == 2);
	put_le32(fields + 8, (uint32_t)count);
	put_le32(fields + 12, beyond);
	put_heap_pointer(b, head + at + by_width(b, 0x20, 0x18), b->plan.base + h->free_lists);
	put_heap_pointer(b, head + at + by_width(b, 0x28, 0x1c), b->plan.base + bits);
	put_heap_pointer(b, head + at + by_width(b, 0x30, 0x20), b->plan.base + hints);
	/* BlocksIndex */
	put_heap_pointer(b, head + h->segment_list + 2 * b->pointer + 8, b->plan.base + at);
}

static bool write_free(struct sim_heap_builder *b, const struct head *h, struct sim_heap *ret)
{
	_cleanup_free_ struct free_chunk *found = calloc(b->chunk_count + 1, sizeof(*found));
	const uint64_t list = b->plan.base + h->free_lists;
	uint64_t last = list;
	size_t n = 0;

	if (!found) {
		sim__heap_fail(b, NULL);
		return false;
	}
	for (size_t s = 0; s < b->segment_count; s++)
		for (uint32_t c = b->segments[s].first; c != NO_CHUNK; c = b->chunks[c].after)
			if (b->chunks[c].state == CHUNK_FREE) {
				found[n].link = sim__chunk_va(b, c) + b->header;
				found[n++].size = b->chunks[c].size;
				ret->total_free += b->chunks[c].size;
			}
	array_sort(found, n, sizeof(*found), compare_free);
	for (size_t i = 0; i <= n; i++) {
		const uint64_t now = i < n ? found[i].link : list;

		put_heap_pointer(b, sim__heap_at(b, last), now);
		put_heap_pointer(b, sim__heap_at(b, now) + b->pointer, last);
		last = now;
	}
	write_lookup(b, h, found, n);
	return true;
}

/*
 * The head
 */

static void write_head(const struct sim_heap_builder *b, const struct head *h, struct sim_heap *ret)
{
	uint8_t *at = b->regions[b->segments[0].region].bytes;
	const uint32_t segments = SEGMENT_UCRS(b) + 2 * b->pointer, w = b->pointer;
	uint8_t *sizes = at + h->signature + w, *counters = at + h->counters;

	/* Flags: growable, HEAP_CAPTURE_STACK_BACKTRACES */
	put_le32(at + segments, b->plan.trace_count ? 0x08000002 : 2);
	if (b->plan.trace_count) /* Interceptor */
		put_le32(at + h->signature - 8, sim__trace_function(b));
	put_le32(at + segments + 0xc, b->plan.plain ? 0 : 0x100000);
	memcpy(at + by_width(b, 0x88, 0x50), b->encoding, sizeof(b->encoding));
	put_le32(at + h->signature - 4, by_width(b, 0xff00, 0xfe00));
	put_le32(at + h->signature, HEAP_SIGNATURE);
	put_heap_pointer(b, sizes, 0x100000); /* SegmentReserve, and so on */
	put_heap_pointer(b, sizes + w, 0x2000);
	put_heap_pointer(b, sizes + 2 * w, PAGE_SIZE / b->unit);
	put_heap_pointer(b, sizes + 3 * w, 0x10000 / b->unit);
	put_heap_pointer(b, sizes + 4 * w, ret->total_free);
	put_heap_pointer(b, sizes + 5 * w, by_width(b, 0, 0x7ffdefff));
	if (w == 8)
		put_heap_pointer(b, sizes + 5 * w, UINT64_C(0x7ffffffdefff));
	put_le16(at + h->index, (uint16_t)(b->plan.index ? b->plan.index : 1));
	put_heap_pointer(b, at + h->ucr_list + 2 * w, 2 * b->unit - 1);
	put_heap_pointer(b, at + h->ucr_list + 3 * w, ~(uint64_t)(b->unit - 1));
	if (h->user_context)
		put_heap_pointer(b, at + h->user_context, b->plan.user_context);
	put_heap_pointer(b, at + h->front_end, b->front_end);
	/* FrontHeapLockCount, FrontEndHeapType; what was asked for, from 8 on: 2 is the LFH */
	at[h->front_end + w + 2] = b->front_end ? 2 : 0;
	if (b->plan.layout != SIM_HEAP_7)
		at[h->front_end + w + 3] = at[h->front_end + w + 2];
	put_heap_pointer(b, counters, ret->reserved);
	put_heap_pointer(b, counters + w, ret->committed);
	put_heap_pointer(b, counters + 3 * w, ret->virtual_bytes);
	put_le32(counters + 4 * w, ret->segments);
	put_le32(counters + 4 * w + 4, ret->holes);
}

/*
 * The truth
 */

static int compare_allocation(const void *x, const void *y)
{
	const struct sim_allocation *a = x, *b = y;

	return a->address < b->address ? -1 : a->address > b->address;
}

static int compare_region(const void *x, const void *y)
{
	const struct sim_heap_region *a = x, *b = y;

	return a->va < b->va ? -1 : a->va > b->va;
}

static int compare_edge(const void *x, const void *y)
{
	const struct edge *a = x, *b = y;

	return a->from < b->from ? -1 : a->from > b->from;
}

/* From the roots, along all pointers that blocks in use hold. */
static bool mark_reachable(struct sim_heap_builder *b)
{
	_cleanup_free_ uint32_t *stack = calloc(b->block_count + 1, sizeof(*stack));
	_cleanup_free_ uint32_t *first = calloc(b->block_count + 1, sizeof(*first));
	size_t n = 0;

	if (!stack || !first)
		return false;
	array_sort(b->edges, b->edge_count, sizeof(*b->edges), compare_edge);
	for (size_t i = b->edge_count; i--;) {
		const struct edge *edge = &b->edges[i];

		first[edge->from] = (uint32_t)i;
		if (b->blocks[edge->from].busy)
			b->blocks[edge->to].referrer = b->blocks[edge->from].address + edge->at;
	}
	for (uint32_t i = 0; i < b->block_count; i++)
		if (b->blocks[i].root && b->blocks[i].busy) {
			b->blocks[i].reached = true;
			stack[n++] = i;
		}
	while (n) {
		const uint32_t from = stack[--n];

		for (size_t i = first[from]; i < b->edge_count && b->edges[i].from == from; i++) {
			struct block *to = &b->blocks[b->edges[i].to];

			if (to->busy && !to->reached) {
				to->reached = true;
				stack[n++] = b->edges[i].to;
			}
		}
	}
	return true;
}

static struct sim_allocation of_block(const struct sim_heap_builder *b, const struct block *block)
{
	struct sim_allocation a = { .address = block->address,
				    .requested = block->requested,
				    .referrer = block->referrer,
				    .trace = block->trace,
				    .segment = UINT32_MAX,
				    .kind = block->kind,
				    .busy = true,
				    .leaked = !block->reached };

	if (block->waits) { /* for its heap, page heap has it */
		a.busy = b->plan.page_heap == SIM_PAGE_HEAP_LIGHT;
		a.leaked = false;
	}
	if (b->plan.page_heap == SIM_PAGE_HEAP_LIGHT) {
		a.address -= PAGE_HEAP_INFO;
		a.requested += PAGE_HEAP_LIGHT;
	}
	if (b->hp) {
		a.block = sim__hp_block_size(b, block);
	} else if (block->kind == SIM_HEAP_PAGE) {
		a.block = sim__page_heap_size(block->requested);
	} else if (block->kind == SIM_HEAP_VIRTUAL) {
		a.block = sim__virtual_bytes(b, block);
	} else if (block->kind == SIM_HEAP_LFH) {
		a.block = b->user_blocks[block->place].stride;
		a.segment = b->chunks[b->user_blocks[block->place].chunk].segment;
	} else {
		a.block = (uint64_t)b->chunks[block->place].size * b->unit;
		a.segment = b->chunks[block->place].segment;
	}
	return a;
}

static void add_chunks(const struct sim_heap_builder *b, struct sim_heap *ret)
{
	for (uint32_t s = 0; s < b->segment_count; s++)
		for (uint32_t i = b->segments[s].first; i != NO_CHUNK; i = b->chunks[i].after) {
			const struct chunk *c = &b->chunks[i];
			const uint64_t size = (uint64_t)c->size * b->unit;

			if (c->state != CHUNK_FREE && c->state != CHUNK_OWN)
				continue;
			ret->allocations[ret->count++] = (struct sim_allocation){
				.address = sim__chunk_data(b, i),
				.requested = size - (c->state == CHUNK_FREE ? 8
						     : c->extra ? b->header + c->extra * b->unit
								: c->unused),
				.block = size,
				.segment = s,
				.kind = c->state == CHUNK_FREE ? SIM_HEAP_BACK_END : SIM_HEAP_OWN,
				.busy = c->state == CHUNK_OWN,
			};
		}
}

static void add_front_end(const struct sim_heap_builder *b, struct sim_heap *ret)
{
	for (size_t i = 0; i < b->user_blocks_count; i++) {
		const struct user_blocks *u = &b->user_blocks[i];

		for (uint32_t k = 0; k < u->count; k++)
			if (b->lfh_owner[u->blocks + k] == SIM_HEAP_NO_BLOCK)
				ret->allocations[ret->count++] = (struct sim_allocation){
					.address = sim__lfh_block_va(b, u, k) + b->header,
					.requested = u->stride - 8,
					.block = u->stride,
					.segment = b->chunks[u->chunk].segment,
					.kind = SIM_HEAP_LFH,
				};
	}
}

static bool tell_truth(struct sim_heap_builder *b, struct sim_heap *ret)
{
	const size_t hp = b->hp ? b->hp->lfh_count + b->hp->vs_count + b->hp->chunk_count : 0;
	const size_t room = b->block_count + b->chunk_count + b->lfh_owner_count + hp + 1;

	ret->allocations = calloc(room, sizeof(*ret->allocations));
	ret->roots = calloc(b->block_count + 1, sizeof(*ret->roots));
	if (!ret->allocations || !ret->roots || !mark_reachable(b)) {
		sim__heap_fail(b, NULL);
		return false;
	}
	for (size_t i = 0; i < b->block_count; i++) {
		if (!b->blocks[i].busy && !b->blocks[i].waits)
			continue;
		ret->allocations[ret->count++] = of_block(b, &b->blocks[i]);
		if (b->blocks[i].root)
			ret->roots[ret->root_count++] = b->blocks[i].address;
	}
	add_chunks(b, ret);
	add_front_end(b, ret);
	if (b->hp)
		sim__hp_tell(b, ret);
	array_sort(ret->allocations, ret->count, sizeof(*ret->allocations), compare_allocation);
	return true;
}

static bool has_committed_pages(const struct sim_heap_region *r)
{
	return memchr(r->committed, 1, r->pages) != NULL;
}

/* Who goes on keeps what it has. */
static void hand_over_copies(struct sim_heap_builder *b, struct sim_heap *ret)
{
	ret->regions = calloc(b->region_count, sizeof(*ret->regions));
	for (size_t i = 0; ret->regions && i < b->region_count; i++) {
		const struct sim_heap_region *of = &b->regions[i];
		struct sim_heap_region *to = &ret->regions[ret->region_count];

		if (!has_committed_pages(of))
			continue;
		*to = *of;
		to->bytes = malloc((size_t)of->pages * PAGE_SIZE);
		to->committed = malloc(of->pages);
		ret->region_count++;
		if (!to->bytes || !to->committed) {
			sim__heap_fail(b, NULL);
			return;
		}
		memcpy(to->bytes, of->bytes, (size_t)of->pages * PAGE_SIZE);
		memcpy(to->committed, of->committed, of->pages);
	}
	if (!ret->regions)
		sim__heap_fail(b, NULL);
	else
		array_sort(ret->regions, ret->region_count, sizeof(*ret->regions), compare_region);
}

/* Blocks of VirtualAlloc() that were freed are gone. */
static void hand_over(struct sim_heap_builder *b, struct sim_heap *ret)
{
	for (size_t i = 0; i < b->region_count; i++) {
		if (has_committed_pages(&b->regions[i])) {
			b->regions[ret->region_count++] = b->regions[i];
			continue;
		}
		free(b->regions[i].bytes);
		free(b->regions[i].committed);
	}
	ret->regions = take_ptr(b->regions);
	b->region_count = 0;
	array_sort(ret->regions, ret->region_count, sizeof(*ret->regions), compare_region);
}

/* Where the front end's head has memory of its own, _HEAP_COUNTERS count that. */
static void count_front_end(const struct sim_heap_builder *b, struct sim_heap *ret)
{
	const struct sim_heap_region *r = &b->regions[b->front_region];

	if (!b->front_end || b->front_end != r->va)
		return;
	ret->reserved += (uint64_t)r->pages << PAGE_SHIFT;
	for (uint32_t p = 0; p < r->pages; p++)
		ret->committed += (uint64_t)r->committed[p] << PAGE_SHIFT;
}

/* False: failed. */
static bool write_lists(struct sim_heap_builder *b, const struct head *h, struct sim_heap *ret)
{
	sim__heap_list_init(b, b->plan.base + h->ucr_list);
	sim__heap_list_init(b, b->plan.base + h->virtual_blocks);
	sim__heap_list_init(b, b->plan.base + h->segment_list);
	for (uint32_t i = 0; i < b->segment_count; i++)
		write_segment(b, h, i, ret);
	count_front_end(b, ret);
	for (size_t i = 0; i < b->block_count; i++)
		if (b->blocks[i].busy && b->blocks[i].kind == SIM_HEAP_VIRTUAL) {
			sim__heap_list_append(b, b->plan.base + h->virtual_blocks,
					      sim__virtual_va(b, &b->blocks[i]));
			ret->virtual_bytes += sim__virtual_bytes(b, &b->blocks[i]);
		}
	if (b->plan.page_heap)
		sim__page_heap_write(b, ret);
	if (b->failed)
		return false;
	sim__lfh_finish(b);
	return write_free(b, h, ret);
}

void sim__heap_rewrite(struct sim_heap_builder *b)
{
	const struct head *h = &heads[b->plan.x86][b->plan.layout];
	struct sim_heap now = { 0 };

	if (write_lists(b, h, &now))
		write_head(b, h, &now);
}

void sim__heap_write(struct sim_heap_builder *b, struct sim_heap *ret)
{
	const struct head *h = &heads[b->plan.x86][b->plan.layout];

	if (b->hp) {
		sim__hp_write(b, ret);
		if (!b->failed && tell_truth(b, ret))
			hand_over(b, ret);
		return;
	}
	if (!write_lists(b, h, ret) || !tell_truth(b, ret))
		return;
	write_head(b, h, ret);
	ret->address = b->plan.base;
	memcpy(ret->encoding, b->encoding, sizeof(ret->encoding));
	ret->front_end = b->front_end;
	ret->lfh_key = b->lfh_key;
	if (b->live)
		hand_over_copies(b, ret);
	else
		hand_over(b, ret);
}
