/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer needs of the encoder for records of its own. Internal to formats/.
 */
#ifndef RAMSEAL_FORMATS_RSZ_ENCODE_H
#define RAMSEAL_FORMATS_RSZ_ENCODE_H

#include "formats/rsz/rsz_writer.h"

/* Hashes and compresses `content` into the frame's payload. */
enum status rsz__encode_payload(struct rsz_encoder *x, const uint8_t *content, size_t len,
				struct rsz_frame *f, struct err *e);

/* Everything of a chunk's header but what only the writer knows: identity, place and digest. */
void rsz__encode_header(const struct rsz_chunk *c, struct rsz_frame *f);

#endif
