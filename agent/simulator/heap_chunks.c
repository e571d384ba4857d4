/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of heaps: segments, chunks, free chunks by size, uncommitted ranges. */
#include <stdlib.h>
#include <string.h>

#include "agent/simulator/heap_build.h"
#include "formats/base/array.h"

#define DESCRIPTOR 4 /* units of the chunk with an _HEAP_UCR_DESCRIPTOR; both widths */

void sim__heap_fail(struct sim_heap_builder *b, const char *why)
{
	if (!b->failed)
		b->why = why;
	b->failed = true;
}

/*
 * Regions
 */

uint64_t sim__heap_region_place(struct sim_heap_builder *b, uint64_t bytes)
{
	const uint64_t va = b->next_va;

	b->next_va += (bytes + GRANULARITY - 1) & ~(GRANULARITY - 1);
	return va;
}

bool sim__heap_region_add(struct sim_heap_builder *b, uint64_t va, uint64_t bytes,
			  uint64_t committed)
{
	const uint64_t limit = b->plan.x86 ? UINT64_C(1) << 32 : UINT64_C(1) << 47;
	struct sim_heap_region r = { .va = va, .pages = (uint32_t)(bytes >> PAGE_SHIFT) };

	if (!range_fits(va, bytes, limit)) {
		sim__heap_fail(b, "the heap does not fit into the address space");
		return false;
	}
	if (!ARRAY_ROOM(b->regions, b->region_count, b->region_room)) {
		sim__heap_fail(b, NULL);
		return false;
	}
	r.bytes = calloc(r.pages, PAGE_SIZE);
	r.committed = calloc(r.pages, 1);
	if (!r.bytes || !r.committed) {
		free(r.bytes);
		free(r.committed);
		sim__heap_fail(b, NULL);
		return false;
	}
	memset(r.committed, 1, committed >> PAGE_SHIFT);
	b->regions[b->region_count++] = r;
	return true;
}

struct sim_heap_region *sim__heap_segment(const struct sim_heap_builder *b, uint32_t chunk)
{
	return &b->regions[b->segments[b->chunks[chunk].segment].region];
}

uint64_t sim__chunk_va(const struct sim_heap_builder *b, uint32_t chunk)
{
	return sim__heap_segment(b, chunk)->va + (uint64_t)b->chunks[chunk].at * b->unit;
}

uint64_t sim__chunk_data(const struct sim_heap_builder *b, uint32_t chunk)
{
	return sim__chunk_va(b, chunk) + b->header + (uint64_t)b->chunks[chunk].extra * b->unit;
}

/* Regions are few, but for virtual blocks; whoever has a chunk does not come here. */
uint8_t *sim__heap_at(const struct sim_heap_builder *b, uint64_t va)
{
	for (size_t i = 0; i < b->region_count; i++) {
		const struct sim_heap_region *r = &b->regions[i];

		if (va >= r->va && va - r->va < (uint64_t)r->pages << PAGE_SHIFT)
			return r->bytes + (va - r->va);
	}
	abort(); /* a mistake in the writer */
}

/*
 * Headers
 */

void sim__header_put(const struct sim_heap_builder *b, uint8_t *to, uint32_t size, uint8_t flags,
		     uint32_t previous, uint8_t segment, uint8_t unused)
{
	uint8_t h[8];

	put_le16(h, (uint16_t)size);
	h[2] = flags;
	h[3] = b->plan.plain ? 0 : (uint8_t)(h[0] ^ h[1] ^ h[2]);
	put_le16(h + 4, (uint16_t)previous);
	h[6] = segment;
	h[7] = unused;
	for (size_t i = 0; i < sizeof(h); i++)
		to[i] = h[i] ^ b->encoding[i];
}

/*
 * The first chunk behind a hole has no neighbour: 0, as the first of a segment. SegmentOffset leads
 * from a chunk of a later segment to its start, in steps of 64 KiB, counted from 1; in the first
 * one it is 0 (the latter was seen; the former is not sure, and nobody should depend on it).
 */
void sim__chunk_put(const struct sim_heap_builder *b, uint32_t chunk)
{
	const struct chunk *c = &b->chunks[chunk];
	const struct chunk *before = c->before == NO_CHUNK ? NULL : &b->chunks[c->before];
	const bool last = b->chunks[c->after].state == CHUNK_HOLE;
	uint8_t *at = sim__heap_segment(b, chunk)->bytes + (uint64_t)c->at * b->unit;
	uint8_t flags = c->internal;

	if (c->state != CHUNK_FREE)
		flags |= FLAG_BUSY;
	if (last)
		flags |= FLAG_LAST;
	sim__header_put(b, at + b->header - 8, c->size, flags,
			before && before->state != CHUNK_HOLE ? before->size : 0,
			c->segment ? (uint8_t)(((uint64_t)c->at * b->unit >> 16) + 1) : 0,
			c->state == CHUNK_FREE ? 0 : c->unused);
}

/* A chunk, and the one behind it, which knows its size. */
static void put_both(const struct sim_heap_builder *b, uint32_t chunk)
{
	const uint32_t after = b->chunks[chunk].after;

	sim__chunk_put(b, chunk);
	if (after != NO_CHUNK && b->chunks[after].state != CHUNK_HOLE)
		sim__chunk_put(b, after);
}

/*
 * Free chunks by size
 */

static unsigned bin_of(uint32_t size)
{
	unsigned bin = BINS_EXACT;

	if (size < BINS_EXACT)
		return size;
	while (size >= 2 * BINS_EXACT) {
		size /= 2;
		bin++;
	}
	return bin;
}

static void bin_add(struct sim_heap_builder *b, uint32_t chunk)
{
	struct chunk *c = &b->chunks[chunk];
	uint32_t *bin = &b->bins[bin_of(c->size)];

	c->bin_before = NO_CHUNK;
	c->bin_after = *bin;
	if (*bin != NO_CHUNK)
		b->chunks[*bin].bin_before = chunk;
	*bin = chunk;
}

static void bin_remove(struct sim_heap_builder *b, uint32_t chunk)
{
	const struct chunk *c = &b->chunks[chunk];

	if (c->bin_before == NO_CHUNK)
		b->bins[bin_of(c->size)] = c->bin_after;
	else
		b->chunks[c->bin_before].bin_after = c->bin_after;
	if (c->bin_after != NO_CHUNK)
		b->chunks[c->bin_after].bin_before = c->bin_before;
}

static uint32_t bin_find(const struct sim_heap_builder *b, uint32_t size)
{
	for (unsigned bin = bin_of(size); bin < BINS; bin++)
		for (uint32_t i = b->bins[bin]; i != NO_CHUNK; i = b->chunks[i].bin_after)
			if (b->chunks[i].size >= size)
				return i;
	return NO_CHUNK;
}

/*
 * Chunks
 */

/* One more behind `before`, which may be NO_CHUNK. NO_CHUNK: failed. */
static uint32_t insert_chunk(struct sim_heap_builder *b, uint32_t segment, uint32_t before,
			     uint32_t at, uint32_t size, enum chunk_state state)
{
	struct segment *s = &b->segments[segment];
	uint32_t i = b->spare;
	struct chunk *c;

	if (i != NO_CHUNK) {
		b->spare = b->chunks[i].bin_after;
	} else {
		if (!ARRAY_ROOM(b->chunks, b->chunk_count, b->chunk_room) ||
		    b->chunk_room >= NO_CHUNK) {
			sim__heap_fail(b, NULL);
			return NO_CHUNK;
		}
		i = (uint32_t)b->chunk_count++;
	}
	c = &b->chunks[i];
	*c = (struct chunk){ .at = at,
			     .size = size,
			     .before = before,
			     .after = before == NO_CHUNK ? s->first : b->chunks[before].after,
			     .segment = segment,
			     .state = (uint8_t)state };
	if (before == NO_CHUNK)
		s->first = i;
	else
		b->chunks[before].after = i;
	if (c->after == NO_CHUNK)
		s->last = i;
	else
		b->chunks[c->after].before = i;
	return i;
}

static void drop_chunk(struct sim_heap_builder *b, uint32_t chunk)
{
	const struct chunk *c = &b->chunks[chunk];
	struct segment *s = &b->segments[c->segment];

	if (c->before == NO_CHUNK)
		s->first = c->after;
	else
		b->chunks[c->before].after = c->after;
	if (c->after == NO_CHUNK)
		s->last = c->before;
	else
		b->chunks[c->after].before = c->before;
	b->chunks[chunk].bin_after = b->spare;
	b->spare = chunk;
}

/* `chunk` and the one behind it, both free and in no bin, if they can be one. */
static bool merge_free_chunks(struct sim_heap_builder *b, uint32_t chunk)
{
	struct chunk *c = &b->chunks[chunk];
	const uint32_t gone = c->after;
	const struct chunk *after = &b->chunks[gone];
	uint8_t *at;

	if (c->size + after->size > CHUNK_MAX)
		return false;
	at = sim__heap_segment(b, chunk)->bytes + (uint64_t)after->at * b->unit;
	if (b->plan.wiped)
		memset(at, 0, b->header + 2 * b->pointer);
	c->size += after->size;
	drop_chunk(b, gone);
	return true;
}

/* `chunk` has just become free: it joins its neighbours, and goes to a bin. */
static void settle_free_chunk(struct sim_heap_builder *b, uint32_t chunk)
{
	const uint32_t before = b->chunks[chunk].before, after = b->chunks[chunk].after;

	if (after != NO_CHUNK && b->chunks[after].state == CHUNK_FREE) {
		bin_remove(b, after);
		if (!merge_free_chunks(b, chunk))
			bin_add(b, after);
	}
	if (before != NO_CHUNK && b->chunks[before].state == CHUNK_FREE) {
		bin_remove(b, before);
		if (merge_free_chunks(b, before))
			chunk = before;
		else
			bin_add(b, before);
	}
	bin_add(b, chunk);
	put_both(b, chunk);
}

void sim__chunk_free(struct sim_heap_builder *b, uint32_t chunk)
{
	b->chunks[chunk].state = CHUNK_FREE;
	b->chunks[chunk].internal = 0;
	b->chunks[chunk].extra = 0;
	settle_free_chunk(b, chunk);
}

/* The chunk before a hole, with what describes it: 30 bytes (hexadecimal; x86 18) of data. */
static void make_descriptor(struct sim_heap_builder *b, uint32_t chunk)
{
	struct chunk *c = &b->chunks[chunk];

	c->state = CHUNK_OWN;
	c->internal = 0;
	/* Real ones claim 3 bytes more than the structure has: WinDbg lists them as busy (3d). */
	c->unused = (uint8_t)((c->size - DESCRIPTOR) * b->unit + 3);
}

/*
 * Segments
 */

bool sim__heap_add_segment(struct sim_heap_builder *b, uint64_t va, uint64_t reserve,
			   uint64_t commit, uint32_t head)
{
	const uint32_t s = (uint32_t)b->segment_count;
	const uint32_t units = (uint32_t)(reserve / b->unit);
	const uint32_t usable = (uint32_t)(commit / b->unit) - DESCRIPTOR;
	uint32_t last;

	if (s == SIM_HEAP_SEGMENTS_MAX) {
		sim__heap_fail(b, "more segments than a heap has");
		return false;
	}
	if (!sim__heap_region_add(b, va, reserve, commit))
		return false;
	if (!ARRAY_ROOM(b->segments, s, b->segment_room)) {
		sim__heap_fail(b, NULL);
		return false;
	}
	b->segments[b->segment_count++] = (struct segment){ .region = b->region_count - 1,
							    .first = NO_CHUNK,
							    .last = NO_CHUNK };
	last = insert_chunk(b, s, NO_CHUNK, 0, head, CHUNK_OWN);
	if (last == NO_CHUNK)
		return false;
	b->chunks[last].unused = 1;
	for (uint32_t at = head, size; at < usable; at += size) {
		size = MIN(usable - at, CHUNK_MAX);
		if (usable - at - size == 1)
			size -= CHUNK_MIN;
		last = insert_chunk(b, s, last, at, size, CHUNK_FREE);
		if (last == NO_CHUNK)
			return false;
		bin_add(b, last);
	}
	last = insert_chunk(b, s, last, usable, DESCRIPTOR, CHUNK_OWN);
	if (last == NO_CHUNK || insert_chunk(b, s, last, usable + DESCRIPTOR,
					     units - usable - DESCRIPTOR, CHUNK_HOLE) == NO_CHUNK)
		return false;
	make_descriptor(b, last);
	for (uint32_t i = b->segments[s].first; i != NO_CHUNK; i = b->chunks[i].after)
		if (b->chunks[i].state != CHUNK_HOLE)
			sim__chunk_put(b, i);
	return true;
}

bool sim__heap_more(struct sim_heap_builder *b, uint64_t bytes)
{
	const uint64_t least = (bytes + 2 * PAGE_SIZE + GRANULARITY - 1) & ~(GRANULARITY - 1);
	const uint64_t reserve = MAX(b->next_reserve, least);
	uint64_t commit = (bytes + 2 * PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);

	b->next_reserve = MIN(2 * b->next_reserve, RESERVE_MAX);
	commit = MIN(MAX(commit, COMMIT_DEFAULT), reserve);
	return sim__heap_add_segment(b, sim__heap_region_place(b, reserve), reserve, commit,
				     by_width(b, 0x70, 0x40) / b->unit);
}

/*
 * Commits more at the end of a segment. False: there is not so much. The descriptor stays when its
 * hole is used up ("00000000 - uncommitted bytes", WinDbg says then): the last block's data could
 * run beyond the segment otherwise.
 */
static bool extend_segment(struct sim_heap_builder *b, uint32_t segment, uint32_t need)
{
	const uint32_t page = (uint32_t)(PAGE_SIZE / b->unit);
	const uint32_t hole = b->segments[segment].last, descriptor = b->chunks[hole].before;
	struct chunk *h = &b->chunks[hole];
	struct sim_heap_region *r = sim__heap_segment(b, hole);
	uint32_t grow, now;

	if (h->size < need)
		return false;
	grow = MAX((need + page - 1) / page, 1 + (uint32_t)sim_below(&b->random, 8)) * page;
	grow = MIN(grow, h->size);
	memset(r->committed + h->at / page, 1, grow / page);
	h->at += grow;
	h->size -= grow;
	now = insert_chunk(b, segment, descriptor, h->at - DESCRIPTOR, DESCRIPTOR, CHUNK_OWN);
	if (now == NO_CHUNK)
		return false;
	make_descriptor(b, now);
	sim__chunk_put(b, now);
	b->chunks[descriptor].state = CHUNK_FREE;
	b->chunks[descriptor].size = b->chunks[now].at - b->chunks[descriptor].at;
	settle_free_chunk(b, descriptor);
	return true;
}

/*
 * What the heap allocates for itself goes the way of all blocks, through the interceptor: so it has
 * its extra, too, as in the memory of genuine heaps of 7601 and 22000.
 */
static void put_own_extra(struct sim_heap_builder *b, uint32_t chunk, uint64_t bytes)
{
	struct chunk *c = &b->chunks[chunk];
	uint8_t *at = sim__heap_segment(b, chunk)->bytes + (uint64_t)c->at * b->unit;

	sim__extra_put(b, at + b->header, c->extra, (uint64_t)c->size * b->unit, bytes,
		       sim__extra_trace(b, bytes));
	c->unused = (uint8_t)(0x40 | c->extra);
}

uint32_t sim__chunk_take(struct sim_heap_builder *b, uint64_t bytes, enum chunk_state state,
			 uint8_t internal)
{
	const uint32_t extra = state == CHUNK_OWN ? sim__extra_units(b) : 0;
	/* On x64 the data may run into the first 8 bytes of the next chunk. */
	const uint32_t need =
		MAX((uint32_t)((bytes + 8 + b->unit - 1) / b->unit) + extra, CHUNK_MIN);
	uint32_t i = bin_find(b, need), rest;
	struct chunk *c;

	for (uint32_t s = 0; i == NO_CHUNK && s < b->segment_count; s++)
		if (extend_segment(b, s, need))
			i = bin_find(b, need);
	if (i == NO_CHUNK && !b->failed && sim__heap_more(b, (uint64_t)need * b->unit))
		i = bin_find(b, need);
	if (i == NO_CHUNK || b->failed)
		return NO_CHUNK;
	bin_remove(b, i);
	b->chunks[i].state = (uint8_t)state; /* or what is left of it would join it again */
	if (b->chunks[i].size - need >= CHUNK_MIN) {
		rest = insert_chunk(b, b->chunks[i].segment, i, b->chunks[i].at + need,
				    b->chunks[i].size - need, CHUNK_FREE);
		if (rest == NO_CHUNK)
			return NO_CHUNK;
		b->chunks[i].size = need;
		settle_free_chunk(b, rest);
	}
	c = &b->chunks[i];
	c->internal = internal;
	c->unused = (uint8_t)((uint64_t)c->size * b->unit - bytes);
	c->extra = (uint8_t)extra;
	if (extra)
		put_own_extra(b, i, bytes);
	put_both(b, i);
	return i;
}

/*
 * What is before the pages stays a free chunk, with the descriptor behind it; what is behind them
 * becomes one of its own. None of the two may be smaller than a chunk can be.
 */
bool sim__chunk_decommit(struct sim_heap_builder *b, uint32_t chunk)
{
	const uint32_t page = (uint32_t)(PAGE_SIZE / b->unit);
	const struct chunk was = b->chunks[chunk];
	uint32_t from = (was.at + DESCRIPTOR + page - 1) / page * page, front, hole, descriptor;
	uint32_t to = (was.at + was.size) / page * page;
	struct sim_heap_region *r = sim__heap_segment(b, chunk);

	if (was.at + was.size - to == 1)
		to -= page;
	/* All descriptors of genuine heaps have four units, and end where their hole begins. */
	if (from - DESCRIPTOR - was.at == 1)
		from += page;
	if (was.state != CHUNK_FREE || from >= to)
		return false;
	front = from - DESCRIPTOR - was.at;
	bin_remove(b, chunk);
	hole = insert_chunk(b, was.segment, chunk, from, to - from, CHUNK_HOLE);
	if (hole == NO_CHUNK)
		return false;
	descriptor = chunk;
	if (front)
		descriptor = insert_chunk(b, was.segment, chunk, was.at + front,
					  from - was.at - front, CHUNK_OWN);
	if (descriptor == NO_CHUNK)
		return false;
	if (front) {
		b->chunks[chunk].size = front;
		bin_add(b, chunk);
		sim__chunk_put(b, chunk);
	} else {
		b->chunks[descriptor].size = from - was.at;
	}
	make_descriptor(b, descriptor);
	sim__chunk_put(b, descriptor);
	memset(r->committed + from / page, 0, (to - from) / page);
	memset(r->bytes + (uint64_t)from * b->unit, 0, (uint64_t)(to - from) * b->unit);
	if (was.at + was.size > to) {
		chunk = insert_chunk(b, was.segment, hole, to, was.at + was.size - to, CHUNK_FREE);
		if (chunk == NO_CHUNK)
			return false;
		settle_free_chunk(b, chunk);
	} else if (was.after != NO_CHUNK) {
		sim__chunk_put(b, was.after);
	}
	return true;
}
