/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a container. Two ways:
 *
 * - rsz_scan walks the records front to back and checks everything but the payloads: digests,
 *   order, place, identity, the index, the root. Verification is a scan plus rsz_check() of every
 *   payload, on as many threads as there are.
 * - rsz_reader finds what a stream holds at an address. It trusts the index of a sealed container
 *   within bounds, and walks an unsealed one.
 *
 * Input is hostile: memory is bounded by the limits of formats/SPEC.md and, for the index, by the
 * file's size; nothing recurses; nothing is believed before it is checked.
 */
#ifndef RAMSEAL_FORMATS_RSZ_READER_H
#define RAMSEAL_FORMATS_RSZ_READER_H

#include "formats/base/io.h"
#include "formats/base/range.h"
#include "formats/rsz/rsz.h"

/* How a container ends. */
enum rsz_end {
	RSZ_END_SEALED,   /* with CLOSE, and everything agrees with it */
	RSZ_END_UNSEALED, /* behind a whole record, without CLOSE */
	RSZ_END_CUT,      /* in the middle of a record */
	RSZ_END_DAMAGED,  /* at bytes that are no valid record, or do not belong there */
};

/* "sealed", "unsealed", … */
const char *rsz_end_name(enum rsz_end end);

/* What BEGIN says. All but `id` is 0 and "" if it is damaged. */
struct rsz_identity {
	uint8_t id[RSZ_ID_SIZE];
	uint64_t wall;
	uint64_t mono;
	char text[RSZ_TEXT_MAX + 1];
};

struct rsz_stream_info {
	uint32_t kind;
	bool paged;
	char *name; /* UTF-8 as far as the writer kept his promise; may hold control characters */
	char *meta; /* JSON text or "" */
};

/* A record as a scan sees it. `header` is valid until the next call. */
struct rsz_record {
	enum rsz_type type;
	uint64_t sequence;
	uint64_t offset;
	const uint8_t *header;
	size_t header_length;
	size_t stored; /* bytes of payload at offset + header_length */
	size_t content;
	uint32_t stream; /* CHUNK and STREAM only */
};

/*
 * Scanning
 */

struct rsz_scan;

/*
 * ST_INPUT if the blob is no container: it does not begin like a record, and has no record 1 either
 * (SPEC.md, section 2). The blob stays the caller's; it can be one that is read forward only, whose
 * last record and the bytes in front of it are there as long as the next one is not asked for.
 */
enum status rsz_scan_create(struct blob *in, struct rsz_scan **ret, struct err *e);
void rsz_scan_destroy(struct rsz_scan *s); /* NULL is fine */

/*
 * The next whole record. BEGIN is the first, unless it is damaged and record 1 is not: then that is
 * the first, rsz_scan_identity() knows the identity alone, and the end is RSZ_END_DAMAGED. ST_END
 * when there is none; rsz_scan_end() says why, and where. Other statuses are I/O errors.
 */
enum status rsz_scan_next(struct rsz_scan *s, struct rsz_record *ret, struct err *e);

struct rsz_scan_result {
	enum rsz_end end;
	uint64_t whole;   /* bytes of whole, valid records */
	uint64_t records; /* how many, CLOSE included */
	uint64_t behind;  /* bytes that follow a sealed container and are not its */
	uint64_t cut;     /* bytes of the unfinished record behind one that is not sealed */
	uint8_t id[RSZ_ID_SIZE];
	char reason[ERR_MESSAGE_MAX]; /* why it is not sealed; "" if it is */
	uint8_t root[SHA256_SIZE];    /* over the records so far (without CLOSE) */
};

/* After ST_END. */
void rsz_scan_end(struct rsz_scan *s, struct rsz_scan_result *ret);

/* Over the records so far: up to the end of the one that came last. */
void rsz_scan_root(const struct rsz_scan *s, uint8_t ret[static SHA256_SIZE]);

const struct rsz_identity *rsz_scan_identity(const struct rsz_scan *s);
size_t rsz_scan_streams(const struct rsz_scan *s);
const struct rsz_stream_info *rsz_scan_stream(const struct rsz_scan *s, size_t i);

/*
 * Decoding, one decoder per thread
 */

struct rsz_decoder;

enum status rsz_decoder_create(struct rsz_decoder **ret, struct err *e);
void rsz_decoder_destroy(struct rsz_decoder *d); /* NULL is fine */

/*
 * Checks a payload against a header that a scan has passed: CRC-32, decompression, length,
 * SHA-256. ST_CORRUPT if anything differs.
 */
enum status rsz_check(struct rsz_decoder *d, const uint8_t *header, size_t header_length,
		      const uint8_t *payload, struct err *e);

/*
 * The content of such a record: for those of a stream that is not paged, its text. Checked as by
 * rsz_check(); valid until the decoder is used again.
 */
enum status rsz_content(struct rsz_decoder *d, const uint8_t *header, size_t header_length,
			const uint8_t *payload, const uint8_t **ret, size_t *ret_len,
			struct err *e);

/*
 * A chunk with buffers for any legal header. Those of payload and content grow with what is loaded:
 * a payload is never larger than its file, and most chunks are smaller than the largest.
 */
struct rsz_loaded {
	struct rsz_chunk chunk;
	uint64_t record; /* its offset; UINT64_MAX: nothing loaded */
	uint8_t *header;
	uint8_t *payload;
	size_t payload_room;
	size_t data_room;       /* of chunk.data */
	struct rsz__room *room; /* that has it; NULL: malloc() */
};

/* `ret` of rsz_scan_chunk() is the `chunk` of such a buffer; its `data` is not used. */
enum status rsz_loaded_init(struct rsz_loaded *l, struct err *e);
void rsz_loaded_deinit(struct rsz_loaded *l);

/*
 * What the header of the record says that rsz_scan_next() has just returned, a CHUNK: extents and
 * page states, without a byte of content.
 */
void rsz_scan_chunk(const struct rsz_scan *s, struct rsz_chunk *ret);

/* `rec` and `c` are valid for the call alone. Anything but ST_OK ends the run. */
typedef enum status rsz_chunk_fn(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
				 struct err *e);

/*
 * A scan from front to back that shows every chunk's header; `end` (may be NULL) is how it ended.
 */
enum status rsz_scan_chunks(struct blob *in, rsz_chunk_fn *fn, void *arg,
			    struct rsz_scan_result *end, struct err *e);

/*
 * Random access
 */

struct rsz_reader;

/*
 * What opening takes, at most: buffers for one header and one INDEX of the largest size, and a few
 * bytes for each byte of the container. An extent takes 32 there. Here it takes some 5 where it is
 * like its neighbours (formats/base/packed.h), twice that while all are merged, and 130 where
 * nothing is like anything and all overlap.
 */
#define RSZ_READER_FIXED  ((size_t)1 << 20)
#define RSZ_READER_FACTOR 5

enum rsz_trust {
	/*
	 * Believe the index of a sealed container: its last few KiB are read, whatever its size.
	 * Where other bytes follow the container, all is walked.
	 */
	RSZ_TRUST_INDEX,
	/*
	 * Walk all headers: index, order and root are proven, so that nothing can be hidden from
	 * whoever reads every stream to its end. One small read per record.
	 */
	RSZ_TRUST_NOTHING,
};

/*
 * ST_INPUT if it is no container. An unsealed, cut or damaged container opens as far as it is
 * whole; rsz_reader_end() tells. The blob stays the caller's. After opening, a reader is constant:
 * any number of threads may use it, each with its own cursor.
 */
enum status rsz_reader_open(struct blob *in, enum rsz_trust trust, struct rsz_reader **ret,
			    struct err *e);

/*
 * The same with RSZ_TRUST_NOTHING, and as rsz_scan_chunks(): whoever needs every chunk's header as
 * well has it from the one walk, and of the same bytes.
 */
enum status rsz_reader_open_watched(struct blob *in, rsz_chunk_fn *fn, void *arg,
				    struct rsz_reader **ret, struct err *e);
void rsz_reader_close(struct rsz_reader *r); /* NULL is fine */

/*
 * ST_NOMEM if memory ever ran out while a cursor of this reader decoded a chunk. Code that walks
 * tables goes on without the pages that it cannot read, and has to ask this at its end: what it did
 * not find may be there all the same. It stays so until the reader is closed. From any thread.
 */
enum status rsz_reader_starved(const struct rsz_reader *r, struct err *e);

const struct rsz_identity *rsz_reader_identity(const struct rsz_reader *r);
size_t rsz_reader_streams(const struct rsz_reader *r);
const struct rsz_stream_info *rsz_reader_stream(const struct rsz_reader *r, size_t i);

/*
 * How it ends. With RSZ_TRUST_INDEX the root of a sealed container is the one that CLOSE states:
 * only a walk proves it.
 */
const struct rsz_scan_result *rsz_reader_end(const struct rsz_reader *r);

/* A piece of a stream, and the extent that is its newest capture. */
struct rsz_segment {
	uint64_t address;
	uint64_t length;
	uint64_t extent; /* which of all that the file has, in its order, from 0 on */
};

/*
 * The first segment of `stream` that ends behind `from`; it may begin before it. False if there
 * is none. O(log n).
 */
bool rsz_reader_next(const struct rsz_reader *r, uint32_t stream, uint64_t from,
		     struct rsz_segment *ret);

/* The offset in the file of the CHUNK record that holds the extent of a segment. O(log n). */
uint64_t rsz_reader_record(const struct rsz_reader *r, uint64_t extent);

/*
 * True if a newer capture has a part of that extent, or all of it (numbered as in rsz_segment).
 * O(1).
 */
bool rsz_reader_is_covered(const struct rsz_reader *r, uint64_t extent);

/*
 * Appends the addresses of `stream` that something was captured of: in order, disjoint, as few
 * ranges as they make. Faster than asking for segment after segment, of which there may be
 * millions.
 */
enum status rsz_reader_ranges(const struct rsz_reader *r, uint32_t stream, struct range_list *ret,
			      struct err *e);

struct rsz_cursor;

/* A thread's way through a reader. `cached`: how many decoded chunks it keeps (at least 1). */
enum status rsz_cursor_create(const struct rsz_reader *r, size_t cached, struct rsz_cursor **ret,
			      struct err *e);
void rsz_cursor_destroy(struct rsz_cursor *c); /* NULL is fine */

/*
 * Bounds what the decoded chunks take together, in bytes of content: beyond that, those that were
 * not used for longest are let go, all but the one that was loaded last. For who keeps many,
 * because a chunk may have 16 MiB. 0, as after rsz_cursor_create(): their number alone is bounded.
 * Before the first load.
 */
void rsz_cursor_bound(struct rsz_cursor *c, size_t bytes);

/* Lets go of all decoded chunks: the memory is needed for something else. */
void rsz_cursor_forget(struct rsz_cursor *c);

/* How many chunks were decoded so far, a chunk as often as that was. */
uint64_t rsz_cursor_decoded(const struct rsz_cursor *c);

/*
 * For who reads a page here and a page there: lets rsz_cursor_read() decode a chunk only as far as
 * is wanted, when up to 8 pages are read of one that is not loaded. Whoever comes back for the
 * fourth time gets the whole chunk, unless he asked for more others meanwhile than the cursor
 * keeps.
 *
 * What is read so has another check than all else. Checked are the header by its SHA-256, thus
 * addresses, times and page states; the whole payload by its CRC-32; and that it is one frame as
 * the header says, and decompresses as far as the page. The SHA-256 of the content is not: it
 * needs all of it. Accidental damage escapes the CRC-32 but once in 2^32; bytes that were changed
 * on purpose need not show here: verification is what finds them. The first damage that the cursor
 * sees, in whatever way, ends this: from then on each chunk is decoded as a whole.
 *
 * After rsz_cursor_bound().
 */
enum status rsz_cursor_allow_glances(struct rsz_cursor *c, struct err *e);

/*
 * The chunk in the record at `record`, checked and decoded. Valid until the cursor has loaded
 * `cached` others; of a bounded cursor, until it has loaded another one. Damage is ST_CORRUPT.
 */
enum status rsz_cursor_load(struct rsz_cursor *c, uint64_t record, const struct rsz_chunk **ret,
			    struct err *e);

/*
 * The bytes of a stream that is not paged, one piece after the other: begin with *at = 0, until
 * ST_END. *ret is valid as rsz_cursor_load()'s. A damaged piece is ST_CORRUPT, and *ret_len is how
 * many bytes it had; the next call goes on behind it.
 */
enum status rsz_cursor_next_text(struct rsz_cursor *c, uint32_t stream, uint64_t *at,
				 const uint8_t **ret, size_t *ret_len, struct err *e);

/* One byte of a stream that is not paged. ST_CORRUPT if nothing was captured there. */
enum status rsz_cursor_byte(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint8_t *ret,
			    struct err *e);

/* What is known of one page of a paged stream. */
struct rsz_page {
	bool captured; /* false: no extent covers it, and nothing below is set */
	struct page_status status;
	uint64_t start; /* capture time of its extent, monotonic ns */
	uint64_t end;
	uint16_t pass;
	uint16_t reason;
	const uint8_t *data; /* its bytes (zeros where it has none); valid as rsz_cursor_load()'s */
	size_t length;       /* PAGE_SIZE, or less at the end of a file */
};

/*
 * State, time and content of the page at `address`: of the newest capture of its first byte, which
 * may end inside the page. ST_OK also where nothing was captured.
 */
enum status rsz_cursor_page(struct rsz_cursor *c, uint32_t stream, uint64_t address,
			    struct rsz_page *ret, struct err *e);

/* When something was captured, from the first page to the last, monotonic ns. 0: nothing yet. */
struct rsz_times {
	uint64_t start;
	uint64_t end;
};

static inline void rsz_times_widen(struct rsz_times *t, uint64_t start, uint64_t end)
{
	if (start && (!t->start || start < t->start))
		t->start = start;
	if (end > t->end)
		t->end = end;
}

/*
 * Reads `pages` pages at `address`. Pages without bytes become zeros in `buf`, and `status` tells
 * them from zeros that were read; what was never captured is PAGE_SKIPPED with SKIP_NOT_CAPTURED.
 * A page of two captures (a newer, shorter one over its front) has the bytes of both.
 * `times` (or NULL) is widened by when they were captured.
 */
enum status rsz_cursor_read(struct rsz_cursor *c, uint32_t stream, uint64_t address, void *buf,
			    size_t pages, struct page_status *status, struct rsz_times *times,
			    struct err *e);

#endif
