/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment heap keeps about itself: heads, descriptors, lists and trees. */
#include "agent/simulator/heap_segment.h"

#include <string.h>

#include "formats/base/array.h"

#define HEAP_SIGNATURE  0xddeeddee
#define PAGE_SIGNATURE  UINT64_C(0xa2e64eada2e64ead)
#define VS_SIGNATURE    0x2bed
#define TREE_SIGNATURE  0xccddccdd /* of a range in use (Yason) */
#define DESCRIPTOR      0x20
#define CONTEXT         0xc0
#define BUCKETS_AT      0x1000 /* behind the head */
#define BUCKET          0x80
#define LARGE_NODE      0x40 /* _HEAP_LARGE_ALLOC_DATA, 28 bytes, apart from each other */

/* RangeFlags */
#define RANGE_ALLOCATED 1
#define RANGE_FIRST     2

/* Of _SEGMENT_HEAP, whose front part has not moved; the second was seen in genuine heaps alone. */
static const struct head {
	uint16_t contexts, vs, lfh;
} heads[SIM_HP_LAYOUTS] = {
	[SIM_HP_17763] = { 0x100, 0x280, 0x340 },
	[SIM_HP_17763_RTM] = { 0x100, 0x280, 0x300 },
	[SIM_HP_20348] = { 0x140, 0x2c0, 0x380 },
};

static const struct head *head_of(const struct sim_heap_builder *b)
{
	return &heads[b->plan.hp_layout];
}

/*
 * Trees of _RTL_BALANCED_NODE: as flat as can be, whose last level is red
 */

struct node {
	uint64_t va, key;
};

static int compare_tree_nodes(const void *x, const void *y)
{
	const struct node *a = x, *b = y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->va < b->va ? -1 : a->va > b->va;
}

static unsigned rb_tree_depth(size_t count)
{
	unsigned depth = 0;

	for (; count; count /= 2)
		depth++;
	return depth;
}

/* `left` levels are below the node. Its address; 0: there is none. */
static uint64_t put_tree_nodes(const struct sim_heap_builder *b, const struct node *nodes,
			       size_t count, uint64_t parent, unsigned left)
{
	const size_t middle = count / 2;
	uint8_t *at;

	if (!count)
		return 0;
	at = sim__heap_at(b, nodes[middle].va);
	put_le64(at, put_tree_nodes(b, nodes, middle, nodes[middle].va, left - 1));
	put_le64(at + 8, put_tree_nodes(b, nodes + middle + 1, count - middle - 1, nodes[middle].va,
					left - 1));
	put_le64(at + 16, parent | (left == 1 && parent)); /* ParentValue; 1: red */
	return nodes[middle].va;
}

/* Root and least node of _RTL_RB_TREE. */
static void put_rb_tree(const struct sim_heap_builder *b, uint64_t tree, struct node *nodes,
			size_t count)
{
	array_sort(nodes, count, sizeof(*nodes), compare_tree_nodes);
	put_le64(sim__heap_at(b, tree), put_tree_nodes(b, nodes, count, 0, rb_tree_depth(count)));
	put_le64(sim__heap_at(b, tree) + 8, count ? nodes[0].va : 0);
}

/*
 * Segments
 */

static uint64_t context_va(const struct sim_heap_builder *b, uint32_t context)
{
	return b->plan.base + head_of(b)->contexts + CONTEXT * context;
}

/* How many of a unit's pages are there. */
static uint32_t committed_pages(const struct sim_heap_builder *b, const struct hp_segment *s,
				uint32_t unit)
{
	const uint32_t shift = sim__hp_contexts[s->context].shift - PAGE_SHIFT;
	uint32_t n = 0;

	for (uint32_t i = 0; i < UINT32_C(1) << shift; i++)
		n += b->regions[s->region].committed[(unit << shift) + i];
	return n;
}

/* A range of units, the first of which says what it is. The last byte of the others: how far. */
static void put_unit_range(const struct sim_heap_builder *b, const struct hp_segment *s,
			   uint32_t unit, uint32_t units)
{
	static const uint8_t kinds[] = { [HP_BLOCK] = 0, [HP_LFH] = 8, [HP_VS] = 0xc };
	const enum hp_range range = s->range[unit];

	for (uint32_t i = 0; i < units; i++) {
		uint8_t *at = b->regions[s->region].bytes + DESCRIPTOR * (unit + i);

		at[0x18] =
			(uint8_t)((i ? 0 : RANGE_FIRST) | (range == HP_FREE ? 0 : RANGE_ALLOCATED));
		at[0x19] = (uint8_t)committed_pages(b, s, unit + i);
		at[0x1f] = (uint8_t)(i ? i : units);
		if (range == HP_FREE)
			continue;
		put_le32(at, TREE_SIGNATURE);
		if (!i) {
			at[0x18] |= kinds[range];
			put_le32(at + 4, s->unused[unit]);
		}
	}
}

static uint32_t range_units(const struct hp_segment *s, uint32_t unit)
{
	uint32_t units = 0;

	if (s->range[unit] != HP_FREE)
		return s->units[unit];
	while (unit + units < HP_UNITS && s->range[unit + units] == HP_FREE)
		units++;
	return units;
}

/* Adds free ranges to `free`, which has room for them. */
static void put_segment(const struct sim_heap_builder *b, uint32_t i, struct node *free,
			size_t *n_free)
{
	const struct hp_segment *s = &b->hp->segments[i];
	const struct sim_heap_region *r = &b->regions[s->region];
	const uint64_t context = context_va(b, s->context);

	put_le64(r->bytes + 0x10, r->va ^ context ^ b->plan.hp_keys[0] ^ PAGE_SIGNATURE);
	for (uint32_t unit = HP_FIRST_UNIT, units; unit < HP_UNITS; unit += units) {
		units = range_units(s, unit);
		put_unit_range(b, s, unit, units);
		if (s->range[unit] == HP_FREE)
			free[(*n_free)++] =
				(struct node){ .va = r->va + DESCRIPTOR * unit, .key = units };
	}
	sim__heap_list_append(b, context + 0x48, r->va);
}

static void put_segment_context(const struct sim_heap_builder *b, uint32_t i, struct node *nodes)
{
	const struct hp_context *c = &sim__hp_contexts[i];
	const uint64_t va = context_va(b, i);
	uint8_t *at = sim__heap_at(b, va);
	size_t count = 0, n_free = 0;

	put_le64(at, ~(c->segment - 1));
	at[8] = (uint8_t)c->shift;
	at[9] = (uint8_t)(c->shift - PAGE_SHIFT);
	at[0xa] = HP_FIRST_UNIT;
	put_le32(at + 0x10, c->max);
	put_le64(at + 0x18, b->plan.base + head_of(b)->lfh);
	put_le64(at + 0x20, b->plan.base + head_of(b)->vs);
	put_le64(at + 0x38, b->plan.base);
	sim__heap_list_init(b, va + 0x48);
	for (uint32_t s = 0; s < b->hp->segment_count; s++)
		if (b->hp->segments[s].context == i) {
			put_segment(b, s, nodes, &n_free);
			count++;
		}
	put_le64(at + 0x58, count);
	put_rb_tree(b, va + 0x60, nodes, n_free);
}

/*
 * Variable sizes
 */

/* Links of subsegments are kept as what they are with their own address. */
static void encode_links(const struct sim_heap_builder *b, uint64_t va)
{
	uint8_t *at = sim__heap_at(b, va);

	put_le64(at, get_le64(at) ^ va);
	put_le64(at + 8, get_le64(at + 8) ^ va);
}

static void put_vs(const struct sim_heap_builder *b, struct node *nodes)
{
	const uint64_t context = b->plan.base + head_of(b)->vs, list = context + 0x20;
	const struct hp *h = b->hp;
	uint64_t units = 0, free_units = 0;
	size_t n_free = 0;

	sim__heap_list_init(b, list);
	for (size_t i = 0; i < h->vs_count; i++) {
		const struct hp_vs *v = &h->vs[i];
		const uint64_t va = sim__hp_va(b, v->segment, v->unit);
		const uint32_t pages = h->segments[v->segment].units[v->unit];
		const uint16_t size = (uint16_t)(((pages << PAGE_SHIFT) - HP_VS_FIRST) / 16);
		uint8_t *at = sim__heap_at(b, va);

		sim__heap_list_append(b, list, va);
		put_le16(at + 0x20, size);
		put_le16(at + 0x22, (uint16_t)(((size ^ VS_SIGNATURE) & 0x7fff) | 0x8000));
		units += size;
	}
	for (size_t i = 0; i < h->vs_count; i++)
		encode_links(b, sim__hp_va(b, h->vs[i].segment, h->vs[i].unit));
	encode_links(b, list);
	for (uint32_t i = 0; i < h->chunk_count; i++)
		if (!h->chunks[i].busy && !h->chunks[i].gone) {
			nodes[n_free++] = (struct node){ .va = sim__hp_chunk_va(b, i) + 8,
							 .key = h->chunks[i].size };
			free_units += h->chunks[i].size;
		}
	put_rb_tree(b, context + 0x10, nodes, n_free);
	put_le64(sim__heap_at(b, context + 0x30), units);
	put_le64(sim__heap_at(b, context + 0x38), free_units);
}

/*
 * The front end
 */

static uint64_t bucket_va(const struct sim_heap_builder *b, uint32_t bucket)
{
	return b->plan.base + BUCKETS_AT + (uint64_t)BUCKET * bucket;
}

/*
 * FreeCount. Heaps of 19044.1766 count fewer than the bitmap has, where others have the same: so do
 * some here, and nobody should depend on it.
 */
static uint32_t free_count(const struct hp_lfh *s)
{
	const uint32_t all = s->free + s->count - s->usable;

	return s->unit % 3 ? all : all / 2;
}

static void put_lfh_subsegment(const struct sim_heap_builder *b, const struct hp_lfh *s)
{
	const uint64_t va = sim__hp_va(b, s->segment, s->unit), bucket = bucket_va(b, s->bucket);
	const uint32_t plain = sim__hp_bucket_size(s->bucket) | s->first << 16;
	uint8_t *at = sim__heap_at(b, va);

	sim__heap_list_append(b, bucket + (s->free ? 0x18 : 0x28), va);
	put_le64(at + 0x10, bucket); /* Owner */
	put_le16(at + 0x20, (uint16_t)free_count(s));
	put_le16(at + 0x22, (uint16_t)s->count);
	put_le32(at + 0x28, plain ^ (uint32_t)b->plan.hp_keys[1] ^ (uint32_t)va >> PAGE_SHIFT);
	at[0x2c] = PAGE_SHIFT; /* CommitUnitShift, and how many */
	at[0x2d] = (uint8_t)s->units;
}

static void put_lfh(const struct sim_heap_builder *b)
{
	const uint64_t context = b->plan.base + head_of(b)->lfh;
	const struct hp *h = b->hp;
	uint8_t *buckets = sim__heap_at(b, context + 0x80);

	for (uint32_t i = 0; i < HP_BUCKETS; i++) {
		const uint64_t va = bucket_va(b, i);
		uint8_t *at = sim__heap_at(b, va);

		/* _HEAP_LFH_ONDEMAND_POINTER: not there yet, and how often it was asked for */
		put_le64(buckets + 8 * i, h->buckets[i].uses << 16 | 1);
		if (h->buckets[i].newest == HP_NONE)
			continue;
		put_le64(buckets + 8 * i, va);
		at[0] = 1; /* IsBucket */
		at[1] = (uint8_t)i;
		sim__heap_list_init(b, va + 0x18); /* AvailableSubsegmentList, and full ones */
		sim__heap_list_init(b, va + 0x28);
		for (uint32_t s = h->buckets[i].newest; s != HP_NONE; s = h->lfh[s].next) {
			put_lfh_subsegment(b, &h->lfh[s]);
			put_le64(at + 0x38, get_le64(at + 0x38) + h->lfh[s].count);
			put_le64(at + 0x40, get_le64(at + 0x40) + 1);
		}
	}
}

/*
 * Large blocks
 */

/* Their descriptions are in memory of its own: a heap of the heap manager's. */
static void put_large(struct sim_heap_builder *b, struct node *nodes)
{
	const uint64_t metadata = sim__heap_region_place(b, UINT64_C(0x100000));
	uint64_t pages = 0;
	size_t count = 0;

	for (size_t i = 0; i < b->block_count; i++)
		count += b->blocks[i].busy && b->blocks[i].kind == SIM_HEAP_LARGE;
	if (count &&
	    !sim__heap_region_add(b, metadata, UINT64_C(0x100000),
				  (LARGE_NODE * (count + 1) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1)))
		return;
	count = 0;
	for (size_t i = 0; i < b->block_count; i++) {
		const struct block *of = &b->blocks[i];
		const uint64_t va = metadata + LARGE_NODE * (count + 1);
		const uint64_t padding = sim__hp_padding(b, of->requested);
		const uint64_t at = of->address - padding;
		uint64_t whole;

		if (!of->busy || of->kind != SIM_HEAP_LARGE)
			continue;
		whole = sim__hp_block_size(b, of);
		put_le64(sim__heap_at(b, va) + 0x18, at | (whole - padding - of->requested));
		put_le64(sim__heap_at(b, va) + 0x20, whole); /* AllocatedPages from bit 12 on */
		pages += whole >> PAGE_SHIFT;
		nodes[count++] = (struct node){ .va = va, .key = at };
	}
	put_rb_tree(b, b->plan.base + 0x48, nodes, count);
	put_le64(sim__heap_at(b, b->plan.base + 0x58), pages); /* reserved, committed */
	put_le64(sim__heap_at(b, b->plan.base + 0x60), pages);
}

/*
 * The whole
 */

static void put_segment_heap_head(const struct sim_heap_builder *b, struct sim_heap *ret)
{
	uint8_t *at = sim__heap_at(b, b->plan.base);

	put_le32(at + 0x10, HEAP_SIGNATURE);
	put_le16(at + 0x1c, (uint16_t)(b->plan.index ? b->plan.index : 1));
	for (size_t i = 0; i < b->hp->segment_count; i++) {
		const struct sim_heap_region *r = &b->regions[b->hp->segments[i].region];

		ret->reserved += (uint64_t)r->pages << PAGE_SHIFT;
		for (uint32_t k = 0; k < r->pages; k++)
			ret->committed += (uint64_t)r->committed[k] << PAGE_SHIFT;
	}
	ret->segments = (uint32_t)b->hp->segment_count;
	put_le64(at + 0x80, ret->reserved >> PAGE_SHIFT); /* MemStats: TotalReservedPages ... */
	put_le64(at + 0x88, ret->committed >> PAGE_SHIFT);
}

void sim__hp_write(struct sim_heap_builder *b, struct sim_heap *ret)
{
	const struct hp *h = b->hp;
	const size_t room = b->block_count + h->chunk_count + HP_UNITS * h->segment_count + 1;
	_cleanup_free_ struct node *nodes = calloc(room, sizeof(*nodes));

	if (!nodes) {
		sim__heap_fail(b, NULL);
		return;
	}
	put_large(b, nodes);
	if (b->failed)
		return;
	for (uint32_t i = 0; i < HP_CONTEXTS; i++)
		put_segment_context(b, i, nodes);
	put_vs(b, nodes);
	put_lfh(b);
	put_segment_heap_head(b, ret);
	ret->address = b->plan.base;
	ret->lfh_key = (uint32_t)b->plan.hp_keys[1];
}

static void tell_sim_allocation(struct sim_heap *ret, uint64_t address, uint64_t requested,
				uint64_t block, enum sim_heap_kind kind)
{
	ret->allocations[ret->count++] = (struct sim_allocation){ .address = address,
								  .requested = requested,
								  .block = block,
								  .segment = UINT32_MAX,
								  .kind = (uint8_t)kind,
								  .busy = kind == SIM_HEAP_OWN };
}

void sim__hp_tell(const struct sim_heap_builder *b, struct sim_heap *ret)
{
	const struct hp *h = b->hp;

	for (size_t i = 0; i < h->lfh_count; i++) {
		const struct hp_lfh *s = &h->lfh[i];
		const uint64_t va = sim__hp_va(b, s->segment, s->unit);
		const uint32_t size = sim__hp_bucket_size(s->bucket);

		tell_sim_allocation(ret, va, (uint64_t)s->units << PAGE_SHIFT,
				    (uint64_t)s->units << PAGE_SHIFT, SIM_HEAP_OWN);
		for (uint32_t k = 0; k < s->usable; k++)
			if (b->lfh_owner[s->blocks + k] == SIM_HEAP_NO_BLOCK)
				tell_sim_allocation(ret, va + s->first + (uint64_t)k * size, size,
						    size, SIM_HEAP_LFH);
	}
	for (size_t i = 0; i < h->vs_count; i++) {
		const struct hp_vs *v = &h->vs[i];
		const uint64_t size = (uint64_t)h->segments[v->segment].units[v->unit]
				      << PAGE_SHIFT;

		tell_sim_allocation(ret, sim__hp_va(b, v->segment, v->unit), size, size,
				    SIM_HEAP_OWN);
	}
	for (uint32_t i = 0; i < h->chunk_count; i++)
		if (!h->chunks[i].busy && !h->chunks[i].gone)
			tell_sim_allocation(ret, sim__hp_chunk_va(b, i) + HP_VS_HEADER,
					    16 * (uint64_t)h->chunks[i].size - HP_VS_HEADER,
					    16 * (uint64_t)h->chunks[i].size, SIM_HEAP_VS);
}
