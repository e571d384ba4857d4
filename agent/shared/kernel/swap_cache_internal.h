/* SPDX-License-Identifier: Apache-2.0 */
/* What swap_cache.c, which looks, shares with swap_tree.c and swap_table.c, which know one kind. */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_KERNEL_SWAP_CACHE_INTERNAL_H

#include "agent/shared/kernel/swap_cache.h"
#include "agent/shared/paging/pte.h"

/* Words on the way to a slot: twice through six nodes of a tree and their siblings, and more. */
#define SWAP_CACHE__WORDS 36

/* What was seen on the way to a slot; two are the same if all of it is, byte for byte. */
struct swap_trace {
	uint64_t words[SWAP_CACHE__WORDS];
	uint64_t n;
	uint64_t frame; /* physical address */
	uint64_t state; /* enum swap_cache_state */
};

/* Where a kernel notes that a slot's page is zeros, which it does not write then. */
enum swap_zeros {
	SWAP_ZEROS_UNKNOWN,
	SWAP_ZEROS_WRITTEN, /* nowhere: it writes them like any other */
	SWAP_ZEROS_MAP,     /* swap_info_struct.zeromap, a bit for each slot */
	SWAP_ZEROS_FLAG     /* a bit of the slot's entry in its table */
};

struct seen_page;

struct swap_cache {
	struct physmem *mem;
	struct linux_swap_layout layout;
	uint64_t spaces, ops, areas, vmemmap;
	bool by_tables;    /* or by trees */
	bool known_tables; /* of a version whose text was read */
	enum swap_zeros zeros;
	struct physmem_cache tables; /* translations, of one round */
	struct virt space;
	struct seen_page *seen; /* by their address; what collides is read again */
	uint64_t round;
	struct swap_trace *traces; /* of the first round, and their number */
	size_t n_traces;
};

/* At a multiple of 8, or of 4, so that it lies in one page. False if it cannot be read. */
bool swap_cache__word(struct swap_cache *c, uint64_t va, uint64_t *ret);
bool swap_cache__half_word(struct swap_cache *c, uint64_t va, uint32_t *ret);
bool swap_cache__byte(struct swap_cache *c, uint64_t va, uint8_t *ret);
/* A word that is a part of the way: in the second round it must be the same. */
bool swap_cache__step(struct swap_cache *c, struct swap_trace *t, uint64_t va, uint64_t *ret);

/* What the way leads to, by the address of its struct page, must be a page that names the slot. */
enum swap_cache_state swap_cache__page(struct swap_cache *c, const struct swap_lookup *want,
				       uint64_t page, struct swap_trace *t);

/* The struct swap_info_struct of a slot; it must be the area's, and have so many slots. */
bool swap_cache__area(struct swap_cache *c, const struct swap_lookup *want, struct swap_trace *t,
		      uint64_t *ret);

/* By either kind. The frame and all steps come to `t`. */
enum swap_cache_state swap_cache__by_tree(struct swap_cache *c, const struct swap_lookup *want,
					  struct swap_trace *t);
enum swap_cache_state swap_cache__by_table(struct swap_cache *c, const struct swap_lookup *want,
					   struct swap_trace *t);

/* Whether the offsets are those of a structure, so that a BTF that lies leads nowhere. */
bool swap_cache__tree_is_sound(const struct linux_swap_layout *l);
bool swap_cache__table_is_sound(const struct linux_swap_layout *l);

#endif
