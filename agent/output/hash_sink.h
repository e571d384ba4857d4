/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink that passes everything on and hashes it: the SHA-256 is what `sha256sum` prints of the
 * file, holes counted as the zeros that they read as.
 */
#ifndef RAMSEAL_AGENT_OUTPUT_HASH_SINK_H
#define RAMSEAL_AGENT_OUTPUT_HASH_SINK_H

#include "formats/base/io.h"
#include "formats/base/sha256.h"

struct hash_sink {
	struct sink sink; /* cannot take anything back */
	struct sink *to;  /* borrowed */
	struct sha256 *hash;
	bool broken; /* interrupted in the middle of a hole */
};

enum status hash_sink_init(struct hash_sink *h, struct sink *to, struct err *e);
void hash_sink_deinit(struct hash_sink *h);

/* Of everything so far, or "" if it was interrupted; nothing can be added after it. */
void hash_sink_end(struct hash_sink *h, char ret[static SHA256_HEX_SIZE]);

#endif
