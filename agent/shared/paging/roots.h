/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan for table roots: checks every page of memory for being the root of an address space of
 * this kernel. It needs no list, and finds what a list hides.
 *
 * A root shares the kernel's half with the kernel's own root, or refers to itself at the self-map
 * index (Windows). A page with the user half of a known root and little of the kernel's is its
 * user-mode twin: KVA shadow, PTI.
 */
#ifndef RAMSEAL_AGENT_SHARED_PAGING_ROOTS_H
#define RAMSEAL_AGENT_SHARED_PAGING_ROOTS_H

#include "agent/shared/paging/walk.h"

#define ROOT_HALF (TABLE_ENTRIES / 2)
#define NO_INDEX  UINT32_MAX

struct root {
	uint64_t pa;
	uint16_t user;   /* present entries in the user's half */
	uint16_t shared; /* entries of the kernel's half that match the kernel's */
	uint16_t other;  /* present entries of that half that do not */
	bool self;       /* refers to itself at the self-map index */
	bool user_table; /* a user-mode twin, of `twin` */
	uint64_t twin;
	uint64_t user_print; /* of the user half: equal for a root and its twin */
};

struct root_scan {
	struct root *at; /* sorted by pa */
	size_t count;
	size_t room;
	uint64_t pages; /* pages read */
	uint64_t unreadable;
	bool complete; /* all memory was scanned */
	bool full;     /* more candidates than ROOTS_MAX */
};

#define ROOTS_MAX ((size_t)1 << 18)

struct root_scan_options {
	enum paging_mode mode; /* PAE roots cannot be recognised: ST_USAGE */
	uint64_t kernel_dtb;
	uint32_t self_index; /* NO_INDEX: there is no self-map */
	uint64_t ignore;
	struct walk_budget *budget; /* or NULL */
};

enum status root_scan(struct physmem *m, const struct root_scan_options *o, struct root_scan *ret,
		      struct err *e);
/* Scans only the pages at these ascending addresses. Adds to `ret`; does not count pages. */
enum status root_scan_some(struct physmem *m, const struct root_scan_options *o, const uint64_t *at,
			   size_t count, struct root_scan *ret, struct err *e);
void root_scan_deinit(struct root_scan *s);

/* The kernel's half of the kernel's own root, without the self-map, which differs in each root. */
struct kernel_half {
	uint64_t at[ROOT_HALF]; /* each entry's reference to its table; 0: not present */
	uint16_t count;
	uint32_t self_index;
	uint64_t ignore;
};

/* The same scan while all memory is read anyway: it is shown every page, in any order. */
struct root_watch {
	struct kernel_half half;
	struct root_scan seen; /* from the pages as they were shown; without twins */
};

/* False without anything to compare with: PAE, or an unreadable kernel root. */
bool root_watch_begin(struct root_watch *w, struct physmem *m, const struct root_scan_options *o);
/*
 * `pages` pages from `pa` on; those whose status is not PAGE_DATA have no bytes. Any thread,
 * several at once.
 */
void root_watch_show(struct root_watch *w, const uint8_t *bytes, const struct page_status *status,
		     size_t pages, uint64_t pa);
void root_watch_page(struct root_watch *w, const uint8_t *page, uint64_t pa);
void root_watch_deinit(struct root_watch *w);

/*
 * Reads the found roots again and keeps those that still are: a process that has ended has released
 * its root. The rest of `ret` is from the scan.
 */
enum status root_watch_confirm(const struct root_watch *w, struct physmem *m,
			       struct walk_budget *budget, struct root_scan *ret, struct err *e);

const struct root *root_scan_find(const struct root_scan *s, uint64_t pa);

/* A fingerprint of a root's user half: the tables it refers to. 0 if there are none. */
uint64_t root_user_print(const uint8_t *table);

/* The index at which the table at `pa` refers to itself in its kernel half, or NO_INDEX. */
uint32_t self_map_index(const uint8_t *table, uint64_t pa, uint64_t ignore);

#endif
