/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output that stands on another one and hashes what it passes on: the SHA-256 is what
 * `sha256sum` prints for the file, with holes as zeros. Nothing can be taken back.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_HASH_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_HASH_SINK_H

#include "agent/shared/output/output.h"
#include "formats/base/sha256.h"

/* Replaces *o by a hashing output that owns it; unchanged after a failure. */
enum status hash_sink_put_on(struct output **o, struct err *e);

/*
 * The hash of everything so far, or "" if it was interrupted in a hole or a write failed; nothing
 * can be added afterwards. `o` is from hash_sink_put_on().
 */
void hash_sink_end(struct output *o, char ret[static SHA256_HEX_SIZE]);

#endif
