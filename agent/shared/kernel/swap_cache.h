/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux's swap cache in the memory of a running machine: which slots of a swap area have a page in
 * memory, and its content. An entry names its slot before the page is written there, and until it
 * is, and often for longer, the page is in the swap cache (examine/smear/METHOD.md, section 6).
 *
 * From 5.10 to 6.17 (mm/swap_state.c) that is one struct address_space for each 2^14 slots, in
 * swapper_spaces[type], with the pages in an XArray (lib/xarray.c). Its index is the slot, and
 * since 6.11 the slot modulo 2^14 (swap_cache_index()). Since 6.18 it is a table for each cluster
 * of an area, swap_info[type]->cluster_info[slot / SWAPFILE_CLUSTER].table[slot % SWAPFILE_CLUSTER]
 * (mm/swap_table.h). The kernel's BTF says which of them it is, and has the offsets.
 *
 * Since 6.12 a page of zeros is not written to its slot but only noted: up to 7.1 in a bitmap of
 * the area, since then in the slot's table. That is looked up too.
 *
 * All of this may change while it is read: every word on the path is read twice, in two complete
 * rounds, and if any word differs, the result is not known. So at one moment between the rounds all
 * words had the values read, unless some changed and changed back. Every node of a tree must refer
 * to its tree, its parent and its place there; a table has no such references, and belongs to the
 * cluster at that moment because the cluster refers to it. A page must name the slot.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_H
#define RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_H

#include "agent/shared/kernel/discover.h"

enum swap_cache_state {
	SWAP_CACHE_UNKNOWN, /* it changed while it was read, makes no sense, or is unreadable */
	SWAP_CACHE_ABSENT,  /* no page: nothing there, or only a shadow of one */
	SWAP_CACHE_HELD,    /* a page */
	/* a page still being read from the slot, which was therefore written */
	SWAP_CACHE_BUSY,
	/* one of these two, but not written: the kernel noted that the page is zeros */
	SWAP_CACHE_ZEROS,
};

struct swap_lookup {
	uint32_t file; /* the type of the area, as in entries */
	uint64_t slot;
	/* Set by swap_cache_lookup(). */
	enum swap_cache_state state;
	uint64_t frame; /* physical address of the page, if there is one */
	bool readable;  /* if held: its bytes were read while it was there; or zeros */
};

struct swap_cache;

/*
 * `mem` is the running machine's, read on the calling thread, and borrowed. Also ST_OK if lookups
 * are not possible: then *ret is NULL, and *why (a static text) says why. ST_NOMEM.
 */
enum status swap_cache_create(struct physmem *mem, const struct discovery *d,
			      struct swap_cache **ret, const char **why, struct err *e);
void swap_cache_destroy(struct swap_cache *c); /* NULL is fine */

/*
 * Can it recognise pages of zeros that were not written? Then a slot whose page is absent or busy
 * holds the page, even one of zeros. True for kernels that write all pages.
 */
bool swap_cache_tells_zeros(const struct swap_cache *c);

/*
 * Looks for `n` slots at once. `bytes` gets PAGE_SIZE bytes for each lookup, in order: the content
 * of held pages, zeros for SWAP_CACHE_ZEROS, and undefined bytes for the others. Neighbouring slots
 * are cheap: 64 share a node, 512 a table. SWAP_CACHE_UNKNOWN is not a failure; ST_NOMEM is.
 */
enum status swap_cache_lookup(struct swap_cache *c, struct swap_lookup *lookups, size_t n,
			      uint8_t *bytes, struct err *e);

#endif
