/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated segment heaps, judged by themselves: bytes and truth say the same, by the documented
 * layouts of 10 1809 to 11 23H2. Offsets are written out here once more, apart from the writer's.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/simulator/heap.h"
#include "agent/simulator/page.h"
#include "formats/base/bytes.h"

#define BASE UINT64_C(0x236c0350000)

static const uint64_t keys[2] = { UINT64_C(0x7d1f03a9c4b2e658), UINT64_C(0x1122334455667788) };

struct heap {
	struct sim_heap h;
	struct sim_heap_plan plan;
	uint64_t contexts, vs, lfh;
	uint64_t seen[SIM_HEAP_LARGE + 1]; /* busy blocks */
	uint64_t free_vs, free_lfh;
};

static struct heap build(enum sim_hp_layout layout, bool padded, uint64_t seed)
{
	struct heap h = { .plan = { .base = BASE,
				    .more = UINT64_C(0x30000000000),
				    .seed = seed,
				    .allocations = 6000,
				    .churn = 30,
				    .lfh = 60,
				    .leaks = 30,
				    .index = 2,
				    .size_max = 0x10000,
				    .virtual_blocks = 9,
				    .hp_keys = keys,
				    .hp_layout = layout,
				    .hp_padded = padded } };
	const bool later = layout == SIM_HP_20348;
	struct err e = ERR_INIT;

	CHECK_OK(sim__heap_build(&h.plan, &h.h, &e), &e);
	h.contexts = BASE + (later ? 0x140 : 0x100);
	h.vs = BASE + (later ? 0x2c0 : 0x280);
	h.lfh = BASE + (later ? 0x380 : layout == SIM_HP_17763_RTM ? 0x300 : 0x340);
	return h;
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
	return get_le64(p);
}

static const struct sim_allocation *truth_of(const struct heap *h, uint64_t address, int kind)
{
	for (size_t i = 0; i < h->h.count; i++)
		if (h->h.allocations[i].address == address && h->h.allocations[i].kind == kind)
			return &h->h.allocations[i];
	return NULL;
}

/* With the padding, which its first word tells, and its last but one. */
static void check_busy(struct heap *h, uint64_t va, int kind, uint64_t block, uint64_t requested)
{
	const struct sim_allocation *a;

	if (h->plan.hp_padded) {
		const uint64_t padding = word(h, va);

		assert_int_equal(padding, requested - 0x10 > 0xfeff8 ? 0x40 : 0x10);
		assert_int_equal(word(h, va + padding - 0x10), padding);
		va += padding;
		requested -= padding;
	}
	a = truth_of(h, va, kind);
	assert_true(a && a->busy && a->block == block && a->requested == requested);
	h->seen[kind]++;
}

/* What a block's end says of its unused bytes. */
static uint64_t unused_at(const struct heap *h, uint64_t end)
{
	const uint16_t last = get_le16(at(h, end - 2));

	return last & 0x8000 ? 1 : last & 0x3fff;
}

static void check_lfh(struct heap *h, uint64_t va, uint64_t size)
{
	const uint32_t offsets =
		get_le32(at(h, va + 0x28)) ^ (uint32_t)keys[1] ^ (uint32_t)va >> 12;
	const uint32_t block = offsets & 0xffff, first = offsets >> 16;
	const uint32_t count = get_le16(at(h, va + 0x22));
	uint32_t busy = 0;

	assert_true(first % 16 == 0 && first >= 0x38);
	assert_true(first + (uint64_t)count * block <= size);
	assert_non_null(truth_of(h, va, SIM_HEAP_OWN));
	assert_int_equal(get_le64(at(h, word(h, va) + 8)), va);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t here = va + first + (uint64_t)i * block;
		const unsigned bits = at(h, va + 0x30)[i / 4] >> (2 * (i % 4)) & 3;

		if (bits & 1)
			check_busy(h, here, SIM_HEAP_LFH, block,
				   block - (bits & 2 ? unused_at(h, here + block) : 0));
		else
			h->free_lfh += truth_of(h, here, SIM_HEAP_LFH) != NULL;
		assert_true(bits != 2);
		busy += bits & 1;
	}
	assert_in_range(get_le16(at(h, va + 0x20)), (count - busy) / 2, count - busy);
}

static void check_vs(struct heap *h, uint64_t va, uint64_t size)
{
	const uint16_t said = get_le16(at(h, va + 0x20));
	uint64_t previous = 0;

	assert_int_equal((get_le16(at(h, va + 0x22)) ^ said ^ 0x2bed) & 0x7fff, 0);
	assert_int_equal(0x30 + 16 * (uint64_t)said, size);
	for (uint64_t c = va + 0x30; c < va + size; c += 16 * previous) {
		const uint64_t sizes = word(h, c) ^ c ^ keys[0];
		const uint64_t units = sizes >> 16 & 0xffff;
		const uint32_t more = get_le32(at(h, c + 8));

		assert_int_equal(sizes >> 32 & 0xffff, previous);
		assert_true(units >= 2);
		previous = units;
		if (!(sizes >> 48 & 0xff)) {
			assert_non_null(truth_of(h, c + 16, SIM_HEAP_VS));
			h->free_vs++;
			continue;
		}
		assert_int_equal((more ^ c ^ keys[0]) & 0xff, (c - va) >> 12);
		check_busy(h, c + 16, SIM_HEAP_VS, 16 * units,
			   16 * units - 16 - (more & 0x100 ? unused_at(h, c + 16 * units) : 0));
	}
}

static void check_segment(struct heap *h, uint64_t segment, uint64_t context)
{
	const unsigned shift = at(h, context)[8];

	assert_int_equal(segment & ~word(h, context), 0);
	assert_int_equal(word(h, segment + 0x10),
			 segment ^ context ^ keys[0] ^ UINT64_C(0xa2e64eada2e64ead));
	for (unsigned i = at(h, context)[0xa]; i < 256;) {
		const uint8_t *d = at(h, segment + 0x20 * i);
		const uint64_t va = segment + ((uint64_t)i << shift);
		const uint64_t size = (uint64_t)d[0x1f] << shift;

		assert_true(d[0x1f] > 0 && i + d[0x1f] <= 256);
		assert_true(d[0x18] & 2);
		if (d[0x18] == 0xb)
			check_lfh(h, va, size);
		else if (d[0x18] == 0xf)
			check_vs(h, va, size);
		else if (d[0x18] == 3)
			check_busy(h, va, SIM_HEAP_RANGE, size, size - get_le32(d + 4));
		else
			assert_int_equal(d[0x18], 2);
		for (unsigned k = 1; k < d[0x1f]; k++)
			assert_int_equal(d[0x20 * k + 0x18] & 2, 0);
		i += d[0x1f];
	}
}

/* Nodes of a tree, in order; each one's parent leads back. */
static size_t walk_tree(const struct heap *h, uint64_t node, uint64_t parent, uint64_t *nodes,
			size_t n)
{
	if (!node)
		return n;
	assert_int_equal(word(h, node + 0x10) & ~UINT64_C(3), parent);
	n = walk_tree(h, word(h, node), node, nodes, n);
	nodes[n++] = node;
	return walk_tree(h, word(h, node + 8), node, nodes, n);
}

static void check_large(struct heap *h)
{
	uint64_t nodes[64], pages = 0;
	const size_t n = walk_tree(h, word(h, BASE + 0x48), 0, nodes, 0);

	for (size_t i = 0; i < n; i++) {
		const uint64_t va = word(h, nodes[i] + 0x18), size = word(h, nodes[i] + 0x20);

		assert_true(!i || word(h, nodes[i - 1] + 0x18) < va);
		check_busy(h, va & ~UINT64_C(0xffff), SIM_HEAP_LARGE, size, size - (va & 0xffff));
		pages += size >> 12;
	}
	assert_int_equal(word(h, BASE + 0x58), pages);
}

/* Subsegments of variable sizes: each link with its own address. */
static void check_vs_lists(const struct heap *h)
{
	const uint64_t head = h->vs + 0x20;
	static uint64_t nodes[8192];
	size_t n = 0;

	for (uint64_t l = word(h, head) ^ head; l != head; l = word(h, l) ^ l) {
		const uint64_t next = word(h, l) ^ l;

		assert_int_equal(word(h, next + 8) ^ next, l);
		assert_true(++n < 1000);
	}
	assert_true(n > 2);
	n = walk_tree(h, word(h, h->vs + 0x10), 0, nodes, 0);
	assert_int_equal(n, h->free_vs);
	assert_true(!n || word(h, h->vs + 0x18) == nodes[0]);
}

static uint64_t count_busy(const struct heap *h, int kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->h.count; i++)
		n += h->h.allocations[i].busy && h->h.allocations[i].kind == kind;
	return n;
}

static uint64_t count_free(const struct heap *h, int kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->h.count; i++)
		n += !h->h.allocations[i].busy && h->h.allocations[i].kind == kind;
	return n;
}

/* What blocks refer to, and which of them leak. */
static void check_references(const struct heap *h)
{
	uint64_t leaked = 0, busy = 0, end = 0;

	for (size_t i = 0; i < h->h.count; i++) {
		const struct sim_allocation *a = &h->h.allocations[i];
		uint64_t to;

		if (a->kind == SIM_HEAP_OWN)
			continue;
		assert_true(a->address >= end);
		end = a->address + a->requested;
		assert_non_null(at(h, end - 1));
		leaked += a->leaked;
		busy += a->busy;
		if (!a->referrer)
			continue;
		to = word(h, a->referrer);
		assert_true(to >= a->address && to - a->address < a->requested);
	}
	assert_int_equal(leaked, h->plan.leaks);
	assert_int_equal(busy, h->plan.allocations + h->plan.virtual_blocks);
}

TEST(heads_ranges_and_truth_agree)
{
	for (unsigned k = 0; k < 2 * SIM_HP_LAYOUTS; k++) {
		struct heap h = build(k / 2, k % 2, 7 + k);
		uint64_t segments = 0;

		assert_int_equal(get_le32(at(&h, BASE + 0x10)), 0xddeeddee);
		for (unsigned i = 0; i < 2; i++) {
			const uint64_t context = h.contexts + 0xc0 * i, head = context + 0x48;
			uint64_t n = 0;

			assert_int_equal(word(&h, context + 0x18), h.lfh);
			assert_int_equal(word(&h, context + 0x20), h.vs);
			assert_int_equal(word(&h, context + 0x38), BASE);
			for (uint64_t l = word(&h, head); l != head; l = word(&h, l), n++) {
				assert_int_equal(word(&h, word(&h, l) + 8), l);
				check_segment(&h, l, context);
			}
			assert_int_equal(word(&h, context + 0x58), n);
			assert_true(n > 0);
			segments += n;
		}
		check_large(&h);
		check_vs_lists(&h);
		check_references(&h);
		for (int kind = SIM_HEAP_LFH; kind <= SIM_HEAP_LARGE; kind++)
			if (kind != SIM_HEAP_OWN)
				assert_int_equal(h.seen[kind], count_busy(&h, kind));
		assert_int_equal(h.seen[SIM_HEAP_LARGE], 3);
		assert_int_equal(h.seen[SIM_HEAP_RANGE], 6);
		assert_true(h.seen[SIM_HEAP_LFH] > 500 && h.seen[SIM_HEAP_VS] > 500);
		assert_int_equal(h.free_vs, count_free(&h, SIM_HEAP_VS));
		assert_int_equal(h.free_lfh, count_free(&h, SIM_HEAP_LFH));
		assert_int_equal(segments, h.h.segments);
		sim__heap_deinit(&h.h);
	}
}

TEST(a_bucket_leads_to_its_subsegments)
{
	struct heap h = build(SIM_HP_20348, false, 3);
	unsigned on = 0;

	for (unsigned i = 0; i < 129; i++) {
		const uint64_t bucket = word(&h, h.lfh + 0x80 + 8 * i);

		if (bucket & 1)
			continue;
		on++;
		assert_int_equal(at(&h, bucket)[1], i);
		for (unsigned list = 0x18; list <= 0x28; list += 0x10)
			for (uint64_t l = word(&h, bucket + list); l != bucket + list;
			     l = word(&h, l))
				assert_int_equal(word(&h, l + 0x10), bucket);
	}
	assert_in_range(on, 5, 120);
	sim__heap_deinit(&h.h);
}

TEST(x86_and_stack_traces_are_refused)
{
	const uint64_t trace = 0x1000;
	const struct sim_heap_plan bad[] = {
		{ .base = 0x400000, .x86 = true, .hp_keys = keys },
		{ .base = BASE, .hp_keys = keys, .traces = &trace, .trace_count = 1 },
	};
	struct err e = ERR_INIT;
	struct sim_heap h;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_STATUS(sim__heap_build(&bad[i], &h, &e), ST_USAGE, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_ranges_and_truth_agree),
		cmocka_unit_test(a_bucket_leads_to_its_subsegments),
		cmocka_unit_test(x86_and_stack_traces_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
