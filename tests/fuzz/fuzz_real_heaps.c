/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps that are whole but for some words, which the input overwrites: simulated ones, and behind
 * them in number those that Windows' ntdll made, where these are at hand (tests/gen/real_heaps.h);
 * the input has no byte of them. Walks end, tell of nothing outside the process's half, and of each
 * block that it fits in what it says; with the notes of a sweep, if the input's first bit asks for
 * them, they tell the same. Who refuses a heap says why, and lists nothing of a segment heap that
 * has no layout.
 */
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "agent/simulator/heap.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/real_heaps.h"
#include "tests/gen/swept_heaps.h"

#define PEB         UINT64_C(0x7ffde000)
#define HEAP        UINT64_C(0x2a0000)
/* Pages of one heap: what it has more can't be had. */
#define PAGES_MAX   192
#define BASES_MAX   128 /* a power of two */
/* Each block takes 8 bytes; but a range of pages can be one that says that it is larger. */
#define BLOCKS_MOST (PAGES_MAX * PAGE_SIZE / 8)

struct base {
	struct vm memory; /* its first page is the PEB */
	struct range_list ranges;
	bool wide;
};

static struct base *bases[BASES_MAX];
static size_t n_bases;
static size_t told;

static struct base *add_base(uint64_t heap, bool wide, uint32_t flags, uint16_t build)
{
	struct base *b = calloc(1, sizeof(*b));
	struct vm *m;

	MUST(b && n_bases < BASES_MAX);
	bases[n_bases++] = b;
	b->wide = wide;
	m = &b->memory;
	vm_put(m, PEB + (wide ? 0x30 : 0x18), heap, wide ? 8 : 4);
	vm_put(m, PEB + (wide ? 0xbc : 0x68), flags, 4);
	vm_put(m, PEB + (wide ? 0xe8 : 0x88), 1, 4);
	vm_put(m, PEB + (wide ? 0xf0 : 0x90), PEB + 0x800, wide ? 8 : 4);
	vm_put(m, PEB + (wide ? 0x120 : 0xac), build, 2);
	vm_put(m, PEB + 0x800, heap, wide ? 8 : 4);
	return b;
}

static void add_page(struct base *b, uint64_t va, const uint8_t *bytes)
{
	if (bytes && b->memory.count < PAGES_MAX)
		memcpy(vm_bytes(&b->memory, va), bytes, PAGE_SIZE);
}

static void simulate(struct sim_heap_plan plan)
{
	static const uint64_t traces[] = { 0x10001000, 0x10001080 };
	struct sim_heap heap;
	struct base *b;

	plan.base = HEAP;
	plan.seed = n_bases;
	plan.size_max = 2048;
	plan.churn = 30;
	plan.lfh = 50;
	plan.allocations = 300;
	plan.virtual_blocks = plan.hp_keys ? 3 : 1;
	if (plan.trace_count) {
		plan.traces = traces;
		plan.trace_count = 2;
	}
	MUST(!sim__heap_build(&plan, &heap, NULL));
	b = add_base(HEAP, !plan.x86, plan.trace_count ? GLOBAL_FLAG_STACK_TRACES : 0, 19045);
	for (size_t i = 0; i < heap.region_count; i++) {
		const struct sim_heap_region *r = &heap.regions[i];

		MUST(!range_list_add(&b->ranges, r->va, r->va + r->pages * PAGE_SIZE - 1, NULL));
		for (uint32_t p = 0; p < r->pages; p++)
			if (r->committed[p])
				add_page(b, r->va + p * PAGE_SIZE, r->bytes + p * PAGE_SIZE);
	}
	range_list_tidy(&b->ranges, NULL);
	sim__heap_deinit(&heap);
}

static void simulate_all(void)
{
	static const uint64_t keys[2] = { UINT64_C(0x7d1f03a9c4b2e658),
					  UINT64_C(0x1122334455667788) };

	for (int layout = 0; layout < SIM_HEAP_LAYOUTS; layout++)
		for (int how = 0; how < 4; how++)
			simulate((struct sim_heap_plan){ .layout = (enum sim_heap_layout)layout,
							 .x86 = how & 1,
							 .trace_count = how & 2 });
	for (int layout = 0; layout < SIM_HP_LAYOUTS; layout++)
		for (int padded = 0; padded < 2; padded++)
			simulate((struct sim_heap_plan){ .hp_keys = keys,
							 .hp_layout = (enum sim_hp_layout)layout,
							 .hp_padded = padded });
}

static void add_range_of(const struct real_heaps *r, struct base *b, uint64_t va)
{
	const struct range *own = range_list_find(&r->ranges, va);

	if (own)
		MUST(!range_list_add(&b->ranges, own->first, own->last, NULL));
}

/* One heap of a set: its pages, those of its segments, and of its front end. */
static void take_heap(const struct real_heaps *r, struct heaps *h, size_t i)
{
	const struct heap_info *info = heaps_at(h, i);
	uint32_t flags = 0;
	struct base *b;

	heaps_global_flag(h, true, &flags);
	b = add_base(info->address, true, flags, heaps_build(h, true));
	MUST(!heaps_segments(h, i, &b->ranges, NULL));
	add_range_of(r, b, info->address);
	add_range_of(r, b, info->front_end);
	range_list_tidy(&b->ranges, NULL);
	for (size_t k = 0; k < b->ranges.count; k++)
		for (uint64_t va = b->ranges.at[k].first; va < b->ranges.at[k].last;
		     va += PAGE_SIZE)
			add_page(b, va, real_heaps_byte(r, va));
}

static void take_real_heaps(void)
{
	static struct real_heap_names names;
	char folder[REAL_HEAPS_PATH_MAX];

	real_heaps_folder(SOURCE_ROOT, folder);
	real_heaps_list(folder, &names);
	for (size_t i = 0; i < names.count; i++) {
		struct real_heaps r;
		const struct memory_view m = { real_heaps_page, &r, real_heaps_absent, NULL };
		struct heap_sources s = { .memory = &m, .ranges = &r.ranges };
		struct heaps *h;

		MUST(real_heaps_load(&r, folder, names.at[i]));
		s.peb = r.peb;
		MUST(!heaps_open(&s, &h, NULL));
		for (size_t k = 0; k < heaps_count(h) && n_bases < BASES_MAX; k++)
			take_heap(&r, h, k);
		heaps_close(h);
		real_heaps_deinit(&r);
	}
}

static enum status take(void *context, const struct heap_allocation *a, struct err *e)
{
	MUST(a->place < HEAP_PLACES && a->state < HEAP_STATES);
	MUST(a->address >= UINT64_C(0x10000) && a->address < UINT64_C(1) << 47);
	MUST(!a->has_requested || (a->state == BLOCK_BUSY && a->requested <= a->size + 8));
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
		MUST(x->refused < HEAP_REFUSALS && (x->refused || !x->nearest));
		told = 0;
		MUST(!heaps_walk(h, i, &v, &stats, NULL));
		MUST(!stats.cut);
		/* What has a head, and no layout, says so; and nothing of it is listed. */
		if (x->kind == HEAP_SEGMENT && x->head && !x->layout)
			MUST(x->refused && !told);
	}
	heaps_close(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t which = cur_u8(&c), missing = cur_u8(&c);
	struct changes changes;
	struct base *b;

	if (!n_bases) {
		simulate_all();
		take_real_heaps();
	}
	b = bases[(which & (BASES_MAX - 1)) % n_bases];
	const struct memory_view m = { vm_view, &b->memory };
	const struct heap_sources s = {
		.memory = &m,
		.peb = b->wide ? PEB : 0,
		.peb32 = b->wide ? 0 : PEB,
		.ranges = &b->ranges,
	};

	changes_make(&changes, &b->memory, missing, &c);
	walk(&s);
	if (which & BASES_MAX)
		MUST(swept_heaps_agree(&s, NULL, NULL));
	changes_undo(&changes);
	return 0;
}
