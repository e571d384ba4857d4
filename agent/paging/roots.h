/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan for table roots: every page of memory is asked whether it is the root of an address
 * space of this kernel. It needs no list, and finds what a list hides.
 *
 * A root shares the kernel's half with the kernel's own root, or names itself at the self-map index
 * (Windows). What has the user half of a known root and little of the kernel's is its user-mode
 * twin: KVA shadow, PTI.
 */
#ifndef RAMSEAL_AGENT_PAGING_ROOTS_H
#define RAMSEAL_AGENT_PAGING_ROOTS_H

#include "agent/paging/walk.h"

#define ROOT_HALF (TABLE_ENTRIES / 2)
#define NO_INDEX  UINT32_MAX

struct root {
	uint64_t pa;
	uint16_t user;   /* present entries in the user's half */
	uint16_t shared; /* entries of the kernel's half that are the kernel's own */
	uint16_t other;  /* present entries of that half that are not */
	bool self;       /* names itself at the self-map index */
	bool user_table; /* a user-mode twin, of `twin` */
	uint64_t twin;
	uint64_t user_print; /* of the user's half: equal for a root and its twin */
};

struct root_scan {
	struct root *at; /* sorted by pa */
	size_t count;
	size_t room;
	uint64_t pages; /* that were read */
	uint64_t unreadable;
	bool complete; /* the whole of memory was asked */
	bool full;     /* more candidates than ROOTS_MAX */
};

#define ROOTS_MAX ((size_t)1 << 18)

struct root_scan_options {
	enum paging_mode mode; /* PAE has no roots that could be told by their look: ST_USAGE */
	uint64_t kernel_dtb;
	uint32_t self_index; /* NO_INDEX: there is no self-map */
	uint64_t ignore;
	struct walk_budget *budget; /* or NULL */
};

enum status root_scan(struct physmem *m, const struct root_scan_options *o, struct root_scan *ret,
		      struct err *e);
void root_scan_deinit(struct root_scan *s);

const struct root *root_scan_find(const struct root_scan *s, uint64_t pa);

/* A print of the user's half of a root: which tables it names. 0 if it names none. */
uint64_t root_user_print(const uint8_t *table);

/* The index at which the table at `pa` names itself in its kernel half, or NO_INDEX. */
uint32_t self_map_index(const uint8_t *table, uint64_t pa, uint64_t ignore);

#endif
