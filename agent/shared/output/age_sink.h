/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output that stands on another one and encrypts what it passes on, with age
 * (formats/age/age.h).
 *
 * What was encrypted is never taken back, because other bytes in its place would be encrypted with
 * the same nonce. So a full disk does not stop it in the middle of a write: it takes the room that
 * is kept for the end (output_options.reserve), the write goes on to its end, and then
 * output_check() says that nothing but the end may follow. sink_cut() to what is there allows that.
 * Where no room can be kept the write fails, and that is the last word: what can be read of it are
 * all chunks that were written before.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_AGE_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_AGE_SINK_H

#include "agent/shared/output/output.h"
#include "formats/age/age.h"

/*
 * To be added to the reserve: a record that was begun, with what is held back, and a tag for each
 * chunk. Records of an acquisition have 1 MiB of content.
 */
#define AGE_SINK_RESERVE ((uint64_t)2 << 20)

/* What `need` becomes by it. */
void age_sink_need(struct output_need *need);

/*
 * *o, which has nothing written to it yet, is now the upper one, and owns what it was; after a
 * failure it is as before. ST_OUTPUT for a disk: what was on it follows what is written, and then
 * nothing tells where the encryption ends.
 */
enum status age_sink_put_on(struct output **o, const struct age_recipients *to, struct err *e);

/* The same of what a path names now, before anything is opened. */
enum status age_sink_check_path(const char *path, struct err *e);

#endif
