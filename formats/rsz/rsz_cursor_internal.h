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
 * A chunk that is decoded from its front only as far as it was wanted. `loaded.chunk.data` has the
 * data pages back to back, as the payload has.
 */
struct front {
	struct rsz_decoder *decoder;
	struct rsz_loaded loaded;
	struct rsz__prefix prefix;
	struct rsz__steps steps;
	uint64_t call;           /* rsz_cursor.call when it was last used */
	bool off;                /* a chunk was damaged: from then on each is checked as a whole */
	struct glanced *glanced; /* a ring of those that had glances of late */
	size_t n_glanced;
	size_t next;
};

struct rsz_cursor {
	const struct rsz_reader *reader;
	struct rsz_decoder *decoder;
	struct sha256 *sha;
	struct rsz_loaded *slots;
	uint64_t *used; /* per slot: when it was last asked for */
	size_t n_slots;
	uint64_t now;
	uint64_t decoded;       /* chunks */
	size_t bound;           /* bytes of content that slots may hold; 0: any */
	size_t held;            /* by them; counted only if there is a bound, as is */
	struct rsz__room *room; /* theirs, if there is a bound */
	uint8_t *payload;       /* what slots have of their own without one */
	size_t payload_room;
	uint64_t *seen;      /* offsets + 1; NULL: none yet, or no memory for it */
	unsigned seen_bits;  /* binary logarithm of how many places it has */
	size_t n_seen;       /* that are taken */
	uint64_t call;       /* of rsz_cursor_read() */
	size_t pages;        /* that it wants */
	struct front *front; /* NULL: every chunk is decoded as a whole */
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

/* `ret->chunk` is that of `record`, as far as the index speaks the truth. */
enum status rsz__place_in_chunk(uint32_t stream, uint64_t address, struct rsz_location *ret,
				struct err *e);

/* What to end with. */
enum status rsz__index_lies(struct err *e, uint64_t address);
enum status rsz__record_failed(const struct rsz_cursor *c, uint64_t record, enum status st,
			       struct err *e);

/* rsz_glances.c: is this read one that needs only a few pages of the record's chunk? Counts it. */
bool rsz__wants_glance(const struct rsz_cursor *c, uint64_t record);
/* The bytes from `address` to the end of its page, valid until the next glance. */
enum status rsz__glance(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint64_t record,
			struct rsz_location *ret, const uint8_t **ret_bytes, struct err *e);
void rsz__glances_destroy(struct front *f); /* NULL is fine */

#endif
