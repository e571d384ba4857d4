/* SPDX-License-Identifier: Apache-2.0 */
/* A few pages anywhere in an address space, for what is written against struct memory_view. */
#ifndef RAMSEAL_TESTS_UNIT_SPARSE_VIEW_H
#define RAMSEAL_TESTS_UNIT_SPARSE_VIEW_H

#include <stdlib.h>
#include <string.h>

#include "agent/examine/virtual/memory_view.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"

#define SPARSE_PAGES 1024

struct sparse_page {
	uint64_t va;
	bool lost; /* it is there, and can't be had */
	uint8_t *bytes;
};

struct sparse {
	struct sparse_page at[SPARSE_PAGES];
	size_t count;
	size_t asked; /* how often a page was asked for */
};

static inline struct sparse_page *sparse_find(struct sparse *s, uint64_t va)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].va == (va & ~(uint64_t)(PAGE_SIZE - 1)))
			return &s->at[i];
	return NULL;
}

static inline const uint8_t *sparse_view_page(void *context, uint64_t va)
{
	struct sparse *s = context;
	const struct sparse_page *p = sparse_find(s, va);

	s->asked++;
	return p && !p->lost ? p->bytes : NULL;
}

static inline struct memory_view sparse_view(struct sparse *s)
{
	return (struct memory_view){ sparse_view_page, s };
}

/* The page of `va`, made of zeros if it is new. */
static inline struct sparse_page *sparse_page(struct sparse *s, uint64_t va)
{
	struct sparse_page *p = sparse_find(s, va);

	if (p)
		return p;
	if (s->count == SPARSE_PAGES)
		abort();
	p = &s->at[s->count++];
	*p = (struct sparse_page){ .va = va & ~(uint64_t)(PAGE_SIZE - 1),
				   .bytes = calloc(1, PAGE_SIZE) };
	if (!p->bytes)
		abort();
	return p;
}

static inline void sparse_put(struct sparse *s, uint64_t va, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sparse_page(s, va + i)->bytes[(va + i) % PAGE_SIZE] = ((const uint8_t *)from)[i];
}

static inline void sparse_u16(struct sparse *s, uint64_t va, uint16_t value)
{
	uint8_t raw[2];

	put_le16(raw, value);
	sparse_put(s, va, raw, sizeof(raw));
}

static inline void sparse_u32(struct sparse *s, uint64_t va, uint32_t value)
{
	uint8_t raw[4];

	put_le32(raw, value);
	sparse_put(s, va, raw, sizeof(raw));
}

static inline void sparse_u64(struct sparse *s, uint64_t va, uint64_t value)
{
	uint8_t raw[8];

	put_le64(raw, value);
	sparse_put(s, va, raw, sizeof(raw));
}

static inline void sparse_lose(struct sparse *s, uint64_t va, bool lost)
{
	sparse_page(s, va)->lost = lost;
}

static inline void sparse_deinit(struct sparse *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->at[i].bytes);
	memset(s, 0, sizeof(*s));
}

#endif
