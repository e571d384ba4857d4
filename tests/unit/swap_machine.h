/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up Linux machine with swap caches: the kernel's spaces and trees, or tables, and struct
 * pages, of one area. Its layout is that of the generated BTF (tests/gen/machine.h).
 */
#ifndef RAMSEAL_TESTS_UNIT_SWAP_MACHINE_H
#define RAMSEAL_TESTS_UNIT_SWAP_MACHINE_H

#include <string.h>

#include "agent/shared/kernel/swap_cache.h"
#include "tests/unit/machine_mem.h"

#define RAM_LAST  UINT64_C(0x3fffffff)
#define DIRECT    UINT64_C(0xffff888000000000)
#define VMEMMAP   UINT64_C(0xffffea0000000000)
#define IMAGE     UINT64_C(0xffffffff82000000)

/* Physical: what these map, and what lies in the direct map. */
#define PAGES_AT  UINT64_C(0x200000)
#define IMAGE_AT  UINT64_C(0x400000)
#define SPACES_AT UINT64_C(0x600000) /* of one area: 10 of them */
#define NODES_AT  UINT64_C(0x700000) /* two pages for each */
#define AREAS_AT  UINT64_C(0x900000) /* of one area: struct swap_info_struct, */
#define ZEROS_AT  UINT64_C(0x902000) /* its bitmap, on two pages, */
#define TABLES_AT UINT64_C(0x910000) /* and a table for each cluster */
#define FRAMES_AT UINT64_C(0x1000000)
#define OPS       (IMAGE + 0x1000)
#define AREAS     (IMAGE + 0x2000)
#define CLUSTERS  UINT64_C(0xffffc90000000000) /* vmalloc: two pages */
#define SLOTS     UINT32_C(40000)              /* of the area */

#ifndef AREA
#define AREA 3
#endif
#define FRAME(n)   (FRAMES_AT + (uint64_t)(n) * PAGE_SIZE)
#define PAGE(n)    (VMEMMAP + FRAME(n) / PAGE_SIZE * MACHINE_PAGE_SIZE)
#define UPTODATE   (UINT64_C(1) << MACHINE_PG_UPTODATE)
#define HEAD       (UINT64_C(1) << MACHINE_PG_HEAD)
#define IN_CACHE   (UINT64_C(1) << MACHINE_PG_SWAPCACHE)
#define VALUE(n)   ((uint64_t)(n) << 1 | 1)
#define NODE(va)   ((va) | 2)
#define SIBLING(n) ((uint64_t)(n) << 2 | 2)
#define RETRY      SIBLING(256)
#define ZERO       SIBLING(257)

static struct machine m;
static struct machine_mem mem;
static struct discovery kernel;
static struct vmcoreinfo vmcoreinfo;
static struct swap_cache *cache;
static unsigned nodes;
static unsigned node_in_page; /* where on its page; slabs put nodes across pages, too */

/* Memory that something is done to before read number `at`, counted from 0. */
static struct {
	struct physmem mem;
	unsigned reads;
	unsigned at;
	void (*what)(void);
} changing;

static inline void changing_read(struct physmem *unused, uint64_t pa, uint8_t *buf, size_t pages,
				 struct physmem_page *ret)
{
	(void)unused;
	if (changing.what && changing.reads++ == changing.at)
		changing.what();
	mem.pieces.mem.read(&mem.pieces.mem, pa, buf, pages, ret);
}

static inline uint64_t entry_of(uint64_t slot)
{
	return (uint64_t)AREA << 58 | slot;
}

static inline uint64_t space_at(uint64_t slot)
{
	return SPACES_AT + (slot >> 14) * MACHINE_SPACE_SIZE;
}

static inline uint64_t head_at(uint64_t slot)
{
	return space_at(slot) + MACHINE_SPACE_PAGES + MACHINE_XA_HEAD;
}

static inline uint64_t node_slot(uint64_t node, unsigned i)
{
	return node + MACHINE_NODE_SLOTS + 8 * i;
}

/* Its physical address. */
static inline uint64_t make_node(uint64_t slot, unsigned shift, unsigned offset, uint64_t parent)
{
	const uint64_t pa = NODES_AT + (uint64_t)nodes++ * 2 * PAGE_SIZE + node_in_page;

	memset(machine_page(&m, pa & ~(uint64_t)(PAGE_SIZE - 1)), 0, PAGE_SIZE);
	machine_page(&m, (pa & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE);
	machine_u64(&m, pa, shift | offset << 8);
	machine_u64(&m, pa + 8, parent ? DIRECT + parent : 0);
	machine_u64(&m, pa + 0x10, DIRECT + space_at(slot) + MACHINE_SPACE_PAGES);
	return pa;
}

/*
 * Where the tree of a slot's space has an index, in a node of `shift`; below a root of
 * `root_shift`.
 */
static inline uint64_t place_of(uint64_t slot, uint64_t index, unsigned root_shift, unsigned shift)
{
	uint64_t at = head_at(slot), node = 0;

	for (unsigned s = root_shift;; s -= 6) {
		const unsigned in_parent = (unsigned)(index >> (s + 6) & 63);

		if (!machine_get(&m, at))
			machine_u64(&m, at, NODE(DIRECT + make_node(slot, s, in_parent, node)));
		node = machine_get(&m, at) - 2 - DIRECT;
		at = node_slot(node, (unsigned)(index >> s & 63));
		if (s == shift)
			return at;
	}
}

static inline void put_page(unsigned n, uint64_t flags, uint64_t private)
{
	const uint64_t at = PAGES_AT + FRAME(n) / PAGE_SIZE * MACHINE_PAGE_SIZE;

	machine_u64(&m, at, flags);
	machine_u64(&m, at + MACHINE_PAGE_PRIVATE, private);
}

static inline void take_layout(unsigned parts, uint32_t slots)
{
	struct image i = { 0 };
	struct btf b;

	machine_btf_of_swap(&i, parts, slots);
	assert_int_equal(btf_init(&b, i.at, i.len, NULL), ST_OK);
	assert_true(linux_offsets_from_btf(&kernel.linux_offsets, &b));
	btf_deinit(&b);
	image_free(&i);
}

static inline void set_up_swap(void)
{
	m = (struct machine){ .levels = 4, .next = 0x100000 };
	kernel = (struct discovery){ .os = OS_LINUX, .mode = PAGING_4_LEVEL };
	nodes = 0;
	node_in_page = 0;
	kernel.walk_dtb = machine_alloc(&m);
	machine_map(&m, kernel.walk_dtb, DIRECT, 0, 3);
	machine_map(&m, kernel.walk_dtb, VMEMMAP, PAGES_AT, 2);
	machine_map(&m, kernel.walk_dtb, IMAGE, IMAGE_AT, 2);
	take_layout(0, 0);
	kernel.vmemmap = VMEMMAP;
	kernel.swapper_spaces = IMAGE;
	kernel.swap_ops = OPS;
	for (uint64_t pa = PAGES_AT; pa < PAGES_AT + 0x200000; pa += PAGE_SIZE)
		machine_page(&m, pa);
	for (unsigned n = 0; n < 32; n++)
		memset(machine_page(&m, FRAME(n)), 'A' + n, PAGE_SIZE);
	machine_u64(&m, IMAGE_AT + 8 * AREA, DIRECT + SPACES_AT);
	for (uint64_t s = 0; s < 10; s++)
		machine_u64(&m, space_at(s << 14) + MACHINE_SPACE_OPS, OPS);
}

/*
 * Areas: what the BTF's `parts` say is there. A table has `slots`; of the area's clusters, 0 to 7
 * and those around page boundaries have one.
 */
static unsigned cluster_slots;

static inline void put_area(unsigned parts)
{
	machine_page(&m, AREAS_AT);
	machine_page(&m, ZEROS_AT), machine_page(&m, ZEROS_AT + PAGE_SIZE);
	machine_page(&m, IMAGE_AT + 0x2000);
	machine_u64(&m, IMAGE_AT + 0x2000 + 8 * AREA, DIRECT + AREAS_AT);
	machine_page(&m, AREAS_AT)[MACHINE_AREA_TYPE] = AREA;
	machine_put(&m, AREAS_AT + MACHINE_AREA_MAX, &(const uint32_t){ SLOTS }, 4);
	machine_u64(&m, AREAS_AT + MACHINE_AREA_TABLES, CLUSTERS);
	if (parts & MACHINE_BTF_ZEROMAP)
		machine_u64(&m, AREAS_AT + MACHINE_AREA_ZEROMAP, DIRECT + ZEROS_AT);
	kernel.swap_areas = AREAS;
}

/* Where the cluster of a slot has its table; physical. */
static inline uint64_t cluster_at(uint64_t slot)
{
	return machine_pa(&m, kernel.walk_dtb, CLUSTERS + slot / cluster_slots * MACHINE_CLUSTER) +
	       MACHINE_CLUSTER_TABLE;
}

/* The entry of a slot; its table is made if it is missing. */
static inline uint64_t entry_at(uint64_t slot)
{
	const uint64_t at = TABLES_AT + slot / cluster_slots * PAGE_SIZE;

	machine_page(&m, at);
	if (!machine_get(&m, cluster_at(slot)))
		machine_u64(&m, cluster_at(slot), DIRECT + at);
	return at + slot % cluster_slots * 8;
}

static inline uint64_t zeros_at(uint64_t slot)
{
	return ZEROS_AT + slot / 64 * 8;
}

/* As set_up_swap(), and since 6.18: a kernel of that version. */
static inline void set_up_tables(unsigned version, unsigned parts, unsigned slots)
{
	set_up_swap();
	cluster_slots = slots;
	take_layout(parts, slots);
	kernel.swapper_spaces = kernel.swap_ops = 0;
	kernel.vmcoreinfo = &vmcoreinfo;
	vmcoreinfo.len = (size_t)snprintf(vmcoreinfo.text, sizeof(vmcoreinfo.text),
					  "OSRELEASE=%u.%u.3\n", version / 100, version % 100);
	machine_map_fresh(&m, kernel.walk_dtb, CLUSTERS, 2 * PAGE_SIZE);
	put_area(parts);
}

/* Behind the last new page. */
static inline void begin_swap(void)
{
	const char *why;
	struct err e = ERR_INIT;

	machine_mem_init(&mem, &m, RAM_LAST);
	changing.mem = (struct physmem){ .read = changing_read, .ranges = mem.pieces.mem.ranges };
	changing.what = NULL;
	CHECK_OK(swap_cache_create(&changing.mem, &kernel, &cache, &why, &e), &e);
	assert_null(why);
	assert_non_null(cache);
}

static inline void end_swap(void)
{
	swap_cache_destroy(cache);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

#endif
