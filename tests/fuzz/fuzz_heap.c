/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps in any bytes: pages that the input has, at addresses where heaps, segments, LFH containers
 * and the PEB are looked for. Walks end, tell of nothing outside the process's half, and of every
 * block that it fits in the memory that it says. With the notes of a sweep they tell the same.
 */
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/swept_heaps.h"

#define PAGES_MAX   24
/* The last one, so that heaps can have all of the others. */
#define PEB_PAGE    (PAGES_MAX - 1)
#define BASE        UINT64_C(0x10000)
/* Segments of a segment heap begin at multiples of a MiB, and reach as far. */
#define WIDE_BASE   UINT64_C(0x100000)
#define WIDE_SIZE   UINT64_C(0x200000)
/* Blocks of one input: each takes 8 bytes of it at least, and can be told of in each heap. */
#define BLOCKS_MOST (PAGES_MAX * PAGE_SIZE * PAGES_MAX)

struct input {
	uint8_t pages[PAGES_MAX][PAGE_SIZE];
	uint32_t there; /* bits */
};

static struct input in;
static uint64_t base, size_most;
static size_t told;

static const uint8_t *page_of(void *context, uint64_t va)
{
	const uint64_t n = (va - base) / PAGE_SIZE;

	MUST(va % PAGE_SIZE == 0);
	return va >= base && n < PAGES_MAX && in.there >> n & 1 ? in.pages[n] : NULL;
}

static enum status take(void *context, const struct heap_allocation *a, struct err *e)
{
	MUST(a->place < HEAP_PLACES && a->state < HEAP_STATES);
	MUST(a->address >= BASE && a->address < UINT64_C(1) << 47);
	MUST(!a->has_requested || (a->state == BLOCK_BUSY && a->requested <= a->size + 8));
	MUST(a->place == PLACE_VIRTUAL || a->size <= size_most);
	MUST(++told < BLOCKS_MOST);
	return ST_OK;
}

static void walk(const struct heap_sources *s)
{
	const struct heap_visitor v = { take, NULL };
	struct heaps *h;

	MUST(!heaps_open(s, &h, NULL));
	for (size_t i = 0; i < heaps_count(h); i++) {
		const struct heap_info *x = heaps_at(h, i);
		struct heap_stats stats;

		MUST(x->kind < HEAP_KINDS && x->key_from < HEAP_KEYS);
		MUST(!i || x[-1].address < x->address);
		told = 0;
		MUST(!heaps_walk(h, i, &v, &stats, NULL));
		MUST(!stats.cut);
	}
	heaps_close(h);
}

/* It lists what the first pages may be, and what the input says. */
static void make_peb(bool wide, bool page_heap)
{
	uint8_t *peb = in.pages[PEB_PAGE];
	const uint64_t array = base + PEB_PAGE * PAGE_SIZE + 0x800;

	in.there |= 1U << PEB_PAGE;
	if (page_heap)
		put_le32(peb + (wide ? 0xbc : 0x68), GLOBAL_FLAG_PAGE_HEAP);
	put_le32(peb + (wide ? 0xe8 : 0x88), 3);
	put_le32(peb + (wide ? 0xf0 : 0x90), (uint32_t)array);
	for (size_t i = 0; i < 3; i++)
		put_le32(peb + 0x800 + i * (wide ? 8 : 4), (uint32_t)(base + 8 * i * PAGE_SIZE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const struct memory_view m = { page_of, NULL };
	struct range at[2];
	struct range_list ranges = { .at = at, .count = 1 };
	struct heap_sources s = { .memory = &m, .ranges = &ranges };
	const uint8_t how = cur_u8(&c);

	memset(&in, 0, sizeof(in));
	base = how & 8 ? WIDE_BASE : BASE;
	size_most = how & 8 ? WIDE_SIZE : (uint64_t)PAGES_MAX * PAGE_SIZE;
	in.there = cur_le32(&c);
	for (size_t i = 0; i < PEB_PAGE; i++)
		if (in.there >> i & 1 && c.left) {
			const size_t part = MIN(c.left, PAGE_SIZE);

			memcpy(in.pages[i], cur_bytes(&c, part), part);
		}
	make_peb(how & 1, how & 16);
	*(how & 1 ? &s.peb : &s.peb32) = base + PEB_PAGE * PAGE_SIZE;
	at[0] = (struct range){ base, base + PEB_PAGE * PAGE_SIZE - 1 };
	if (how & 2) {
		at[0].last = base + 16 * PAGE_SIZE - 1;
		at[1] = (struct range){ base + 16 * PAGE_SIZE, base + PEB_PAGE * PAGE_SIZE - 1 };
		ranges.count = 2;
	}
	if (how & 8) {
		at[0].last = base + WIDE_SIZE - 1;
		ranges.count = 1;
	}
	s.not_vads = how & 4;
	walk(&s);
	MUST(swept_heaps_agree(&s, NULL, NULL));
	return 0;
}
