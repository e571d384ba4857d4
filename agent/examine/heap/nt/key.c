/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a heap whose first page is missing, out of its chunk headers. Size and PreviousSize
 * of neighbours are one number, combined with two halves of the key; and the first four bytes of a
 * header, combined with each other, give one number for all of the heap. So each pair of places
 * that have that in common votes for a key, by its distance; a true one gets votes for many
 * distances, and an array of equal records, however long, for one.
 */
#include <string.h>

#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* Enough headers for any heap to tell; each costs VOTE_WINDOW votes of 8 bytes at most. */
#define VOTE_PAGES  64
/* How many places with the same sum may lie within a chunk: each is a false neighbour. */
#define VOTE_WINDOW 24
/* Of VOTE_WINDOW * 512 * VOTE_PAGES = 786,432 that there can be: 6 MiB. */
#define VOTES_MAX   (VOTE_WINDOW * 512 * VOTE_PAGES)
/* So many sizes of chunks must say the same, and twice as many as for any other key. */
#define VOTES_LEAST 4
/* ... in so many pairs: four chunks by chance have one distance of 2^-16 each. */
#define PAIRS_LEAST 6

struct vote {
	uint32_t key; /* of Size, and of PreviousSize above it */
	uint16_t units;
};

struct place {
	uint64_t at;
	uint8_t raw[HEAP_KEY_SIZE];
};

struct ballot {
	struct vote *votes;
	size_t count, room;
	struct place ring[256][VOTE_WINDOW]; /* by the sum of their first four bytes */
	unsigned next[256], filled[256];
	size_t pages;
};

static int by_key_and_units(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->units > y->units) - (x->units < y->units);
}

/* False: no memory. */
static bool vote_for_key_words(struct ballot *b, const struct heap_layout *l,
			       const struct place *now)
{
	const uint8_t sum = now->raw[0] ^ now->raw[1] ^ now->raw[2] ^ now->raw[3];

	for (unsigned i = 0; i < b->filled[sum] && b->count < VOTES_MAX; i++) {
		const struct place *before = &b->ring[sum][i];
		const uint64_t units = (now->at - before->at) / l->unit;
		struct vote v = { .units = (uint16_t)units };

		if (units > UINT16_MAX)
			continue;
		v.key = ((uint32_t)get_le16(before->raw) ^ (uint32_t)units) |
			((uint32_t)get_le16(now->raw + 4) ^ (uint32_t)units) << 16;
		if (b->count == b->room) {
			struct vote *grown = array_grow(b->votes, &b->room, sizeof(*grown));

			if (!grown)
				return false;
			b->votes = grown;
		}
		b->votes[b->count++] = v;
	}
	b->ring[sum][b->next[sum]] = *now;
	b->next[sum] = (b->next[sum] + 1) % VOTE_WINDOW;
	b->filled[sum] += b->filled[sum] < VOTE_WINDOW;
	return true;
}

static bool vote_page(struct ballot *b, const struct heap_layout *l, const uint8_t *page,
		      uint64_t va)
{
	for (size_t at = 0; at < PAGE_SIZE; at += l->unit) {
		struct place now = { .at = va + at };

		memcpy(now.raw, page + at + l->header, HEAP_KEY_SIZE);
		/* What was never written looks like a header with any key, everywhere. */
		if (get_le32(now.raw) && !vote_for_key_words(b, l, &now))
			return false;
	}
	b->pages++;
	return true;
}

static bool vote_all(struct ballot *b, struct heap_pages *p, const struct heap_layout *l,
		     const struct heap_segment *segments, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (uint64_t va = segments[i].base;
		     va < segments[i].end && b->pages < VOTE_PAGES && !p->cut; va += PAGE_SIZE) {
			const uint8_t *page = heap__at(p, va, PAGE_SIZE);

			if (page && !vote_page(b, l, page, va))
				return false;
		}
	return true;
}

/* The key with votes for most sizes; false: none has enough, or another one nearly as many. */
static bool elect_heap_key(struct ballot *b, uint32_t *ret)
{
	size_t best = 0, second = 0;

	array_sort(b->votes, b->count, sizeof(*b->votes), by_key_and_units);
	for (size_t i = 0, end; i < b->count; i = end) {
		size_t sizes = 0;

		for (end = i; end < b->count && b->votes[end].key == b->votes[i].key; end++)
			sizes += end == i || b->votes[end].units != b->votes[end - 1].units;
		if (end - i < PAIRS_LEAST)
			continue;
		if (sizes > best) {
			second = best;
			best = sizes;
			*ret = b->votes[i].key;
		} else if (sizes > second) {
			second = sizes;
		}
	}
	return best >= VOTES_LEAST && best >= 2 * second;
}

/* What headers that are linked have in common, once the sizes are known. */
struct sums {
	unsigned flags
		[256]; /* what those say is the key of it that tell how much of them is unused */
	unsigned sums[256];
};

/*
 * UnusedBytes of a block that a program has: what its header takes and more, or how much lies
 * between that and the data (extended.c), which +ust makes nearly all blocks say.
 */
static bool is_programs(uint8_t unused)
{
	return (unused >= 8 && unused < 0x3f) || (unused & 0xc0) == CHUNK_EXTENDED;
}

/*
 * What a header's flags must be: of a container of LFH blocks the heap's own, of others mostly
 * busy, and no more. Some heaps have more containers than other blocks (a genuine one of 9600).
 */
static uint8_t expected_flags(struct heap_pages *p, const struct heap_layout *l, uint64_t at,
			      uint8_t unused)
{
	const uint8_t units = unused & CHUNK_EXTENDED ? unused & CHUNK_UNITS : 0;

	for (size_t i = 0; i < ARRAY_SIZE(l->lfh); i++)
		if (heap__is_container(p, l, i, at + (uint64_t)(1 + units) * l->unit))
			return CHUNK_FLAG_BUSY | CHUNK_FLAG_INTERNAL;
	return CHUNK_FLAG_BUSY;
}

/* A header, if the one that it names as the next confirms it. */
static bool is_chunk_linked(struct heap_pages *p, const struct heap_layout *l, uint32_t key,
			    uint64_t at, uint64_t end, uint8_t raw[HEAP_KEY_SIZE])
{
	const uint8_t *header = heap__at(p, at + l->header, HEAP_KEY_SIZE);
	uint64_t next;
	uint32_t size;

	if (!header)
		return false;
	memcpy(raw, header, HEAP_KEY_SIZE);
	size = get_le16(raw) ^ (key & UINT16_MAX);
	next = at + (uint64_t)size * l->unit;
	if (!size || next >= end)
		return false;
	header = heap__at(p, next + l->header, HEAP_KEY_SIZE);
	return header && (get_le16(header + 4) ^ key >> 16) == size &&
	       (header[0] ^ header[1] ^ header[2] ^ header[3]) ==
		       (raw[0] ^ raw[1] ^ raw[2] ^ raw[3]);
}

static void count_key_sums(struct heap_pages *p, const struct heap_layout *l,
			   const struct heap_segment *segments, size_t count, uint32_t key,
			   struct sums *ret)
{
	size_t pages = 0;

	for (size_t i = 0; i < count; i++)
		for (uint64_t at = segments[i].base;
		     at < segments[i].end && pages < VOTE_PAGES && !p->cut;) {
			uint8_t raw[HEAP_KEY_SIZE];

			if (!heap__at(p, at, 1)) {
				at = (at & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE;
				continue;
			}
			if (is_chunk_linked(p, l, key, at, segments[i].end, raw)) {
				ret->sums[raw[0] ^ raw[1] ^ raw[2] ^ raw[3]]++;
				if (is_programs(raw[7]))
					ret->flags[raw[2] ^ expected_flags(p, l, at, raw[7])]++;
			}
			at += l->unit;
			pages += at % PAGE_SIZE == 0;
		}
}

static unsigned most_frequent(const unsigned counts[256])
{
	unsigned best = 0;

	for (unsigned i = 1; i < 256; i++)
		if (counts[i] > counts[best])
			best = i;
	return best;
}

enum status heap__recover_key(struct heap_pages *p, const struct heap_layout *l,
			      const struct heap_segment *segments, size_t count, uint8_t *ret_key,
			      bool *ret_found, struct err *e)
{
	struct ballot *b = calloc(1, sizeof(*b));
	const bool voted = b && vote_all(b, p, l, segments, count);
	struct sums sums = { 0 };
	uint32_t key = 0;
	const bool elected = voted && elect_heap_key(b, &key);

	*ret_found = false;
	if (b)
		free(b->votes);
	free(b);
	if (!voted)
		return err_nomem(e);
	/* Plain headers: behind a missing page none of them is believed (back_end.c). */
	if (!elected || !key)
		return ST_OK;
	count_key_sums(p, l, segments, count, key, &sums);
	memset(ret_key, 0, HEAP_KEY_SIZE);
	put_le16(ret_key, (uint16_t)key);
	ret_key[2] = (uint8_t)most_frequent(sums.flags);
	ret_key[3] = (uint8_t)(most_frequent(sums.sums) ^ ret_key[0] ^ ret_key[1] ^ ret_key[2]);
	put_le16(ret_key + 4, (uint16_t)(key >> 16));
	*ret_found = sums.flags[most_frequent(sums.flags)] > 0;
	return ST_OK;
}
