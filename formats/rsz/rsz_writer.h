/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a container: chunks are encoded (zero pages found, hashed, compressed) by any number of
 * threads, one rsz_encoder each, into rsz_frames; one thread then gives the frames to the
 * rsz_writer in the order of the file. Nothing is allocated per chunk.
 *
 *	rsz_encoder_create();  rsz_frame_init();      once per thread, once per buffer
 *	rsz_encode(chunk) -> frame                    on any thread
 *	rsz_writer_put(frame)                         on one thread
 */
#ifndef RAMSEAL_FORMATS_RSZ_WRITER_H
#define RAMSEAL_FORMATS_RSZ_WRITER_H

#include "formats/base/io.h"
#include "formats/rsz/rsz.h"

/* Stored without compression: zstd frames made of raw blocks. */
#define RSZ_LEVEL_STORE 0

#define RSZ_LEVEL_MIN   (-50) /* below this, zstd hardly gets faster and hardly compresses */
#define RSZ_LEVEL_MAX   19

/* An encoded record without its place in the file. Buffers are allocated once, by _init(). */
struct rsz_frame {
	uint8_t *header;
	size_t header_room;
	size_t header_length;
	uint8_t *payload;
	size_t payload_room;
	size_t stored;
	size_t content;
	uint32_t crc;
	uint8_t sha256[SHA256_SIZE];
};

/* Room for chunks of at most `length_max` bytes and `extents_max` extents. */
enum status rsz_frame_init(struct rsz_frame *f, size_t length_max, size_t extents_max,
			   struct err *e);
void rsz_frame_deinit(struct rsz_frame *f);

struct rsz_encoder;

/* `length_max`: the length of the longest chunk to come (at most RSZ_CONTENT_MAX). */
enum status rsz_encoder_create(int level, size_t length_max, struct rsz_encoder **ret,
			       struct err *e);
void rsz_encoder_destroy(struct rsz_encoder *x); /* NULL is fine */

/* Changes the level for the chunks to come. */
void rsz_encoder_set_level(struct rsz_encoder *x, int level);

/*
 * Encodes one chunk. Pages of PAGE_DATA that hold only zeros become PAGE_ZERO in c->pages, so that
 * the caller can count them. c->data is consumed: its data pages are moved together.
 */
enum status rsz_encode(struct rsz_encoder *x, struct rsz_chunk *c, struct rsz_frame *f,
		       struct err *e);

struct rsz_writer;

struct rsz_begin {
	uint8_t id[RSZ_ID_SIZE]; /* random; or derived from a seed by a simulator */
	uint64_t wall;           /* ns since 1970-01-01 UTC */
	uint64_t mono;           /* ns; the clock of all times in the container */
	const char *text;        /* program and version */
};

/* Writes BEGIN. The sink stays the caller's and outlives the writer. */
enum status rsz_writer_create(struct sink *out, const struct rsz_begin *begin,
			      struct rsz_writer **ret, struct err *e);
void rsz_writer_destroy(struct rsz_writer *w); /* NULL is fine; does not close the container */

struct rsz_scan;

/*
 * A writer that continues where the scan of an unsealed container ended (ST_END). The sink must
 * append after the scan's whole records. Takes the list of streams from the scan, which can only be
 * destroyed afterwards.
 */
enum status rsz_writer_continue(struct sink *out, struct rsz_scan *scan, struct rsz_writer **ret,
				struct err *e);

/*
 * Declares a stream and returns its number. `meta`: a JSON object, or NULL. ST_SYSTEM, and nothing
 * is written, if it breaks a rule of formats/SPEC.md: the name is taken or not UTF-8, or there are
 * too many.
 */
enum status rsz_writer_stream(struct rsz_writer *w, enum rsz_kind kind, const char *name,
			      const char *meta, uint32_t *ret, struct err *e);

/* Is there a stream of this name already? */
bool rsz_writer_has_stream(const struct rsz_writer *w, const char *name);

/*
 * Appends an encoded chunk. ST_SYSTEM, and nothing is written, if a reader would reject it (an
 * address beyond the limit, times that run backwards). On ST_OUTPUT the file holds whole records up
 * to rsz_writer_whole() and perhaps a part of one more; see rsz_writer_resume().
 */
enum status rsz_writer_put(struct rsz_writer *w, struct rsz_frame *f, struct err *e);

/*
 * Appends bytes to a stream that is not paged (log, manifest, fragment) at *address in it, in as
 * many chunks as it takes. *address moves past what was written, even if that was not everything.
 */
enum status rsz_writer_text(struct rsz_writer *w, uint32_t stream, uint64_t *address, const void *p,
			    size_t len, uint64_t now, struct err *e);

/* Bytes of whole records written so far. */
uint64_t rsz_writer_whole(const struct rsz_writer *w);

/*
 * After ST_OUTPUT, once the caller has cut the output back to rsz_writer_whole() bytes: the next
 * record goes there. (A full disk then has space for the few records that close a container.)
 */
void rsz_writer_resume(struct rsz_writer *w);

/* Writes INDEX and CLOSE and returns the root. Nothing can be written after it. */
enum status rsz_writer_close(struct rsz_writer *w, uint8_t ret_root[static SHA256_SIZE],
			     struct err *e);

#endif
