/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by virtual address, one page at a time, for code that follows pointers: walks of VADs,
 * heaps and loader lists. They use this interface so that a test or a fuzzer can give them any
 * bytes; peek.h implements it for a container. Numbers are little-endian on every machine.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_MEMORY_VIEW_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_MEMORY_VIEW_H

#include "formats/base/range.h"

/*
 * Called once for each page, in any order. `bytes`: PAGE_SIZE bytes, valid during the call; NULL:
 * the page can't be had. Neighbours with the same bytes (zeros, or none) can come in one call.
 * Anything but ST_OK ends the sweep.
 */
struct view_visitor {
	enum status (*pages)(void *context, uint64_t va, uint64_t pages, const uint8_t *bytes,
			     struct err *e);
	void *context;
};

struct memory_view {
	/*
	 * The page at `va`, which is a multiple of PAGE_SIZE: PAGE_SIZE bytes, valid until the next
	 * call. NULL: it can't be had.
	 */
	const uint8_t *(*page)(void *context, uint64_t va);
	void *context;
	/*
	 * Whether a page that can't be had is known not to exist (virtual_page_is_absent()), so
	 * that nothing is lost. NULL: that is never known.
	 */
	bool (*absent)(void *context, uint64_t va);
	/*
	 * Visits all pages of the ranges, which are whole pages and do not overlap, in the cheapest
	 * order. NULL: the order makes no difference.
	 */
	enum status (*sweep)(void *context, const struct range_list *ranges,
			     const struct view_visitor *v, struct err *e);
};

/* The answer of m->absent. */
static inline bool view_absent(const struct memory_view *m, uint64_t va)
{
	return m->absent && m->absent(m->context, va);
}

/*
 * All return false, and leave the result unchanged, where a byte can't be had or where the address
 * space ends within the range.
 */
bool view_read(const struct memory_view *m, uint64_t va, void *to, size_t size);
bool view_u16(const struct memory_view *m, uint64_t va, uint16_t *ret);
bool view_u32(const struct memory_view *m, uint64_t va, uint32_t *ret);
bool view_u64(const struct memory_view *m, uint64_t va, uint64_t *ret);
/* A pointer of a 64-bit process (`wide`) or of a 32-bit one. */
bool view_pointer(const struct memory_view *m, uint64_t va, bool wide, uint64_t *ret);

#endif
