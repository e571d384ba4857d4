/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compression store made by hand: SmGlobals, two levels of keys, one store, one chunk, one region
 * with three pages, as mandiant/win10_volatility 1f3b996c has it. For struct memory_view.
 */
#ifndef RAMSEAL_TESTS_GEN_STORE_PAGES_H
#define RAMSEAL_TESTS_GEN_STORE_PAGES_H

#include <string.h>

#include "agent/virtual/pagestore.h"
#include "formats/base/bytes.h"

/* Kernel pages, from here on one after the other; then the region, in the user half. */
#define STORE_KERNEL UINT64_C(0xffffa00000000000)
#define STORE_REGION UINT64_C(0x0000012300040000)
#define STORE_DTB    UINT64_C(0x1ad000)

enum {
	AT_IMAGE, /* two pages; SmGlobals begins in the first and ends in the second */
	AT_METADATA = 2,
	AT_KEYS, /* KeyToStoreTree: a node and two leaves */
	AT_KEYS_LOW,
	AT_KEYS_HIGH,
	AT_STORE,                /* two pages */
	AT_PAGES = AT_STORE + 2, /* PagesTree: a leaf */
	AT_CHUNKS,
	AT_CHUNK,
	AT_REGIONS,
	AT_OWNER, /* EPROCESS */
	AT_DATA,  /* two pages of the region */
	STORE_PAGES = AT_DATA + 2,
};

#define STORE_GLOBALS (STORE_KERNEL + 0xf00)
#define STORE_NUMBER  70 /* in the third array of metadata */

/* Keys: what they lead to. */
#define KEY_PLAIN     UINT32_C(0x20000005)
#define KEY_PACKED    UINT32_C(0x20000100)
#define KEY_CHAINED   UINT32_C(0x20000101)
#define KEY_INVALID   UINT32_C(0x20000102) /* bit 24 of its value is set */

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
	leaf[3] = 1;
	put_le32(leaf + 0x10 + (size_t)8 * i, key);
	put_le32(leaf + 0x14 + (size_t)8 * i, value);
}

static inline void store_put_record(uint8_t *chunk, unsigned i, uint32_t key, uint32_t size)
{
	put_le32(chunk + 0x20 + (size_t)0x18 * i, key);
	put_le32(chunk + 0x24 + (size_t)0x18 * i, size);
}

/* "abc", and a match of it for the rest of the page: [MS-XCA] 3.1, made longer. */
static inline size_t store_put_packed(uint8_t *to)
{
	static const uint8_t packed[] = { 0xff, 0xff, 0xff, 0x1f, 'a',  'b', 'c',
					  0x17, 0x00, 0x0f, 0xff, 0xfa, 0x0f };

	memcpy(to, packed, sizeof(packed)); /* 3 + 0xffa + 3 = 4096 */
	return sizeof(packed);
}

/* `algorithm`, `regions`, `owner`: where the layout of a build has them. */
static inline void store_make(struct store_pages *s, unsigned algorithm, unsigned regions,
			      unsigned owner)
{
	uint8_t *x = s->at[AT_STORE], *node = s->at[AT_KEYS];
	uint8_t *globals = s->at[AT_IMAGE] + (STORE_GLOBALS - STORE_KERNEL);

	memset(s, 0, sizeof(*s));
	s->known = STORE_DTB;
	put_le64(globals + (size_t)8 * (STORE_NUMBER / 32), store_va(AT_METADATA));
	put_le64(globals + 0x1c0, store_va(AT_KEYS));
	put_le64(s->at[AT_METADATA] + (size_t)0x28 * (STORE_NUMBER % 32), store_va(AT_STORE));

	put_le16(node, 1);
	node[2] = 1;
	put_le64(node + 8, store_va(AT_KEYS_LOW));
	put_le32(node + 0x10, KEY_PACKED);
	put_le64(node + 0x18, store_va(AT_KEYS_HIGH));
	store_put_pair(s->at[AT_KEYS_LOW], 0, KEY_PLAIN, STORE_NUMBER | 0x40000000);
	store_put_pair(s->at[AT_KEYS_HIGH], 0, KEY_PACKED, STORE_NUMBER);
	store_put_pair(s->at[AT_KEYS_HIGH], 1, KEY_CHAINED, STORE_NUMBER);
	store_put_pair(s->at[AT_KEYS_HIGH], 2, KEY_INVALID, STORE_NUMBER | 1 << 24);

	put_le64(x + 0x50, store_va(AT_PAGES));
	put_le64(x + 0x370, store_va(AT_STORE));
	put_le32(x + 0x378, 0xfff);
	put_le32(x + 0x37c, 12);
	put_le16(x + algorithm, 3);
	put_le64(x + regions, store_va(AT_REGIONS));
	put_le64(x + owner, store_va(AT_OWNER) + 0x80);
	put_le64(s->at[AT_OWNER] + 0x80 + 0x28, STORE_DTB);
	/* The region key 0x185: the array of bit 1, its second chunk, record 5. */
	put_le64(x + 0x110 + 8, store_va(AT_CHUNKS));
	put_le32(x + 0x110 + 0x108, 7);
	put_le32(x + 0x110 + 0x10c, 0x7f);
	put_le32(x + 0x110 + 0x110, 0x18);
	put_le32(x + 0x110 + 0x118, 0x20);
	put_le64(s->at[AT_CHUNKS] + 0x10, store_va(AT_CHUNK));

	store_put_pair(s->at[AT_PAGES], 0, KEY_PLAIN, 0x185);
	store_put_pair(s->at[AT_PAGES], 1, KEY_PACKED, 0x186);
	store_put_pair(s->at[AT_PAGES], 2, KEY_CHAINED, 0x187);
	/* The second region; the plain page reaches into its second page. */
	store_put_record(s->at[AT_CHUNK], 5, 0x1000 | 0x10, 0x1000);
	store_put_record(s->at[AT_CHUNK], 6, 0x1000, (uint32_t)store_put_packed(s->at[AT_DATA]));
	store_put_record(s->at[AT_CHUNK], 7, UINT32_MAX, 0x188);
	store_put_record(s->at[AT_CHUNK], 8, 0x1000,
			 0x770000 | (uint32_t)store_put_packed(s->at[AT_DATA]));
	put_le64(s->at[AT_REGIONS] + 8, STORE_REGION | 0x8000000000000007);
	memset(s->at[AT_DATA] + 0x100, 'p', 0xf00);
	memset(s->at[AT_DATA + 1], 'q', 0x100);
}

static inline struct pagestore_plan store_plan(struct store_pages *s, const struct range *image)
{
	return (struct pagestore_plan){
		.kernel = { store_kernel_page, s },
		.user = store_user_page,
		.known = store_is_known,
		.context = s,
		.writable = image,
		.n_writable = 1,
		.build = 19045,
	};
}

#endif
