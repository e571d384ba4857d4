/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small reads from one address space of a container, in any order. The last pages are cached,
 * because code that follows pointers returns to the same pages again and again, and a page from a
 * chunk that is no longer cached costs decoding up to 16 MiB.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_PEEK_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_PEEK_H

#include "agent/examine/virtual/memory_view.h"
#include "agent/examine/virtual/virtual.h"

struct peek_page {
	uint64_t va;
	enum given given;
	bool has_verdict;     /* .verdict and .trust are set: not where there is no entry at all */
	enum verdict verdict; /* as struct smear_row has it */
	enum trust trust;
	enum pte_state state;  /* what the entry says, or the prototype entry that it names */
	bool followed;         /* a prototype entry that it names, or its VAD */
	uint64_t frame;        /* of .state where it lies in memory; else 0 */
	bool damaged;          /* GIVEN_NOTHING because the container is */
	bool absent;           /* GIVEN_NOTHING, and virtual_page_is_absent() */
	struct rsz_times when; /* its content was captured, monotonic ns; 0: nobody knows */
	const uint8_t *bytes;  /* PAGE_SIZE of them; NULL: GIVEN_NOTHING */
};

/*
 * Borrows `v` until peek_close(): until then nobody else may read from it or choose another address
 * space in it. `pages`: how many are cached, 4.1 KiB each; rounded up to a power of two.
 */
struct peek;
enum status peek_open(struct virtual_memory *v, size_t pages, struct peek **ret, struct err *e);
void peek_close(struct peek *p); /* NULL is fine */

/* The page that holds `va`; valid until the next call for this `p`. NULL: see peek_failed(). */
const struct peek_page *peek_page(struct peek *p, uint64_t va);

/*
 * For a view of an image file: true if the process has no page of its own there and so reads what
 * the file has. False also where that is not known.
 */
bool peek_is_files(struct peek *p, uint64_t va);

/*
 * All pages of the ranges, which are whole pages and do not overlap, in the order in which they are
 * stored (virtual_sweep()). Called once for each page. Neighbours that are alike and have no bytes
 * of their own can come in one call; `page` is then the first of them. Where `page` has bytes of
 * its own, .followed and .frame are not set. Anything but ST_OK ends the sweep.
 */
struct peek_visitor {
	enum status (*pages)(void *context, const struct peek_page *page, uint64_t pages,
			     struct err *e);
	void *context;
};
enum status peek_sweep(struct peek *p, const struct range_list *ranges,
		       const struct peek_visitor *v, struct err *e);

/*
 * What is known about a page's content, from a recent sweep or else by reading the page. False: see
 * peek_failed().
 */
struct peek_worth {
	enum given given;
	bool transition; /* its entry says that it is */
	bool has_verdict;
	enum trust trust;
};
bool peek_worth(struct peek *p, uint64_t va, struct peek_worth *ret);
/* True if peek_worth() would not have to read the page. */
bool peek_knows_worth(struct peek *p, uint64_t va);

/*
 * ST_OK, or why a read failed for a reason outside the container (no memory, an I/O error). After
 * that every read fails, so ask before you report that something is not there.
 */
enum status peek_failed(const struct peek *p, struct err *e);

/* Valid as long as `p`. */
struct memory_view peek_view(struct peek *p);

#endif
