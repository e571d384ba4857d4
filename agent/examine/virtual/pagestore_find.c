/* SPDX-License-Identifier: Apache-2.0 */
/* Where the manager of the compression store is. The letters are the sources' of pagestore.h. */
#include <string.h>

#include "agent/examine/virtual/pagestore_internal.h"
#include "formats/base/bytes.h"
#include "formats/base/defs.h"

/*
 * V, M: 14393 to 22000 have the number of a paging file in a key. M, D: 26100 has not. D alone:
 * 10240 and 10586, where the tree and the pointer lie elsewhere.
 */
const struct pagestore_kind pagestore__kind_1507 = { UINT32_MAX, 0x16c0, 0xe8, true };
const struct pagestore_kind pagestore__kind_1607 = { UINT32_MAX, 0x1c0, 0x370, false };
const struct pagestore_kind pagestore__kind_24h2 = { 0x0fffffff, 0x1c0, 0x370, false };

#define WORDS_1507 (0x16c0 + 8)
#define WORDS_1607 (0x1c0 + 8)

/* As many pages at a time, so that what crosses from one into the next is seen. */
#define WINDOW     3

/* Of an SM_PARTITION, and of SmGlobals where symbols tell where that is. */
struct ring {
	uint16_t entry;      /* its LIST_ENTRY */
	uint16_t epartition; /* its EPARTITION */
	uint16_t head;       /* of SmGlobals: the ring's beginning */
	const struct pagestore_kind *kind;
};

static const struct ring rings[] = {
	{ 0x7a8, 0x790, 8, &pagestore__kind_1607 },     /* 22621, 22631: M, D */
	{ 0x848, 0x830, 0x538, &pagestore__kind_24h2 }, /* 26100, 26200: D */
	{ 0xc30, 0x830, 0x10, &pagestore__kind_24h2 },  /* the same partition in another: M, D */
};

#define EPARTITION_BACK 0x18 /* R, D */

static bool take_look(struct pagestore *s)
{
	s->looks -= s->looks != 0;
	return s->looks != 0;
}

static bool look_u64(struct pagestore *s, uint64_t va, uint64_t *ret)
{
	return take_look(s) && view_u64(&s->plan.kernel, va, ret);
}

static bool look_is_store(struct pagestore *s, const struct pagestore_kind *k, uint64_t store)
{
	return take_look(s) && pagestore__is_store(s, k, store);
}

static bool has_store(struct pagestore *s, const struct pagestore_kind *k, uint64_t array)
{
	uint8_t all[PAGESTORE_ARRAY * PAGESTORE_ARRAY_ENTRY];

	if (!take_look(s) || !view_read(&s->plan.kernel, array, all, sizeof(all)))
		return false;
	for (size_t i = 0; i < PAGESTORE_ARRAY; i++) {
		const uint64_t store = get_le64(all + i * PAGESTORE_ARRAY_ENTRY);

		if (pagestore__is_kernel(store, PAGE_SIZE) && look_is_store(s, k, store))
			return true;
	}
	return false;
}

static bool take_manager(struct pagestore *s, const struct pagestore_kind *k, uint64_t va,
			 const uint8_t *words)
{
	struct pagestore_node n;

	s->tree = get_le64(words + k->tree);
	if (!pagestore__read_node(s, s->tree, PAGESTORE_PAIR, &n))
		return false;
	s->kind = k;
	s->manager = va;
	return true;
}

/* The first look is at words that were read already: most of an image ends there. */
static bool take_arrays(struct pagestore *s, const struct pagestore_kind *k, uint64_t va,
			const uint8_t *words)
{
	if (!pagestore__is_kernel(get_le64(words + k->tree), PAGE_SIZE))
		return false;
	for (size_t i = 0; i < PAGESTORE_ARRAYS; i++) {
		const uint64_t array = get_le64(words + 8 * i);

		if (array && !pagestore__is_kernel(array, 8))
			return false;
	}
	for (size_t i = 0; i < PAGESTORE_ARRAYS; i++) {
		const uint64_t array = get_le64(words + 8 * i);

		if (array && has_store(s, k, array))
			return take_manager(s, k, va, words);
	}
	return false;
}

static bool take_inside(struct pagestore *s, uint64_t va, const uint8_t *words)
{
	const struct pagestore_kind *const k = &pagestore__kind_1507;

	if (!pagestore__is_kernel(get_le64(words + k->tree), PAGE_SIZE))
		return false;
	for (size_t i = 0; i < PAGESTORE_INSIDE; i++) {
		const uint64_t store = get_le64(words + i * PAGESTORE_INSIDE_ENTRY);

		if (store && !pagestore__is_kernel(store, PAGE_SIZE))
			return false;
	}
	for (size_t i = 0; i < PAGESTORE_INSIDE; i++) {
		const uint64_t store = get_le64(words + i * PAGESTORE_INSIDE_ENTRY);

		if (store && look_is_store(s, k, store))
			return take_manager(s, k, va, words);
	}
	return false;
}

/*
 * A ring of partitions
 */

static bool has_arrays(struct pagestore *s, uint64_t partition)
{
	uint8_t words[8 * PAGESTORE_ARRAYS];

	if (!take_look(s) || !view_read(&s->plan.kernel, partition, words, sizeof(words)))
		return true;
	for (size_t i = 0; i < sizeof(words); i++)
		if (words[i])
			return true;
	return false;
}

/* None but the first has a store, as far as the ring can be followed. */
static bool is_alone(struct pagestore *s, const struct ring *r, uint64_t head, uint64_t first)
{
	uint64_t at = first;

	for (unsigned i = 0; i < PAGESTORE_RING_MAX; i++) {
		if (!look_u64(s, at, &at) || !pagestore__is_kernel(at, 8))
			return false;
		if (at == head)
			return true;
		if (has_arrays(s, at - r->entry))
			return false;
	}
	return false;
}

static bool has_back_pointer(struct pagestore *s, const struct ring *r, uint64_t partition)
{
	uint64_t at, back;

	return look_u64(s, partition + r->epartition, &at) && pagestore__is_kernel(at, 16) &&
	       look_u64(s, at + EPARTITION_BACK, &back) && back == partition;
}

static bool take_member(struct pagestore *s, const struct ring *r, uint64_t head, uint64_t first)
{
	const uint64_t partition = first - r->entry;
	uint8_t words[WORDS_1607];

	if (!pagestore__is_kernel(partition, 16) || !take_look(s) ||
	    !view_read(&s->plan.kernel, partition, words, sizeof(words)) ||
	    !take_arrays(s, r->kind, partition, words))
		return false;
	if (is_alone(s, r, head, first))
		return true;
	s->kind = NULL;
	s->looks = 0; /* nor is it taken by another ring */
	return false;
}

static bool is_first(struct pagestore *s, uint64_t head, uint64_t first)
{
	uint64_t back;

	return first != head && pagestore__is_kernel(first, 8) && look_u64(s, first + 8, &back) &&
	       back == head;
}

/* LIST_ENTRY: any in the image could be it. */
static bool take_ring(struct pagestore *s, uint64_t va, const uint8_t *words)
{
	const uint64_t first = get_le64(words);

	if (!pagestore__is_kernel(get_le64(words + 8), 8) || !is_first(s, va, first))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(rings); i++)
		if (has_back_pointer(s, &rings[i], first - rings[i].entry) &&
		    take_member(s, &rings[i], va, first))
			return true;
	return false;
}

/*
 * All of it
 */

static bool find_manager_in_page(struct pagestore *s, uint64_t va, const uint8_t *pages)
{
	for (size_t i = 0; i < PAGE_SIZE; i += 8)
		if (take_arrays(s, &pagestore__kind_1607, va + i, pages + i) ||
		    take_inside(s, va + i, pages + i) || take_ring(s, va + i, pages + i))
			return true;
	return false;
}

static bool scan_for_manager(struct pagestore *s, const struct range *r, uint64_t *left)
{
	const unsigned first = 1U << (WINDOW - 1);
	uint64_t at = r->first & ~(uint64_t)(PAGE_SIZE - 1);
	uint8_t pages[WINDOW * PAGE_SIZE] = { 0 }, *const last = pages + sizeof(pages) - PAGE_SIZE;

	for (unsigned there = 0, behind = 0; behind < WINDOW - 1; at += PAGE_SIZE) {
		memmove(pages, pages + PAGE_SIZE, sizeof(pages) - PAGE_SIZE);
		memset(last, 0, PAGE_SIZE);
		there <<= 1;
		if (at <= r->last && *left >= PAGE_SIZE) {
			there |= view_read(&s->plan.kernel, at, last, PAGE_SIZE);
			*left -= PAGE_SIZE;
		} else {
			behind++;
		}
		if ((there & first) &&
		    find_manager_in_page(s, at - (WINDOW - 1) * PAGE_SIZE, pages))
			return true;
	}
	return false;
}

static bool take_named(struct pagestore *s, uint64_t globals)
{
	const struct memory_view *k = &s->plan.kernel;
	uint8_t words[WORDS_1507];
	uint64_t first;

	if (view_read(k, globals, words, WORDS_1607) &&
	    take_arrays(s, &pagestore__kind_1607, globals, words))
		return true;
	if (view_read(k, globals, words, WORDS_1507) && take_inside(s, globals, words))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(rings); i++) {
		const uint64_t head = globals + rings[i].head;

		if (view_u64(k, head, &first) && is_first(s, head, first) &&
		    take_member(s, &rings[i], head, first))
			return true;
	}
	return false;
}

bool pagestore_find(struct pagestore *s, const struct pagestore_plan *plan)
{
	uint64_t left = PAGESTORE_SCAN_MAX;

	*s = (struct pagestore){ .plan = *plan, .looks = PAGESTORE_LOOKS_MAX };
	if (plan->globals && take_named(s, plan->globals))
		return true;
	for (size_t i = 0; i < plan->n_writable; i++)
		if (scan_for_manager(s, &plan->writable[i], &left))
			return true;
	*s = (struct pagestore){ .plan = *plan };
	return false;
}
