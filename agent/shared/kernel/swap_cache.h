/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux's swap cache, out of the memory of a machine that runs: which slots of a swap area have a
 * page in memory, and what it holds. An entry names its slot before the page is written there, and
 * until it is, and often for longer, the page is in the swap cache (examine/smear/METHOD.md,
 * section 6).
 *
 * From 5.10 to 6.17 (mm/swap_state.c) that is one struct address_space for each 2^14 slots, in
 * swapper_spaces[type], with the pages in an XArray (lib/xarray.c). Its index is the slot, and
 * since 6.11 the slot modulo 2^14 (swap_cache_index()). Since 6.18 it is a table for each cluster
 * of an area, swap_info[type]->cluster_info[slot / SWAPFILE_CLUSTER].table[slot % SWAPFILE_CLUSTER]
 * (mm/swap_table.h). Which of them it is, and where the fields are, the kernel's BTF says.
 *
 * Since 6.12 a page of zeros is not written to its slot, and only noted: up to 7.1 in a bitmap of
 * the area, since then in the slot's table. That is looked up, too.
 *
 * All of this may change while it is read, and none of it is believed: every word on the way is
 * read twice, all of them once before any is read again, and what is not the same is not known. So
 * at one moment between the two rounds all words were what they were read as, if none of them
 * changed and changed back. Every node of a tree must name the tree that it is in, its parent, and
 * its place there; a table names nothing, and is the cluster's at that moment because the cluster
 * names it. A page must name the slot.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_H
#define RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_H

#include "agent/shared/kernel/discover.h"

enum swap_cache_state {
	SWAP_CACHE_UNKNOWN, /* it changed while it was read, makes no sense, or cannot be read */
	SWAP_CACHE_ABSENT,  /* no page: nothing there, or only a shadow of one */
	SWAP_CACHE_HELD,    /* a page */
	/* a page that is still being read from the slot, which so has been written */
	SWAP_CACHE_BUSY,
	/* one of these two, but nothing was written: the kernel has noted that the page is zeros */
	SWAP_CACHE_ZEROS,
};

struct swap_lookup {
	uint32_t file; /* the type of the area, as entries have it */
	uint64_t slot;
	/* Set by swap_cache_lookup(). */
	enum swap_cache_state state;
	uint64_t frame; /* physical address of the page, if there is one */
	bool readable;  /* of one that is held: its bytes were read, while it was there; or zeros */
};

struct swap_cache;

/*
 * `mem` is the running machine's, and is read from the thread that looks; it is borrowed. ST_OK
 * also where it cannot be done: then *ret is NULL, and *why (a static text) says why. ST_NOMEM.
 */
enum status swap_cache_create(struct physmem *mem, const struct discovery *d,
			      struct swap_cache **ret, const char **why, struct err *e);
void swap_cache_destroy(struct swap_cache *c); /* NULL is fine */

/*
 * Whether it can tell pages of zeros that were not written: then a slot whose page is absent or
 * busy holds it, also if that is zeros. A kernel that writes all pages counts as one that tells.
 */
bool swap_cache_tells_zeros(const struct swap_cache *c);

/*
 * Looks for `n` slots at once. The bytes of those that are held come to `bytes`, PAGE_SIZE for each
 * look, in their order, and zeros for SWAP_CACHE_ZEROS; of the others they are undefined. Slots
 * that are near each other are cheap: 64 share a node, 512 a table. What cannot be told is
 * SWAP_CACHE_UNKNOWN, and no failure; ST_NOMEM.
 */
enum status swap_cache_lookup(struct swap_cache *c, struct swap_lookup *lookups, size_t n,
			      uint8_t *bytes, struct err *e);

#endif
