/* SPDX-License-Identifier: Apache-2.0 */
/* The letters are the sources' of pagestore.h. */
#include "agent/examine/virtual/pagestore_internal.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/defs.h"
#include "formats/base/lz4.h"
#include "formats/base/xpress.h"

/* Values of KeyToStoreTree: V, M; the states are D's (1507, 1511, 1809, 11 23H2, 24H2). */
#define STORE_INDEX    0x3ff
#define STORE_STATE(v) ((v) >> 16 & 0xff)
#define STORE_INVALID  (UINT32_C(1) << 24)

/* SMKM_STORE: V, M, D. What is behind the pointer to itself, is so in all builds. */
#define AT_PAGES_TREE  0x50
#define AT_CHUNKS      0x110
#define BEHIND_SELF    8
#define CHUNKS_SIZE    0x11c

/* Of a record, and of what PagesTree has instead. */
#define NEXT_RECORD    UINT32_MAX
#define RECORD_SIZE(v) ((v) & (PAGE_SIZE - 1))
#define RECORD_USES(v) ((v) / PAGE_SIZE)
#define ENTRY_1507     16
#define ENTRY_GONE     (UINT32_C(1) << 24)

#define CHUNK_ENTRY    0x10
#define REGION_ADDRESS UINT64_C(0x7fffffffffff0000)
#define USER_LAST      UINT64_C(0x00007fffffffffff)

/* StStart, which makes a store, refuses others (D: 1511, 1809, 11 24H2). */
#define REGION_MIN     ((uint32_t)PAGE_SIZE)
#define REGION_MAX     UINT32_C(0x20000)
#define REGIONS_MAX    UINT32_C(0x40000)

/* KPROCESS.DirectoryTableBase, in all of JPCERTCC/Windows-Symbol-Tables 11ad856. */
#define AT_DTB         0x28
/* KTHREAD.Process: N (1507 and 1511). */
#define AT_PROCESS     0x220

/* Algorithms: before 24H2 RTL's numbers; there is one for XPRESS with Huffman codes, too. */
#define XPRESS         3
#define LZ4            0

/*
 * From 1607 to 1903 V, M, D, and then M, D; but the algorithm's place in 24H2 (that it is LZ4 has
 * M too), the manager, and all of 1507 and 1511, where a thread leads to the owner, have D alone.
 */
struct layout {
	uint32_t first, last; /* builds */
	const struct pagestore_kind *kind;
	uint16_t algorithm, regions, owner;
	uint16_t manager; /* 0: is not looked at */
};

static const struct layout layouts[] = {
	{ 10240, 10240, &pagestore__kind_1507, 0x200, 0x1248, 0x1238, 0x1420 },
	{ 10241, 10586, &pagestore__kind_1507, 0x200, 0x1248, 0x1238, 0x1428 },
	{ 14393, 14393, &pagestore__kind_1607, 0x420, 0x17a8, 0x1918, 0 }, /* 1607 */
	{ 15063, 15063, &pagestore__kind_1607, 0x420, 0x1828, 0x1988, 0 }, /* 1703 */
	{ 16299, 18363, &pagestore__kind_1607, 0x430, 0x1848, 0x19a8, 0 }, /* 1709 to 1909 */
	{ 19041, 22631, &pagestore__kind_1607, 0x430, 0x1848, 0x19b8, 0 }, /* 2004 to 11 23H2 */
	{ 26100, 26200, &pagestore__kind_24h2, 0x12e0, 0x1b70, 0x1d08, 0x1d98 },
};

const char *pagestore_why(enum pagestore_answer a)
{
	static const char *const text[PAGESTORE_ANSWERS] = {
#define X(name, text) [name] = text,
		PAGESTORE_MAP(X)
#undef X
	};

	return (unsigned)a < PAGESTORE_ANSWERS ? text[a] : "?";
}

bool pagestore__is_kernel(uint64_t va, uint64_t align)
{
	return va >> 47 == 0x1ffff && va % align == 0;
}

/*
 * B-trees. Each node is a page of its own.
 */

#define CHILD 16 /* an entry of a node that is no leaf */

static const uint8_t *node_entry_at(const struct pagestore_node *n, unsigned i)
{
	return n->page + PAGESTORE_NODE_HEAD + (size_t)n->size * i;
}

static uint32_t node_key_at(const struct pagestore_node *n, unsigned i)
{
	return get_le32(node_entry_at(n, i));
}

bool pagestore__read_node(const struct pagestore *s, uint64_t va, unsigned pair,
			  struct pagestore_node *ret)
{
	const struct memory_view *k = &s->plan.kernel;
	const uint8_t *p = pagestore__is_kernel(va, PAGE_SIZE) ? k->page(k->context, va) : NULL;

	if (!p || p[3] > 1)
		return false;
	*ret = (struct pagestore_node){ p, get_le16(p), p[3] ? pair : CHILD, p[3] };
	if (!ret->entries || ret->entries > (PAGE_SIZE - PAGESTORE_NODE_HEAD) / ret->size)
		return false;
	for (unsigned i = 1; i < ret->entries; i++)
		if (node_key_at(ret, i) <= node_key_at(ret, i - 1))
			return false;
	return true;
}

/* How many entries of the node have a key up to this one. */
static unsigned up_to(const struct pagestore_node *n, uint32_t key)
{
	return (unsigned)FIRST_WHERE(i, n->entries, node_key_at(n, (unsigned)i) > key);
}

/* What stands behind the key. */
static bool find_key_in_tree(const struct pagestore *s, uint64_t tree, uint32_t key, unsigned pair,
			     uint8_t *ret)
{
	struct pagestore_node n;

	for (unsigned i = 0; i < PAGESTORE_DEPTH && pagestore__read_node(s, tree, pair, &n); i++) {
		const unsigned at = up_to(&n, key);

		if (!n.leaf) {
			tree = get_le64((at ? node_entry_at(&n, at - 1) : n.page) + 8);
			continue;
		}
		if (!at || node_key_at(&n, at - 1) != key)
			return false;
		memcpy(ret, node_entry_at(&n, at - 1) + 4, pair - 4);
		return true;
	}
	return false;
}

/*
 * A store
 */

struct store {
	uint64_t va;
	uint64_t pages_tree;
	uint64_t regions;
	uint32_t region_size, n_regions;
	uint32_t size_mask, index_shift;
	uint64_t dtb; /* of its owner */
	uint8_t chunks[CHUNKS_SIZE];
};

bool pagestore__is_store(const struct pagestore *s, const struct pagestore_kind *k, uint64_t va)
{
	uint64_t self;

	return pagestore__is_kernel(va, PAGE_SIZE) &&
	       view_u64(&s->plan.kernel, va + k->self, &self) && self == va;
}

/* Where the manager has the pointer to it. */
static bool find_store_entry(const struct pagestore *s, uint32_t index, uint64_t *ret)
{
	const uint64_t array = s->manager + 8 * (uint64_t)(index / PAGESTORE_ARRAY);

	if (s->kind->inside) {
		*ret = s->manager + PAGESTORE_INSIDE_ENTRY * (uint64_t)index;
		return index < PAGESTORE_INSIDE;
	}
	if (!view_u64(&s->plan.kernel, array, ret) || !pagestore__is_kernel(*ret, 8))
		return false;
	*ret += PAGESTORE_ARRAY_ENTRY * (uint64_t)(index % PAGESTORE_ARRAY);
	return true;
}

static enum pagestore_answer find_store_of_key(const struct pagestore *s, uint32_t key,
					       struct store *ret)
{
	uint8_t raw[PAGESTORE_PAIR];
	uint32_t value;
	uint64_t at;

	if (!find_key_in_tree(s, s->tree, key, sizeof(raw), raw))
		return PAGESTORE_NO_KEY;
	value = get_le32(raw);
	if ((value & STORE_INVALID) || (STORE_STATE(value) != 1 && STORE_STATE(value) != 3))
		return PAGESTORE_NO_KEY;
	return find_store_entry(s, value & STORE_INDEX, &at) &&
			       view_u64(&s->plan.kernel, at, &ret->va) &&
			       pagestore__is_store(s, s->kind, ret->va)
		       ? PAGESTORE_GIVEN
		       : PAGESTORE_NO_STORE;
}

/* 24H2 has a number of its own there, of 32 bits. */
static bool has_algorithm(const struct pagestore *s, const struct layout *l, uint64_t store)
{
	const struct memory_view *k = &s->plan.kernel;
	uint32_t wide;
	uint16_t narrow;

	if (l->kind == &pagestore__kind_24h2)
		return view_u32(k, store + l->algorithm, &wide) && wide == LZ4;
	return view_u16(k, store + l->algorithm, &narrow) && narrow == XPRESS;
}

static bool has_regions(const struct pagestore *s, const struct layout *l, struct store *x)
{
	uint8_t words[16];

	if (!view_read(&s->plan.kernel, x->va + l->regions - 8, words, sizeof(words)))
		return false;
	x->region_size = get_le32(words);
	x->n_regions = get_le32(words + 4);
	x->regions = get_le64(words + 8);
	return pagestore__is_kernel(x->regions, 8) && x->n_regions && x->n_regions <= REGIONS_MAX &&
	       x->region_size >= REGION_MIN && x->region_size <= REGION_MAX &&
	       x->index_shift < 32 && x->size_mask == (UINT32_C(1) << x->index_shift) - 1 &&
	       x->region_size == UINT64_C(16) << x->index_shift;
}

/* The owner's root is what tells one layout from the others: it has to be an address space's. */
static bool has_owner(const struct pagestore *s, const struct layout *l, struct store *x)
{
	const struct memory_view *k = &s->plan.kernel;
	uint64_t owner;

	if (!view_u64(k, x->va + l->owner, &owner) || !pagestore__is_kernel(owner, 8))
		return false;
	if (l->kind->inside &&
	    (!view_u64(k, owner + AT_PROCESS, &owner) || !pagestore__is_kernel(owner, 8)))
		return false;
	return view_u64(k, owner + AT_DTB, &x->dtb) && s->plan.known(s->plan.context, x->dtb);
}

static bool has_manager(const struct pagestore *s, const struct layout *l, const struct store *x)
{
	uint64_t manager;

	return !l->manager ||
	       (view_u64(&s->plan.kernel, x->va + l->manager, &manager) && manager == s->manager);
}

static bool layout_fits_store(const struct pagestore *s, const struct layout *l, struct store *x)
{
	return l->kind == s->kind && has_algorithm(s, l, x->va) && has_regions(s, l, x) &&
	       has_owner(s, l, x) && has_manager(s, l, x);
}

static bool choose_store_layout(const struct pagestore *s, struct store *ret)
{
	const uint32_t build = s->plan.build;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (build >= layouts[i].first && build <= layouts[i].last)
			if (layout_fits_store(s, &layouts[i], ret))
				return true;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layout_fits_store(s, &layouts[i], ret))
			return true;
	return false;
}

static bool read_store(const struct pagestore *s, struct store *ret)
{
	const struct memory_view *k = &s->plan.kernel;
	const uint64_t behind = ret->va + s->kind->self + BEHIND_SELF;

	return view_u64(k, ret->va + AT_PAGES_TREE, &ret->pages_tree) &&
	       view_u32(k, behind, &ret->size_mask) && view_u32(k, behind + 4, &ret->index_shift) &&
	       view_read(k, ret->va + AT_CHUNKS, ret->chunks, sizeof(ret->chunks));
}

/*
 * A page of it
 */

struct record {
	uint32_t place; /* a region, and in it */
	uint32_t size;  /* or the region key of the next one */
};

/*
 * The highest bit of what the shift leaves of a region key chooses an array of chunks, and the bits
 * below it the chunk.
 */
static bool read_record(const struct pagestore *s, const struct store *x, uint32_t region_key,
			struct record *ret)
{
	const struct memory_view *k = &s->plan.kernel;
	const uint32_t shift = get_le32(x->chunks + 0x108) & 0xff;
	const uint32_t mask = get_le32(x->chunks + 0x10c);
	const uint32_t size = get_le32(x->chunks + 0x110);
	const uint32_t head = get_le32(x->chunks + 0x118);
	const uint32_t chosen = shift < 32 ? region_key >> shift : 0;
	uint64_t array, chunk;
	unsigned top = 31;

	/* A chunk is a page: no record lies further away. */
	if (!chosen || size < 8 || size > PAGE_SIZE || head > PAGE_SIZE)
		return false;
	while (!(chosen >> top))
		top--;
	array = get_le64(x->chunks + 8 * (size_t)top);
	if (!pagestore__is_kernel(array, 8) ||
	    !view_u64(k, array + (uint64_t)CHUNK_ENTRY * (chosen ^ UINT32_C(1) << top), &chunk) ||
	    !pagestore__is_kernel(chunk, 8))
		return false;
	chunk += head + (uint64_t)size * (region_key & mask);
	return view_u32(k, chunk, &ret->place) && view_u32(k, chunk + 4, &ret->size);
}

static bool follow_records(const struct pagestore *s, const struct store *x, uint32_t region_key,
			   struct record *ret)
{
	for (unsigned i = 0; i < PAGESTORE_CHAIN; i++) {
		if (!read_record(s, x, region_key, ret))
			return false;
		if (ret->place != NEXT_RECORD)
			return RECORD_USES(ret->size);
		region_key = ret->size;
	}
	return false;
}

static bool find_page_record(const struct pagestore *s, const struct store *x, uint32_t key,
			     struct record *ret)
{
	uint8_t raw[ENTRY_1507];

	if (!s->kind->inside)
		return find_key_in_tree(s, x->pages_tree, key, PAGESTORE_PAIR, raw) &&
		       follow_records(s, x, get_le32(raw), ret);
	if (!find_key_in_tree(s, x->pages_tree, key, ENTRY_1507, raw))
		return false;
	*ret = (struct record){ get_le32(raw), get_le32(raw + 4) };
	return !(ret->size & ENTRY_GONE);
}

/* The user half of the owner, for view_read(). */
struct user_half {
	const struct pagestore *s;
	uint64_t dtb;
};

static const uint8_t *user_half_page(void *context, uint64_t va)
{
	const struct user_half *u = context;

	return va <= USER_LAST ? u->s->plan.user(u->s->plan.context, u->dtb, va) : NULL;
}

/* Regions come and go; what they hold never reaches from one into another. */
static enum pagestore_answer find_data(const struct pagestore *s, const struct store *x,
				       uint32_t place, uint32_t size, uint64_t *ret)
{
	const uint32_t region = place >> x->index_shift;
	const uint32_t at = (place & x->size_mask) * 16;

	if (region >= x->n_regions || at + size > x->region_size)
		return PAGESTORE_NO_RECORD;
	if (!view_u64(&s->plan.kernel, x->regions + 8 * (uint64_t)region, ret))
		return PAGESTORE_NO_RECORD;
	*ret = (*ret & REGION_ADDRESS) + at;
	return PAGESTORE_GIVEN;
}

static bool decode_stored_page(const struct pagestore *s, const uint8_t *packed, size_t size,
			       uint8_t *page)
{
	size_t got;

	return (s->kind == &pagestore__kind_24h2
			? lz4_decode(packed, size, page, PAGE_SIZE, &got)
			: xpress_decode(packed, size, page, PAGE_SIZE, &got)) &&
	       got == PAGE_SIZE;
}

static enum pagestore_answer read_stored_data(const struct pagestore *s, const struct store *x,
					      const struct record *r, uint8_t *page)
{
	const uint32_t packed_size = RECORD_SIZE(r->size),
		       size = packed_size ? packed_size : PAGE_SIZE;
	struct user_half u = { s, x->dtb };
	const struct memory_view owner = { user_half_page, &u };
	uint8_t packed[PAGE_SIZE];
	enum pagestore_answer a;
	uint64_t at;

	a = find_data(s, x, r->place, size, &at);
	if (a)
		return a;
	if (!view_read(&owner, at, packed_size ? packed : page, size))
		return PAGESTORE_NO_DATA;
	return !packed_size || decode_stored_page(s, packed, size, page) ? PAGESTORE_GIVEN
									 : PAGESTORE_BAD_DATA;
}

enum pagestore_answer pagestore_read(const struct pagestore *s, uint32_t key, uint8_t *page)
{
	enum pagestore_answer st;
	struct record r;
	struct store x;

	if (!s->kind)
		return PAGESTORE_NONE;
	key &= s->kind->keys;
	st = find_store_of_key(s, key, &x);
	if (st)
		return st;
	if (!read_store(s, &x))
		return PAGESTORE_NO_STORE;
	if (!choose_store_layout(s, &x))
		return PAGESTORE_NO_LAYOUT;
	if (!find_page_record(s, &x, key, &r))
		return PAGESTORE_NO_RECORD;
	return read_stored_data(s, &x, &r, page);
}
