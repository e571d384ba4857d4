/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The low fragmentation heap. Blocks of one size lie in user blocks, an area that is itself a chunk
 * of the back end; a _HEAP_SUBSEGMENT in a zone describes it. In 7 free blocks are a list; from 8
 * on there is a bitmap, and blocks are taken from a place that is drawn.
 */
#include <string.h>

#include "agent/simulator/heap_build.h"
#include "formats/base/array.h"

#define POPULAR_FROM 17     /* so many requests of a size wake its bucket */
#define LARGEST      0x4000 /* above it the back end is asked */
#define COUNT_MAX    1024
#define AREA_MIN     10 /* powers of two: 1 KiB ... */
#define AREA_MAX     15 /* ... to 32 KiB */
#define ZONE         0x3f0u

/*
 * x64 and x86, each of 7 and of 10: Volatility's vtypes and radareorg/radare2-gsoc-windows 8205308
 * (structs/parsed/Win7x86) for 7, ntdiff's ntdll for 10. 8 is written as 10, which no record
 * confirms. Where `infos` is 0, they follow _HEAP_LOCAL_DATA.
 */
static const struct lfh_shape {
	uint16_t zones, heap, buckets, infos, local, local_size, info_size, size;
	uint16_t info_active, info_bucket;
	uint16_t zone_first, subsegment, exchange, block_size, block_count, size_index;
	uint16_t first_block, signature, size_index_at;
} shapes[2][2] = {
	{
		{ 0x28, 0x40, 0x1f0, 0, 0x3f0, 0x30, 0xc0, 0x6420, 8, 0xb4, 0x20, 0x30, 0x10, 0x18,
		  0x1c, 0x1e, 0x20, 0x18, 0x10 },
		{ 8, 0x18, 0x2a4, 0x4a8, 0xcc0, 0x30, 0xc0, 0xcf0, 8, 0xac, 0x20, 0x40, 0x20, 0x24,
		  0x28, 0x2a, 0x40, 0x14, 0x10 },
	},
	{
		{ 0x18, 0x24, 0x110, 0, 0x310, 0x18, 0x68, 0x3728, 4, 0x60, 0x10, 0x20, 8, 0x10,
		  0x14, 0x16, 0x10, 0xc, 8 },
		{ 4, 0xc, 0x1bc, 0x3c0, 0x7d0, 0x18, 0x68, 0x7e8, 4, 0x5c, 0x10, 0x28, 0x10, 0x14,
		  0x18, 0x1a, 0x20, 0xc, 8 },
	},
};

static bool has_bitmap(const struct sim_heap_builder *b)
{
	return b->plan.layout != SIM_HEAP_7;
}

static const struct lfh_shape *lfh_shape_of(const struct sim_heap_builder *b)
{
	return &shapes[b->plan.x86][has_bitmap(b)];
}

/*
 * Sizes go by 1 unit up to 32, by 2 up to 64, by 4 up to 128, and so on ("Low-fragmentation Heap",
 * Microsoft, for 8-byte units).
 */
static uint32_t lfh_bucket_of(uint32_t units, uint32_t *ret_units)
{
	uint32_t step = 1, bucket, below = 0;

	while (units > 32 * step)
		step *= 2;
	*ret_units = (units + step - 1) / step * step;
	if (step == 1)
		return units - 1;
	for (uint32_t s = step; s > 2; s /= 2)
		below += 16;
	bucket = 32 + below + (*ret_units - 16 * step) / step - 1;
	return MIN(bucket, LFH_BUCKETS - 1);
}

/*
 * Heads
 */

static void write_buckets(const struct sim_heap_builder *b, uint8_t *head)
{
	uint32_t last = 0, units = 0;

	for (uint32_t u = 1; u <= LARGEST / b->unit; u = units + 1) {
		last = lfh_bucket_of(u, &units);
		put_le16(head + lfh_shape_of(b)->buckets + 4 * last, (uint16_t)units);
		head[lfh_shape_of(b)->buckets + 4 * last + 2] = (uint8_t)last;
	}
}

/*
 * From 8 on the head has pages of its own, and infos are added right behind it, for which there is
 * room: so it is in genuine heaps of 9600 to 22000. In 7 it is a chunk, flagged as user blocks are.
 */
static bool wake_front_end(struct sim_heap_builder *b)
{
	const struct lfh_shape *s = lfh_shape_of(b);
	uint32_t chunk;
	uint8_t *at;

	if (has_bitmap(b)) {
		const uint64_t bytes =
			(s->size + LFH_BUCKETS * s->info_size + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);

		b->front_end = sim__heap_region_place(b, bytes);
		if (!sim__heap_region_add(b, b->front_end, bytes, PAGE_SIZE))
			return false;
		b->front_region = b->region_count - 1;
	} else {
		chunk = sim__chunk_take(b, s->size, CHUNK_OWN, FLAG_INTERNAL);
		if (chunk == NO_CHUNK)
			return false;
		b->front_end = sim__chunk_data(b, chunk);
	}
	at = sim__heap_at(b, b->front_end);
	memset(at, 0, s->size);
	put_heap_pointer(b, at + s->zones, b->front_end + s->zones);
	put_heap_pointer(b, at + s->zones + b->pointer, b->front_end + s->zones);
	put_heap_pointer(b, at + s->heap, b->plan.base);
	/* _HEAP_LOCAL_DATA.LowFragHeap */
	put_heap_pointer(b, at + s->local + by_width(b, 0x18, 0xc), b->front_end);
	write_buckets(b, at);
	return true;
}

static void add_info(struct sim_heap_builder *b, uint32_t bucket)
{
	const struct lfh_shape *s = lfh_shape_of(b);
	const uint64_t local = b->front_end + s->local;
	uint8_t *at;

	if (s->infos) {
		const uint32_t in = s->size + s->info_size * b->infos++;

		b->buckets[bucket].info = b->front_end + in;
		memset(b->regions[b->front_region].committed, 1,
		       (in + s->info_size + PAGE_SIZE - 1) >> PAGE_SHIFT);
	} else {
		b->buckets[bucket].info = local + s->local_size + (uint64_t)s->info_size * bucket;
	}
	at = sim__heap_at(b, b->buckets[bucket].info);
	put_le16(at + s->info_bucket, (uint16_t)bucket);
	put_heap_pointer(b, at + (s->infos ? 0 : by_width(b, 0xa8, 0x58)), local);
	if (s->infos)
		put_heap_pointer(b, sim__heap_at(b, b->front_end) + s->infos + bucket * b->pointer,
				 b->buckets[bucket].info);
}

/* The place of one more _HEAP_SUBSEGMENT. 0: failed. */
static uint64_t take_subsegment(struct sim_heap_builder *b)
{
	const struct lfh_shape *s = lfh_shape_of(b);
	const uint64_t list = b->front_end + s->zones;
	uint64_t last, va;
	uint32_t chunk;
	uint8_t *at;

	if (!b->zone_left) {
		chunk = sim__chunk_take(b, ZONE, CHUNK_OWN, FLAG_INTERNAL);
		if (chunk == NO_CHUNK)
			return 0;
		b->zone = sim__chunk_data(b, chunk);
		b->zone_left = (ZONE - s->zone_first) / s->subsegment;
		at = sim__heap_at(b, b->zone);
		memset(at, 0, ZONE);
		last = get_pointer(b, sim__heap_at(b, list) + b->pointer);
		put_heap_pointer(b, at, list);
		put_heap_pointer(b, at + b->pointer, last);
		put_heap_pointer(b, sim__heap_at(b, last), b->zone);
		put_heap_pointer(b, sim__heap_at(b, list) + b->pointer, b->zone);
	}
	b->zone_left--;
	va = b->zone + s->zone_first +
	     s->subsegment * ((ZONE - s->zone_first) / s->subsegment - 1 - b->zone_left);
	/* 7: FreePointer; later NextIndex */
	if (has_bitmap(b))
		put_le32(sim__heap_at(b, b->zone) + 2 * b->pointer,
			 (ZONE - s->zone_first) / s->subsegment - b->zone_left);
	else
		put_heap_pointer(b, sim__heap_at(b, b->zone) + 2 * b->pointer, va + s->subsegment);
	return va;
}

/*
 * User blocks
 */

uint64_t sim__lfh_block_va(const struct sim_heap_builder *b, const struct user_blocks *u,
			   uint32_t index)
{
	(void)b;
	return u->va + u->first + (uint64_t)index * u->stride;
}

static uint8_t *user_block_bytes(const struct sim_heap_builder *b, const struct user_blocks *u)
{
	const struct sim_heap_region *r = sim__heap_segment(b, u->chunk);

	return r->bytes + (u->va - r->va);
}

/*
 * A block's header. From 8 on the fragment shows how it is made: its place, with the keys, and its
 * index in byte 5; byte 4 is left over from before. Of 7 the last byte is known, and that the first
 * four are the subsegment's address with the keys ("Understanding the Low Fragmentation Heap",
 * Valasek, 2010, for x86).
 */
static void put_lfh_block_header(const struct sim_heap_builder *b, const struct user_blocks *u,
				 uint32_t index, uint8_t unused)
{
	const uint64_t va = sim__lfh_block_va(b, u, index);
	uint8_t *at =
		user_block_bytes(b, u) + u->first + (uint64_t)index * u->stride + b->header - 8;
	const uint32_t place = (uint32_t)(va >> by_width(b, 4, 3));

	if (has_bitmap(b)) {
		put_le32(at, place ^ (uint32_t)((va - u->va) << 12) ^ (uint32_t)b->plan.base ^
				     b->lfh_key);
		put_le16(at + 5, (uint16_t)index);
	} else {
		put_le32(at, place ^ (uint32_t)u->subsegment ^ (uint32_t)b->plan.base ^ b->lfh_key);
	}
	at[7] = unused;
}

/* 7: what a free block's first two bytes of data say, and AggregateExchg.FreeEntryOffset: units. */
static uint32_t entry_offset(const struct sim_heap_builder *b, const struct user_blocks *u,
			     uint32_t index)
{
	return index == u->count ? 0xffff : (u->first + index * u->stride) / b->unit;
}

static void put_next(const struct sim_heap_builder *b, const struct user_blocks *u, uint32_t index,
		     uint32_t next)
{
	put_le16(user_block_bytes(b, u) + u->first + (uint64_t)index * u->stride + b->header,
		 (uint16_t)entry_offset(b, u, next));
}

static void write_header(const struct sim_heap_builder *b, const struct user_blocks *u)
{
	const struct lfh_shape *s = lfh_shape_of(b);
	uint8_t *at = user_block_bytes(b, u);

	put_heap_pointer(b, at, u->subsegment);
	at[s->size_index_at] = u->size_index;
	put_le32(at + s->signature, LFH_SIGNATURE);
	if (has_bitmap(b)) {
		const uint32_t keys = (uint32_t)u->va ^ (uint32_t)b->front_end ^ b->lfh_key;
		const uint32_t plain = u->first | u->stride << 16;

		at[s->size_index_at + 1] = 0; /* GuardPagePresent */
		put_le16(at + s->size_index_at + 2, 0);
		/* 8 and 8.1: not encoded ("Windows 8 Heap Internals", Valasek and Mandt, 2012) */
		put_le32(at + s->signature + 4,
			 b->plan.layout == SIM_HEAP_8 ? plain : plain ^ keys);
	}
}

/* Of whole words. */
static uint32_t bitmap_bytes(const struct sim_heap_builder *b, uint32_t count)
{
	return (count + 8 * b->pointer - 1) / (8 * b->pointer) * b->pointer;
}

static bool add_user_blocks(struct sim_heap_builder *b, uint32_t bucket, uint32_t stride)
{
	struct bucket *of = &b->buckets[bucket];
	const struct lfh_shape *s = lfh_shape_of(b);
	struct user_blocks u = {
		.bucket = bucket, .stride = stride, .first = s->first_block, .next = of->newest
	};
	uint32_t *owners;

	u.size_index = MAX(of->size_index, AREA_MIN);
	while (u.size_index < AREA_MAX && (UINT32_C(1) << u.size_index) < 8 * stride)
		u.size_index++;
	of->size_index = MIN(u.size_index + 1, AREA_MAX);
	u.count = MIN((UINT32_C(1) << u.size_index) / stride, COUNT_MAX);
	if (has_bitmap(b)) {
		/* Buffer and BitmapData lie between the fields and the first block. */
		const uint32_t bitmap = by_width(b, 0x30, 0x1c);

		u.first = MAX(u.first, (bitmap + bitmap_bytes(b, u.count) + b->unit - 1) / b->unit *
					       b->unit);
	}
	u.count = MIN(u.count, ((UINT32_C(1) << u.size_index) - u.first - b->unit) / stride);
	u.free = u.count;
	if (!ARRAY_ROOM(b->user_blocks, b->user_blocks_count, b->user_blocks_room))
		return false;
	while (b->lfh_owner_room - b->lfh_owner_count < u.count) {
		owners = array_grow(b->lfh_owner, &b->lfh_owner_room, sizeof(*owners));
		if (!owners)
			return false;
		b->lfh_owner = owners;
	}
	u.subsegment = take_subsegment(b);
	if (!u.subsegment)
		return false;
	u.chunk = sim__chunk_take(b, UINT32_C(1) << u.size_index, CHUNK_OWN, FLAG_INTERNAL);
	if (u.chunk == NO_CHUNK)
		return false;
	u.va = sim__chunk_data(b, u.chunk);
	u.blocks = (uint32_t)b->lfh_owner_count;
	for (uint32_t i = 0; i < u.count; i++)
		b->lfh_owner[b->lfh_owner_count++] = SIM_HEAP_NO_BLOCK;
	of->newest = of->open = (uint32_t)b->user_blocks_count;
	b->user_blocks[b->user_blocks_count++] = u;
	write_header(b, &u);
	for (uint32_t i = 0; i < u.count; i++) {
		put_lfh_block_header(b, &u, i, 0x80);
		if (!has_bitmap(b))
			put_next(b, &u, i, i + 1);
	}
	return true;
}

/*
 * Blocks
 */

static uint32_t take_lfh_block(struct sim_heap_builder *b, struct user_blocks *u)
{
	uint32_t i = u->hint;
	uint32_t offset;

	if (has_bitmap(b)) {
		i = (uint32_t)sim_below(&b->random, u->count);
		while (b->lfh_owner[u->blocks + i] != SIM_HEAP_NO_BLOCK)
			i = (i + 1) % u->count;
	} else {
		offset = get_le16(user_block_bytes(b, u) + u->first + (uint64_t)i * u->stride +
				  b->header);
		u->hint = offset == 0xffff ? u->count : (offset * b->unit - u->first) / u->stride;
	}
	u->free--;
	return i;
}

/* Which of a bucket's user blocks has room; the open one is asked first. */
static uint32_t find_room(const struct sim_heap_builder *b, const struct bucket *of)
{
	uint32_t i = of->open;

	if (i != NO_USER_BLOCKS && b->user_blocks[i].free)
		return i;
	for (i = of->newest; i != NO_USER_BLOCKS; i = b->user_blocks[i].next)
		if (b->user_blocks[i].free > b->user_blocks[i].count / 2)
			return i;
	return NO_USER_BLOCKS;
}

bool sim__lfh_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret)
{
	uint32_t units = MAX((uint32_t)((size + 8 + b->unit - 1) / b->unit), CHUNK_MIN);
	struct user_blocks *u;
	struct bucket *of;
	uint32_t bucket, index, unused;

	if (!b->plan.lfh || size > LARGEST - 8)
		return false;
	bucket = lfh_bucket_of(units, &units);
	of = &b->buckets[bucket];
	if (!of->drawn) {
		of->drawn = true;
		of->on = sim_below(&b->random, 100) < b->plan.lfh;
	}
	unused = (uint32_t)(units * b->unit - size);
	if (!of->on || unused >= 0x3f || ++of->uses <= POPULAR_FROM)
		return false;
	if (!b->front_end && !wake_front_end(b))
		return false;
	if (!of->info)
		add_info(b, bucket);
	of->open = find_room(b, of);
	if (of->open == NO_USER_BLOCKS && !add_user_blocks(b, bucket, units * b->unit)) {
		sim__heap_fail(b, NULL);
		return false;
	}
	u = &b->user_blocks[of->open];
	index = take_lfh_block(b, u);
	put_lfh_block_header(b, u, index, (uint8_t)(0x80 | unused));
	*ret = (struct block){ .address = sim__lfh_block_va(b, u, index) + b->header,
			       .requested = size,
			       .place = of->open,
			       .index = index,
			       .kind = SIM_HEAP_LFH };
	return true;
}

void sim__lfh_free(struct sim_heap_builder *b, const struct block *of)
{
	struct user_blocks *u = &b->user_blocks[of->place];

	b->lfh_owner[u->blocks + of->index] = SIM_HEAP_NO_BLOCK;
	put_lfh_block_header(b, u, of->index, 0x80);
	if (!has_bitmap(b)) {
		put_next(b, u, of->index, u->hint);
		u->hint = of->index;
	}
	u->free++;
}

/*
 * RTL_BITMAP_EX, whose size is as wide as its pointer. Bits beyond the last block are set, as in
 * the fragment.
 */
static void write_bitmap(const struct sim_heap_builder *b, const struct user_blocks *u)
{
	const uint32_t at = by_width(b, 0x20, 0x14), data = by_width(b, 0x30, 0x1c);
	uint8_t *bytes = user_block_bytes(b, u);

	put_heap_pointer(b, bytes + at, u->count);
	put_heap_pointer(b, bytes + at + b->pointer, u->va + data);
	memset(bytes + data, 0xff, bitmap_bytes(b, u->count));
	for (uint32_t i = 0; i < u->count; i++)
		if (b->lfh_owner[u->blocks + i] == SIM_HEAP_NO_BLOCK)
			bytes[data + i / 8] &= (uint8_t)~(1u << i % 8);
}

static void write_subsegment(const struct sim_heap_builder *b, const struct user_blocks *u)
{
	const struct lfh_shape *s = lfh_shape_of(b);
	uint8_t *at = sim__heap_at(b, u->subsegment);

	put_heap_pointer(b, at, b->buckets[u->bucket].info);
	put_heap_pointer(b, at + b->pointer, u->va);
	put_le16(at + s->exchange, (uint16_t)u->free);
	if (has_bitmap(b)) {
		write_bitmap(b, u);
	} else {
		put_le16(at + s->exchange + 2, (uint16_t)entry_offset(b, u, u->hint));
		put_le32(at + s->exchange + 4, u->count); /* Sequence */
	}
	put_le16(at + s->block_size, (uint16_t)(u->stride / b->unit));
	put_le16(at + s->block_count, (uint16_t)u->count);
	at[s->size_index] = (uint8_t)u->bucket;
}

void sim__lfh_finish(struct sim_heap_builder *b)
{
	for (size_t i = 0; i < b->user_blocks_count; i++)
		write_subsegment(b, &b->user_blocks[i]);
	for (uint32_t i = 0; b->front_end && i < LFH_BUCKETS; i++)
		if (b->buckets[i].info && b->buckets[i].open != NO_USER_BLOCKS)
			put_heap_pointer(b,
					 sim__heap_at(b, b->buckets[i].info) +
						 lfh_shape_of(b)->info_active,
					 b->user_blocks[b->buckets[i].open].subsegment);
}
