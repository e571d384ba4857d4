/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the encoder that the writer needs for its own records. Internal to formats/. */
#ifndef RAMSEAL_FORMATS_RSZ_ENCODE_H
#define RAMSEAL_FORMATS_RSZ_ENCODE_H

#include "formats/rsz/rsz_writer.h"

/* Hashes and compresses `content` into the frame's payload. */
enum status rsz__encode_payload(struct rsz_encoder *x, const uint8_t *content, size_t len,
				struct rsz_frame *f, struct err *e);

/* A chunk's header except what only the writer knows: identity, place and digest. */
void rsz__encode_header(const struct rsz_chunk *c, struct rsz_frame *f);

#endif
