/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/rsz/merkle.h"

#include <stdbool.h>
#include <string.h>

static void node_hash(struct sha256 *h, const uint8_t *left, const uint8_t *right, uint8_t *ret)
{
	static const uint8_t node_prefix = 1; /* RFC 6962, 2.1 */

	sha256_begin(h);
	sha256_update(h, &node_prefix, 1);
	sha256_update(h, left, SHA256_SIZE);
	sha256_update(h, right, SHA256_SIZE);
	sha256_end(h, ret);
}

void merkle_add(struct merkle *m, struct sha256 *h, const uint8_t leaf[static SHA256_SIZE])
{
	uint8_t carry[SHA256_SIZE];
	size_t k = 0;

	memcpy(carry, leaf, sizeof(carry));
	for (; m->leaves >> k & 1; k++)
		node_hash(h, m->level[k], carry, carry);
	memcpy(m->level[k], carry, sizeof(carry));
	m->leaves++;
}

void merkle_root(const struct merkle *m, struct sha256 *h, uint8_t ret[static SHA256_SIZE])
{
	bool any = false;

	if (!m->leaves)
		sha256_of(h, NULL, 0, ret);
	/* The split at the largest power of two makes the rest of the tree the right child. */
	for (size_t k = 0; k < MERKLE_LEVELS; k++) {
		if (!(m->leaves >> k & 1))
			continue;
		if (any)
			node_hash(h, m->level[k], ret, ret);
		else
			memcpy(ret, m->level[k], SHA256_SIZE);
		any = true;
	}
}
