/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/heap_page.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/array.h"

#define RESERVE     UINT64_C(0x100000) /* at once, for blocks */
#define HANDLE_SIZE UINT64_C(0x10000)
#define ROOT_AT     PAGE_SIZE
#define NODE        0x80u
#define FILL_HANDLE 0xee
#define FILL_FREED  0xf0
#define SUFFIX_FULL 0xd0
#define SUFFIX      0xa0

/* _HEAP.Flags: HEAP_GROWABLE, HEAP_FLAG_PAGE_ALLOCS */
#define FLAGS       0x01000002
#define SIGNATURE   0xffeeddcc

/* Of _DPH_BLOCK_INFORMATION: of full and of light page heap; of freed blocks one less. */
static const struct {
	uint32_t start, end;
	uint8_t fill;
} stamps[] = {
	[SIM_PAGE_HEAP_FULL] = { 0xabcdbbbb, 0xdcbabbbb, 0xc0 },
	[SIM_PAGE_HEAP_LIGHT] = { 0xabcdaaaa, 0xdcbaaaaa, 0xe0 },
};

static uint64_t padded_to_16(uint64_t size)
{
	return (size + 15) & ~UINT64_C(15);
}

uint64_t sim__page_heap_size(uint64_t requested)
{
	return (padded_to_16(requested) + PAGE_HEAP_INFO + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
}

bool sim__page_heap_create(struct sim_heap_builder *b)
{
	b->page_heap = sim__heap_region_place(b, HANDLE_SIZE);
	return sim__heap_region_add(b, b->page_heap, HANDLE_SIZE, 2 * PAGE_SIZE);
}

/*
 * Blocks
 */

bool sim__page_heap_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint64_t bytes = sim__page_heap_size(size), reserve = MAX(RESERVE, bytes + PAGE_SIZE);
	const uint32_t pages = (uint32_t)(bytes >> PAGE_SHIFT);
	struct sim_heap_region *r;

	if (b->page_region == SIZE_MAX ||
	    b->regions[b->page_region].pages - b->page_next < pages + 1) {
		if (!sim__heap_region_add(b, sim__heap_region_place(b, reserve),
					  (reserve + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1), 0))
			return false;
		b->page_region = b->region_count - 1;
		b->page_next = 0;
	}
	r = &b->regions[b->page_region];
	memset(r->committed + b->page_next, 1, pages);
	*ret = (struct block){
		.address = r->va + ((uint64_t)(b->page_next + pages) << PAGE_SHIFT) -
			   padded_to_16(size) - PAGE_HEAP_INFO,
		.requested = size,
		.place = (uint32_t)b->page_region,
		.index = b->page_next,
		.kind = SIM_HEAP_PAGE,
	};
	b->page_next += pages + 1;
	return true;
}

static uint64_t actual_size(const struct block *of)
{
	return of->kind == SIM_HEAP_PAGE ? sim__page_heap_size(of->requested)
					 : of->requested + PAGE_HEAP_LIGHT;
}

void sim__page_heap_put(struct sim_heap_builder *b, uint32_t block)
{
	const enum sim_page_heap kind = b->plan.page_heap;
	struct block *of = &b->blocks[block];
	uint8_t *at = sim__heap_bytes(b, block), *data = at + PAGE_HEAP_INFO;
	const uint64_t after = kind == SIM_PAGE_HEAP_FULL
				       ? padded_to_16(of->requested) - of->requested
				       : PAGE_HEAP_SUFFIX;

	memset(at, 0, PAGE_HEAP_INFO);
	put_le32(at, stamps[kind].start);
	put_le64(at + 8, b->page_heap + ROOT_AT);
	put_le64(at + 0x10, of->requested);
	put_le64(at + 0x18, actual_size(of));
	put_le64(at + 0x30, of->trace);
	put_le32(at + 0x3c, stamps[kind].end);
	memset(data, stamps[kind].fill, of->requested);
	memset(data + of->requested, kind == SIM_PAGE_HEAP_FULL ? SUFFIX_FULL : SUFFIX, after);
	of->address += PAGE_HEAP_INFO;
}

bool sim__page_heap_free(struct sim_heap_builder *b, uint32_t block)
{
	const enum sim_page_heap kind = b->plan.page_heap;
	struct block *of = &b->blocks[block];
	uint8_t *data = sim__heap_bytes(b, block);
	struct sim_heap_region *r = &b->regions[of->place];

	put_le32(data - PAGE_HEAP_INFO, stamps[kind].start - 1);
	put_le32(data - 4, stamps[kind].end - 1);
	memset(data, FILL_FREED, of->requested);
	of->waits = sim_below(&b->random, 4) != 0;
	if (kind == SIM_PAGE_HEAP_LIGHT) {
		of->waits = of->waits && b->plan.page_heap_queue;
		return of->waits;
	}
	if (!of->waits)
		memset(r->committed + of->index, 0,
		       sim__page_heap_size(of->requested) >> PAGE_SHIFT);
	return true;
}

/*
 * Nodes: _DPH_HEAP_BLOCK, of blocks in use in a balanced tree, of others in lists
 */

struct pool {
	uint64_t va;
	uint32_t *busy; /* blocks, in order of addresses */
	size_t n_busy, used;
};

static uint64_t put_node(const struct sim_heap_builder *b, struct pool *p, uint64_t block,
			 uint64_t size, uint64_t access)
{
	const uint64_t va = p->va + NODE * p->used++;
	uint8_t *at = sim__heap_at(b, va);

	put_le64(at + 0x28, block); /* pVirtualBlock, its size, what can be accessed */
	put_le64(at + 0x30, size);
	put_le64(at + 0x38, access);
	return va;
}

static uint64_t put_block_node(const struct sim_heap_builder *b, struct pool *p,
			       const struct block *of)
{
	const uint64_t size = sim__page_heap_size(of->requested);
	const uint64_t va = put_node(b, p, of->address + padded_to_16(of->requested) - size,
				     size + PAGE_SIZE, size);
	uint8_t *at = sim__heap_at(b, va);

	put_le64(at + 0x20, of->address); /* pUserAllocation */
	put_le64(at + 0x40, of->requested);
	put_le64(at + 0x48, size);
	put_le64(at + 0x60, of->trace);
	put_le64(at + 0x78, b->regions[of->place].va); /* pVirtualRegion */
	return va;
}

static unsigned block_tree_depth(size_t count)
{
	unsigned depth = 0;

	for (; count; count /= 2)
		depth++;
	return depth;
}

/* _RTL_BALANCED_LINKS. The root's address; 0: there is none. */
static uint64_t put_block_tree(const struct sim_heap_builder *b, struct pool *p, size_t first,
			       size_t count, uint64_t parent)
{
	const size_t middle = count / 2, right = count - middle - (count != 0);
	uint64_t va;
	uint8_t *at;

	if (!count)
		return 0;
	va = put_block_node(b, p, &b->blocks[p->busy[first + middle]]);
	at = sim__heap_at(b, va);
	put_le64(at, parent);
	put_le64(at + 8, put_block_tree(b, p, first, middle, va));
	put_le64(at + 0x10, put_block_tree(b, p, first + middle + 1, right, va));
	at[0x18] = (uint8_t)(block_tree_depth(right) - block_tree_depth(middle)); /* Balance */
	return va;
}

/* A node behind the last of a list (pNextAlloc), whose ends are at `list`. */
static void append_block_node(const struct sim_heap_builder *b, uint8_t *list, uint64_t va)
{
	const uint64_t last = get_le64(list + 8);

	put_le64(last ? sim__heap_at(b, last) : list, va);
	put_le64(list + 8, va);
}

static void put_lists(const struct sim_heap_builder *b, struct pool *p, uint8_t *root)
{
	uint64_t reserved = 0, freed = 0;
	uint32_t ranges = 0, n_freed = 0;
	uint64_t seen = 0;

	for (size_t i = 0; i < b->block_count; i++) {
		const struct block *of = &b->blocks[i];
		const struct sim_heap_region *r = &b->regions[of->place];

		if (of->kind != SIM_HEAP_PAGE)
			continue;
		if (r->va != seen) { /* blocks come in order of their regions */
			seen = r->va;
			ranges++;
			reserved += (uint64_t)r->pages << PAGE_SHIFT;
			append_block_node(
				b, root + 0x18,
				put_node(b, p, r->va, (uint64_t)r->pages << PAGE_SHIFT, 0));
		}
		if (of->waits) {
			n_freed++;
			freed += sim__page_heap_size(of->requested) + PAGE_SIZE;
			append_block_node(b, root + 0xb8, put_block_node(b, p, of));
		}
	}
	put_le32(root + 0x28, ranges); /* nVirtualStorageRanges, -Bytes */
	put_le64(root + 0x30, reserved);
	put_le32(root + 0xc8, n_freed); /* nFreeAllocations, -BytesCommitted */
	put_le64(root + 0xd0, freed);
}

static bool put_page_heap_nodes(struct sim_heap_builder *b, uint8_t *root)
{
	const uint64_t bytes = (NODE * (2 * b->block_count + 1) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
	struct pool p = { .va = sim__heap_region_place(b, bytes) };
	_cleanup_free_ uint32_t *busy = calloc(b->block_count + 1, sizeof(*busy));
	uint64_t committed = 0, accessible = 0;

	if (!busy || !sim__heap_region_add(b, p.va, bytes, bytes))
		return false;
	for (uint32_t i = 0; i < b->block_count; i++) {
		const struct block *of = &b->blocks[i];

		if (!of->busy || of->kind != SIM_HEAP_PAGE)
			continue;
		busy[p.n_busy++] = i; /* they are carved in order of addresses */
		accessible += sim__page_heap_size(of->requested);
		committed += sim__page_heap_size(of->requested) + PAGE_SIZE;
	}
	p.busy = busy;
	/* BusyNodesTable: the first node is its own root's right child. */
	put_le64(root + 0x38, b->page_heap + ROOT_AT + 0x38);
	put_le64(root + 0x48, put_block_tree(b, &p, 0, p.n_busy, b->page_heap + ROOT_AT + 0x38));
	put_le32(root + 0x64, (uint32_t)p.n_busy); /* NumberGenericTableElements, DepthOfTree */
	put_le32(root + 0x68, block_tree_depth(p.n_busy));
	put_le32(root + 0xa8, (uint32_t)p.n_busy); /* nBusyAllocations, bytes */
	put_le64(root + 0xb0, committed);
	put_le64(root + 0x110, accessible);
	put_lists(b, &p, root);
	return true;
}

/*
 * The truth
 */

/* The list of freed blocks of light page heap, between whose ends its head lies. */
static void put_queue(const struct sim_heap_builder *b, struct sim_heap *ret)
{
	const uint64_t head = b->plan.page_heap_queue;

	for (size_t i = 0; i < b->block_count; i++) {
		const uint64_t link = b->blocks[i].address - PAGE_HEAP_INFO + 0x20;

		if (!b->blocks[i].waits || b->blocks[i].kind == SIM_HEAP_PAGE)
			continue;
		put_le64(sim__heap_at(b, link), head);
		put_le64(sim__heap_at(b, link) + 8, ret->queue_last ? ret->queue_last : head);
		if (ret->queue_last)
			put_le64(sim__heap_at(b, ret->queue_last), link);
		else
			ret->queue_first = link;
		ret->queue_last = link;
	}
}

/* Whether all that describes a block which was given back is still as it was. */
static bool is_stale(const struct sim_heap_builder *b, const struct block *of)
{
	const uint8_t *data;

	if (of->kind != SIM_HEAP_BACK_END && of->kind != SIM_HEAP_LFH)
		return false;
	data = sim__heap_at(b, of->address);
	return get_le32(data - PAGE_HEAP_INFO) == stamps[SIM_PAGE_HEAP_LIGHT].start - 1 &&
	       get_le64(data - PAGE_HEAP_INFO + 0x10) == of->requested &&
	       get_le64(data - PAGE_HEAP_INFO + 0x18) == actual_size(of) &&
	       get_le64(data - PAGE_HEAP_INFO + 8) == b->page_heap + ROOT_AT &&
	       get_le64(data - PAGE_HEAP_INFO + 0x30) == of->trace &&
	       get_le32(data - 4) == stamps[SIM_PAGE_HEAP_LIGHT].end - 1;
}

static int compare_blocks(const void *x, const void *y)
{
	const struct sim_page_block *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->state - b->state;
}

/* Of blocks that were at one address one after the other the last one. */
static void drop_repeated(struct sim_heap *ret)
{
	struct sim_page_block *at = ret->page_blocks;
	size_t n = 0;

	array_sort(at, ret->page_block_count, sizeof(*at), compare_blocks);
	for (size_t i = 0; i < ret->page_block_count; i++)
		if (!n || at[n - 1].address != at[i].address)
			at[n++] = at[i];
	ret->page_block_count = n;
}

static bool tell_page_heap_blocks(struct sim_heap_builder *b, struct sim_heap *ret)
{
	ret->page_blocks = calloc(b->block_count + 1, sizeof(*ret->page_blocks));
	if (!ret->page_blocks)
		return false;
	for (size_t i = 0; i < b->block_count; i++) {
		const struct block *of = &b->blocks[i];
		const bool stale = !of->busy && !of->waits && is_stale(b, of);

		if (!of->busy && !of->waits && !stale)
			continue;
		ret->page_blocks[ret->page_block_count++] = (struct sim_page_block){
			.address = of->address,
			.requested = of->requested,
			.actual = actual_size(of),
			.trace = of->trace,
			.state = of->busy ? SIM_PAGE_BLOCK_BUSY
				 : stale  ? SIM_PAGE_BLOCK_STALE
					  : SIM_PAGE_BLOCK_FREED,
		};
	}
	drop_repeated(ret);
	return true;
}

void sim__page_heap_write(struct sim_heap_builder *b, struct sim_heap *ret)
{
	uint8_t *at = sim__heap_at(b, b->page_heap), *root = at + ROOT_AT;

	memset(at, FILL_HANDLE, PAGE_SIZE);
	put_le32(at + 0x70, FLAGS); /* Flags, ForceFlags */
	put_le32(at + 0x74, FLAGS);
	put_le32(root, SIGNATURE);
	put_le32(root + 4, FLAGS);
	/* ExtraFlags: page heap, stack traces */
	put_le32(root + 0x148, b->plan.page_heap == SIM_PAGE_HEAP_FULL ? 3 : 2);
	put_le32(root + 0x14c, (uint32_t)sim_draw(&b->random)); /* Seed */
	put_le64(root + 0x150, b->plan.base);                   /* NormalHeap */
	put_queue(b, ret);
	if (!put_page_heap_nodes(b, root) || !tell_page_heap_blocks(b, ret)) {
		sim__heap_fail(b, NULL);
		return;
	}
	ret->page_heap = b->page_heap;
}
