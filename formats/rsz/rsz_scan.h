/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scanning, opening from the end and sealing later have in common. Internal to formats/.
 */
#ifndef RAMSEAL_FORMATS_RSZ_SCAN_H
#define RAMSEAL_FORMATS_RSZ_SCAN_H

#include "formats/rsz/merkle.h"
#include "formats/rsz/rsz_reader.h"
#include "formats/rsz/rsz_wire.h"

/* The streams that a container has declared so far. Zero-initialise. */
struct rsz__streams {
	struct rsz_stream_info *at;
	size_t count;
};

/* Takes a STREAM record's header; its number must be the next. */
enum status rsz__streams_add(struct rsz__streams *t, const uint8_t *header, size_t len,
			     struct err *e);
/* Removes the last one. */
void rsz__streams_drop(struct rsz__streams *t);
void rsz__streams_deinit(struct rsz__streams *t);

/* Takes a BEGIN record's header. */
enum status rsz__identity_from(const uint8_t *header, size_t len, const struct rsz__prefix *p,
			       struct rsz_identity *ret, struct err *e);

/*
 * Reads the header at `offset` into `buf` (RSZ_HEADER_MAX bytes) and checks it on its own, without
 * its order or the fields of its type. ST_END (with a message) if the blob ends inside the header
 * or its payload, as far as that can be seen; ST_CORRUPT if it is not a header.
 */
enum status rsz__read_header(struct blob *in, uint64_t offset, struct sha256 *h, uint8_t *buf,
			     struct rsz__prefix *ret, struct err *e);

/* A writer can continue from a scan's state: see rsz_writer_continue(). */
struct rsz_scan {
	struct blob *in;
	struct sha256 *sha;
	uint8_t *header; /* RSZ_HEADER_MAX bytes */
	struct rsz_identity identity;
	bool without_begin; /* BEGIN is bad, but record 1 follows it */
	struct err begin;   /* why it is bad */
	struct rsz__streams streams;
	struct rsz__chunk chunk; /* of the last CHUNK record; it points into `header` */
	struct merkle tree;
	uint64_t sequence; /* of the next record */
	uint64_t offset;   /* of the next record */
	uint64_t last_index;
	uint8_t *entries; /* what the next INDEX must say */
	size_t n_entries;
	bool ended;
	struct rsz_scan_result result;
};

#endif
