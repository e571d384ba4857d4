/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small reads out of one address space of a container, in any order, with the pages that were read
 * last kept: what follows pointers comes back to the same pages again and again, and a page out of
 * a chunk that is not kept any more costs the decoding of up to 16 MiB.
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
 * Borrows `v`, which nobody else reads from, and in which no other address space is chosen, until
 * peek_close(). `pages`: so many are kept, 4.1 KiB each; rounded up to a power of two.
 */
struct peek;
enum status peek_open(struct virtual_memory *v, size_t pages, struct peek **ret, struct err *e);
void peek_close(struct peek *p); /* NULL is fine */

/* The page that holds `va`, until the next call for this `p`. NULL: see peek_failed(). */
const struct peek_page *peek_page(struct peek *p, uint64_t va);

/*
 * Of a view of an image: the process has no page of its own there, so that what it reads is what
 * the file has. False where that is not known.
 */
bool peek_is_files(struct peek *p, uint64_t va);

/*
 * All pages of the ranges, which are whole pages and do not overlap, in the order in which the
 * container has them (virtual_sweep()). Called for each page once; neighbours that are alike and
 * have no bytes of their own can come as one, of which `page` is the first. Where `page` has bytes
 * of its own, .followed and .frame are not set. Anything but ST_OK ends it.
 */
struct peek_visitor {
	enum status (*pages)(void *context, const struct peek_page *page, uint64_t pages,
			     struct err *e);
	void *context;
};
enum status peek_sweep(struct peek *p, const struct range_list *ranges,
		       const struct peek_visitor *v, struct err *e);

/*
 * What is known of a page's content, without it: from a sweep of late, or else by reading the page.
 * False: peek_failed().
 */
struct peek_worth {
	enum given given;
	bool transition; /* its entry says that it is */
	bool has_verdict;
	enum trust trust;
};
bool peek_worth(struct peek *p, uint64_t va, struct peek_worth *ret);
/* Whether no page has to be read for it. */
bool peek_knows_worth(struct peek *p, uint64_t va);

/*
 * ST_OK, or why a read failed that had to work (no memory, an I/O error): from then on nothing can
 * be had. Ask before you say that something is not there.
 */
enum status peek_failed(const struct peek *p, struct err *e);

/* Valid as long as `p`. */
struct memory_view peek_view(struct peek *p);

#endif
