/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Merkle tree hash of RFC 6962, section 2.1, one leaf at a time: it needs one digest of memory
 * per level of the tree, whatever the number of leaves.
 */
#ifndef RAMSEAL_FORMATS_MERKLE_H
#define RAMSEAL_FORMATS_MERKLE_H

#include "formats/base/sha256.h"

#define MERKLE_LEVELS 64

/* Zero-initialise. */
struct merkle {
	uint64_t leaves;
	/*
	 * level[k] holds the root of a full subtree of 2^k leaves where bit k of `leaves` is set.
	 */
	uint8_t level[MERKLE_LEVELS][SHA256_SIZE];
};

/* `leaf` is already a leaf hash: SHA-256 of 0x00 and the leaf's bytes. */
void merkle_add(struct merkle *m, struct sha256 *h, const uint8_t leaf[static SHA256_SIZE]);

/*
 * The root over all leaves so far; without leaves, the SHA-256 of no bytes. More can be added
 * later.
 */
void merkle_root(const struct merkle *m, struct sha256 *h, uint8_t ret[static SHA256_SIZE]);

#endif
