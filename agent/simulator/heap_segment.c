/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of segment heaps. */
#include "agent/simulator/heap_segment.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/array.h"

#define POPULAR_FROM 17 /* so many requests of a size wake its bucket */
#define VS_UNITS     16 /* of 4 KiB: a subsegment of variable sizes, at least */
#define CHUNK_LEAST  2

const struct hp_context sim__hp_contexts[HP_CONTEXTS] = {
	{ .segment = UINT64_C(1) << 20, .shift = 12, .max = 0x7f000 },
	{ .segment = UINT64_C(1) << 24, .shift = 16, .max = 0x7f0000 },
};

/*
 * Segments, and ranges of pages in them
 */

uint64_t sim__hp_va(const struct sim_heap_builder *b, uint32_t segment, uint32_t unit)
{
	const struct hp_segment *s = &b->hp->segments[segment];

	return b->regions[s->region].va + ((uint64_t)unit << sim__hp_contexts[s->context].shift);
}

static uint8_t *hp_segment_bytes(const struct sim_heap_builder *b, uint32_t segment, uint32_t unit)
{
	const struct hp_segment *s = &b->hp->segments[segment];

	return b->regions[s->region].bytes + ((uint64_t)unit << sim__hp_contexts[s->context].shift);
}

static void hp_commit(const struct sim_heap_builder *b, uint32_t segment, uint32_t unit,
		      uint64_t bytes, bool there)
{
	const struct hp_segment *s = &b->hp->segments[segment];
	const uint32_t page = unit << (sim__hp_contexts[s->context].shift - PAGE_SHIFT);

	memset(b->regions[s->region].committed + page, there,
	       (bytes + PAGE_SIZE - 1) >> PAGE_SHIFT);
}

static bool hp_segment_add(struct sim_heap_builder *b, uint32_t context)
{
	const uint64_t size = sim__hp_contexts[context].segment;
	struct hp *h = b->hp;
	struct hp_segment *more;

	b->next_va = (b->next_va + size - 1) & ~(size - 1);
	if (!ARRAY_ROOM(h->segments, h->segment_count, h->segment_room))
		return false;
	if (!sim__heap_region_add(b, sim__heap_region_place(b, size), size,
				  HP_UNITS * 0x20 /* of descriptors */))
		return false;
	more = &h->segments[h->segment_count++];
	*more = (struct hp_segment){ .region = b->region_count - 1, .context = context };
	memset(more->range, HP_REST, HP_FIRST_UNIT);
	return true;
}

/* The first of so many free units of a segment. 0: there are not so many. */
static uint32_t find_units(const struct hp_segment *s, uint32_t units)
{
	uint32_t run = 0;

	for (uint32_t i = HP_FIRST_UNIT; i < HP_UNITS; i++) {
		run = s->range[i] == HP_FREE ? run + 1 : 0;
		if (run == units)
			return i + 1 - units;
	}
	return 0;
}

/* A range of units; none of its pages is committed yet. False: failed. */
static bool take_range(struct sim_heap_builder *b, uint32_t context, uint32_t units,
		       enum hp_range range, uint32_t *ret_segment, uint32_t *ret_unit)
{
	struct hp *h = b->hp;

	for (uint32_t i = 0;; i++) {
		struct hp_segment *s;
		uint32_t unit;

		if (i == h->segment_count && !hp_segment_add(b, context))
			return false;
		s = &h->segments[i];
		unit = s->context == context ? find_units(s, units) : 0;
		if (!unit)
			continue;
		memset(s->range + unit, HP_REST, units);
		s->range[unit] = (uint8_t)range;
		s->units[unit] = (uint8_t)units;
		*ret_segment = i;
		*ret_unit = unit;
		return true;
	}
}

/*
 * The front end
 */

uint32_t sim__hp_bucket_size(uint32_t bucket)
{
	if (bucket <= 64)
		return 16 * bucket;
	if (bucket <= 80)
		return 0x400 + 64 * (bucket - 64);
	if (bucket <= 96)
		return 0x800 + 128 * (bucket - 80);
	if (bucket <= 112)
		return 0x1000 + 256 * (bucket - 96);
	return 0x2000 + 512 * (bucket - 112);
}

static uint32_t hp_bucket_of(uint32_t size)
{
	uint32_t bucket = 1;

	while (sim__hp_bucket_size(bucket) < size)
		bucket++;
	return bucket;
}

/* Two bits for each block, in whole words. */
static uint32_t lfh_first_block(uint32_t count)
{
	return (HP_LFH_BITMAP + (count + 31) / 32 * 8 + 15) & ~15u;
}

static struct hp_lfh *lfh_add(struct sim_heap_builder *b, uint32_t bucket)
{
	const uint32_t size = sim__hp_bucket_size(bucket);
	const uint32_t units = MIN(MAX((32 * size) >> PAGE_SHIFT, 1u), 16u);
	const uint32_t bytes = units << PAGE_SHIFT;
	struct hp *h = b->hp;
	struct hp_lfh n = { .units = units, .bucket = bucket, .count = bytes / size };
	uint32_t committed = bytes, *owners;

	while (lfh_first_block(n.count) + n.count * size > bytes)
		n.count--;
	n.first = lfh_first_block(n.count);
	/* Of some the end is not committed yet. */
	if (units > 3 && !sim_below(&b->random, 4))
		committed -= (units / 3) << PAGE_SHIFT;
	n.usable = MIN(n.count, (committed - n.first) / size);
	n.free = n.usable;
	n.next = h->buckets[bucket].newest;
	while (b->lfh_owner_room - b->lfh_owner_count < n.count) {
		owners = array_grow(b->lfh_owner, &b->lfh_owner_room, sizeof(*owners));
		if (!owners)
			return NULL;
		b->lfh_owner = owners;
	}
	if (!ARRAY_ROOM(h->lfh, h->lfh_count, h->lfh_room))
		return NULL;
	if (!take_range(b, 0, units, HP_LFH, &n.segment, &n.unit))
		return NULL;
	hp_commit(b, n.segment, n.unit, committed, true);
	memset(hp_segment_bytes(b, n.segment, n.unit), 0, n.first);
	n.blocks = (uint32_t)b->lfh_owner_count;
	for (uint32_t i = 0; i < n.count; i++)
		b->lfh_owner[b->lfh_owner_count++] = SIM_HEAP_NO_BLOCK;
	h->buckets[bucket].newest = (uint32_t)h->lfh_count;
	h->lfh[h->lfh_count] = n;
	return &h->lfh[h->lfh_count++];
}

/* Unused bytes stand at a block's end: a count, or for a single one a mark. */
static void put_unused(uint8_t *end, uint64_t unused)
{
	if (unused == 1)
		end[-1] = 0x80;
	else if (unused)
		put_le16(end - 2, (uint16_t)unused);
}

static void lfh_put_bits(const struct sim_heap_builder *b, const struct hp_lfh *s, uint32_t index,
			 unsigned bits)
{
	uint8_t *at = hp_segment_bytes(b, s->segment, s->unit) + HP_LFH_BITMAP + index / 4;
	const unsigned shift = 2 * (index % 4);

	*at = (uint8_t)((*at & ~(3u << shift)) | bits << shift);
}

static bool lfh_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint32_t bucket = hp_bucket_of((uint32_t)size), whole = sim__hp_bucket_size(bucket);
	struct hp *h = b->hp;
	struct hp_lfh *s = NULL;
	uint32_t index;

	if (!h->buckets[bucket].drawn) {
		h->buckets[bucket].drawn = true;
		h->buckets[bucket].on = sim_below(&b->random, 100) < b->plan.lfh;
	}
	if (!h->buckets[bucket].on || ++h->buckets[bucket].uses <= POPULAR_FROM)
		return false;
	for (uint32_t i = h->buckets[bucket].newest; i != HP_NONE && !s; i = h->lfh[i].next)
		if (h->lfh[i].free)
			s = &h->lfh[i];
	if (!s)
		s = lfh_add(b, bucket);
	if (!s) {
		sim__heap_fail(b, NULL);
		return false;
	}
	index = (uint32_t)sim_below(&b->random, s->usable);
	while (b->lfh_owner[s->blocks + index] != SIM_HEAP_NO_BLOCK)
		index = (index + 1) % s->usable;
	s->free--;
	lfh_put_bits(b, s, index, size < whole ? 3 : 1);
	*ret = (struct block){ .address = sim__hp_va(b, s->segment, s->unit) + s->first +
					  (uint64_t)index * whole,
			       .requested = size,
			       .place = (uint32_t)(s - h->lfh),
			       .index = index,
			       .kind = SIM_HEAP_LFH };
	put_unused(hp_segment_bytes(b, s->segment, s->unit) + s->first +
			   (uint64_t)(index + 1) * whole,
		   whole - size);
	return true;
}

/*
 * Variable sizes
 */

uint64_t sim__hp_chunk_va(const struct sim_heap_builder *b, uint32_t chunk)
{
	const struct hp_chunk *c = &b->hp->chunks[chunk];
	const struct hp_vs *v = &b->hp->vs[c->vs];

	return sim__hp_va(b, v->segment, v->unit) + 16 * (uint64_t)c->at;
}

static void chunk_put(const struct sim_heap_builder *b, uint32_t chunk)
{
	const struct hp_chunk *c = &b->hp->chunks[chunk];
	const struct hp_vs *v = &b->hp->vs[c->vs];
	const uint64_t va = sim__hp_chunk_va(b, chunk), key = b->plan.hp_keys[0];
	const uint64_t previous = c->before == HP_NONE ? 0 : b->hp->chunks[c->before].size;
	uint8_t *at = hp_segment_bytes(b, v->segment, v->unit) + 16 * (uint64_t)c->at;

	put_le64(at,
		 ((uint64_t)c->size << 16 | previous << 32 | (uint64_t)c->busy << 48) ^ va ^ key);
	if (c->busy) /* EncodedSegmentPageOffset, UnusedBytes */
		put_le32(at + 8, (((16 * c->at) >> PAGE_SHIFT ^ (uint32_t)va ^ (uint32_t)key) &
				  0xff) | (uint32_t)c->unused << 8);
}

/* A chunk, and the one behind it, which knows its size. */
static void chunk_put_both(const struct sim_heap_builder *b, uint32_t chunk)
{
	chunk_put(b, chunk);
	if (b->hp->chunks[chunk].after != HP_NONE)
		chunk_put(b, b->hp->chunks[chunk].after);
}

static uint32_t chunk_insert(struct sim_heap_builder *b, uint32_t vs, uint32_t after, uint32_t at,
			     uint32_t size)
{
	struct hp *h = b->hp;

	if (!ARRAY_ROOM(h->chunks, h->chunk_count, h->chunk_room))
		return HP_NONE;
	h->chunks[h->chunk_count] = (struct hp_chunk){
		.vs = vs,
		.at = at,
		.size = size,
		.before = after,
		.after = after == HP_NONE ? HP_NONE : h->chunks[after].after,
	};
	if (after != HP_NONE) {
		if (h->chunks[after].after != HP_NONE)
			h->chunks[h->chunks[after].after].before = (uint32_t)h->chunk_count;
		h->chunks[after].after = (uint32_t)h->chunk_count;
	}
	return (uint32_t)h->chunk_count++;
}

static bool vs_add(struct sim_heap_builder *b, uint32_t size)
{
	struct hp *h = b->hp;
	uint32_t units = VS_UNITS;
	struct hp_vs n;

	while ((units << PAGE_SHIFT) < 16 * size + HP_VS_FIRST)
		units *= 2;
	if (!ARRAY_ROOM(h->vs, h->vs_count, h->vs_room))
		return false;
	if (!take_range(b, 0, units, HP_VS, &n.segment, &n.unit))
		return false;
	hp_commit(b, n.segment, n.unit, (uint64_t)units << PAGE_SHIFT, true);
	h->vs[h->vs_count] = n;
	n.first = chunk_insert(b, (uint32_t)h->vs_count, HP_NONE, HP_VS_FIRST / 16,
			       ((units << PAGE_SHIFT) - HP_VS_FIRST) / 16);
	if (n.first == HP_NONE)
		return false;
	h->vs[h->vs_count++] = n;
	chunk_put(b, n.first);
	return true;
}

/* The smallest free chunk that is large enough, of those that are looked at. */
static uint32_t vs_find_chunk(const struct sim_heap_builder *b, uint32_t size)
{
	const struct hp *h = b->hp;
	uint32_t best = HP_NONE;

	for (size_t v = h->vs_count; v-- && best == HP_NONE;)
		for (uint32_t i = h->vs[v].first; i != HP_NONE; i = h->chunks[i].after)
			if (!h->chunks[i].busy && h->chunks[i].size >= size &&
			    (best == HP_NONE || h->chunks[i].size < h->chunks[best].size))
				best = i;
	return best;
}

static bool vs_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint32_t need = MAX((uint32_t)((size + HP_VS_HEADER + 15) / 16), CHUNK_LEAST);
	struct hp *h = b->hp;
	uint32_t chunk = vs_find_chunk(b, need), rest;
	uint64_t unused;
	const struct hp_vs *v;

	if (chunk == HP_NONE && vs_add(b, need))
		chunk = h->vs[h->vs_count - 1].first;
	if (chunk == HP_NONE)
		return false;
	if (h->chunks[chunk].size - need >= CHUNK_LEAST) {
		rest = chunk_insert(b, h->chunks[chunk].vs, chunk, h->chunks[chunk].at + need,
				    h->chunks[chunk].size - need);
		if (rest == HP_NONE)
			return false;
		h->chunks[chunk].size = need;
		chunk_put_both(b, rest);
	}
	h->chunks[chunk].busy = true;
	v = &h->vs[h->chunks[chunk].vs];
	unused = 16 * (uint64_t)h->chunks[chunk].size - HP_VS_HEADER - size;
	h->chunks[chunk].unused = unused != 0;
	chunk_put_both(b, chunk);
	put_unused(hp_segment_bytes(b, v->segment, v->unit) +
			   16 * (uint64_t)(h->chunks[chunk].at + h->chunks[chunk].size),
		   unused);
	*ret = (struct block){ .address = sim__hp_chunk_va(b, chunk) + HP_VS_HEADER,
			       .requested = size,
			       .place = chunk,
			       .kind = SIM_HEAP_VS };
	return true;
}

/* The second of two free neighbours joins the first. */
static void vs_merge(struct hp *h, uint32_t chunk)
{
	struct hp_chunk *c = &h->chunks[chunk];
	struct hp_chunk *next = &h->chunks[c->after];

	c->size += next->size;
	next->gone = true;
	c->after = next->after;
	if (c->after != HP_NONE)
		h->chunks[c->after].before = chunk;
}

static void vs_free(struct sim_heap_builder *b, uint32_t chunk)
{
	struct hp *h = b->hp;

	h->chunks[chunk].busy = false;
	if (h->chunks[chunk].after != HP_NONE && !h->chunks[h->chunks[chunk].after].busy)
		vs_merge(h, chunk);
	if (h->chunks[chunk].before != HP_NONE && !h->chunks[h->chunks[chunk].before].busy) {
		chunk = h->chunks[chunk].before;
		vs_merge(h, chunk);
	}
	chunk_put_both(b, chunk);
}

/*
 * Ranges of pages, and large blocks
 */

static bool range_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint32_t context = size > sim__hp_contexts[0].max;
	const uint32_t shift = sim__hp_contexts[context].shift;
	const uint32_t units = (uint32_t)((size + (UINT64_C(1) << shift) - 1) >> shift);
	uint32_t segment, unit;

	if (!take_range(b, context, units, HP_BLOCK, &segment, &unit))
		return false;
	hp_commit(b, segment, unit, size, true);
	b->hp->segments[segment].unused[unit] = (uint32_t)(((uint64_t)units << shift) - size);
	*ret = (struct block){ .address = sim__hp_va(b, segment, unit),
			       .requested = size,
			       .place = segment,
			       .index = unit,
			       .kind = SIM_HEAP_RANGE };
	return true;
}

static void range_free(struct sim_heap_builder *b, const struct block *of)
{
	struct hp_segment *s = &b->hp->segments[of->place];
	const uint32_t units = s->units[of->index];

	memset(hp_segment_bytes(b, of->place, of->index), 0,
	       (uint64_t)units << sim__hp_contexts[s->context].shift);
	hp_commit(b, of->place, of->index, of->requested + sim__hp_padding(b, of->requested),
		  false);
	memset(s->range + of->index, HP_FREE, units);
}

static bool large_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint64_t bytes = (size + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
	const uint64_t va = sim__heap_region_place(b, bytes);

	if (!sim__heap_region_add(b, va, bytes, bytes))
		return false;
	*ret = (struct block){ .address = va,
			       .requested = size,
			       .place = (uint32_t)b->region_count - 1,
			       .kind = SIM_HEAP_LARGE };
	return true;
}

/*
 * The program's side
 */

bool sim__hp_create(struct sim_heap_builder *b)
{
	b->hp = calloc(1, sizeof(*b->hp));
	if (!b->hp) {
		sim__heap_fail(b, NULL);
		return false;
	}
	for (size_t i = 0; i < HP_BUCKETS; i++)
		b->hp->buckets[i].newest = HP_NONE;
	b->hp->metadata = SIZE_MAX;
	/* The head, and what its callbacks have allocated behind it: buckets. */
	return sim__heap_region_add(b, b->plan.base, UINT64_C(0x10000), UINT64_C(0x8000)) &&
	       hp_segment_add(b, 0);
}

/* Those that the NT heap would have from VirtualAlloc() begin as they would there. */
uint64_t sim__hp_padding(const struct sim_heap_builder *b, uint64_t requested)
{
	return !b->plan.hp_padded ? 0 : requested > 0xfeff8 ? 0x40 : 0x10;
}

/* What lies before the data says how much that is, and of a large one so do its last bytes. */
static void put_padding(const struct sim_heap_builder *b, struct block *of, uint64_t padding)
{
	uint8_t *at = sim__heap_at(b, of->address);

	put_le64(at, padding);
	put_le64(at + padding - 0x10, padding);
	of->address += padding;
}

static bool alloc_hp_block(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	if (size <= HP_LFH_MAX && lfh_alloc(b, size, ret))
		return true;
	if (b->failed)
		return false;
	if (size <= HP_VS_MAX)
		return vs_alloc(b, size, ret);
	return size <= sim__hp_contexts[1].max ? range_alloc(b, size, ret)
					       : large_alloc(b, size, ret);
}

bool sim__hp_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	const uint64_t padding = sim__hp_padding(b, size);

	if (!alloc_hp_block(b, size + padding, ret))
		return false;
	if (padding)
		put_padding(b, ret, padding);
	return true;
}

void sim__hp_free(struct sim_heap_builder *b, const struct block *of)
{
	struct hp_lfh *s;

	switch (of->kind) {
	case SIM_HEAP_LFH:
		s = &b->hp->lfh[of->place];
		b->lfh_owner[s->blocks + of->index] = SIM_HEAP_NO_BLOCK;
		lfh_put_bits(b, s, of->index, 0);
		s->free++;
		break;
	case SIM_HEAP_VS:
		vs_free(b, of->place);
		break;
	case SIM_HEAP_RANGE:
		range_free(b, of);
		break;
	default:
		memset(b->regions[of->place].committed, 0, b->regions[of->place].pages);
	}
}

uint64_t sim__hp_block_size(const struct sim_heap_builder *b, const struct block *of)
{
	const struct hp *h = b->hp;

	switch (of->kind) {
	case SIM_HEAP_LFH:
		return sim__hp_bucket_size(h->lfh[of->place].bucket);
	case SIM_HEAP_VS:
		return 16 * (uint64_t)h->chunks[of->place].size;
	case SIM_HEAP_RANGE:
		return of->requested + sim__hp_padding(b, of->requested) +
		       h->segments[of->place].unused[of->index];
	default:
		return (uint64_t)b->regions[of->place].pages << PAGE_SHIFT;
	}
}

void sim__hp_destroy(struct hp *h)
{
	if (!h)
		return;
	free(h->segments);
	free(h->lfh);
	free(h->vs);
	free(h->chunks);
	free(h);
}
