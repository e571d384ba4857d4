/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the compression store; see pagestore.h. */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_PAGESTORE_INTERNAL_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_PAGESTORE_INTERNAL_H

#include "agent/examine/virtual/pagestore.h"

/* A kind of manager, and what goes with it. */
struct pagestore_kind {
	uint32_t keys; /* the bits of a key that find a page */
	uint16_t tree; /* of a manager: KeyToStoreTree */
	uint16_t self; /* of an SMKM_STORE: the pointer to itself */
	bool inside;   /* the entries of its stores are in the manager itself */
};

extern const struct pagestore_kind pagestore__kind_1507, pagestore__kind_1607, pagestore__kind_24h2;

/* A manager's stores. */
#define PAGESTORE_ARRAYS       32
#define PAGESTORE_ARRAY        32
#define PAGESTORE_ARRAY_ENTRY  0x28
#define PAGESTORE_INSIDE       32
#define PAGESTORE_INSIDE_ENTRY 0xb0

/* Entries of a tree. */
#define PAGESTORE_NODE_HEAD    0x10
#define PAGESTORE_PAIR         8

struct pagestore_node {
	const uint8_t *page; /* until the next read */
	unsigned entries;
	unsigned size; /* of an entry */
	bool leaf;
};

/* `pair`: the size of a leaf's entries. False: it is not a node with rising keys. */
bool pagestore__read_node(const struct pagestore *s, uint64_t va, unsigned pair,
			  struct pagestore_node *ret);

/* Whether an address is one of the kernel's half. */
bool pagestore__is_kernel(uint64_t va, uint64_t align);

/*
 * In all builds a store has a pointer to itself: nothing else in memory looks like that by chance.
 */
bool pagestore__is_store(const struct pagestore *s, const struct pagestore_kind *k, uint64_t va);

#endif
