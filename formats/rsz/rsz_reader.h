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
 * file's size; nothing recurses; nothing is used before it is checked.
 */
#ifndef RAMSEAL_FORMATS_RSZ_READER_H
#define RAMSEAL_FORMATS_RSZ_READER_H

#include "formats/base/io.h"
#include "formats/base/range.h"
#include "formats/rsz/rsz.h"

/* How a container ends. */
enum rsz_end {
	RSZ_END_SEALED,   /* with a CLOSE that fits everything before it */
	RSZ_END_UNSEALED, /* after a whole record, without CLOSE */
	RSZ_END_CUT,      /* in the middle of a record */
	RSZ_END_DAMAGED,  /* at bytes that are not a valid record, or do not belong there */
};

/* "sealed", "unsealed", … */
const char *rsz_end_name(enum rsz_end end);

/* What BEGIN says. If it is damaged, everything but `id` is 0 or "". */
struct rsz_identity {
	uint8_t id[RSZ_ID_SIZE];
	uint64_t wall;
	uint64_t mono;
	char text[RSZ_TEXT_MAX + 1];
};

struct rsz_stream_info {
	uint32_t kind;
	bool paged;
	char *name; /* UTF-8 if the writer obeyed the rules; may hold control characters */
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
 * ST_INPUT if the blob is not a container: it does not begin like a record and has no record 1
 * (SPEC.md, section 2). The blob stays the caller's; it may be one that is read only forward, if it
 * keeps the last record and the bytes before it until the next one is asked for.
 */
enum status rsz_scan_create(struct blob *in, struct rsz_scan **ret, struct err *e);
void rsz_scan_destroy(struct rsz_scan *s); /* NULL is fine */

/*
 * The next whole record. The first is BEGIN. If BEGIN is damaged and record 1 is not, record 1 is
 * the first, rsz_scan_identity() knows only the identity, and the end is RSZ_END_DAMAGED. ST_END if
 * there is none; rsz_scan_end() says why and where. Other statuses are I/O errors.
 */
enum status rsz_scan_next(struct rsz_scan *s, struct rsz_record *ret, struct err *e);

struct rsz_scan_result {
	enum rsz_end end;
	uint64_t whole;   /* bytes of whole, valid records */
	uint64_t records; /* their number, including CLOSE */
	uint64_t behind;  /* bytes that follow a sealed container */
	uint64_t cut;     /* bytes of the unfinished record, if it is not sealed */
	uint8_t id[RSZ_ID_SIZE];
	char reason[ERR_MESSAGE_MAX]; /* why it is not sealed; "" if it is */
	uint8_t root[SHA256_SIZE];    /* over the records so far (without CLOSE) */
};

/* After ST_END. */
void rsz_scan_end(struct rsz_scan *s, struct rsz_scan_result *ret);

/* The root over the records so far, including the last one returned. */
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
 * The content of such a record: the text, if its stream is not paged. Checked as by rsz_check();
 * valid until the decoder is used again.
 */
enum status rsz_content(struct rsz_decoder *d, const uint8_t *header, size_t header_length,
			const uint8_t *payload, const uint8_t **ret, size_t *ret_len,
			struct err *e);

/*
 * A chunk with buffers for any legal header. The buffers for payload and content grow as needed: a
 * payload is never larger than its file, and most chunks are smaller than the largest.
 */
struct rsz_loaded {
	struct rsz_chunk chunk;
	uint64_t record; /* its offset; UINT64_MAX: nothing loaded */
	uint8_t *header;
	uint8_t *payload;
	size_t payload_room;
	size_t data_room;       /* of chunk.data */
	struct rsz__room *room; /* its allocator; NULL: malloc() */
};

/* `ret` of rsz_scan_chunk() is the `chunk` of such a buffer; its `data` is not used. */
enum status rsz_loaded_init(struct rsz_loaded *l, struct err *e);
void rsz_loaded_deinit(struct rsz_loaded *l);

/*
 * Extents and page states from the header of the CHUNK that rsz_scan_next() just returned, without
 * its content.
 */
void rsz_scan_chunk(const struct rsz_scan *s, struct rsz_chunk *ret);

/* `rec` and `c` are valid only during the call. Anything but ST_OK ends the scan. */
typedef enum status rsz_chunk_fn(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
				 struct err *e);

/* Scans from front to back and shows every chunk's header; `end` (may be NULL) is how it ended. */
enum status rsz_scan_chunks(struct blob *in, rsz_chunk_fn *fn, void *arg,
			    struct rsz_scan_result *end, struct err *e);

/*
 * Random access
 */

struct rsz_reader;

/*
 * The memory for opening, at most: buffers for one header and one INDEX of the largest size, and a
 * few bytes for each byte of the container. An extent takes 32 bytes there. In memory it takes
 * about 5 if it resembles its neighbours (formats/base/packed.h), twice that during the merge, and
 * 130 if no two are alike and all overlap.
 */
#define RSZ_READER_FIXED  ((size_t)1 << 20)
#define RSZ_READER_FACTOR 5

enum rsz_trust {
	/*
	 * Trust the index of a sealed container: only its last few KiB are read, whatever its size.
	 * If other bytes follow the container, all of it is walked.
	 */
	RSZ_TRUST_INDEX,
	/*
	 * Walk all headers: index, order and root are proven, so nothing can be hidden from a
	 * caller that reads every stream to its end. One small read per record.
	 */
	RSZ_TRUST_NOTHING,
};

/*
 * ST_INPUT if it is not a container. An unsealed, cut or damaged container opens as far as it is
 * whole; see rsz_reader_end(). The blob stays the caller's. After opening, a reader is constant:
 * any number of threads may use it, each with its own cursor.
 */
enum status rsz_reader_open(struct blob *in, enum rsz_trust trust, struct rsz_reader **ret,
			    struct err *e);

/*
 * The same with RSZ_TRUST_NOTHING, combined with rsz_scan_chunks(): every chunk's header comes from
 * the same walk and the same bytes.
 */
enum status rsz_reader_open_watched(struct blob *in, rsz_chunk_fn *fn, void *arg,
				    struct rsz_reader **ret, struct err *e);
void rsz_reader_close(struct rsz_reader *r); /* NULL is fine */

/*
 * ST_NOMEM if a cursor of this reader ever ran out of memory while decoding a chunk. Code that
 * walks tables continues without the pages that it cannot read, so it must ask this at its end:
 * what it did not find may still exist. Stays set until the reader is closed. Any thread.
 */
enum status rsz_reader_starved(const struct rsz_reader *r, struct err *e);

const struct rsz_identity *rsz_reader_identity(const struct rsz_reader *r);
size_t rsz_reader_streams(const struct rsz_reader *r);
const struct rsz_stream_info *rsz_reader_stream(const struct rsz_reader *r, size_t i);

/*
 * How the container ends. With RSZ_TRUST_INDEX, the root of a sealed container is only what CLOSE
 * states; a walk proves it.
 */
const struct rsz_scan_result *rsz_reader_end(const struct rsz_reader *r);

/* A part of a stream and the extent with its newest capture. */
struct rsz_segment {
	uint64_t address;
	uint64_t length;
	uint64_t extent; /* its number in the order of the file, from 0 */
};

/*
 * The first segment of `stream` that ends after `from`; it may begin before it. False if there is
 * none. O(log n).
 */
bool rsz_reader_next(const struct rsz_reader *r, uint32_t stream, uint64_t from,
		     struct rsz_segment *ret);

/* The offset in the file of the CHUNK record that holds the extent of a segment. O(log n). */
uint64_t rsz_reader_record(const struct rsz_reader *r, uint64_t extent);

/*
 * True if newer captures cover a part of that extent or all of it (numbered as in rsz_segment).
 * O(1).
 */
bool rsz_reader_is_covered(const struct rsz_reader *r, uint64_t extent);

/*
 * Appends all captured addresses of `stream`: in order, disjoint, in the fewest possible ranges.
 * Faster than asking for each of what may be millions of segments.
 */
enum status rsz_reader_ranges(const struct rsz_reader *r, uint32_t stream, struct range_list *ret,
			      struct err *e);

struct rsz_cursor;

/* One thread's access to a reader. `cached`: how many decoded chunks it keeps (at least 1). */
enum status rsz_cursor_create(const struct rsz_reader *r, size_t cached, struct rsz_cursor **ret,
			      struct err *e);
void rsz_cursor_destroy(struct rsz_cursor *c); /* NULL is fine */

/*
 * Limits the content of all decoded chunks together, in bytes: beyond that, the least recently used
 * are dropped, except the one loaded last. For cursors that keep many, because a chunk can have 16
 * MiB. 0, as after rsz_cursor_create(): only their number is limited. Call before the first load.
 */
void rsz_cursor_bound(struct rsz_cursor *c, size_t bytes);

/* Drops all decoded chunks, to free their memory. */
void rsz_cursor_forget(struct rsz_cursor *c);

/* How many times a chunk was decoded so far. */
uint64_t rsz_cursor_decoded(const struct rsz_cursor *c);

/*
 * For scattered reads: lets rsz_cursor_read() decode a chunk only as far as needed if it reads at
 * most 8 pages of one that is not loaded. The fourth read from the same chunk decodes all of it,
 * unless more other chunks were read meanwhile than the cursor keeps.
 *
 * Such reads are checked differently: the header by its SHA-256, and so addresses, times and page
 * states; the whole payload by its CRC-32; and that it is one frame as the header says, and
 * decompresses as far as the page. The SHA-256 of the content is not checked, because that needs
 * all of it. The CRC-32 misses accidental damage once in 2^32; deliberate changes may go unnoticed
 * here, and verification finds them. After the first damage of any kind that the cursor sees, it
 * decodes only whole chunks.
 *
 * After rsz_cursor_bound().
 */
enum status rsz_cursor_allow_glances(struct rsz_cursor *c, struct err *e);

/*
 * The chunk in the record at `record`, checked and decoded. Valid until the cursor has loaded
 * `cached` others; with rsz_cursor_bound(), until it has loaded another one. Damage is ST_CORRUPT.
 */
enum status rsz_cursor_load(struct rsz_cursor *c, uint64_t record, const struct rsz_chunk **ret,
			    struct err *e);

/*
 * The bytes of a stream that is not paged, piece by piece: begin with *at = 0 and call until
 * ST_END. *ret is valid as long as a chunk of rsz_cursor_load(). A damaged piece is ST_CORRUPT,
 * with its length in *ret_len; the next call continues after it.
 */
enum status rsz_cursor_next_text(struct rsz_cursor *c, uint32_t stream, uint64_t *at,
				 const uint8_t **ret, size_t *ret_len, struct err *e);

/* One byte of a stream that is not paged. ST_CORRUPT if nothing was captured there. */
enum status rsz_cursor_byte(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint8_t *ret,
			    struct err *e);

/* What is known about one page of a paged stream. */
struct rsz_page {
	bool captured; /* false: no extent covers it, and nothing below is set */
	struct page_status status;
	uint64_t start; /* capture time of its extent, monotonic ns */
	uint64_t end;
	uint16_t pass;
	uint16_t reason;
	const uint8_t *data; /* its bytes (zeros if it has none); valid as rsz_cursor_load()'s */
	size_t length;       /* PAGE_SIZE, or less at the end of a file */
};

/*
 * State, time and content of the page at `address`, from the newest capture of its first byte,
 * which may end inside the page. Also ST_OK if nothing was captured.
 */
enum status rsz_cursor_page(struct rsz_cursor *c, uint32_t stream, uint64_t address,
			    struct rsz_page *ret, struct err *e);

/* Capture times, from the first page to the last, monotonic ns. 0: nothing yet. */
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
 * Reads `pages` pages at `address`. Pages without bytes become zeros in `buf`, and `status`
 * distinguishes them from zeros that were read; what was never captured is PAGE_SKIPPED with
 * SKIP_NOT_CAPTURED. A page with two captures (a newer, shorter one over its front) has the bytes
 * of both. `times` (or NULL) is extended by their capture times.
 */
enum status rsz_cursor_read(struct rsz_cursor *c, uint32_t stream, uint64_t address, void *buf,
			    size_t pages, struct page_status *status, struct rsz_times *times,
			    struct err *e);

#endif
