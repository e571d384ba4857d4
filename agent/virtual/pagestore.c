/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/virtual/pagestore.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/defs.h"
#include "formats/base/xpress.h"

/* SmGlobals. */
#define METADATA_ARRAYS 32
#define METADATA_EACH   32
#define METADATA_SIZE   0x28
#define AT_TREE         0x1c0
#define GLOBALS_SIZE    (AT_TREE + 8)

/*
 * From 22H2 on SmGlobals points into what it was before: MemProcFS has the place of the pointer,
 * and how far behind the beginning it points, for 22621 to 22631.
 */
#define AT_INDIRECT     8
#define INDIRECT_BACK   0x7a8

/* Values of KeyToStoreTree. */
#define STORE_INDEX     0x3ff
#define STORE_INVALID   (UINT32_C(1) << 24)

/* SMKM_STORE, in all builds. */
#define AT_PAGES_TREE   0x50
#define AT_CHUNKS       0x110
#define AT_SELF         0x370
#define AT_SIZE_MASK    0x378
#define AT_INDEX_SHIFT  0x37c
#define CHUNKS_SIZE     0x11c

#define XPRESS          3
#define NEXT_RECORD     UINT32_MAX
#define CHUNK_ENTRY     0x10
#define REGION_ADDRESS  UINT64_C(0x7fffffffffff0000)
#define USER_LAST       UINT64_C(0x00007fffffffffff)

/* KPROCESS.DirectoryTableBase, in all of JPCERTCC/Windows-Symbol-Tables 11ad856. */
#define AT_DTB          0x28

struct layout {
	uint32_t first, last; /* builds */
	uint16_t algorithm, regions, owner;
};

static const struct layout layouts[] = {
	{ 14393, 14393, 0x420, 0x17a8, 0x1918 }, /* 1607 */
	{ 15063, 15063, 0x420, 0x1828, 0x1988 }, /* 1703 */
	{ 16299, 18363, 0x430, 0x1848, 0x19a8 }, /* 1709 to 1909 */
	{ 19041, 22631, 0x430, 0x1848, 0x19b8 }, /* 2004 to 11 23H2 (MemProcFS only) */
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

static bool is_kernel(uint64_t va, uint64_t align)
{
	return va >> 47 == 0x1ffff && va % align == 0;
}

/*
 * B-trees. Each node is a page of its own.
 */

#define NODE_HEAD  0x10
#define LEAF_ENTRY 8
#define NODE_ENTRY 16

struct node {
	const uint8_t *page; /* until the next read */
	unsigned entries;
	unsigned size; /* of an entry */
	bool leaf;
};

/* Keys rise from entry to entry. */
static bool read_node(const struct pagestore *s, uint64_t va, struct node *ret)
{
	const struct memory_view *k = &s->plan.kernel;
	const uint8_t *p = is_kernel(va, PAGE_SIZE) ? k->page(k->context, va) : NULL;

	if (!p || p[3] > 1)
		return false;
	*ret = (struct node){ p, get_le16(p), p[3] ? LEAF_ENTRY : NODE_ENTRY, p[3] };
	if (!ret->entries || ret->entries > (PAGE_SIZE - NODE_HEAD) / ret->size)
		return false;
	for (unsigned i = 1; i < ret->entries; i++)
		if (get_le32(p + NODE_HEAD + (size_t)ret->size * i) <=
		    get_le32(p + NODE_HEAD + (size_t)ret->size * (i - 1)))
			return false;
	return true;
}

/* How many entries of the node have a key up to this one. */
static unsigned up_to(const struct node *n, uint32_t key)
{
	unsigned low = 0, high = n->entries;

	while (low < high) {
		const unsigned middle = (low + high) / 2;

		if (get_le32(n->page + NODE_HEAD + (size_t)n->size * middle) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool find_key(const struct pagestore *s, uint64_t tree, uint32_t key, uint32_t *ret)
{
	struct node n;

	for (unsigned i = 0; i < PAGESTORE_DEPTH && read_node(s, tree, &n); i++) {
		const unsigned at = up_to(&n, key);
		const uint8_t *entry = n.page + NODE_HEAD + (size_t)n.size * (at - 1);

		if (!n.leaf) {
			tree = get_le64(at ? entry + 8 : n.page + 8);
			continue;
		}
		if (!at || get_le32(entry) != key)
			return false;
		*ret = get_le32(entry + 4);
		return true;
	}
	return false;
}

/*
 * SmGlobals
 */

/* A store names itself, in all builds: nothing else in memory looks like that by chance. */
static bool is_store(const struct pagestore *s, uint64_t va)
{
	uint64_t self;

	return is_kernel(va, PAGE_SIZE) && view_u64(&s->plan.kernel, va + AT_SELF, &self) &&
	       self == va;
}

static bool take_look(struct pagestore *s)
{
	s->looks -= s->looks != 0;
	return s->looks != 0;
}

static bool has_store(struct pagestore *s, uint64_t metadata)
{
	uint8_t all[METADATA_EACH * METADATA_SIZE];

	if (!take_look(s) || !view_read(&s->plan.kernel, metadata, all, sizeof(all)))
		return false;
	for (unsigned i = 0; i < METADATA_EACH; i++) {
		const uint64_t store = get_le64(all + (size_t)i * METADATA_SIZE);

		if (is_kernel(store, PAGE_SIZE) && take_look(s) && is_store(s, store))
			return true;
	}
	return false;
}

/* The first look is at words that were read already: most of an image ends there. */
static bool take_globals(struct pagestore *s, uint64_t va, const uint8_t *words)
{
	const uint64_t tree = get_le64(words + AT_TREE);
	struct node n;

	if (!is_kernel(tree, PAGE_SIZE))
		return false;
	for (unsigned i = 0; i < METADATA_ARRAYS; i++) {
		const uint64_t metadata = get_le64(words + 8 * (size_t)i);

		if (metadata && !is_kernel(metadata, 8))
			return false;
	}
	for (unsigned i = 0; i < METADATA_ARRAYS; i++) {
		const uint64_t metadata = get_le64(words + 8 * (size_t)i);

		if (!metadata || !has_store(s, metadata))
			continue;
		if (!read_node(s, tree, &n))
			return false;
		s->globals = va;
		s->tree = tree;
		return true;
	}
	return false;
}

static bool try_globals(struct pagestore *s, uint64_t va)
{
	uint8_t words[GLOBALS_SIZE];

	return view_read(&s->plan.kernel, va, words, sizeof(words)) && take_globals(s, va, words);
}

/* Two pages at a time, so that what crosses from one into the next is seen. */
static bool scan(struct pagestore *s, const struct range *r, uint64_t *left)
{
	uint64_t at = r->first & ~(uint64_t)(PAGE_SIZE - 1);
	uint8_t pages[2 * PAGE_SIZE];
	bool has = false;

	for (; at <= r->last && *left >= PAGE_SIZE; at += PAGE_SIZE, *left -= PAGE_SIZE) {
		const bool had = has;

		has = view_read(&s->plan.kernel, at, pages + PAGE_SIZE, PAGE_SIZE);
		if (!has)
			memset(pages + PAGE_SIZE, 0, PAGE_SIZE);
		for (size_t i = 0; had && i < PAGE_SIZE; i += 8)
			if (take_globals(s, at - PAGE_SIZE + i, pages + i))
				return true;
		memcpy(pages, pages + PAGE_SIZE, PAGE_SIZE);
	}
	memset(pages + PAGE_SIZE, 0, PAGE_SIZE);
	for (size_t i = 0; has && i < PAGE_SIZE; i += 8)
		if (take_globals(s, at - PAGE_SIZE + i, pages + i))
			return true;
	return false;
}

bool pagestore_find(struct pagestore *s, const struct pagestore_plan *plan)
{
	uint64_t left = PAGESTORE_SCAN_MAX, indirect;

	*s = (struct pagestore){ .plan = *plan, .looks = PAGESTORE_LOOKS_MAX };
	if (plan->globals) {
		if (try_globals(s, plan->globals))
			return true;
		if (view_u64(&plan->kernel, plan->globals + AT_INDIRECT, &indirect) &&
		    is_kernel(indirect, 8) && try_globals(s, indirect - INDIRECT_BACK))
			return true;
	}
	for (size_t i = 0; i < plan->n_writable; i++)
		if (scan(s, &plan->writable[i], &left))
			return true;
	*s = (struct pagestore){ .plan = *plan };
	return false;
}

/*
 * A page of it
 */

struct store {
	uint64_t va;
	uint64_t pages_tree;
	uint64_t regions;
	uint32_t size_mask, index_shift;
	uint64_t dtb; /* of its owner */
	uint8_t chunks[CHUNKS_SIZE];
};

static enum pagestore_answer find_store(const struct pagestore *s, uint32_t key, struct store *ret)
{
	uint32_t value;
	uint64_t at;

	if (!find_key(s, s->tree, key, &value) || (value & STORE_INVALID))
		return PAGESTORE_NO_KEY;
	value &= STORE_INDEX;
	if (!view_u64(&s->plan.kernel, s->globals + 8 * (uint64_t)(value / METADATA_EACH), &at) ||
	    !is_kernel(at, 8) ||
	    !view_u64(&s->plan.kernel, at + (uint64_t)(value % METADATA_EACH) * METADATA_SIZE,
		      &ret->va) ||
	    !is_store(s, ret->va))
		return PAGESTORE_NO_STORE;
	return PAGESTORE_GIVEN;
}

/* The owner's root is what tells one layout from the others: it has to be an address space's. */
static bool fits(const struct pagestore *s, const struct layout *l, struct store *ret)
{
	const struct memory_view *k = &s->plan.kernel;
	uint16_t algorithm;
	uint64_t owner;

	return view_u16(k, ret->va + l->algorithm, &algorithm) && algorithm == XPRESS &&
	       view_u64(k, ret->va + l->regions, &ret->regions) && is_kernel(ret->regions, 8) &&
	       view_u64(k, ret->va + l->owner, &owner) && is_kernel(owner, 8) &&
	       view_u64(k, owner + AT_DTB, &ret->dtb) && s->plan.known(s->plan.context, ret->dtb);
}

static bool choose_layout(const struct pagestore *s, struct store *ret)
{
	const uint32_t build = s->plan.build;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (build >= layouts[i].first && build <= layouts[i].last)
			if (fits(s, &layouts[i], ret))
				return true;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (fits(s, &layouts[i], ret))
			return true;
	return false;
}

static bool read_store(const struct pagestore *s, struct store *ret)
{
	const struct memory_view *k = &s->plan.kernel;

	return view_u64(k, ret->va + AT_PAGES_TREE, &ret->pages_tree) &&
	       view_u32(k, ret->va + AT_SIZE_MASK, &ret->size_mask) &&
	       view_u32(k, ret->va + AT_INDEX_SHIFT, &ret->index_shift) &&
	       view_read(k, ret->va + AT_CHUNKS, ret->chunks, sizeof(ret->chunks));
}

struct record {
	uint32_t key;
	uint32_t size; /* or the region key of the next one */
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
	if (!is_kernel(array, 8) ||
	    !view_u64(k, array + (uint64_t)CHUNK_ENTRY * (chosen ^ UINT32_C(1) << top), &chunk) ||
	    !is_kernel(chunk, 8))
		return false;
	chunk += head + (uint64_t)size * (region_key & mask);
	return view_u32(k, chunk, &ret->key) && view_u32(k, chunk + 4, &ret->size);
}

static bool find_record(const struct pagestore *s, const struct store *x, uint32_t key,
			struct record *ret)
{
	uint32_t region_key;

	if (!find_key(s, x->pages_tree, key, &region_key))
		return false;
	for (unsigned i = 0; i < PAGESTORE_CHAIN; i++) {
		if (!read_record(s, x, region_key, ret))
			return false;
		if (ret->key != NEXT_RECORD)
			return true;
		region_key = ret->size;
	}
	return false;
}

/* The user half of the owner, for view_read(). */
struct user_half {
	const struct pagestore *s;
	uint64_t dtb;
};

static const uint8_t *user_page(void *context, uint64_t va)
{
	const struct user_half *u = context;

	return va <= USER_LAST ? u->s->plan.user(u->s->plan.context, u->dtb, va) : NULL;
}

static enum pagestore_answer read_data(const struct pagestore *s, const struct store *x,
				       const struct record *r, uint8_t *page)
{
	struct user_half u = { s, x->dtb };
	const struct memory_view owner = { user_page, &u };
	const size_t size = (uint16_t)r->size == PAGE_SIZE ? PAGE_SIZE : r->size & (PAGE_SIZE - 1);
	uint8_t packed[PAGE_SIZE];
	uint64_t region;
	size_t got;

	if (!size || x->index_shift > 31)
		return PAGESTORE_NO_RECORD;
	if (!view_u64(&s->plan.kernel, x->regions + 8 * (uint64_t)(r->key >> x->index_shift),
		      &region))
		return PAGESTORE_NO_RECORD;
	region = (region & REGION_ADDRESS) + ((uint64_t)(r->key & x->size_mask) << 4);
	if (!view_read(&owner, region, packed, size))
		return PAGESTORE_NO_DATA;
	if (size == PAGE_SIZE) {
		memcpy(page, packed, PAGE_SIZE);
		return PAGESTORE_GIVEN;
	}
	return xpress_decode(packed, size, page, PAGE_SIZE, &got) && got == PAGE_SIZE
		       ? PAGESTORE_GIVEN
		       : PAGESTORE_BAD_DATA;
}

enum pagestore_answer pagestore_read(const struct pagestore *s, uint32_t key, uint8_t *page)
{
	enum pagestore_answer st;
	struct record r;
	struct store x;

	if (!s->globals)
		return PAGESTORE_NONE;
	st = find_store(s, key, &x);
	if (st)
		return st;
	if (!read_store(s, &x))
		return PAGESTORE_NO_STORE;
	if (!choose_layout(s, &x))
		return PAGESTORE_NO_LAYOUT;
	if (!find_record(s, &x, key, &r))
		return PAGESTORE_NO_RECORD;
	return read_data(s, &x, &r, page);
}
