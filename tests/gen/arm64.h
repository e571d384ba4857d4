/* SPDX-License-Identifier: Apache-2.0 */
/* ARM64's page tables in a machine made for tests, by granule and bits of a virtual address. */
#ifndef RAMSEAL_TESTS_GEN_ARM64_H
#define RAMSEAL_TESTS_GEN_ARM64_H

#include "tests/gen/machine.h"

struct arm64 {
	struct machine *m;
	unsigned shift; /* 12, 14 or 16: the granule */
	unsigned va;    /* bits */
};

#define ARM64_LEVELS_MAX 5

unsigned arm64_levels(const struct arm64 *a);
/* A fresh table, aligned to its size. The root's may be smaller than a page. */
uint64_t arm64_new_table(const struct arm64 *a, unsigned level);
/* Where the entry of `level` (1: pages) for `va` stands; missing tables above it are made. */
uint64_t arm64_entry(const struct arm64 *a, uint64_t root, uint64_t va, unsigned level);
/* How a table, a page (level 1) or a block at `pa` stands in an entry. */
uint64_t arm64_table_entry(const struct arm64 *a, uint64_t pa);
uint64_t arm64_leaf_entry(const struct arm64 *a, uint64_t pa, unsigned level);
void arm64_map(const struct arm64 *a, uint64_t root, uint64_t va, uint64_t pa, unsigned level);

#endif
