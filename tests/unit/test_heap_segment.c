/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment heap in bytes made here, with keys of its own: all of its blocks are listed, of each
 * layout; with pages lost or bytes changed, nothing is listed that is not there.
 */
#include "tests/unit/test.h"

#include "agent/examine/heap/heap.h"
#include "agent/examine/heap/heap_checks.h"
#include "tests/unit/sparse_view.h"

#define PEB        UINT64_C(0x7ff0000)
#define HEAP       UINT64_C(0x1c7a2340000)
#define FIRST      UINT64_C(0x1c7a2500000) /* segments of context 0 */
#define SECOND     UINT64_C(0x1c9b0300000)
#define WIDE       UINT64_C(0x1c7a5000000) /* and of context 1 */
#define LARGE      UINT64_C(0x1c7b1000000)
#define METADATA   UINT64_C(0x1c7a23a0000)
#define KEY        UINT64_C(0x8f3b9d105c27e46a)
#define LFH_KEY    UINT32_C(0x71c2e95b)
#define UNIT       UINT64_C(0x1000)
#define BLOCKS_MAX 4096

/* Of _HEAP_SEG_CONTEXT; .size 0: there is none. */
struct context_kind {
	uint64_t size, list, lfh, vs, heap;
};

/* Of _HEAP_PAGE_RANGE_DESCRIPTOR. */
struct range_kind {
	uint64_t unused, units;
	bool short_unused;
	uint8_t free, plain, lfh, vs;
};

static const struct context_kind c17763 = { 0xc0, 0x48, 0x18, 0x20, 0x38 };
static const struct context_kind c17134 = { 0x78, 0x20, 0x50, 0x58, 0x70 };
static const struct context_kind c16299 = { 0x68, 0x20, 0x50, 0x58, 0x60 };
static const struct context_kind none = { 0 };
static const struct range_kind r16299 = { 4, 0x1f, false, 2, 3, 0xb, 0xf };
static const struct range_kind r14393 = { 6, 0x1b, true, 8, 0xe, 0xf, 0x2e };

struct kind {
	const char *name;
	const struct context_kind *c;
	const struct range_kind *r;
	uint64_t contexts, vs, lfh, large, vs_mark, bitmap, constant;
	bool whole;
};

#define SIGNED UINT64_C(0xa2e64eada2e64ead)

static const struct kind kinds[] = {
	{ "17763", &c17763, &r16299, 0x100, 0x280, 0x340, 0x48, 0x22, 0x30, SIGNED, false },
	{ "20348", &c17763, &r16299, 0x140, 0x2c0, 0x380, 0x48, 0x22, 0x30, SIGNED, false },
	{ "26100", &c17763, &r16299, 0x140, 0x2c0, 0x340, 0x48, 0x24, 0x40, 0, true },
	{ "17763-rtm", &c17763, &r16299, 0x100, 0x280, 0x300, 0x48, 0x22, 0x30, SIGNED, false },
	{ "17134", &c17134, &r16299, 0x70, 0x188, 0x200, 0x50, 0x22, 0x30, SIGNED, false },
	{ "16299", &c16299, &r16299, 0x70, 0x168, 0x1e0, 0x50, 0x22, 0x30, SIGNED, false },
	{ "14393", &none, &r14393, 0, 0xb0, 0x120, 0x38, 0x22, 0x30, SIGNED, false },
	/* Signatures that no constant explains. */
	{ "26100", &c17763, &r16299, 0x140, 0x2c0, 0x340, 0x48, 0x24, 0x40,
	  UINT64_C(0x1234567812345678), true },
};

/* Those whose key is known where they are whole. */
#define SIGNED_KINDS 7

struct setup {
	const struct kind *k;
	struct sparse memory;
	struct range_list ranges;
	struct heap_allocation truth[BLOCKS_MAX], at[BLOCKS_MAX];
	size_t truths, count;
	struct heap_stats stats;
	struct heap_info info;
	size_t heaps;
};

static void truth(struct setup *s, uint64_t address, uint64_t size, uint64_t requested,
		  enum heap_place place, bool busy)
{
	assert_true(s->truths < BLOCKS_MAX);
	s->truth[s->truths++] = (struct heap_allocation){
		.address = address,
		.size = size,
		.requested = busy ? requested : 0,
		.place = place,
		.state = busy ? BLOCK_BUSY : BLOCK_FREE,
	};
}

static void put_u8(struct setup *s, uint64_t va, uint8_t v)
{
	sparse_put(&s->memory, va, &v, 1);
}

static void put_list(struct setup *s, uint64_t head, const uint64_t *at, size_t count)
{
	uint64_t before = head;

	for (size_t i = 0; i <= count; i++) {
		const uint64_t next = i < count ? at[i] : head;

		sparse_u64(&s->memory, before, next);
		sparse_u64(&s->memory, next + 8, before);
		before = next;
	}
}

static uint64_t context_of(const struct setup *s, unsigned i)
{
	return HEAP + s->k->contexts + s->k->c->size * i;
}

static void put_context(struct setup *s, unsigned i, uint8_t shift, const uint64_t *segments,
			size_t count)
{
	const uint64_t c = context_of(s, i);
	const struct context_kind *k = s->k->c;
	const uint64_t list = k->size ? c + k->list : HEAP + 0x60;

	if (k->size) {
		sparse_u64(&s->memory, c, ~((UINT64_C(256) << shift) - 1));
		put_u8(s, c + 8, shift);
		put_u8(s, c + 9, (uint8_t)(shift - 12));
		put_u8(s, c + 0xa, i ? 1 : 2);
		sparse_u64(&s->memory, c + k->lfh, HEAP + s->k->lfh);
		sparse_u64(&s->memory, c + k->vs, HEAP + s->k->vs);
		sparse_u64(&s->memory, c + k->heap, HEAP);
	} else { /* BackendCtx of both */
		sparse_u64(&s->memory, HEAP + s->k->vs + 0x38, HEAP);
		sparse_u64(&s->memory, HEAP + s->k->lfh, HEAP);
	}
	sparse_u64(&s->memory, list + 0x10, count);
	for (size_t n = 0; n < count; n++) {
		sparse_page(&s->memory, segments[n] + 0x1000);
		sparse_u64(&s->memory, segments[n] + 0x10, segments[n] ^ c ^ KEY ^ s->k->constant);
	}
	put_list(s, list, segments, count);
}

/* What begins with unit `index` of a segment. */
static uint64_t put_range(struct setup *s, uint64_t segment, unsigned index, unsigned units,
			  uint8_t shift, uint8_t flags, uint32_t unused)
{
	const uint64_t at = segment + ((uint64_t)index << shift);
	const uint64_t d = segment + UINT64_C(0x20) * index;
	const struct range_kind *r = s->k->r;

	if (r->short_unused)
		sparse_u16(&s->memory, d + r->unused, (uint16_t)unused);
	else
		sparse_u32(&s->memory, d + r->unused, unused);
	put_u8(s, d + 0x18, flags);
	put_u8(s, d + r->units, (uint8_t)units);
	for (unsigned i = 1; i < units; i++)
		put_u8(s, d + i * 0x20 + r->units, (uint8_t)i);
	return at;
}

static void put_unused(struct setup *s, uint64_t at, uint64_t size, uint64_t unused)
{
	if (unused == 1)
		put_u8(s, at + size - 1, 0x80);
	else if (unused)
		sparse_u16(&s->memory, at + size - 2, (uint16_t)unused);
}

static void put_lfh(struct setup *s, uint64_t segment, unsigned index, unsigned units,
		    uint16_t size)
{
	const uint64_t at = put_range(s, segment, index, units, 12, s->k->r->lfh, 0);
	const uint64_t page = s->k->whole ? at >> 12 : (uint32_t)at >> 12;
	uint16_t count = (uint16_t)((units * UNIT - s->k->bitmap - 16) / size), first, left = 0;

	for (;; count--) {
		first = (uint16_t)((s->k->bitmap + (count + 3) / 4 + 15) & ~UINT64_C(15));
		if (first + (uint64_t)count * size <= units * UNIT)
			break;
	}
	for (unsigned i = 0; i < units; i++)
		sparse_page(&s->memory, at + i * UNIT);
	for (unsigned i = 0; i < count; i++) {
		const uint64_t block = at + first + (uint64_t)i * size;
		const bool busy = i * 7 % 5 != 0;
		const uint64_t unused = i % 3 ? i % 14 : 0;

		left += !busy;
		truth(s, block, size, size - unused, PLACE_LFH, busy);
		if (!busy)
			continue;
		put_u8(s, at + s->k->bitmap + i / 4,
		       (uint8_t)(sparse_page(&s->memory, at)->bytes[s->k->bitmap + i / 4] |
				 (unused ? 3 : 1) << i % 4 * 2));
		put_unused(s, block, size, unused);
	}
	/* FreeCount: some builds count fewer than the bitmap has. */
	sparse_u16(&s->memory, at + 0x20, index % 4 ? left : 0);
	sparse_u16(&s->memory, at + 0x22, count);
	sparse_u32(&s->memory, at + 0x28,
		   (uint32_t)(size | (uint32_t)first << 16) ^ (uint32_t)page ^ LFH_KEY);
}

static void put_vs(struct setup *s, uint64_t segment, unsigned index, unsigned units, uint8_t shift)
{
	const uint64_t at = put_range(s, segment, index, units, shift, s->k->r->vs, 0);
	const uint64_t end = at + ((uint64_t)units << shift);
	const uint16_t size = (uint16_t)((end - at - 0x30) / 16);
	uint64_t prev = 0, random = at >> 12;
	bool busy_before = true;

	for (uint64_t va = at; va < end; va += PAGE_SIZE)
		sparse_page(&s->memory, va);
	sparse_u16(&s->memory, at + 0x20, size);
	sparse_u16(&s->memory, at + s->k->vs_mark, (size ^ 0x2bed) & 0x7fff);
	for (uint64_t c = at + 0x30, units_of; c < end; c += units_of * 16) {
		bool busy;
		uint64_t unused;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		units_of = 3 + (random >> 33) % 200;
		if (units_of * 16 + 64 > end - c)
			units_of = (end - c) / 16;
		busy = !busy_before || random >> 50 & 1;
		unused = random >> 40 & 1 ? (random >> 41) % 16 : 0;
		sparse_u64(&s->memory, c,
			   (units_of << 16 | prev << 32 | (uint64_t)busy << 48) ^ c ^ KEY);
		sparse_u32(&s->memory, c + 8, 0x5a | (busy && unused ? 0x100 : 0));
		if (busy)
			put_unused(s, c + 16, units_of * 16 - 16, unused);
		truth(s, c + 16, units_of * 16 - 16, units_of * 16 - 16 - unused, PLACE_VS, busy);
		prev = units_of;
		busy_before = busy;
	}
}

static void put_plain(struct setup *s, uint64_t segment, unsigned index, unsigned units,
		      uint8_t shift, uint32_t unused)
{
	const uint64_t at = put_range(s, segment, index, units, shift, s->k->r->plain, unused);
	const uint64_t size = (uint64_t)units << shift;

	truth(s, at, size, size - unused, PLACE_SEGMENT, true);
}

static void put_node(struct setup *s, uint64_t at, uint64_t parent, uint64_t left, uint64_t right,
		     uint64_t address, uint64_t pages, uint64_t unused)
{
	sparse_u64(&s->memory, at, left);
	sparse_u64(&s->memory, at + 8, right);
	sparse_u64(&s->memory, at + 0x10, parent | 1);
	sparse_u64(&s->memory, at + 0x18, address | unused);
	sparse_u64(&s->memory, at + 0x20, pages << 12);
	truth(s, address, pages * PAGE_SIZE, pages * PAGE_SIZE - unused, PLACE_LARGE, true);
}

static void init(struct setup *s, const struct kind *k)
{
	static const uint64_t small[] = { FIRST, SECOND };
	static const uint64_t wide[] = { WIDE };
	static const struct range ranges[] = {
		{ HEAP, HEAP + 0xffff },
		{ METADATA, METADATA + 0xffff },
		{ FIRST, FIRST + 0xfffff },
		{ SECOND, SECOND + 0xfffff },
		{ WIDE, WIDE + 0xffffff },
		{ LARGE, LARGE + 0xfffff },
		{ LARGE + 0x200000, LARGE + 0x2fffff },
	};
	const uint64_t n1 = METADATA + 0x40, n2 = METADATA + 0x1040, n3 = METADATA + 0x2040;
	struct err e = ERR_INIT;

	memset(s, 0, sizeof(*s));
	s->k = k;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		CHECK_OK(range_list_add(&s->ranges, ranges[i].first, ranges[i].last, &e), &e);
	range_list_tidy(&s->ranges, NULL);
	sparse_page(&s->memory, PEB);
	sparse_u64(&s->memory, PEB + 0x30, HEAP);
	sparse_u32(&s->memory, PEB + 0xe8, 1);
	sparse_u64(&s->memory, PEB + 0xf0, PEB + 0x800);
	sparse_u64(&s->memory, PEB + 0x800, HEAP);
	sparse_u32(&s->memory, HEAP + 0x10, 0xddeeddee);
	put_context(s, 0, 12, small, ARRAY_SIZE(small));
	if (k->c->size)
		put_context(s, 1, 16, wide, ARRAY_SIZE(wide));
	put_lfh(s, FIRST, 2, 4, 0x30);
	put_lfh(s, FIRST, 6, 8, 0x120);
	put_vs(s, FIRST, 14, 16, 12);
	put_plain(s, FIRST, 30, 40, 12, 0xf00);
	put_range(s, FIRST, 70, 20, 12, k->r->free, 0);
	put_lfh(s, FIRST, 90, 1, 0x10);
	put_vs(s, FIRST, 150, 10, 12);
	put_lfh(s, SECOND, 2, 16, 0x400);
	put_plain(s, SECOND, 18, 200, 12, 0);
	put_vs(s, SECOND, 218, 38, 12);
	if (k->c->size) {
		put_plain(s, WIDE, 1, 3, 16, 0x8001);
		put_plain(s, WIDE, 4, 252, 16, 5);
	}
	put_node(s, n2, 0, n1, n3, LARGE + 0x80000, 0x20, 0x123);
	put_node(s, n1, n2, 0, 0, LARGE, 0x80, 0);
	put_node(s, n3, n2, 0, 0, LARGE + 0x200000, 0x100, 0xfff);
	sparse_u64(&s->memory, HEAP + k->large, n2);
	sparse_u64(&s->memory, HEAP + k->large + 0x18, 0x1a0);
}

static void deinit(struct setup *s)
{
	sparse_deinit(&s->memory);
	range_list_deinit(&s->ranges);
}

static enum status take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct setup *s = context;

	(void)e;
	assert_true(s->count < BLOCKS_MAX);
	s->at[s->count++] = *a;
	return ST_OK;
}

static void list(struct setup *s)
{
	const struct memory_view m = sparse_view(&s->memory);
	const struct heap_sources sources = { .memory = &m, .peb = PEB, .ranges = &s->ranges };
	const struct heap_visitor v = { take, s };
	struct heaps *h;
	struct err e = ERR_INIT;

	s->count = 0;
	CHECK_OK(heaps_open(&sources, &h, &e), &e);
	s->heaps = heaps_count(h);
	for (size_t i = 0; i < heaps_count(h); i++) {
		s->info = *heaps_at(h, i);
		CHECK_OK(heaps_walk(h, i, &v, &s->stats, &e), &e);
	}
	heaps_close(h);
}

static const struct heap_allocation *find(const struct setup *s, uint64_t address)
{
	for (size_t i = 0; i < s->truths; i++)
		if (s->truth[i].address == address)
			return &s->truth[i];
	return NULL;
}

/* How many were listed that are not there, or not so. */
static size_t invented(const struct setup *s)
{
	size_t wrong = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct heap_allocation *a = &s->at[i], *t = find(s, a->address);

		if (t && t->size == a->size && t->place == a->place && t->state == a->state &&
		    (!a->has_requested || t->requested == a->requested))
			continue;
		wrong++;
		print_message("wrong: 0x%llx %llu (%llu) %s %s\n", (unsigned long long)a->address,
			      (unsigned long long)a->size, (unsigned long long)a->requested,
			      heap_place_name(a->place), heap_state_name(a->state));
	}
	return wrong;
}

/* What nobody knows the kind of may be full of blocks. */
TEST(a_range_of_no_known_kind_is_missed)
{
	struct setup *s = malloc(sizeof(*s));

	assert_non_null(s);
	init(s, &kinds[0]);
	put_range(s, FIRST, 110, 4, 12, 0x07, 0);
	put_range(s, FIRST, 120, 0, 12, kinds[0].r->lfh, 0);
	list(s);
	assert_int_equal(invented(s), 0);
	assert_int_equal(s->count, s->truths);
	assert_int_equal(s->stats.contradictions, 2);
	assert_int_equal(s->stats.unlinked, 5 * UNIT);
	assert_false(heap_is_had(&s->info, &s->stats));
	deinit(s);
	free(s);
}

TEST(every_block_of_each_layout_is_listed)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct setup *s = malloc(sizeof(*s));

		assert_non_null(s);
		init(s, &kinds[k]);
		list(s);
		assert_int_equal(s->heaps, 1);
		assert_int_equal(s->info.kind, HEAP_SEGMENT);
		assert_string_equal(s->info.layout, kinds[k].name);
		assert_int_equal(s->info.refused, REFUSED_NOTHING);
		assert_int_equal(s->info.key_from, KEY_RECOVERED);
		if (k < SIGNED_KINDS)
			assert_int_equal(get_le64(s->info.key), KEY);
		assert_int_equal(invented(s), 0);
		assert_int_equal(s->count, s->truths);
		for (size_t i = 0; i < s->count; i++) {
			assert_false(s->at[i].island);
			assert_int_equal(s->at[i].has_requested, s->at[i].state == BLOCK_BUSY);
		}
		assert_int_equal(s->stats.segments, kinds[k].c->size ? 3 : 2);
		assert_int_equal(s->stats.contradictions, 0);
		assert_int_equal(s->stats.lost + s->stats.unlinked, 0);
		assert_int_equal(s->stats.containers_lost, 0);
		deinit(s);
		free(s);
	}
}

TEST(nothing_is_invented_where_pages_are_missing)
{
	static const unsigned percents[] = { 10, 30, 50, 90 };
	uint64_t random = 1;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
			struct setup *s = malloc(sizeof(*s));
			size_t listed = 0, all = 0;

			assert_non_null(s);
			init(s, &kinds[k]);
			for (int round = 0; round < 20; round++) {
				for (size_t p = 0; p < s->memory.count; p++) {
					random = random * UINT64_C(6364136223846793005) + 1;
					s->memory.at[p].lost = s->memory.at[p].va != PEB &&
							       (random >> 33) % 100 < percents[i];
				}
				list(s);
				assert_int_equal(invented(s), 0);
				listed += s->count;
				all += s->truths;
			}
			print_message("%s, %u %% of pages missing: %u of %u listed\n",
				      kinds[k].name, percents[i], (unsigned)listed, (unsigned)all);
			assert_true(percents[i] > 50 || listed);
			deinit(s);
			free(s);
		}
}

TEST(a_heap_whose_first_page_is_missing_is_known_by_its_segments)
{
	struct setup *s = malloc(sizeof(*s));
	struct heap_info info;
	const uint64_t other = HEAP + 0x100000;
	uint64_t segment = UINT64_C(0x1c7c0000000);
	struct err e = ERR_INIT;

	assert_non_null(s);
	init(s, &kinds[0]);
	/* Another heap's segment; that heap's own page is not there. */
	CHECK_OK(range_list_add(&s->ranges, other, other + 0xffff, &e), &e);
	CHECK_OK(range_list_add(&s->ranges, segment, segment + 0xfffff, &e), &e);
	range_list_tidy(&s->ranges, NULL);
	s->truths = 0;
	put_vs(s, segment, 2, 16, 12);
	sparse_page(&s->memory, segment + 0x1000);
	sparse_u64(&s->memory, segment + 0x10, segment ^ (other + 0x100) ^ KEY ^ kinds[0].constant);
	list(s);
	assert_int_equal(s->heaps, 2);
	info = s->info;
	assert_int_equal(info.address, other);
	assert_int_equal(info.kind, HEAP_SEGMENT);
	assert_false(info.head);
	assert_true(info.found);
	assert_int_equal(s->stats.blocks[PLACE_VS][BLOCK_BUSY].blocks +
				 s->stats.blocks[PLACE_VS][BLOCK_FREE].blocks,
			 s->truths);
	deinit(s);
	free(s);
}

/* Its page leads to large blocks, and each of their nodes to what is below it. */
TEST(large_blocks_that_nothing_leads_to_are_not_had)
{
	struct setup *s = malloc(sizeof(*s));

	assert_non_null(s);
	init(s, &kinds[0]);
	list(s);
	assert_true(heap_is_had(&s->info, &s->stats));
	sparse_lose(&s->memory, METADATA + 0x2000, true);
	sparse_u64(&s->memory, HEAP + 0x60, 1); /* counted later than the tree was written */
	list(s);
	assert_true(s->stats.lost);
	assert_false(heap_is_had(&s->info, &s->stats));
	sparse_lose(&s->memory, METADATA + 0x2000, false);
	sparse_lose(&s->memory, HEAP, true);
	list(s);
	assert_int_equal(s->stats.segments, 3);
	assert_int_equal(heap_stats_lost(&s->stats), 0);
	assert_false(heap_is_had(&s->info, &s->stats));
	deinit(s);
	free(s);
}

/* A head that no layout fits: which check failed is said, and nothing of the heap is listed. */
TEST(what_no_layout_fits_is_refused_by_the_check_that_failed)
{
	static const struct {
		uint64_t at[2];
		uint64_t value;
		enum heap_refusal refused;
		const char *nearest;
	} cases[] = {
		{ { 0x100 + 0x38 }, HEAP + 0x1000, REFUSED_CONTEXT, NULL },
		{ { 0x100 + 0x18, 0x1c0 + 0x18 }, HEAP + 0x3c0, REFUSED_PARTS, "17763" },
		{ { 0x100 + 0x20 }, 0, REFUSED_PARTS, "17763" },
		{ { 0x100 + 0x20 }, HEAP + 0x2c0, REFUSED_PARTS, "17763" },
		{ { 0x1c0 }, ~UINT64_C(0xfffff), REFUSED_UNITS, "17763" },
		{ { 0x100 + 8 }, 0x20000 | 31, REFUSED_UNITS, "17763" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct setup *s = malloc(sizeof(*s));

		assert_non_null(s);
		init(s, &kinds[0]);
		for (size_t k = 0; k < ARRAY_SIZE(cases[i].at) && cases[i].at[k]; k++)
			sparse_u64(&s->memory, HEAP + cases[i].at[k], cases[i].value);
		list(s);
		assert_int_equal(s->info.refused, cases[i].refused);
		if (cases[i].nearest)
			assert_string_equal(s->info.nearest, cases[i].nearest);
		else
			assert_null(s->info.nearest);
		assert_null(s->info.layout);
		assert_true(s->info.experimental);
		assert_int_equal(s->count, 0);
		assert_false(heap_is_had(&s->info, &s->stats));
		deinit(s);
		free(s);
	}
}

TEST(a_second_context_may_not_be_set_up)
{
	for (size_t k = 0; k < SIGNED_KINDS; k++) {
		struct setup *s = malloc(sizeof(*s));
		const uint64_t second = HEAP + kinds[k].contexts + kinds[k].c->size;

		assert_non_null(s);
		init(s, &kinds[k]);
		if (kinds[k].c->size) {
			sparse_u64(&s->memory, second, 0);
			sparse_u64(&s->memory, second + kinds[k].c->heap, 0);
			s->truths -= 2 + 3; /* what the large segment has, and large blocks */
			memmove(&s->truth[s->truths], &s->truth[s->truths + 2],
				3 * sizeof(s->truth[0]));
			s->truths += 3;
		}
		list(s);
		assert_string_equal(s->info.layout, kinds[k].name);
		assert_int_equal(invented(s), 0);
		assert_int_equal(s->count, s->truths);
		deinit(s);
		free(s);
	}
}

/* The head of one build, and segments of another: nothing of it is believed. */
TEST(segments_that_deny_the_layout_are_refused)
{
	const struct kind mixed[] = {
		{ "17134", &c17134, &r14393, 0x70, 0x188, 0x200, 0x50, 0x22, 0x30, SIGNED, false },
		{ "14393", &none, &r16299, 0, 0xb0, 0x120, 0x38, 0x22, 0x30, SIGNED, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(mixed); i++) {
		struct setup *s = malloc(sizeof(*s));

		assert_non_null(s);
		init(s, &mixed[i]);
		list(s);
		assert_int_equal(s->info.refused, REFUSED_RANGES);
		assert_string_equal(s->info.nearest, mixed[i].name);
		assert_null(s->info.layout);
		assert_int_equal(s->count, 0);
		assert_false(heap_is_had(&s->info, &s->stats));
		deinit(s);
		free(s);
	}
}

/* A key that is another one than what makes the blocks is no key of theirs. */
TEST(subsegments_that_no_key_explains_are_refused)
{
	static const uint64_t vs[] = { FIRST + 14 * UNIT, FIRST + 150 * UNIT, SECOND + 218 * UNIT };
	static const uint64_t lfh[] = { FIRST + 2 * UNIT, FIRST + 6 * UNIT, FIRST + 90 * UNIT,
					SECOND + 2 * UNIT };
	struct setup *s = malloc(sizeof(*s));

	assert_non_null(s);
	init(s, &kinds[0]);
	list(s);
	assert_int_equal(s->info.refused, REFUSED_NOTHING);
	assert_false(s->info.experimental);
	for (size_t i = 0; i < ARRAY_SIZE(lfh); i++) /* offsets */
		sparse_u32(&s->memory, lfh[i] + 0x28, (uint32_t)(0x9e3779b9 * (i + 1)));
	list(s);
	assert_int_equal(s->info.refused, REFUSED_OFFSETS);
	assert_int_equal(s->stats.containers_lost, ARRAY_SIZE(lfh));
	assert_int_equal(invented(s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(vs); i++) /* the first chunk's sizes */
		sparse_u64(&s->memory, vs[i] + 0x30, UINT64_C(0x0123456789abcdef) * (i + 1));
	list(s);
	assert_int_equal(s->info.refused, REFUSED_CHUNKS);
	assert_int_equal(invented(s), 0);
	assert_false(heap_is_had(&s->info, &s->stats));
	deinit(s);
	free(s);
}

/* Blocks that have room begin with a word that says what lies before their data. */
static void pad(struct setup *s)
{
	for (size_t i = 0; i < s->truths; i++) {
		struct heap_allocation *t = &s->truth[i];
		const uint64_t padding = t->requested > 0xff008 ? 0x40 : 0x10;

		if (t->state != BLOCK_BUSY || t->requested <= padding)
			continue;
		sparse_u64(&s->memory, t->address, padding);
		t->address += padding;
		t->size -= padding;
		t->requested -= padding;
	}
}

TEST(blocks_with_a_header_before_their_data)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct setup *s = malloc(sizeof(*s));
		size_t large = 0;

		assert_non_null(s);
		init(s, &kinds[k]);
		pad(s);
		list(s);
		assert_int_equal(invented(s), 0);
		assert_int_equal(s->count, s->truths);
		assert_int_equal(s->stats.contradictions, 0);
		for (size_t i = 0; i < s->count; i++)
			large += s->at[i].state == BLOCK_BUSY && s->at[i].requested > 0xfeff8;
		assert_true(!kinds[k].c->size || large);
		deinit(s);
		free(s);
	}
}

/* A program whose blocks begin with such a word now and then has no such headers. */
TEST(some_blocks_that_begin_with_the_word_have_no_header)
{
	struct setup *s = malloc(sizeof(*s));

	assert_non_null(s);
	init(s, &kinds[0]);
	for (size_t i = 0; i < s->truths; i += 3)
		if (s->truth[i].state == BLOCK_BUSY && s->truth[i].requested >= 0x10)
			sparse_u64(&s->memory, s->truth[i].address, 0x10);
	list(s);
	assert_int_equal(invented(s), 0);
	assert_int_equal(s->count, s->truths);
	deinit(s);
	free(s);
}

static void no_overlaps(const struct setup *s)
{
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(s->at[i].address + s->at[i].size <= s->at[k].address ||
				    s->at[k].address + s->at[k].size <= s->at[i].address);
}

/* The one head there is; so the key is known by chunks, and the heap by its segments. */
TEST(without_any_head_the_key_comes_from_chunks)
{
	for (size_t k = 0; k < SIGNED_KINDS; k++) {
		struct setup *s = malloc(sizeof(*s));
		size_t own = 0;

		assert_non_null(s);
		init(s, &kinds[k]);
		sparse_lose(&s->memory, HEAP, true);
		list(s);
		assert_int_equal(s->heaps, 1);
		assert_int_equal(s->info.address, HEAP);
		assert_int_equal(s->info.kind, HEAP_SEGMENT);
		assert_false(s->info.head);
		assert_null(s->info.layout);
		assert_int_equal(invented(s), 0);
		for (size_t i = 0; i < s->truths; i++)
			own += s->truth[i].place != PLACE_LARGE;
		assert_int_equal(s->count, own);
		deinit(s);
		free(s);
	}
}

/* Bytes of all that is no block's data, changed: walks end, and say of what they cannot confirm. */
TEST(hostile_heads_lists_and_trees_end)
{
	static const struct {
		uint64_t at, value;
		size_t lies; /* blocks that are elsewhere then, as far as anybody can tell */
	} changes[] = {
		{ FIRST, FIRST }, /* lists in circles */
		{ FIRST + 8, SECOND },
		{ SECOND, FIRST },
		{ METADATA + 0x1040, METADATA + 0x1040 }, /* trees in circles */
		{ METADATA + 0x1048, METADATA + 0x40 },
		{ METADATA + 0x40, METADATA + 0x1040 },
		{ METADATA + 0x1040 + 0x18, LARGE, 1 }, /* two blocks, one place */
		{ METADATA + 0x1040 + 0x18, FIRST },    /* where a segment is */
		{ METADATA + 0x1040 + 0x20, UINT64_MAX },
		{ METADATA + 0x2040 + 0x20, UINT64_C(0x101) << 12 }, /* past the range's end */
		{ HEAP + 0x60, UINT64_MAX },
		{ FIRST + 2 * 0x20 + 0x18, UINT64_C(0xff0000000000000b) },  /* units past the end */
		{ FIRST + 2 * 0x20 + 0x18, UINT64_C(0x000000000000000f) },  /* none */
		{ FIRST + 2 * 0x20 + 0x18, UINT64_C(0x040000000000000f) },  /* LFH as VS */
		{ FIRST + 14 * 0x20 + 0x18, UINT64_C(0x100000000000000b) }, /* and VS as LFH */
		{ FIRST + 0x2000 + 0x20, UINT64_C(0xffffffffffffffff) },    /* blocks, free ones */
		{ FIRST + 0x2000 + 0x28, UINT64_C(0) },
		{ FIRST + 14 * UNIT + 0x20, UINT64_C(0) },
		{ FIRST + 14 * UNIT + 0x30, UINT64_C(0) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct setup *s = malloc(sizeof(*s));

		assert_non_null(s);
		init(s, &kinds[0]);
		sparse_u64(&s->memory, changes[i].at, changes[i].value);
		list(s);
		if (invented(s) != changes[i].lies)
			fail_msg("change %zu: listed what is not there", i);
		no_overlaps(s);
		assert_true(s->count <= s->truths);
		assert_true(s->memory.asked < 2000000);
		deinit(s);
		free(s);
	}
}

/* A block of the process that looks like a segment of its heap does not become one. */
TEST(a_segment_that_its_signature_denies_is_not_walked)
{
	struct setup *s = malloc(sizeof(*s));

	assert_non_null(s);
	init(s, &kinds[1]);
	sparse_u64(&s->memory, SECOND + 0x10, SECOND ^ KEY);
	list(s);
	assert_int_equal(s->stats.segments, 2);
	assert_int_equal(invented(s), 0);
	deinit(s);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_of_no_known_kind_is_missed),
		cmocka_unit_test(every_block_of_each_layout_is_listed),
		cmocka_unit_test(nothing_is_invented_where_pages_are_missing),
		cmocka_unit_test(a_heap_whose_first_page_is_missing_is_known_by_its_segments),
		cmocka_unit_test(large_blocks_that_nothing_leads_to_are_not_had),
		cmocka_unit_test(without_any_head_the_key_comes_from_chunks),
		cmocka_unit_test(what_no_layout_fits_is_refused_by_the_check_that_failed),
		cmocka_unit_test(a_second_context_may_not_be_set_up),
		cmocka_unit_test(segments_that_deny_the_layout_are_refused),
		cmocka_unit_test(subsegments_that_no_key_explains_are_refused),
		cmocka_unit_test(blocks_with_a_header_before_their_data),
		cmocka_unit_test(some_blocks_that_begin_with_the_word_have_no_header),
		cmocka_unit_test(hostile_heads_lists_and_trees_end),
		cmocka_unit_test(a_segment_that_its_signature_denies_is_not_walked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
