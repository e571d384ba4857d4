/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for leaks over blocks and pages of the input: what it says of each block is what a
 * search says that has no lists and no order, and goes over everything until nothing changes.
 */
#include <string.h>

#include "agent/examine/heap/leaks.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"
#include "tests/fuzz/fuzz.h"

#define HEAP       UINT64_C(0x20000)
#define HEAP_PAGES 6
#define ROOTS      UINT64_C(0x80000)
#define ROOT_PAGES 3
#define PAGES      (HEAP_PAGES + ROOT_PAGES)
#define BLOCKS     24
#define WORDS      96

static struct {
	uint8_t bytes[PAGES][PAGE_SIZE];
	uint8_t is[PAGES]; /* enum leak_page */
	struct heap_allocation blocks[BLOCKS];
	size_t count;
	bool narrow;
} in;

static uint64_t va_of(size_t page)
{
	return page < HEAP_PAGES ? HEAP + page * PAGE_SIZE
				 : ROOTS + (page - HEAP_PAGES) * PAGE_SIZE;
}

static enum leak_page kind_of(uint64_t va, const uint8_t **ret)
{
	MUST(va % PAGE_SIZE == 0);
	for (size_t i = 0; i < PAGES; i++)
		if (va_of(i) == va) {
			if (in.is[i] == LEAK_PAGE_THERE)
				*ret = in.bytes[i];
			return (enum leak_page)in.is[i];
		}
	return LEAK_PAGE_NONE;
}

/* From the last page to the first: no order is promised. */
static enum status sweep(void *context, const struct range_list *ranges,
			 const struct leak_visitor *v, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = ranges->count; i-- > 0;)
		for (uint64_t end = ranges->at[i].last + 1; end > ranges->at[i].first && !st;
		     end -= PAGE_SIZE) {
			const uint8_t *bytes = NULL;
			const enum leak_page is = kind_of(end - PAGE_SIZE, &bytes);

			st = v->pages(v->context, end - PAGE_SIZE, 1, is, bytes, e);
		}
	return st;
}

static uint64_t length(const struct heap_allocation *a)
{
	return a->has_requested ? a->requested : a->size;
}

/* By rising address, none over another: what the caller has to see to. */
static void take_blocks(struct cursor *c)
{
	const uint64_t end = HEAP + HEAP_PAGES * PAGE_SIZE;
	uint64_t at = HEAP;

	for (size_t n = cur_u8(c) % (BLOCKS + 1); in.count < n; in.count++) {
		struct heap_allocation *a = &in.blocks[in.count];
		const uint8_t gap = cur_u8(c);
		const uint16_t size = cur_le16(c);

		at += 1 + gap;
		if (at >= end)
			return;
		*a = (struct heap_allocation){ .address = at, .state = BLOCK_BUSY };
		a->size = MIN(size % (2 * PAGE_SIZE), end - at);
		a->has_requested = size >> 15;
		a->requested = a->size - MIN(a->size, gap % 8);
		at += a->size;
	}
}

/* Words anywhere, most of them into or near a block. */
static void take_words(struct cursor *c)
{
	for (size_t n = 0; c->left >= 5 && n < WORDS; n++) {
		const size_t page = cur_u8(c) % PAGES;
		const size_t off = cur_le16(c) % (PAGE_SIZE / 4 - 1) * 4;
		const uint8_t block = cur_u8(c), inside = cur_u8(c);
		uint64_t value = block;

		if (in.count && block < 0xf0)
			value = in.blocks[block % in.count].address + inside -
				(inside > 0xf0 ? 0x100 : 0);
		if (inside % 3 || !in.narrow)
			put_le64(in.bytes[page] + off, value);
		else
			put_le32(in.bytes[page] + off, (uint32_t)value);
	}
}

static bool is_in(uint64_t va, uint64_t first, uint64_t end)
{
	return va >= first && va < end;
}

/* The block that the word leads to, or in.count; blocks that touch leave it to the later one. */
static size_t target(uint64_t word)
{
	for (size_t i = in.count; i;) {
		i--;
		if (word >= in.blocks[i].address)
			return word - in.blocks[i].address <= length(&in.blocks[i]) ? i : in.count;
	}
	return in.count;
}

/* False: what it leads to was known. */
static bool apply(uint64_t word, uint8_t *marks)
{
	const size_t t = target(word);
	const uint8_t as =
		t < in.count && in.blocks[t].address == word ? LEAK_REACHED : LEAK_INSIDE;

	if (t == in.count || marks[t] >= as)
		return false;
	marks[t] = as;
	return true;
}

/* The word lies in a root, or all of it in a block that was reached. */
static bool reached_here(uint64_t va, size_t size, const uint8_t *marks)
{
	if (va >= ROOTS)
		return true;
	for (size_t i = 0; i < in.count; i++) {
		const uint64_t first = in.blocks[i].address, end = first + length(&in.blocks[i]);

		if (marks[i] && is_in(va, first, end) && va + size <= end)
			return true;
	}
	return false;
}

static void search_slowly(uint8_t marks[static BLOCKS])
{
	bool changed = true;

	memset(marks, LEAK_UNREACHED, BLOCKS);
	while (changed) {
		changed = false;
		for (size_t p = 0; p < PAGES; p++)
			for (size_t off = 0; off < PAGE_SIZE && in.is[p] == LEAK_PAGE_THERE;
			     off += 4) {
				const uint8_t *at = in.bytes[p] + off;
				const uint64_t va = va_of(p) + off;

				if (off % 8 == 0 && get_le64(at) && reached_here(va, 8, marks))
					changed |= apply(get_le64(at), marks);
				if (in.narrow && get_le32(at) && reached_here(va, 4, marks))
					changed |= apply(get_le32(at), marks);
			}
	}
}

/* The block that is not reached, and that all of the word lies in; or in.count. */
static size_t leaked_here(uint64_t va, size_t size, const uint8_t *marks)
{
	for (size_t i = 0; i < in.count; i++) {
		const uint64_t first = in.blocks[i].address, end = first + length(&in.blocks[i]);

		if (leak_is(marks[i]) && is_in(va, first, end) && va + size <= end)
			return i;
	}
	return in.count;
}

static void apply_leaked(uint64_t va, size_t size, uint64_t word, uint8_t *marks)
{
	const size_t from = leaked_here(va, size, marks), t = target(word);

	if (from < in.count && t < in.count && t != from && marks[t] == LEAK_UNREACHED)
		marks[t] = LEAK_BY_LEAKED;
}

static void mark_children_slowly(uint8_t marks[static BLOCKS])
{
	for (size_t p = 0; p < PAGES; p++)
		for (size_t off = 0; off < PAGE_SIZE && in.is[p] == LEAK_PAGE_THERE; off += 4) {
			const uint8_t *at = in.bytes[p] + off;
			const uint64_t va = va_of(p) + off;

			if (off % 8 == 0 && get_le64(at))
				apply_leaked(va, 8, get_le64(at), marks);
			if (in.narrow && get_le32(at))
				apply_leaked(va, 4, get_le32(at), marks);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	struct range at = { ROOTS, ROOTS + ROOT_PAGES * PAGE_SIZE - 1 };
	const struct range_list roots = { .at = &at, .count = 1 };
	struct block_list list = { .at = in.blocks };
	struct leak_sources s = { .sweep = sweep, .blocks = &list, .roots = &roots };
	struct leak_stats stats;
	uint8_t *marks, slow[BLOCKS];

	memset(&in, 0, sizeof(in));
	in.narrow = cur_u8(&c) & 1;
	for (size_t i = 0, bits = cur_le16(&c); i < PAGES; i++, bits >>= 1)
		in.is[i] = bits & 1 ? (i % 2 ? LEAK_PAGE_LOST : LEAK_PAGE_NONE) : LEAK_PAGE_THERE;
	take_blocks(&c);
	take_words(&c);
	list.count = in.count;
	s.narrow = in.narrow;
	MUST(!leaks_find(&s, &marks, &stats, NULL));
	search_slowly(slow);
	mark_children_slowly(slow);
	MUST(!in.count || !memcmp(marks, slow, in.count));
	MUST(stats.root_pages + stats.root_pages_lost <= ROOT_PAGES);
	MUST(stats.blocks_lost <= in.count);
	free(marks);
	return 0;
}
