/* SPDX-License-Identifier: Apache-2.0 */
/* Between rsz_cursor.c, which loads whole chunks, and rsz_glances.c. */
#ifndef RAMSEAL_FORMATS_RSZ_CURSOR_INTERNAL_H
#define RAMSEAL_FORMATS_RSZ_CURSOR_INTERNAL_H

#include "formats/rsz/rsz_decode.h"
#include "formats/rsz/rsz_reader_internal.h"

struct glanced {
	uint64_t record; /* UINT64_MAX: none */
	unsigned glances;
};

/*
 * A chunk decoded from its front only as far as needed. `loaded.chunk.data` has its data pages
 * without gaps, as in the payload.
 */
struct front {
	struct rsz_decoder *decoder;
	struct rsz_loaded loaded;
	struct rsz__prefix prefix;
	struct rsz__steps steps;
	uint64_t call;           /* rsz_cursor.call when it was last used */
	bool off;                /* a chunk was damaged: from now on, whole chunks are checked */
	struct glanced *glanced; /* a ring of the chunks with recent glances */
	size_t n_glanced;
	size_t next;
};

struct rsz_cursor {
	const struct rsz_reader *reader;
	struct rsz_decoder *decoder;
	struct sha256 *sha;
	struct rsz_loaded *slots;
	uint64_t *used; /* per slot: when it was last used */
	size_t n_slots;
	uint64_t now;
	uint64_t decoded;       /* chunks */
	size_t bound;           /* bytes of content that slots may hold; 0: any */
	size_t held;            /* bytes that slots hold; counted only with a bound */
	struct rsz__room *room; /* the slots' memory, with a bound */
	uint8_t *payload;       /* the payload buffer, with a bound */
	size_t payload_room;
	uint64_t *seen;      /* offsets + 1; NULL: none yet, or out of memory */
	unsigned seen_bits;  /* binary logarithm of its number of places */
	size_t n_seen;       /* places in use */
	uint64_t call;       /* of rsz_cursor_read() */
	size_t pages;        /* pages that this call wants */
	struct front *front; /* NULL: chunks are always decoded whole */
};

/* Where the bytes of an address are, once their chunk is decoded. */
struct rsz_location {
	struct rsz_segment segment;
	const struct rsz_chunk *chunk;
	const struct rsz_extent *extent;
	size_t data; /* in chunk->data, of a whole chunk */
	size_t page; /* in chunk->pages */
	size_t left; /* bytes from there to the end of the extent */
};

/* Header and payload of a chunk of this container. */
enum status rsz__fetch_record(const struct rsz_reader *r, struct sha256 *sha, struct rsz_loaded *l,
			      uint64_t record, struct rsz__prefix *ret,
			      const struct rsz_stream_info **ret_stream, struct err *e);

/* `ret->chunk` is that of `record`, if the index is true. */
enum status rsz__place_in_chunk(uint32_t stream, uint64_t address, struct rsz_location *ret,
				struct err *e);

/* The error for an index that is not true. */
enum status rsz__index_lies(struct err *e, uint64_t address);
enum status rsz__record_failed(const struct rsz_cursor *c, uint64_t record, enum status st,
			       struct err *e);

/* rsz_glances.c: does this read need only a few pages of the record's chunk? Counts it. */
bool rsz__wants_glance(const struct rsz_cursor *c, uint64_t record);
/* The bytes from `address` to the end of its page, valid until the next glance. */
enum status rsz__glance(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint64_t record,
			struct rsz_location *ret, const uint8_t **ret_bytes, struct err *e);
void rsz__glances_destroy(struct front *f); /* NULL is fine */

#endif
