/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record headers as bytes: the one place that knows offsets. Internal to formats/; writers and
 * readers go through rsz_writer.h and rsz_reader.h.
 */
#ifndef RAMSEAL_FORMATS_RSZ_WIRE_H
#define RAMSEAL_FORMATS_RSZ_WIRE_H

#include "formats/base/checks_sums.h"
#include "formats/rsz/rsz.h"

#define RSZ__MAGIC       0x184D2A5Bu /* RFC 8878, 3.1.2: skippable frames are 0x184D2A50..5F */
#define RSZ__PREFIX_SIZE 96u         /* fields common to all types, before the body */
#define RSZ__EXTENT_SIZE 32u
#define RSZ__RUN_SIZE    8u
#define RSZ__ENTRY_SIZE  24u /* of an INDEX */
#define RSZ__CLOSE_SIZE  176u
#define RSZ__BEGIN_MIN   152u
#define RSZ__BEGIN_MAX   (RSZ__BEGIN_MIN + RSZ_TEXT_MAX)
#define RSZ__HEADER_MIN  (RSZ__PREFIX_SIZE + SHA256_SIZE)

/* The size of a header with this many extents and page runs. */
static inline size_t rsz__chunk_header_size(size_t extents, size_t runs)
{
	return 128 + RSZ__EXTENT_SIZE * extents + RSZ__RUN_SIZE * runs + SHA256_SIZE;
}

/* The prefix. `header` is the whole header's length. */
struct rsz__prefix {
	size_t header;
	uint16_t type;
	uint8_t id[RSZ_ID_SIZE];
	uint64_t sequence;
	uint64_t offset;
	uint32_t stored;
	uint32_t content;
	uint32_t crc;
	uint8_t sha256[SHA256_SIZE];
	uint8_t digest[SHA256_SIZE]; /* parsing only */
};

struct rsz__begin {
	uint64_t wall;
	uint64_t mono;
	const char *text; /* not terminated; into the header */
	uint32_t text_length;
};

struct rsz__stream {
	uint32_t stream;
	uint32_t kind;
	uint32_t page_size;
	const char *name; /* not terminated; into the header */
	uint32_t name_length;
	const char *meta;
	uint32_t meta_length;
};

struct rsz__chunk {
	uint32_t stream;
	uint32_t extents;
	uint32_t runs;
	uint32_t length;
	uint64_t start;
	uint64_t end;
	const uint8_t *extents_at; /* into the header */
	const uint8_t *runs_at;
};

struct rsz__index {
	uint32_t entries;
	uint64_t previous;
};

struct rsz__entry {
	uint64_t record;
	uint64_t address;
	uint32_t length;
	uint32_t stream;
};

struct rsz__close {
	uint64_t records;
	uint64_t last_index;
	uint8_t root[SHA256_SIZE];
};

/*
 * Writing. Each writes the body at `body` (the header's start plus RSZ__PREFIX_SIZE) and returns
 * its length. rsz__finish() adds the prefix before it and the digest after it.
 */
size_t rsz__put_begin(uint8_t *body, const struct rsz__begin *b);
size_t rsz__put_stream(uint8_t *body, const struct rsz__stream *s);
size_t rsz__put_chunk(uint8_t *body, const struct rsz__chunk *c);
size_t rsz__put_index(uint8_t *body, const struct rsz__index *x);
size_t rsz__put_close(uint8_t *body, const struct rsz__close *c);
void rsz__put_extent(uint8_t *at, const struct rsz_extent *x);
void rsz__put_run(uint8_t *at, uint16_t count, struct page_status status);
void rsz__put_entry(uint8_t *at, const struct rsz__entry *x);

/* Fills in prefix and digest; `p->header` includes both. Also returns the digest in p->digest. */
void rsz__finish(uint8_t *header, struct rsz__prefix *p, struct sha256 *h);

/*
 * Reading. rsz__may_begin() checks the magic and the mark in the first bytes of a header, as far as
 * they are there. rsz__get_size() returns the length of the header from its first 16 bytes;
 * ST_CORRUPT if no header begins here, or one that is too long for its type. rsz__get_prefix()
 * takes the whole header and checks the prefix, its limits and the digest; the caller checks its
 * place in the file and its order. The others take the body of a header that passed, and check
 * every field.
 */
#define RSZ__MARK_END  12 /* magic, size and mark */
#define RSZ__SIZE_AT   16 /* bytes that rsz__get_size() needs */
#define RSZ__ID_END    32 /* with the container's identity */
#define RSZ__PLACE_END 48 /* with sequence and offset */
bool rsz__may_begin(const uint8_t *first, size_t len);
enum status rsz__get_size(const uint8_t first[static RSZ__SIZE_AT], size_t *ret, struct err *e);
enum status rsz__get_prefix(const uint8_t *header, size_t len, struct sha256 *h,
			    struct rsz__prefix *ret, struct err *e);
enum status rsz__get_begin(const uint8_t *header, size_t len, struct rsz__begin *ret,
			   struct err *e);
enum status rsz__get_stream(const uint8_t *header, size_t len, struct rsz__stream *ret,
			    struct err *e);
/* `kind` and `paged` are those of the chunk's stream, which rsz__get_chunk_stream() names. */
enum status rsz__get_chunk(const uint8_t *header, size_t len, uint32_t kind, bool paged,
			   struct rsz__chunk *ret, struct err *e);
uint32_t rsz__get_chunk_stream(const uint8_t *header);
enum status rsz__get_index(const uint8_t *header, size_t len, struct rsz__index *ret,
			   struct err *e);
enum status rsz__get_close(const uint8_t *header, size_t len, struct rsz__close *ret,
			   struct err *e);
struct rsz_extent rsz__get_extent(const uint8_t *at);
uint16_t rsz__get_run(const uint8_t *at, struct page_status *ret);
struct rsz__entry rsz__get_entry(const uint8_t *at);

#endif
