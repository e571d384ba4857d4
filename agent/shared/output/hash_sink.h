/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output that stands on another one and hashes what it passes on: the SHA-256 is what
 * `sha256sum` prints of the file, holes counted as the zeros that they read as. Nothing can be
 * taken back.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_HASH_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_HASH_SINK_H

#include "agent/shared/output/output.h"
#include "formats/base/sha256.h"

/* *o is now the upper one, and owns what it was; after a failure it is as before. */
enum status hash_sink_put_on(struct output **o, struct err *e);

/*
 * Of everything so far, or "" if it was interrupted in the middle of a hole, or if a write failed;
 * nothing can be added after it. `o` is what hash_sink_put_on() made.
 */
void hash_sink_end(struct output *o, char ret[static SHA256_HEX_SIZE]);

#endif
