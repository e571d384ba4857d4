/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output that stands on another one and encrypts what it passes on, with age
 * (formats/age/age.h).
 *
 * Encrypted bytes are never taken back, because other bytes in their place would be encrypted with
 * the same nonce. So a full disk does not stop a write midway: it uses the space reserved for the
 * end (output_options.reserve), the write completes, and then output_check() says that only the end
 * may follow. sink_cut() to the current length allows that. If no space can be reserved, the write
 * fails for good, and all chunks written before stay readable.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_AGE_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_AGE_SINK_H

#include "agent/shared/output/output.h"
#include "formats/age/age.h"

/*
 * Add to the reserve: an unfinished record, what is held back, and a tag for each chunk. Records of
 * an acquisition have 1 MiB of content.
 */
#define AGE_SINK_RESERVE ((uint64_t)2 << 20)

/* Adjusts `need` for encryption. */
void age_sink_need(struct output_need *need);

/*
 * Replaces *o, which must still be empty, by an encrypting output that owns it; unchanged after a
 * failure. ST_OUTPUT for a disk: old bytes follow what is written, so the end of the encryption
 * could not be found.
 */
enum status age_sink_put_on(struct output **o, const struct age_recipients *to, struct err *e);

/* The same check for a path, before anything is opened. */
enum status age_sink_check_path(const char *path, struct err *e);

/*
 * True for a file's name that does not end in ".age": whoever finds the file does not see that it
 * is encrypted. False for what is no regular file, such as a disk or stdout.
 */
bool age_sink_lacks_suffix(const char *path);
#define AGE_SUFFIX_NOTE "%s: will be encrypted, but its name does not end in .age"

#endif
