/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated heaps, judged by themselves: that bytes and truth say the same, by the documented
 * layouts of 7 and of 10 x64 and x86. Offsets are written out here once more, apart from the
 * writer's tables.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/simulator/heap.h"
#include "agent/simulator/heap_dns.h"
#include "agent/simulator/page.h"
#include "formats/base/bytes.h"

#define BASE  UINT64_C(0x236c0350000)
#define BASE4 UINT64_C(0x02d40000)

struct heap {
	struct sim_heap h;
	struct sim_heap_plan plan;
};

static const struct sim_heap_plan mixed = { .seed = 7,
					    .allocations = 6000,
					    .churn = 30,
					    .lfh = 60,
					    .holes = 4,
					    .segments = 3,
					    .virtual_blocks = 3,
					    .leaks = 30,
					    .index = 2,
					    .user_context = 0x1230 };

static struct heap build(enum sim_heap_layout layout, bool x86, struct sim_heap_plan plan)
{
	struct err e = ERR_INIT;
	struct heap ret = { 0 };

	plan.layout = layout;
	plan.x86 = x86;
	plan.base = x86 ? BASE4 : BASE;
	ret.plan = plan;
	CHECK_OK(sim__heap_build(&plan, &ret.h, &e), &e);
	return ret;
}

/* NULL: the page is not there. */
static const uint8_t *at(const struct heap *h, uint64_t va)
{
	for (size_t i = 0; i < h->h.region_count; i++) {
		const struct sim_heap_region *r = &h->h.regions[i];
		const uint64_t off = va - r->va;

		if (va >= r->va && off < (uint64_t)r->pages << PAGE_SHIFT)
			return r->committed[off >> PAGE_SHIFT] ? r->bytes + off : NULL;
	}
	return NULL;
}

static uint64_t word(const struct heap *h, uint64_t va)
{
	const uint8_t *p = at(h, va);

	assert_non_null(p);
	return h->plan.x86 ? get_le32(p) : get_le64(p);
}

static unsigned by(const struct heap *h, unsigned wide, unsigned narrow)
{
	return h->plan.x86 ? narrow : wide;
}

/* A header of the back end, decoded. */
struct header {
	uint32_t size, previous;
	uint8_t flags, tag, segment, unused;
	bool right;
};

static struct header header_at(const struct heap *h, uint64_t va)
{
	const uint8_t *raw = at(h, va), *key = at(h, h->h.address + by(h, 0x88, 0x50));
	uint8_t d[8];

	assert_non_null(raw);
	for (size_t i = 0; i < sizeof(d); i++)
		d[i] = raw[by(h, 8, 0) + i] ^ key[i];
	return (struct header){ .size = get_le16(d),
				.flags = d[2],
				.tag = d[3],
				.previous = get_le16(d + 4),
				.segment = d[6],
				.unused = d[7],
				.right = h->plan.plain ? !d[3] : d[3] == (d[0] ^ d[1] ^ d[2]) };
}

static const struct sim_allocation *truth_of(const struct heap *h, uint64_t address, int kind)
{
	size_t low = 0, high = h->h.count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (h->h.allocations[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < h->h.count && h->h.allocations[low].address == address; low++)
		if (h->h.allocations[low].kind == kind)
			return &h->h.allocations[low];
	return NULL;
}

/* The hole at an address, by the descriptors of a segment. 0: there is none. */
static uint64_t hole_at(const struct heap *h, uint64_t segment, uint64_t va)
{
	const uint64_t head = segment + by(h, 0x60, 0x38);
	const unsigned p = by(h, 8, 4);

	for (uint64_t l = word(h, head); l != head; l = word(h, l)) {
		assert_int_equal(word(h, word(h, l) + p), l);
		if (word(h, l + 2 * p) == va)
			return word(h, l + 3 * p);
	}
	return 0;
}

/* What is left of the truth is told by it. */
struct seen {
	uint64_t busy, own, free, free_units, holes, segments;
};

static void walk_segment(const struct heap *h, uint64_t segment, struct seen *s)
{
	const unsigned unit = by(h, 16, 8);
	const uint64_t end = word(h, segment + by(h, 0x48, 0x28));
	uint64_t va = segment, uncommitted = 0;
	uint32_t previous = 0, holes = 0;
	bool last = false;

	assert_int_equal(get_le32(at(h, segment + by(h, 0x10, 8))), 0xffeeffee);
	assert_int_equal(word(h, segment + by(h, 0x28, 0x18)), h->h.address);
	assert_int_equal(word(h, segment + by(h, 0x30, 0x1c)), segment);
	assert_int_equal(word(h, segment + by(h, 0x40, 0x24)),
			 segment + (uint64_t)header_at(h, segment).size * unit);
	while (va < end) {
		const uint64_t hole = hole_at(h, segment, va);
		const struct sim_allocation *a;
		struct header c;

		if (hole) {
			assert_true(last);
			assert_null(at(h, va));
			uncommitted += hole;
			holes++;
			va += hole;
			previous = 0;
			continue;
		}
		c = header_at(h, va);
		last = c.flags & 0x10;
		assert_true(c.right);
		assert_int_equal(c.previous, previous);
		assert_in_range(c.size, 2, 0xfe00);
		a = truth_of(h, va + unit, SIM_HEAP_BACK_END);
		if (!a)
			a = truth_of(h, va + unit, SIM_HEAP_OWN);
		assert_non_null(a);
		assert_int_equal(a->block, (uint64_t)c.size * unit);
		assert_int_equal(a->busy, c.flags & 1);
		assert_true(!a->busy || a->requested == a->block - c.unused);
		s->busy += a->busy && a->kind == SIM_HEAP_BACK_END;
		s->own += a->kind == SIM_HEAP_OWN;
		s->free += !a->busy;
		s->free_units += a->busy ? 0 : c.size;
		previous = c.size;
		va += a->block;
	}
	assert_true(last);
	assert_int_equal(va, end);
	assert_int_equal(get_le32(at(h, segment + by(h, 0x50, 0x2c))), uncommitted >> PAGE_SHIFT);
	assert_int_equal(get_le32(at(h, segment + by(h, 0x54, 0x30))), holes);
	s->holes += holes;
	s->segments++;
}

/* Lengths, and that each neighbour points back. */
static uint64_t list_length(const struct heap *h, uint64_t head)
{
	const unsigned p = by(h, 8, 4);
	uint64_t n = 0;

	for (uint64_t l = head; n == 0 || l != head; n++) {
		assert_int_equal(word(h, word(h, l) + p), l);
		l = word(h, l);
	}
	return n - 1;
}

/* Where _HEAP has its lists. */
struct lists {
	unsigned signature, total_free, ucr, virtual_blocks, segments, free;
};

static struct lists lists_of(const struct heap *h)
{
	static const struct lists wide7 = { 0xa0, 0xc8, 0xf8, 0x118, 0x128, 0x158 };
	static const struct lists wide8 = { 0x98, 0xc0, 0xf0, 0x110, 0x120, 0x150 };
	static const struct lists narrow7 = { 0x64, 0x78, 0x90, 0xa0, 0xa8, 0xc4 };
	static const struct lists narrow8 = { 0x60, 0x74, 0x8c, 0x9c, 0xa4, 0xc0 };

	if (h->plan.layout == SIM_HEAP_7)
		return h->plan.x86 ? narrow7 : wide7;
	return h->plan.x86 ? narrow8 : wide8;
}

static uint64_t count(const struct heap *h, int kind, bool busy)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->h.count; i++)
		n += h->h.allocations[i].kind == kind && h->h.allocations[i].busy == busy;
	return n;
}

static void check_back_end(const struct heap *h)
{
	const struct lists at_head = lists_of(h);
	const uint64_t base = h->h.address;
	const uint64_t head = base + at_head.segments;
	struct seen s = { 0 };

	assert_int_equal(get_le32(at(h, base + at_head.signature)), 0xeeffeeff);
	for (uint64_t l = word(h, head); l != head; l = word(h, l))
		walk_segment(h, l - by(h, 0x18, 0x10), &s);
	assert_int_equal(s.busy, count(h, SIM_HEAP_BACK_END, true));
	assert_int_equal(s.free, count(h, SIM_HEAP_BACK_END, false));
	assert_int_equal(s.own, count(h, SIM_HEAP_OWN, true));
	assert_int_equal(s.holes, list_length(h, base + at_head.ucr));
	assert_int_equal(s.holes, h->h.holes);
	assert_int_equal(s.segments, h->h.segments);
	assert_int_equal(s.free, list_length(h, base + at_head.free));
	assert_int_equal(s.free_units, word(h, base + at_head.total_free));
	assert_int_equal(s.free_units, h->h.total_free);
	assert_int_equal(count(h, SIM_HEAP_VIRTUAL, true),
			 list_length(h, base + at_head.virtual_blocks));
}

static void check_virtual(const struct heap *h)
{
	const uint64_t head = h->h.address + lists_of(h).virtual_blocks;
	const unsigned p = by(h, 8, 4), data = by(h, 0x40, 0x20);

	for (uint64_t l = word(h, head); l != head; l = word(h, l)) {
		const struct sim_allocation *a = truth_of(h, l + data, SIM_HEAP_VIRTUAL);
		const struct header c = header_at(h, l + data - 2 * p);

		assert_non_null(a);
		assert_true(c.right);
		assert_int_equal(word(h, l + 4 * p), a->block);
		assert_int_equal(a->block - c.size, a->requested);
	}
}

/* Truth: within pages that are there, and nothing overlaps that is not inside user blocks. */
static void check_truth(const struct heap *h)
{
	uint64_t end = 0;

	for (size_t i = 0; i < h->h.count; i++) {
		const struct sim_allocation *a = &h->h.allocations[i];

		assert_non_null(at(h, a->address));
		if (a->kind == SIM_HEAP_OWN)
			continue;
		assert_non_null(at(h, a->address + a->requested - 1));
		assert_true(a->address >= end);
		end = a->address + a->requested;
	}
}

/* Pointers are where the truth says, and leaks are what is not reached. */
static void check_references(const struct heap *h)
{
	uint64_t leaked = 0, busy = 0;

	for (size_t i = 0; i < h->h.count; i++) {
		const struct sim_allocation *a = &h->h.allocations[i];
		uint64_t to;

		leaked += a->leaked;
		busy += a->busy && a->kind != SIM_HEAP_OWN;
		if (!a->referrer)
			continue;
		to = word(h, a->referrer);
		assert_true(to >= a->address && to - a->address < a->requested);
	}
	assert_int_equal(leaked, h->plan.leaks);
	assert_int_equal(busy, h->plan.allocations + h->plan.virtual_blocks);
	for (size_t i = 0; i < h->h.root_count; i++) {
		const struct sim_allocation *a = NULL;

		for (int kind = SIM_HEAP_BACK_END; !a && kind <= SIM_HEAP_PAGE; kind++)
			a = truth_of(h, h->h.roots[i], kind);
		assert_non_null(a);
		assert_true(a->busy && !a->leaked);
	}
}

/* The block in use or free that has the address. NULL: a header, or the heap's own. */
static const struct sim_allocation *holder(const struct heap *h, uint64_t va)
{
	size_t low = 0, high = h->h.count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (h->h.allocations[middle].address <= va)
			low = middle + 1;
		else
			high = middle;
	}
	while (low--) {
		const struct sim_allocation *a = &h->h.allocations[low];

		if (a->kind != SIM_HEAP_OWN)
			return va - a->address < a->requested ? a : NULL;
	}
	return NULL;
}

/* Every word of the heap's memory that leads to a leak is in a leak itself, or in a free block. */
TEST(nothing_but_leaks_and_free_blocks_leads_to_leaks)
{
	struct heap h = build(SIM_HEAP_17763, false, mixed);
	uint64_t from_leaks = 0, from_free = 0;

	for (size_t i = 0; i < h.h.region_count; i++) {
		const struct sim_heap_region *r = &h.h.regions[i];

		for (uint64_t at = 0; at < (uint64_t)r->pages << PAGE_SHIFT; at += 8) {
			const struct sim_allocation *to = holder(&h, get_le64(r->bytes + at));
			const struct sim_allocation *from;

			if (!to || !to->leaked)
				continue;
			from = holder(&h, r->va + at);
			assert_non_null(from);
			assert_true(from->leaked || !from->busy);
			from_leaks += from->leaked;
			from_free += !from->busy;
		}
	}
	assert_in_range(from_leaks, 1, mixed.leaks / 3);
	assert_int_equal(from_free, mixed.leaks);
	sim__heap_deinit(&h.h);
}

static void check_all(enum sim_heap_layout layout, bool x86, struct sim_heap_plan plan)
{
	struct heap h = build(layout, x86, plan);

	check_back_end(&h);
	check_virtual(&h);
	check_truth(&h);
	check_references(&h);
	sim__heap_deinit(&h.h);
}

TEST(chunks_lists_and_truth_agree)
{
	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int x86 = 0; x86 < 2; x86++)
			check_all((enum sim_heap_layout)layout, x86, mixed);
}

TEST(so_they_do_without_encoding)
{
	struct sim_heap_plan plan = mixed;

	plan.plain = true;
	check_all(SIM_HEAP_7, false, plan);
	check_all(SIM_HEAP_17763, false, plan);
}

TEST(so_they_do_for_many_seeds)
{
	struct sim_heap_plan plan = mixed;

	for (plan.seed = 100; plan.seed < 140; plan.seed++) {
		plan.allocations = 50 * (plan.seed - 99);
		plan.churn = (uint32_t)plan.seed % 45;
		plan.wiped = plan.seed % 3 == 0;
		plan.released = plan.seed % 5 ? 0 : 500;
		plan.commit = plan.seed % 2 ? 0x1000 : 0x10000;
		plan.reserve = plan.seed % 4 ? 0x10000 : 0x400000;
		check_all(SIM_HEAP_17763, false, plan);
	}
}

TEST(a_heap_of_every_kind_of_block)
{
	struct heap h = build(SIM_HEAP_17763, false, mixed);

	assert_in_range(count(&h, SIM_HEAP_BACK_END, true), 500, 6000);
	assert_in_range(count(&h, SIM_HEAP_BACK_END, false), 50, 6000);
	assert_in_range(count(&h, SIM_HEAP_LFH, true), 1000, 6000);
	assert_in_range(count(&h, SIM_HEAP_LFH, false), 50, 6000);
	assert_int_equal(count(&h, SIM_HEAP_VIRTUAL, true), 3);
	assert_true(h.h.segments >= 3);
	assert_true(h.h.holes > h.h.segments);
	sim__heap_deinit(&h.h);
}

TEST(the_same_plan_gives_the_same_bytes)
{
	struct heap x = build(SIM_HEAP_17763, false, mixed),
		    y = build(SIM_HEAP_17763, false, mixed);

	assert_int_equal(x.h.region_count, y.h.region_count);
	for (size_t i = 0; i < x.h.region_count; i++)
		assert_memory_equal(x.h.regions[i].bytes, y.h.regions[i].bytes,
				    x.h.regions[i].pages * PAGE_SIZE);
	sim__heap_deinit(&x.h);
	sim__heap_deinit(&y.h);
}

/*
 * The front end
 */

/* _HEAP_SUBSEGMENT and _HEAP_USERDATA_HEADER of 10. */
static uint64_t check_user_blocks(const struct heap *h, uint64_t va)
{
	const uint64_t subsegment = word(h, va);
	const unsigned unit = by(h, 16, 8), bits = by(h, 0x30, 0x1c), last = unit - 1;
	const uint32_t keys = (uint32_t)h->h.front_end ^ h->h.lfh_key;
	uint32_t offsets = get_le32(at(h, va + by(h, 0x18, 0x10))), free = 0;
	const uint32_t n = get_le32(at(h, va + by(h, 0x20, 0x14)));

	if (h->plan.layout != SIM_HEAP_8)
		offsets ^= (uint32_t)va ^ keys;
	assert_int_equal(word(h, subsegment + by(h, 8, 4)), va);
	assert_int_equal(get_le16(at(h, subsegment + by(h, 0x28, 0x18))), n);
	assert_int_equal(get_le16(at(h, subsegment + by(h, 0x24, 0x14))) * unit, offsets >> 16);
	assert_int_equal(word(h, va + by(h, 0x28, 0x18)), va + bits);
	assert_true((offsets & 0xffff) >= bits + (n + 7) / 8);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t block = va + (offsets & 0xffff) + (uint64_t)i * (offsets >> 16);
		const struct sim_allocation *a = truth_of(h, block + unit, SIM_HEAP_LFH);
		const bool busy = *at(h, va + bits + i / 8) >> i % 8 & 1;
		const uint8_t unused = *at(h, block + last);

		assert_non_null(a);
		assert_int_equal(a->busy, busy);
		assert_int_equal(unused != 0x80, busy);
		assert_true(!busy || a->block - (unused & 0x7f) == a->requested);
		assert_int_equal(get_le32(at(h, block + unit - 8)) ^
					 (uint32_t)(block >> by(h, 4, 3)) ^
					 (uint32_t)(block - va) << 12,
				 (uint32_t)h->h.address ^ h->h.lfh_key);
		free += !busy;
	}
	assert_int_equal(get_le16(at(h, subsegment + by(h, 0x20, 0x10))), free);
	return n;
}

/* In 7 free blocks are a list, which has as many as the counter says. */
static uint64_t check_user_blocks_7(const struct heap *h, uint64_t va)
{
	const unsigned unit = by(h, 16, 8), exchange = by(h, 0x10, 8);
	const uint64_t subsegment = word(h, va);
	const uint32_t n = get_le16(at(h, subsegment + by(h, 0x1c, 0x14)));
	const uint32_t size = get_le16(at(h, subsegment + by(h, 0x18, 0x10)));
	uint32_t next = get_le16(at(h, subsegment + exchange + 2));

	for (uint32_t free = get_le16(at(h, subsegment + exchange)); free; free--) {
		const struct sim_allocation *a = truth_of(h, va + (next + 1) * unit, SIM_HEAP_LFH);

		assert_non_null(a);
		assert_false(a->busy);
		next = get_le16(at(h, a->address));
	}
	assert_int_equal(next, 0xffff);
	for (uint32_t k = 0; k < n; k++) {
		const uint64_t block = va + by(h, 0x20, 0x10) + (uint64_t)k * size * unit;
		const struct sim_allocation *a = truth_of(h, block + unit, SIM_HEAP_LFH);

		assert_non_null(a);
		assert_int_equal(*at(h, block + unit - 1),
				 a->busy ? 0x80 | (a->block - a->requested) : 0x80);
	}
	return n;
}

static void check_front_end(enum sim_heap_layout layout, bool x86)
{
	struct heap h = build(layout, x86, mixed);
	const bool list = layout == SIM_HEAP_7;
	const unsigned signature = list ? by(&h, 0x18, 0xc) : by(&h, 0x14, 0xc);
	uint64_t blocks = 0;

	assert_int_equal(word(&h, h.h.front_end + (list ? by(&h, 0x40, 0x24) : by(&h, 0x18, 0xc))),
			 h.h.address);
	for (size_t i = 0; i < h.h.count; i++) {
		const struct sim_allocation *a = &h.h.allocations[i];

		if (a->kind == SIM_HEAP_OWN && a->requested >= 0x400 &&
		    get_le32(at(&h, a->address + signature)) == 0xf0e0d0c0)
			blocks += list ? check_user_blocks_7(&h, a->address)
				       : check_user_blocks(&h, a->address);
	}
	assert_int_equal(blocks, count(&h, SIM_HEAP_LFH, true) + count(&h, SIM_HEAP_LFH, false));
	assert_in_range(blocks, 1000, 100000);
	sim__heap_deinit(&h.h);
}

TEST(user_blocks_say_which_blocks_are_in_use)
{
	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int x86 = 0; x86 < 2; x86++)
			check_front_end((enum sim_heap_layout)layout, x86);
}

/*
 * By hand, and plans that can't be
 */

TEST(blocks_by_hand_leak_when_the_last_pointer_goes)
{
	const struct sim_heap_plan plan = { .layout = SIM_HEAP_17763, .base = BASE, .seed = 3 };
	struct sim_heap_builder *b = NULL;
	struct err e = ERR_INIT;
	struct sim_heap h;
	uint32_t first, second, third;
	uint64_t address;

	CHECK_OK(sim__heap_create(&plan, &b, &e), &e);
	first = sim__heap_alloc(b, 100);
	second = sim__heap_alloc(b, 2000);
	third = sim__heap_alloc(b, 30);
	memset(sim__heap_bytes(b, third), 0x5a, 30);
	sim__heap_root(b, first);
	sim__heap_refer(b, first, 8, second, 0);
	sim__heap_refer(b, second, 16, third, 4);
	sim__heap_free(b, second);
	address = sim__heap_address(b, third);
	CHECK_OK(sim__heap_finish(b, &h, &e), &e);
	assert_int_equal(h.root_count, 1);
	for (size_t i = 0; i < h.count; i++)
		if (h.allocations[i].busy && h.allocations[i].kind == SIM_HEAP_BACK_END) {
			assert_int_equal(h.allocations[i].leaked,
					 h.allocations[i].address == address);
			assert_int_equal(h.allocations[i].referrer, 0);
		}
	sim__heap_deinit(&h);
}

/*
 * The cache of the resolver
 */

/* A name in UTF-16 at an address. */
static void check_name(const struct heap *h, uint64_t va, const char *name)
{
	for (;; name++, va += 2) {
		assert_int_equal(get_le16(at(h, va)), *name);
		if (!*name)
			return;
	}
}

static void check_record(const struct heap *h, const struct sim_dns_record *r)
{
	check_name(h, word(h, r->address + 8), r->name);
	assert_int_equal(get_le16(at(h, r->address + 0x10)), r->type);
	assert_int_equal(get_le32(at(h, r->address + 0x18)), r->ttl);
	if (r->type == 1)
		assert_memory_equal(at(h, r->address + 0x20), r->data, 4);
	else if (r->type == 28)
		assert_memory_equal(at(h, r->address + 0x20), r->data, 16);
	else
		check_name(h, word(h, r->address + 0x20), r->target);
}

/* How many records the table leads to, by offsets of 7 or 10, or by 24H2's lists. */
static uint64_t count_linked(const struct heap *h, const struct sim_dns *dns)
{
	const bool lists = h->plan.layout == SIM_HEAP_26100;
	const uint64_t link = h->plan.layout == SIM_HEAP_7 ? 0 : 8;
	const uint64_t record = h->plan.layout == SIM_HEAP_7 ? 0x18 : 0x58;
	uint64_t n = 0;

	for (uint32_t i = 0; i < dns->buckets; i++) {
		const uint64_t head = dns->table + (lists ? 16 : 8) * i;

		for (uint64_t l = word(h, head); l && l != head;) {
			const uint64_t entry = lists ? l - 8 : l;

			for (uint64_t r = word(h, entry + record); r; r = word(h, r))
				n++;
			l = word(h, entry + link);
		}
	}
	return n;
}

TEST(a_dns_cache_is_found_from_its_table)
{
	const int layouts[] = { SIM_HEAP_7, SIM_HEAP_17763, SIM_HEAP_26100 };

	for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
		const struct sim_heap_plan plan = { .layout = (enum sim_heap_layout)layouts[k],
						    .base = BASE,
						    .seed = 11,
						    .lfh = 50,
						    .allocations = 500 };
		struct sim_heap_builder *b = NULL;
		struct heap h = { .plan = plan };
		uint64_t linked = 0, kept = 0;
		struct err e = ERR_INIT;
		struct sim_dns dns;

		CHECK_OK(sim__heap_create(&plan, &b, &e), &e);
		CHECK_OK(sim__heap_work(b, &e), &e);
		CHECK_OK(sim__heap_dns(b, b, 300, &dns, &e), &e);
		CHECK_OK(sim__heap_finish(b, &h.h, &e), &e);
		for (size_t i = 0; i < dns.count; i++) {
			if (!dns.records[i].address || dns.records[i].place == SIM_DNS_FREED)
				continue;
			check_record(&h, &dns.records[i]);
			kept++;
			linked += dns.records[i].place == SIM_DNS_LINKED;
		}
		assert_in_range(linked, 300, kept - 1);
		assert_int_equal(count_linked(&h, &dns), linked);
		free(dns.records);
		sim__heap_deinit(&h.h);
	}
}

/*
 * A block with an extra says so right before its data: 5, and how many units earlier its header is,
 * behind which the trace lies. 7 calls what made it the second of the interceptors, 10 the first.
 */
static uint64_t trace_at(const struct heap *h, const struct sim_allocation *a, unsigned *units)
{
	const uint8_t *end = at(h, a->address - 8);
	const unsigned unit = by(h, 16, 8);
	uint64_t start;

	assert_non_null(end);
	*units = end[7] == 5 ? end[6] : 0;
	if (!*units)
		return 0;
	assert_int_equal(*units, 2);
	start = a->address - *units * unit;
	assert_int_equal(get_le16(end), h->plan.layout == SIM_HEAP_7 ? 2 : 1);
	assert_int_equal(get_le16(end + 2), 0);
	assert_int_equal((uint16_t)(a->block - get_le16(end + 4)),
			 (uint16_t)(a->kind == SIM_HEAP_VIRTUAL ? a->requested - *units * unit
								: a->requested));
	if (a->kind == SIM_HEAP_VIRTUAL) {
		const uint64_t head = start - by(h, 0x40, 0x20);

		assert_int_equal(at(h, start)[-1], 4);
		assert_int_equal(header_at(h, start - unit).segment, *units);
		assert_int_equal(word(h, head + 4 * by(h, 8, 4)), a->block);
		assert_int_equal(header_at(h, start - unit).size, a->block - a->requested);
	} else {
		assert_int_equal(at(h, start)[-1], a->kind == SIM_HEAP_LFH ? 0xc2 : 0x42);
	}
	if (a->kind == SIM_HEAP_BACK_END) {
		const struct header c = header_at(h, start - unit);

		assert_true(c.right);
		assert_int_equal((uint64_t)c.size * unit, a->block);
	}
	return word(h, start);
}

/* User blocks, zones and 7's front end have an extra, too: so many of the heap's own are there. */
static unsigned check_own_extras(const struct heap *h)
{
	const unsigned unit = by(h, 16, 8);
	unsigned extended = 0;

	for (size_t i = 0; i < h->h.count; i++) {
		const struct sim_allocation *a = &h->h.allocations[i];
		const uint8_t *end = at(h, a->address - 8);

		if (a->kind != SIM_HEAP_OWN || !end || end[7] != 5 || end[6] != 2)
			continue;
		assert_int_equal(header_at(h, a->address - 3 * unit).unused, 0x42);
		assert_int_equal(get_le16(end), h->plan.layout == SIM_HEAP_7 ? 2 : 1);
		assert_in_range(get_le16(end + 4), 3 * unit - 8, 5 * unit);
		extended++;
	}
	return extended;
}

TEST(blocks_lead_to_who_asked_for_them)
{
	const uint64_t traces[] = { 0x10001000, 0x10001080, 0x10001140 };
	struct sim_heap_plan plan = mixed;

	plan.traces = traces;
	plan.trace_count = ARRAY_SIZE(traces);
	for (unsigned k = 0; k < 2 * SIM_HEAP_LAYOUTS; k++) {
		struct heap h = build(k / 2, k % 2, plan);
		unsigned traced[SIM_HEAP_OWN] = { 0 }, plain = 0, unknown = 0, units;

		check_truth(&h);
		check_references(&h);
		assert_int_equal(get_le32(at(&h, h.h.address + by(&h, 0x70, 0x40))), 0x08000002);
		for (size_t i = 0; i < h.h.count; i++) {
			const struct sim_allocation *a = &h.h.allocations[i];

			if (!a->busy || a->kind == SIM_HEAP_OWN)
				continue;
			assert_int_equal(trace_at(&h, a, &units), a->trace);
			assert_true(!a->trace || a->trace == traces[0] || a->trace == traces[1] ||
				    a->trace == traces[2]);
			traced[a->kind] += a->trace != 0;
			plain += !units;
			unknown += units && !a->trace;
		}
		assert_true(traced[SIM_HEAP_BACK_END] > 1000 && traced[SIM_HEAP_LFH] > 1000);
		assert_true(traced[SIM_HEAP_VIRTUAL] && plain > 100 && unknown > 200);
		assert_true(check_own_extras(&h) > 20);
		sim__heap_deinit(&h.h);
	}
}

static void check_description(const struct heap *h, const struct sim_page_block *b, uint32_t start,
			      uint32_t end)
{
	const uint64_t info = b->address - 0x40;

	assert_int_equal(get_le32(at(h, info)), start);
	assert_int_equal(get_le32(at(h, info + 0x3c)), end);
	assert_int_equal(word(h, info + 8), h->h.page_heap + 0x1000);
	assert_int_equal(word(h, info + 0x10), b->requested);
	assert_int_equal(word(h, info + 0x18), b->actual);
	assert_int_equal(word(h, info + 0x30), b->trace);
}

static void check_fill(const struct heap *h, uint64_t va, uint64_t end, uint8_t fill)
{
	for (; va < end; va++)
		assert_int_equal(*at(h, va), fill);
}

static struct sim_heap_plan with_page_heap(enum sim_page_heap kind)
{
	static const uint64_t traces[] = { 0x10001000, 0x10001080 };

	return (struct sim_heap_plan){ .seed = 7,
				       .allocations = 1500,
				       .churn = 30,
				       .lfh = 60,
				       .virtual_blocks = 2,
				       .leaks = 30,
				       .page_heap = kind,
				       .page_heap_queue = 0x7ffb0000,
				       .traces = traces,
				       .trace_count = ARRAY_SIZE(traces) };
}

/* Addresses of busy blocks, in order, by the tree of nodes. */
static uint64_t walk_nodes(const struct heap *h, uint64_t node, uint64_t parent, uint64_t after)
{
	const struct sim_allocation *a;

	if (!node)
		return after;
	assert_int_equal(word(h, node), parent);
	after = walk_nodes(h, word(h, node + 8), node, after);
	a = truth_of(h, word(h, node + 0x20), SIM_HEAP_PAGE);
	assert_true(a && a->busy && a->address > after);
	assert_int_equal(word(h, node + 0x40), a->requested);
	assert_int_equal(word(h, node + 0x60), a->trace);
	assert_int_equal(word(h, node + 0x30), a->block + PAGE_SIZE);
	return walk_nodes(h, word(h, node + 0x10), node, a->address);
}

TEST(blocks_of_full_page_heap_end_where_pages_do)
{
	for (unsigned k = 0; k < 2; k++) {
		struct heap h = build(k ? SIM_HEAP_17763 : SIM_HEAP_7, false,
				      with_page_heap(SIM_PAGE_HEAP_FULL));
		const uint64_t root = h.h.page_heap + 0x1000;
		unsigned n[2] = { 0 };

		check_truth(&h);
		check_references(&h);
		assert_int_equal(get_le32(at(&h, h.h.page_heap)), 0xeeeeeeee);
		assert_true(get_le32(at(&h, h.h.page_heap + 0x74)) & 0x01000000);
		assert_int_equal(get_le32(at(&h, root)), 0xffeeddcc);
		assert_int_equal(word(&h, root + 0x150), h.h.address);
		for (size_t i = 0; i < h.h.page_block_count; i++) {
			const struct sim_page_block *b = &h.h.page_blocks[i];
			const uint64_t end = b->address + b->requested;
			const uint64_t next = (end + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
			const bool busy = b->state == SIM_PAGE_BLOCK_BUSY;

			check_description(&h, b, busy ? 0xabcdbbbb : 0xabcdbbba,
					  busy ? 0xdcbabbbb : 0xdcbabbba);
			assert_int_equal(b->address % 16, 0);
			assert_true(next - end < 16);
			check_fill(&h, end, next, 0xd0);
			assert_null(at(&h, next));
			assert_non_null(at(&h, next - b->actual));
			if (!busy)
				check_fill(&h, b->address, end, 0xf0);
			n[busy]++;
		}
		assert_int_equal(n[1], count(&h, SIM_HEAP_PAGE, true));
		assert_int_equal(n[1], get_le32(at(&h, root + 0xa8)));
		assert_int_equal(n[0], get_le32(at(&h, root + 0xc8)));
		assert_true(n[0] > 100 && n[1] == 1502);
		walk_nodes(&h, word(&h, root + 0x48), root + 0x38, 0);
		sim__heap_deinit(&h.h);
	}
}

TEST(blocks_of_light_page_heap_lie_in_blocks)
{
	for (unsigned k = 0; k < 2; k++) {
		struct heap h = build(k ? SIM_HEAP_17763 : SIM_HEAP_7, false,
				      with_page_heap(SIM_PAGE_HEAP_LIGHT));
		unsigned n[3] = { 0 }, waiting = 0;

		check_back_end(&h);
		check_virtual(&h);
		for (size_t i = 0; i < h.h.page_block_count; i++) {
			const struct sim_page_block *b = &h.h.page_blocks[i];
			const bool busy = b->state == SIM_PAGE_BLOCK_BUSY;
			const struct sim_allocation *a = NULL;

			for (int kind = SIM_HEAP_BACK_END; !a && kind <= SIM_HEAP_VIRTUAL; kind++)
				a = truth_of(&h, b->address - 0x40, kind);
			check_description(&h, b, busy ? 0xabcdaaaa : 0xabcdaaa9,
					  busy ? 0xdcbaaaaa : 0xdcbaaaa9);
			assert_int_equal(b->actual, b->requested + 0x50);
			n[b->state]++;
			if (b->state == SIM_PAGE_BLOCK_STALE)
				continue;
			assert_true(a && a->busy && a->requested == b->actual);
			check_fill(&h, b->address + b->requested, b->address + b->requested + 16,
				   0xa0);
			if (!busy)
				check_fill(&h, b->address, b->address + b->requested, 0xf0);
		}
		assert_true(n[SIM_PAGE_BLOCK_BUSY] == 1502 && n[SIM_PAGE_BLOCK_FREED] > 100);
		for (uint64_t l = h.h.queue_first; l != 0x7ffb0000; l = word(&h, l), waiting++)
			assert_int_equal(word(&h, l - 0x20 + 0x10) + 0x50,
					 word(&h, l - 0x20 + 0x18));
		assert_int_equal(waiting, n[SIM_PAGE_BLOCK_FREED]);
		sim__heap_deinit(&h.h);
	}
}

TEST(a_plan_that_cannot_be_carried_out_is_refused)
{
	const struct sim_heap_plan bad[] = {
		{ .layout = SIM_HEAP_LAYOUTS, .base = BASE },
		{ .base = BASE + 0x1000 },
		{ .base = BASE, .reserve = 0x1234 },
		{ .base = BASE, .churn = 60 },
		{ .base = BASE, .size_min = 100, .size_max = 50, .allocations = 1 },
		{ .base = 0xffff0000, .x86 = true },
		{ .base = 0x400000, .x86 = true, .page_heap = SIM_PAGE_HEAP_FULL },
	};
	struct err e = ERR_INIT;
	struct sim_heap h;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_STATUS(sim__heap_build(&bad[i], &h, &e), ST_USAGE, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_lists_and_truth_agree),
		cmocka_unit_test(so_they_do_without_encoding),
		cmocka_unit_test(so_they_do_for_many_seeds),
		cmocka_unit_test(a_heap_of_every_kind_of_block),
		cmocka_unit_test(nothing_but_leaks_and_free_blocks_leads_to_leaks),
		cmocka_unit_test(the_same_plan_gives_the_same_bytes),
		cmocka_unit_test(user_blocks_say_which_blocks_are_in_use),
		cmocka_unit_test(blocks_by_hand_leak_when_the_last_pointer_goes),
		cmocka_unit_test(a_dns_cache_is_found_from_its_table),
		cmocka_unit_test(blocks_lead_to_who_asked_for_them),
		cmocka_unit_test(blocks_of_full_page_heap_end_where_pages_do),
		cmocka_unit_test(blocks_of_light_page_heap_lie_in_blocks),
		cmocka_unit_test(a_plan_that_cannot_be_carried_out_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
