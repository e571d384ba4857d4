/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by virtual address, a page at a time, for what follows pointers: walks of VADs, heaps and
 * loader lists. They are written against this, so that a test or a fuzzer can hand them any bytes;
 * of a container, peek.h gives one. Numbers are little-endian, wherever this runs.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_MEMORY_VIEW_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_MEMORY_VIEW_H

#include "formats/base/range.h"

/*
 * Called for each page once, in any order; `bytes`: PAGE_SIZE of them, valid for the call, NULL: it
 * can't be had. Neighbours with the same bytes (zeros, or none) can come as one. Anything but ST_OK
 * ends it.
 */
struct view_visitor {
	enum status (*pages)(void *context, uint64_t va, uint64_t pages, const uint8_t *bytes,
			     struct err *e);
	void *context;
};

struct memory_view {
	/*
	 * The page at `va`, which is a multiple of PAGE_SIZE: so many bytes, valid until the next
	 * call. NULL: it can't be had.
	 */
	const uint8_t *(*page)(void *context, uint64_t va);
	void *context;
	/*
	 * Of a page that can't be had: it is known that there is none (virtual_page_is_absent()),
	 * so nothing is lost. NULL: that is never known.
	 */
	bool (*absent)(void *context, uint64_t va);
	/*
	 * Tells of all pages of the ranges, which are whole pages and do not overlap, in the order
	 * that costs least. NULL: by address is as good as any.
	 */
	enum status (*sweep)(void *context, const struct range_list *ranges,
			     const struct view_visitor *v, struct err *e);
};

/* What m->absent says. */
static inline bool view_absent(const struct memory_view *m, uint64_t va)
{
	return m->absent && m->absent(m->context, va);
}

/*
 * All return false, and leave what they return in as it was, where a byte of it can't be had, or
 * where the address space ends within it.
 */
bool view_read(const struct memory_view *m, uint64_t va, void *to, size_t size);
bool view_u16(const struct memory_view *m, uint64_t va, uint16_t *ret);
bool view_u32(const struct memory_view *m, uint64_t va, uint32_t *ret);
bool view_u64(const struct memory_view *m, uint64_t va, uint64_t *ret);
/* A pointer of a 64-bit process, or one of 32 bits. */
bool view_pointer(const struct memory_view *m, uint64_t va, bool wide, uint64_t *ret);

#endif
