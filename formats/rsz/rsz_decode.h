/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding a chunk whose header has been read. Internal to formats/.
 */
#ifndef RAMSEAL_FORMATS_RSZ_DECODE_H
#define RAMSEAL_FORMATS_RSZ_DECODE_H

#include "formats/rsz/rsz_reader.h"
#include "formats/rsz/rsz_wire.h"

/*
 * Checks and decompresses a payload of p->stored bytes into `to`, which holds p->content bytes.
 * ST_CORRUPT if anything is not as the header says.
 */
enum status rsz__decode_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
				const uint8_t *payload, uint8_t *to, struct err *e);

/*
 * The same without the SHA-256, as far as somebody wants it: to begin checks what needs no content,
 * which is the CRC-32 of the whole payload and that it is one frame as the header says; to go on
 * decodes until `wanted` bytes (at most p->content) are at the front of `to`, which holds
 * p->content and stays where it is. The decoder must not be used for anything else meanwhile.
 * After a failure there is no going on.
 */
struct rsz__steps {
	size_t taken; /* bytes of the payload */
	size_t made;  /* bytes of content */
	size_t next;  /* what zstd wants to see next; 0: the frame has ended */
};

enum status rsz__begin_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
			       const uint8_t *payload, struct rsz__steps *ret, struct err *e);
enum status rsz__continue_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
				  const uint8_t *payload, uint8_t *to, size_t wanted,
				  struct rsz__steps *s, struct err *e);

/* Writes a judged header's extents and page states out in full; c->data stays as it is. */
void rsz__expand_header(const struct rsz__chunk *fields, bool paged, struct rsz_chunk *c);

/*
 * Makes room in l->payload for what follows a header at `offset`, and reads it. ST_NO_MEMORY, or
 * what the blob says.
 */
enum status rsz__read_payload(struct blob *in, uint64_t offset, const struct rsz__prefix *p,
			      struct rsz_loaded *l, struct err *e);

/* Room for `len` bytes in l->chunk.data, whose bytes are undefined then. */
enum status rsz__make_data_room(struct rsz_loaded *l, size_t len, struct err *e);

/*
 * l->header and l->payload hold the record, `p` is its prefix, checked. Fills l->chunk; ST_CORRUPT
 * if payload or fields are not as they must be, and then l->chunk is undefined. `digest_seen`: this
 * record's content had its SHA-256 before; then only what is stored is checked, by its CRC-32.
 */
enum status rsz__decode_chunk(struct rsz_decoder *d, const struct rsz_stream_info *stream,
			      const struct rsz__prefix *p, bool digest_seen, struct rsz_loaded *l,
			      struct err *e);

#endif
