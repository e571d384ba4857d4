/* SPDX-License-Identifier: Apache-2.0 */
/* What processes of the simulated machine hold, read by their entries alone, and by nobody's table.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/simulator/layout.h"
#include "agent/simulator/machine.h"
#include "formats/base/bytes.h"

#define SMALL                                                                                      \
	"desktop,ram=128M,allocated=20M,resident=14M,trimmed=8M,others=30M,processes=10,cache=8M," \
	"pagefile0=128M,pressure=100,inside=1"
#define SECOND UINT64_C(1000000000)
#define DEPTH  12 /* of a tree of 13 nodes or so */

static struct machine m;
static uint8_t page[PAGE_SIZE];

static void build(const char *more)
{
	struct err e = ERR_INIT;
	char text[300];

	snprintf(text, sizeof(text), SMALL "%s", more);
	CHECK_OK(sim_spec_parse(text, &m.spec, &e), &e);
	CHECK_OK(sim__machine_init(&m, &e), &e);
}

static void tear_down(void)
{
	sim__machine_deinit(&m);
}

/* The page that an entry names into `page`. False: it names none. */
static bool render(uint64_t raw)
{
	switch (sim__entry_kind(&m, raw)) {
	case IS_VALID:
	case IS_TRANSITION:
		sim__frame_render(&m, sim__entry_frame(&m, raw), page);
		return true;
	case IS_SOFT:
		return sim__slot_render(&m, SLOT_FILE(sim__entry_slot(&m, raw)),
					SLOT_INDEX(sim__entry_slot(&m, raw)), page);
	default:
		memset(page, 0, PAGE_SIZE);
		return false;
	}
}

static void read_virtual(const struct sim_process *p, uint64_t va, void *to, size_t size)
{
	uint8_t *out = to;

	while (size) {
		const size_t part = MIN(size, PAGE_SIZE - va % PAGE_SIZE);
		const uint8_t *entry = sim__table_entry(&m, p->root, va, 1, false);

		assert_non_null(entry);
		render(get_le64(entry));
		memcpy(out, page + va % PAGE_SIZE, part);
		out += part;
		va += part;
		size -= part;
	}
}

static uint64_t word(const struct sim_process *p, uint64_t va)
{
	uint8_t bytes[8];

	read_virtual(p, va, bytes, sizeof(bytes));
	return get_le64(bytes);
}

static struct sim_region piece(uint64_t va, uint32_t pages)
{
	return (struct sim_region){ .va = va, .pages = pages, .bytes = calloc(pages, PAGE_SIZE) };
}

static void test_regions_are_found_by_address_and_by_number(void **state)
{
	struct sim_regions r = { 0 };
	struct sim_region high = piece(0x90000, 2), low = piece(0x10000, 3),
			  across = piece(0x12000, 1), kernel = piece(0xfffff8a000000000, 1);
	struct err e = ERR_INIT;

	(void)state;
	high.bytes[PAGE_SIZE] = 7;
	CHECK_OK(sim__regions_add(&r, &high, &e), &e);
	CHECK_OK(sim__regions_add(&r, &kernel, &e), &e);
	CHECK_OK(sim__regions_add(&r, &low, &e), &e);
	assert_int_equal(sim__regions_add(&r, &across, &e), ST_USAGE);
	assert_null(across.bytes);
	assert_int_equal(r.pages, 6);
	assert_null(sim__regions_page(&r, 0xf));
	assert_null(sim__regions_page(&r, 0x13));
	assert_int_equal(*sim__regions_page(&r, 0x91), 7);
	for (uint32_t i = 0; i < r.pages; i++)
		assert_int_equal(sim__regions_number(&r, sim__regions_vpn(&r, i)), i);
	assert_int_equal(sim__regions_vpn(&r, 3), 0x90);
	assert_int_equal(sim__regions_number(&r, 0x92), UINT32_MAX);
	sim__regions_deinit(&r);
}

/* How many pages have a frame, or a slot. */
static uint64_t check_regions(uint64_t counts[static IS_PROTOTYPE + 1])
{
	uint64_t checked = 0;

	memset(counts, 0, (IS_PROTOTYPE + 1) * sizeof(*counts));
	for (uint32_t i = 0; i < m.n_processes; i++) {
		const struct sim_process *p = &m.processes[i];

		for (uint32_t k = 0; k < p->regions.pages; k++) {
			const uint64_t vpn = sim__regions_vpn(&p->regions, k);
			const uint8_t *entry =
				sim__table_entry(&m, p->root, sim__vpn_address(vpn), 1, false);
			const uint64_t raw = entry ? get_le64(entry) : 0;

			checked += render(raw);
			if (raw)
				assert_memory_equal(page, sim__regions_page(&p->regions, vpn),
						    PAGE_SIZE);
			counts[sim__entry_kind(&m, raw)]++;
		}
	}
	return checked;
}

static void test_pages_of_regions_keep_their_bytes_wherever_they_go(void **state)
{
	uint64_t counts[IS_PROTOTYPE + 1], later[IS_PROTOTYPE + 1];

	(void)state;
	build(",trim=200M,touch=20000");
	assert_true(check_regions(counts) > 250);
	assert_in_range(counts[IS_TRANSITION], 20, 200);
	assert_in_range(counts[IS_SOFT], 30, 200);
	assert_true(counts[IS_ZERO] > 0);
	for (unsigned i = 1; i <= 40; i++)
		sim__manager_run(&m, SIM_BOOT + i * SECOND / 10, SIM_MIB);
	assert_true(check_regions(later) > 250);
	assert_int_not_equal(later[IS_VALID], counts[IS_VALID]);
	assert_int_not_equal(later[IS_SOFT], counts[IS_SOFT]);
	assert_int_equal(m.counts.failed, 0);
}

static void test_a_share_of_nothing_is_nothing(void **state)
{
	uint64_t counts[IS_PROTOTYPE + 1];

	(void)state;
	build(",region_transition=0,region_paged=0,pool_paged=0");
	check_regions(counts);
	assert_int_equal(counts[IS_TRANSITION] + counts[IS_SOFT], 0);
}

/*
 * The tree of VADs
 */

struct walk {
	const struct sim_process *p;
	bool seven;
	uint64_t after; /* the pages so far end before this one */
	uint32_t nodes;
};

/* Levels below a node. */
static unsigned walk(struct walk *w, uint64_t node, uint64_t parent, unsigned depth)
{
	const uint64_t up = node + (w->seven ? 0 : 0x10);
	unsigned left, right;
	uint64_t first, last;
	uint8_t n[0x40];
	char tag[4];

	if (!node)
		return 0;
	assert_in_range(depth, 0, DEPTH);
	read_virtual(w->p, node - 12, tag, 4);
	assert_memory_equal(tag, "Vad", 3);
	read_virtual(w->p, node, n, sizeof(n));
	assert_int_equal(word(w->p, up) & ~UINT64_C(3), parent);
	left = walk(w, get_le64(n + (w->seven ? 8 : 0)), node, depth + 1);
	first = w->seven ? get_le64(n + 0x18) : get_le32(n + 0x18) | (uint64_t)n[0x20] << 32;
	last = w->seven ? get_le64(n + 0x20) : get_le32(n + 0x1c) | (uint64_t)n[0x21] << 32;
	assert_true(first >= w->after && last >= first);
	w->after = last + 1;
	w->nodes++;
	right = walk(w, get_le64(n + (w->seven ? 0x10 : 8)), node, depth + 1);
	assert_int_equal(word(w->p, up) & 3, right > left ? 1 : left > right ? 3 : 0);
	assert_true(right <= left + 1 && left <= right + 1);
	return 1 + MAX(left, right);
}

static void check_tree(const struct sim_process *p)
{
	const struct sim_layout *l = sim__layout(&m.spec);
	const uint64_t head = sim__windows_eprocess(p) + l->vad_root;
	struct walk w = { .p = p, .seven = l->seven };
	uint64_t count = l->seven ? word(p, head + 0x28) >> 8 : word(p, head + 0x10);

	walk(&w, word(p, head + (l->seven ? 0x10 : 0)), l->seven ? head : 0, 0);
	assert_int_equal(w.nodes, count);
	assert_int_equal(w.nodes > 10, p != &m.processes[0]);
}

/* Around a list, which must come back. */
static uint32_t ring(const struct sim_process *p, uint64_t head)
{
	uint64_t at = head;
	uint32_t n = 0;

	do {
		const uint64_t next = word(p, at);

		assert_int_equal(word(p, next + 8), at);
		at = next;
	} while (at != head && ++n < 100);
	return n;
}

static void check_process(const struct sim_process *p)
{
	const struct sim_layout *l = sim__layout(&m.spec);
	const uint64_t at = sim__windows_eprocess(p);
	uint64_t peb, ldr, base;

	check_tree(p);
	if (p == &m.processes[0])
		return;
	peb = word(p, at + l->peb);
	base = word(p, peb + 0x10);
	ldr = word(p, peb + 0x18);
	assert_int_equal(word(p, at + l->section_base), base);
	assert_int_equal(word(p, peb + 0x120) & 0xffff, l->build);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ring(p, ldr + 0x10 + 0x10 * i), 3 + m.spec.ghosts);
	assert_int_equal(word(p, word(p, ldr + 0x10) + 0x30), base);
	assert_int_equal(ring(p, at + l->threads), m.spec.threads);
}

static void check_layout(const char *more)
{
	build(more);
	for (uint32_t i = 0; i < m.n_processes; i++)
		check_process(&m.processes[i]);
	tear_down();
}

static void test_trees_lists_and_pebs_hang_together(void **state)
{
	(void)state;
	check_layout(",windows=7,ghosts=1");
	check_layout(",windows=7,threads=1,seed=5");
	check_layout(",windows=10,ghosts=1,threads=8");
	check_layout(",windows=10,build=17763");
	check_layout(",windows=10,build=18362");
	check_layout(",windows=10,build=22000");
}

static void check_heaps(const struct sim_process *p, uint32_t count)
{
	const struct sim_layout *l = sim__layout(&m.spec);
	const uint64_t peb = word(p, sim__windows_eprocess(p) + l->peb);
	const uint64_t array = word(p, peb + 0xf0);

	assert_int_equal(word(p, peb + 0xe8) & UINT32_MAX, count);
	assert_int_equal(word(p, peb + 0x30), word(p, array));
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t heap = word(p, array + 8 * i);

		assert_int_equal(heap % 0x10000, 0);
		assert_int_equal(word(p, heap + (l->seven ? 0xa0 : 0x98)) & UINT32_MAX, 0xeeffeeff);
		assert_int_equal(word(p, heap + 0x28), heap);
	}
}

static void test_heaps_are_in_the_list_of_the_peb(void **state)
{
	uint64_t counts[IS_PROTOTYPE + 1];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		build(i ? ",windows=10,heaps=2,heap_leaks=5" : ",windows=7,heaps=16");
		for (uint32_t k = 1; k < m.n_processes; k++)
			check_heaps(&m.processes[k], i ? 2 : 16);
		check_regions(counts);
		assert_true(counts[IS_EMPTY] > 0);
		tear_down();
	}
}

/* Only heaps have pages that are not committed. */
static void count_heap_pages(const struct sim_process *p, uint32_t counts[IS_PROTOTYPE + 1])
{
	for (size_t i = 0; i < p->regions.count; i++) {
		const struct sim_region *r = &p->regions.at[i];

		for (uint32_t k = 0; r->committed && k < r->pages; k++) {
			const uint8_t *entry = sim__table_entry(
				&m, p->root, r->va + (uint64_t)k * PAGE_SIZE, 1, false);

			counts[entry ? sim__entry_kind(&m, get_le64(entry)) : IS_EMPTY]++;
		}
	}
}

static void test_the_papers_resolver_has_the_papers_numbers(void **state)
{
	uint32_t counts[IS_PROTOTYPE + 1] = { 0 };
	const struct sim_process *p;
	struct err e = ERR_INIT;
	uint64_t array;

	(void)state;
	CHECK_OK(sim_spec_parse("cohen2015heaps,seed=9", &m.spec, &e), &e);
	CHECK_OK(sim__machine_init(&m, &e), &e);
	p = &m.processes[m.main];
	assert_int_equal(p->pid, 1148);
	check_heaps(p, 12);
	array = word(p, word(p, sim__windows_eprocess(p) + 0x338) + 0xf0);
	assert_int_equal(word(p, array + 3 * 8), 0x11d0000);
	assert_int_equal(word(p, array + 11 * 8), 0x5100000);
	assert_int_equal(word(p, 0x5101860), 0x5101f60);
	assert_int_equal(word(p, 0x5101f78), 0x1244fc0);
	assert_int_equal(word(p, 0x1244fc0), 0x11e2b30);
	assert_int_equal(word(p, 0x11e2b38), 0x11e2870);
	count_heap_pages(p, counts);
	assert_int_equal(counts[IS_VALID], 457);
	assert_int_equal(counts[IS_TRANSITION], 144);
	assert_int_equal(counts[IS_SOFT], 431);
	assert_int_equal(counts[IS_ZERO] + counts[IS_EMPTY], 2254);
}

/* Words of 32 bits, from the text and from leaker.h. */
static void test_the_leaking_program_is_as_in_the_text(void **state)
{
	static const uint32_t sizes[] = { 204, 291, 1110, 128 };
	static const uint32_t blocks[] = { 0x422518, 0x422600, 0x422740, 0x422bb0 };
	static const uint32_t frames[] = { 7, 8, 8, 7 };
	const struct sim_process *p;
	struct err e = ERR_INIT;
	uint64_t heaps, entry, newest;

	(void)state;
	CHECK_OK(sim_spec_parse("leaks2010,seed=9", &m.spec, &e), &e);
	CHECK_OK(sim__machine_init(&m, &e), &e);
	p = &m.processes[m.main];
	assert_string_equal(p->name, "app.exe");
	heaps = word(p, 0x7efde090) & UINT32_MAX;
	assert_int_equal(word(p, heaps), 0x0060000000410000);
	for (unsigned i = 0; i < ARRAY_SIZE(blocks); i++) {
		/* What follows is the kind of the trace and what is unused of the block. */
		entry = word(p, blocks[i] - 16) & UINT32_MAX;
		assert_int_equal(word(p, blocks[i] - 8) & UINT32_MAX, 2);
		assert_int_equal(word(p, blocks[i] - 8) >> 32 & 0xffff,
				 (sizes[i] + 24 + 7) / 8 * 8 - sizes[i]);
		assert_int_equal(word(p, entry + 8), UINT64_C(0x76eab23400000000) | frames[i]);
	}
	newest = word(p, 0xeff040) & UINT32_MAX;
	assert_int_equal(newest, 0x422cd8);
	assert_int_equal(word(p, newest) & UINT32_MAX, 0x422c48);
	assert_int_equal(word(p, newest + 16), UINT64_C(1) << 32 | 89);
}

static void test_builds_that_are_not_known_are_refused(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(sim_spec_parse("desktop,build=7601", &m.spec, &e), ST_USAGE);
	sim_spec_deinit(&m.spec);
	assert_int_equal(sim_spec_parse("desktop,windows=7,build=19045", &m.spec, &e), ST_USAGE);
	sim_spec_deinit(&m.spec);
	assert_int_equal(sim_spec_parse("desktop,process_truth=x", &m.spec, &e), ST_USAGE);
	sim_spec_deinit(&m.spec);
}

static int after(void **state)
{
	(void)state;
	tear_down();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regions_are_found_by_address_and_by_number),
		cmocka_unit_test_teardown(test_pages_of_regions_keep_their_bytes_wherever_they_go,
					  after),
		cmocka_unit_test_teardown(test_a_share_of_nothing_is_nothing, after),
		cmocka_unit_test_teardown(test_trees_lists_and_pebs_hang_together, after),
		cmocka_unit_test_teardown(test_heaps_are_in_the_list_of_the_peb, after),
		cmocka_unit_test_teardown(test_the_papers_resolver_has_the_papers_numbers, after),
		cmocka_unit_test_teardown(test_the_leaking_program_is_as_in_the_text, after),
		cmocka_unit_test(test_builds_that_are_not_known_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
