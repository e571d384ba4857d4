/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compression store made by hand, as each build has it: its manager, two levels of keys, one
 * store, one chunk, one region with three pages. For struct memory_view. The sources are those of
 * agent/examine/virtual/pagestore.h.
 */
#ifndef RAMSEAL_TESTS_GEN_STORE_PAGES_H
#define RAMSEAL_TESTS_GEN_STORE_PAGES_H

#include <string.h>

#include "agent/examine/virtual/pagestore.h"
#include "formats/base/bytes.h"

/* Kernel pages, from here on one after the other; then the region, in the user half. */
#define STORE_KERNEL UINT64_C(0xffffa00000000000)
#define STORE_REGION UINT64_C(0x0000012300040000)
#define STORE_DTB    UINT64_C(0x1ad000)

enum {
	AT_IMAGE, /* three pages; SmGlobals begins in the first, and no build's ends there */
	AT_METADATA = 3,
	AT_PARTITION, /* SM_PARTITION */
	AT_OTHER,     /* another one, without a store */
	AT_EPARTITION,
	AT_KEYS, /* KeyToStoreTree: a node and two leaves */
	AT_KEYS_LOW,
	AT_KEYS_HIGH,
	AT_STORE,                /* two pages */
	AT_PAGES = AT_STORE + 2, /* PagesTree: a leaf */
	AT_CHUNKS,
	AT_CHUNK,
	AT_REGIONS,
	AT_OWNER, /* EPROCESS, and a thread of it */
	AT_DATA,  /* two pages of the region */
	STORE_PAGES = AT_DATA + 2,
};

#define STORE_IMAGE_PAGES 3
#define STORE_GLOBALS     (STORE_KERNEL + 0xf00)
#define STORE_PARTITION   0x200 /* in their pages */
#define STORE_EPARTITION  0x100
#define STORE_EPROCESS    0x80
#define STORE_THREAD      0x400

/* Keys: what they lead to. */
#define KEY_PLAIN         UINT32_C(0x20000005)
#define KEY_PACKED        UINT32_C(0x20000100)
#define KEY_CHAINED       UINT32_C(0x20000101)
#define KEY_INVALID       UINT32_C(0x20000102) /* bit 24 of its value is set */
#define KEY_PASSING       UINT32_C(0x20000103) /* of a state that is no page's */

/* What a build has where. */
struct store_form {
	uint32_t build;
	bool inside; /* stores stand in SmGlobals itself, records in PagesTree */
	bool lz4;    /* and keys have no number of a file */
	unsigned tree;
	unsigned self, algorithm, regions, owner, manager; /* of SMKM_STORE; 0: nothing is there */
	unsigned head, entry, epartition; /* of SmGlobals; of an SM_PARTITION; 0: there are none */
};

static const struct store_form store_forms[] = {
	{ 10240, true, false, 0x16c0, 0xe8, 0x200, 0x1248, 0x1238, 0x1420, 0, 0, 0 },
	{ 10586, true, false, 0x16c0, 0xe8, 0x200, 0x1248, 0x1238, 0x1428, 0, 0, 0 },
	{ 14393, false, false, 0x1c0, 0x370, 0x420, 0x17a8, 0x1918, 0x19a0, 0, 0, 0 },
	{ 15063, false, false, 0x1c0, 0x370, 0x420, 0x1828, 0x1988, 0x1a10, 0, 0, 0 },
	{ 17134, false, false, 0x1c0, 0x370, 0x430, 0x1848, 0x19a8, 0x1a30, 0, 0, 0 },
	{ 22000, false, false, 0x1c0, 0x370, 0x430, 0x1848, 0x19b8, 0x1a40, 0, 0, 0 },
	{ 22631, false, false, 0x1c0, 0x370, 0x430, 0x1848, 0x19b8, 0x1a48, 8, 0x7a8, 0x790 },
	{ 26100, false, true, 0x1c0, 0x370, 0x12e0, 0x1b70, 0x1d08, 0x1d98, 0x538, 0x848, 0x830 },
	/* The other ring of the same. */
	{ 26200, false, true, 0x1c0, 0x370, 0x12e0, 0x1b70, 0x1d08, 0x1d98, 0x10, 0xc30, 0x830 },
};
#define STORE_FORMS (sizeof(store_forms) / sizeof(*store_forms))

/* In the third array of metadata, where there are arrays. */
static inline unsigned store_number(const struct store_form *f)
{
	return f->inside ? 6 : 70;
}

/* Pages that one page may ask for: both trees, a chain of records, a store and all layouts. */
#define STORE_COST (5 * PAGESTORE_CHAIN + 2 * PAGESTORE_DEPTH + 128)

struct store_pages {
	uint8_t at[STORE_PAGES][4096];
	bool lost[STORE_PAGES];
	size_t asked;
	uint64_t known; /* the one root that is an address space's */
};

static inline uint64_t store_va(unsigned page)
{
	return STORE_KERNEL + ((uint64_t)page << 12);
}

static inline const uint8_t *store_page(struct store_pages *s, unsigned i)
{
	s->asked++;
	return i < STORE_PAGES && !s->lost[i] ? s->at[i] : NULL;
}

static inline const uint8_t *store_kernel_page(void *context, uint64_t va)
{
	return va >= STORE_KERNEL && va - STORE_KERNEL < (uint64_t)AT_DATA << 12
		       ? store_page(context, (unsigned)((va - STORE_KERNEL) >> 12))
		       : NULL;
}

static inline const uint8_t *store_user_page(void *context, uint64_t dtb, uint64_t va)
{
	const struct store_pages *s = context;

	return dtb == s->known && va >= STORE_REGION && va - STORE_REGION < 2 << 12
		       ? store_page(context, AT_DATA + (unsigned)((va - STORE_REGION) >> 12))
		       : NULL;
}

static inline bool store_is_known(void *context, uint64_t dtb)
{
	return dtb == ((const struct store_pages *)context)->known;
}

static inline void store_put_pair(uint8_t *leaf, unsigned i, uint32_t key, uint32_t value)
{
	put_le16(leaf, (uint16_t)(i + 1));
	leaf[2] = leaf[3] = 1;
	put_le32(leaf + 0x10 + (size_t)8 * i, key);
	put_le32(leaf + 0x14 + (size_t)8 * i, value);
}

static inline void store_put_record(uint8_t *chunk, unsigned i, uint32_t key, uint32_t size)
{
	put_le32(chunk + 0x20 + (size_t)0x18 * i, key);
	put_le32(chunk + 0x24 + (size_t)0x18 * i, size);
}

/*
 * "abc", and a match of it for the rest of the page: [MS-XCA] 3.1, made longer; and what
 * LZ4_compress_default() of liblz4 1.9.4 makes of it.
 */
static inline uint32_t store_put_packed(uint8_t *to, const struct store_form *f)
{
	static const uint8_t packed[] = { 0xff, 0xff, 0xff, 0x1f, 'a',  'b', 'c',
					  0x17, 0x00, 0x0f, 0xff, 0xfa, 0x0f };
	static const uint8_t lz4[] = { 0x3f, 'a',  'b',  'c',  0x03, 0x00, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xf4, 0x50, 'c',  'a',  'b',  'c',  'a' };

	memcpy(to, f->lz4 ? lz4 : packed, f->lz4 ? sizeof(lz4) : sizeof(packed));
	return f->lz4 ? sizeof(lz4) : sizeof(packed); /* 3 + 0xffa + 3 = 4096 */
}

static inline uint32_t store_key(const struct store_form *f, uint32_t key)
{
	return f->lz4 ? key & 0x0fffffff : key;
}

/* SmGlobals, or an SM_PARTITION. */
static inline uint64_t store_manager(const struct store_form *f)
{
	return f->head ? store_va(AT_PARTITION) + STORE_PARTITION : STORE_GLOBALS;
}

static inline uint8_t *store_at(struct store_pages *s, uint64_t va)
{
	return s->at[(va - STORE_KERNEL) >> 12] + (va & 0xfff);
}

/* The ring: SmGlobals, one that has stores, and one that has none. */
static inline void store_put_ring(struct store_pages *s, const struct store_form *f)
{
	const uint64_t head = STORE_GLOBALS, first = store_manager(f) + f->entry;
	const uint64_t other = store_va(AT_OTHER) + STORE_PARTITION + f->entry;
	const uint64_t epartition = store_va(AT_EPARTITION) + STORE_EPARTITION;

	put_le64(store_at(s, head), first);
	put_le64(store_at(s, head + 8), other);
	put_le64(store_at(s, first), other);
	put_le64(store_at(s, first + 8), head);
	put_le64(store_at(s, other), head);
	put_le64(store_at(s, other + 8), first);
	put_le64(store_at(s, store_manager(f) + f->epartition), epartition);
	put_le64(store_at(s, epartition + 0x18), store_manager(f));
}

static inline void store_put_manager(struct store_pages *s, const struct store_form *f)
{
	const unsigned number = store_number(f);
	const uint64_t manager = store_manager(f);

	put_le64(store_at(s, manager + f->tree), store_va(AT_KEYS));
	if (f->head)
		store_put_ring(s, f);
	if (f->inside) {
		put_le64(store_at(s, manager + UINT64_C(0xb0) * number), store_va(AT_STORE));
		return;
	}
	put_le64(store_at(s, manager + UINT64_C(8) * (number / 32)), store_va(AT_METADATA));
	put_le64(s->at[AT_METADATA] + (size_t)0x28 * (number % 32), store_va(AT_STORE));
}

static inline void store_put_keys(struct store_pages *s, const struct store_form *f)
{
	const unsigned number = store_number(f);
	uint8_t *node = s->at[AT_KEYS];

	put_le16(node, 1);
	node[2] = 2;
	put_le64(node + 8, store_va(AT_KEYS_LOW));
	put_le32(node + 0x10, store_key(f, KEY_PACKED));
	put_le64(node + 0x18, store_va(AT_KEYS_HIGH));
	store_put_pair(s->at[AT_KEYS_LOW], 0, store_key(f, KEY_PLAIN), number | 0x40030000);
	store_put_pair(s->at[AT_KEYS_HIGH], 0, store_key(f, KEY_PACKED), number | 0x10000);
	store_put_pair(s->at[AT_KEYS_HIGH], 1, store_key(f, KEY_CHAINED), number | 0x30000);
	store_put_pair(s->at[AT_KEYS_HIGH], 2, store_key(f, KEY_INVALID), number | 0x1010000);
	store_put_pair(s->at[AT_KEYS_HIGH], 3, store_key(f, KEY_PASSING), number | 0x20000);
}

/* The region key 0x185: the array of bit 1, its second chunk, record 5. */
static inline void store_put_chunks(struct store_pages *s, const struct store_form *f,
				    uint32_t packed)
{
	uint8_t *x = s->at[AT_STORE];

	put_le64(x + 0x110 + 8, store_va(AT_CHUNKS));
	put_le32(x + 0x110 + 0x108, 7);
	put_le32(x + 0x110 + 0x10c, 0x7f);
	put_le32(x + 0x110 + 0x110, 0x18);
	put_le32(x + 0x110 + 0x118, 0x20);
	put_le64(s->at[AT_CHUNKS] + 0x10, store_va(AT_CHUNK));
	store_put_pair(s->at[AT_PAGES], 0, store_key(f, KEY_PLAIN), 0x185);
	store_put_pair(s->at[AT_PAGES], 1, store_key(f, KEY_PACKED), 0x186);
	store_put_pair(s->at[AT_PAGES], 2, store_key(f, KEY_CHAINED), 0x187);
	store_put_record(s->at[AT_CHUNK], 5, 0x1000 | 0x10, 0x1000);
	store_put_record(s->at[AT_CHUNK], 6, 0x1000, 0x1000 | packed);
	store_put_record(s->at[AT_CHUNK], 7, UINT32_MAX, 0x188);
	store_put_record(s->at[AT_CHUNK], 8, 0x1000, 0x770000 | packed);
}

/* PagesTree of 1507 and 1511. */
static inline void store_put_places(struct store_pages *s, uint32_t packed)
{
	const uint32_t words[3][4] = { { KEY_PLAIN, 0x1000 | 0x10, 0x40000000, 0x1234 },
				       { KEY_PACKED, 0x1000, packed, 0x5678 },
				       { KEY_CHAINED, 0x1000, packed | 0x1000, 0x5678 } };
	uint8_t *leaf = s->at[AT_PAGES];

	put_le16(leaf, 3);
	leaf[2] = leaf[3] = 1;
	for (size_t i = 0; i < 12; i++)
		put_le32(leaf + 0x10 + 4 * i, words[i / 4][i % 4]);
}

static inline void store_make(struct store_pages *s, const struct store_form *f)
{
	const uint64_t x = store_va(AT_STORE);
	uint8_t *owner = s->at[AT_OWNER];
	uint32_t packed;

	memset(s, 0, sizeof(*s));
	s->known = STORE_DTB;
	store_put_manager(s, f);
	store_put_keys(s, f);

	put_le64(store_at(s, x + 0x50), store_va(AT_PAGES));
	put_le64(store_at(s, x + f->self), store_va(AT_STORE));
	put_le32(store_at(s, x + f->self + 8), 0xfff);
	put_le32(store_at(s, x + f->self + 12), 12);
	put_le16(store_at(s, x + f->algorithm), f->lz4 ? 0 : 3);
	put_le32(store_at(s, x + f->regions - 8), 0x10000);
	put_le32(store_at(s, x + f->regions - 4), 2);
	put_le64(store_at(s, x + f->regions), store_va(AT_REGIONS));
	put_le64(store_at(s, x + f->owner),
		 store_va(AT_OWNER) + (f->inside ? STORE_THREAD : STORE_EPROCESS));
	put_le64(store_at(s, x + f->manager), store_manager(f));
	put_le64(owner + STORE_THREAD + 0x220, store_va(AT_OWNER) + STORE_EPROCESS);
	put_le64(owner + STORE_EPROCESS + 0x28, STORE_DTB);

	/* The second region; the plain page reaches into its second page. */
	packed = store_put_packed(s->at[AT_DATA], f);
	if (f->inside)
		store_put_places(s, packed);
	else
		store_put_chunks(s, f, packed);
	put_le64(s->at[AT_REGIONS] + 8, STORE_REGION | 0x8000000000000007);
	memset(s->at[AT_DATA] + 0x100, 'p', 0xf00);
	memset(s->at[AT_DATA + 1], 'q', 0x100);
}

static inline struct pagestore_plan store_plan(struct store_pages *s, const struct store_form *f,
					       const struct range *image)
{
	return (struct pagestore_plan){
		.kernel = { store_kernel_page, s },
		.user = store_user_page,
		.known = store_is_known,
		.context = s,
		.writable = image,
		.n_writable = 1,
		.build = f->build,
	};
}

#endif
