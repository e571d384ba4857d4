/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by swap_cache.c and the two kinds of caches, swap_tree.c and swap_table.c. */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_INTERNAL_H

#include "agent/shared/kernel/swap_cache.h"
#include "agent/shared/paging/pte.h"

/*
 * Words on the path to a slot: twice through six nodes of a tree and their siblings, with some
 * spare.
 */
#define SWAP_CACHE__WORDS 36

/* The words on the path to a slot; two traces are equal if all bytes are. */
struct swap_trace {
	uint64_t words[SWAP_CACHE__WORDS];
	uint64_t n;
	uint64_t frame; /* physical address */
	uint64_t state; /* enum swap_cache_state */
};

/* Where a kernel notes that a slot's page is zeros and was not written. */
enum swap_zeros {
	SWAP_ZEROS_UNKNOWN,
	SWAP_ZEROS_WRITTEN, /* nowhere: it writes such pages too */
	SWAP_ZEROS_MAP,     /* swap_info_struct.zeromap, a bit for each slot */
	SWAP_ZEROS_FLAG     /* a bit of the slot's entry in its table */
};

struct seen_page;

struct swap_cache {
	struct physmem *mem;
	struct linux_swap_layout layout;
	uint64_t spaces, ops, areas, vmemmap;
	bool by_tables;    /* or by trees */
	bool known_tables; /* of a version whose source is known */
	enum swap_zeros zeros;
	struct physmem_cache tables; /* translations in one round */
	struct virt space;
	struct seen_page *seen; /* by address; collisions are read again */
	uint64_t round;
	struct swap_trace *traces; /* of the first round */
	size_t n_traces;
};

/* Reads a word at a multiple of 8 or 4, so it is within one page. False if unreadable. */
bool swap_cache__word(struct swap_cache *c, uint64_t va, uint64_t *ret);
bool swap_cache__half_word(struct swap_cache *c, uint64_t va, uint32_t *ret);
bool swap_cache__byte(struct swap_cache *c, uint64_t va, uint8_t *ret);
/* Reads a word on the path, which must be the same in the second round. */
bool swap_cache__step(struct swap_cache *c, struct swap_trace *t, uint64_t va, uint64_t *ret);

/* The page at the end of the path, by its struct page; it must name the slot. */
enum swap_cache_state swap_cache__page(struct swap_cache *c, const struct swap_lookup *want,
				       uint64_t page, struct swap_trace *t);

/* The struct swap_info_struct of a slot, which must be the area's and have enough slots. */
bool swap_cache__area(struct swap_cache *c, const struct swap_lookup *want, struct swap_trace *t,
		      uint64_t *ret);

/* Both kinds. Records the frame and all steps in `t`. */
enum swap_cache_state swap_cache__by_tree(struct swap_cache *c, const struct swap_lookup *want,
					  struct swap_trace *t);
enum swap_cache_state swap_cache__by_table(struct swap_cache *c, const struct swap_lookup *want,
					   struct swap_trace *t);

/* Are the offsets plausible? A false BTF must not lead anywhere. */
bool swap_cache__tree_is_sound(const struct linux_swap_layout *l);
bool swap_cache__table_is_sound(const struct linux_swap_layout *l);

#endif
