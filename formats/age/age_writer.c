/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "formats/age/age_internal.h"

/* What was written, read back. */
struct written {
	struct blob blob;
	struct blob *stored;       /* borrowed */
	struct age_writer *writer; /* that it is a part of */
	uint64_t number;           /* of the chunk in `chunk`; UINT64_MAX: none */
	uint8_t chunk[AGE_STORED];
};

struct age_writer {
	struct sink *out;
	struct age__payload payload;
	char *header; /* with the nonce; NULL: it was written */
	size_t header_len;
	uint64_t number; /* of the next chunk */
	uint64_t stored;
	size_t held;    /* bytes in `plain` */
	bool over;      /* nothing may be written any more */
	bool full;      /* the room for the end is in use */
	struct err why; /* of either */
	uint8_t plain[AGE_CHUNK];
	uint8_t sealed[AGE_STORED];
	struct written written;
};

static enum status begin_file(struct age_writer *w, const struct age_recipients *to, struct err *e)
{
	uint8_t file_key[AGE__FILE_KEY_SIZE], nonce[AGE_NONCE_SIZE];
	size_t len = 0;
	char *larger;
	enum status st;

	randombytes_buf(file_key, sizeof(file_key));
	randombytes_buf(nonce, sizeof(nonce));
	st = age__header_write(to, file_key, &w->header, &len, e);
	if (!st)
		st = age__payload_init(&w->payload, file_key, nonce, len + sizeof(nonce), e);
	sodium_memzero(file_key, sizeof(file_key));
	if (st)
		return st;
	larger = realloc(w->header, len + sizeof(nonce));
	if (!larger)
		return err_nomem(e);
	memcpy(larger + len, nonce, sizeof(nonce));
	w->header = larger;
	w->header_len = len + sizeof(nonce);
	return ST_OK;
}

enum status age_writer_create(struct sink *out, const struct age_recipients *to,
			      struct age_writer **ret, struct err *e)
{
	struct age_writer *w = calloc(1, sizeof(*w));
	enum status st = w ? age_init(e) : err_nomem(e);

	if (!st && !to->count)
		st = err_set(e, ST_USAGE, "there is no recipient");
	if (!st)
		st = begin_file(w, to, e);
	if (st) {
		age_writer_destroy(w);
		return st;
	}
	w->out = out;
	*ret = w;
	return ST_OK;
}

void age_writer_destroy(struct age_writer *w)
{
	if (!w)
		return;
	age__payload_deinit(&w->payload);
	free(w->header);
	free(w);
}

/*
 * The same bytes at the same place, if the sink takes back what it has of them, and has room then.
 */
static enum status send_to_sink(struct age_writer *w, const void *p, size_t len, struct err *e)
{
	enum status st = sink_write(w->out, p, len, &w->why);

	if (st == ST_OUTPUT && !sink_cut(w->out, w->stored, NULL)) {
		st = sink_write(w->out, p, len, NULL);
		w->full = true;
	}
	if (st) {
		w->over = true;
		return err_set(e, st, "%s", w->why.message);
	}
	w->stored += len;
	return ST_OK;
}

static enum status send_header(struct age_writer *w, struct err *e)
{
	const enum status st = w->header ? send_to_sink(w, w->header, w->header_len, e) : ST_OK;

	free(w->header);
	w->header = NULL;
	return st;
}

static enum status send_chunk(struct age_writer *w, const void *p, size_t len, bool last,
			      struct err *e)
{
	const enum status st = send_header(w, e);

	if (st)
		return st;
	age__chunk_seal(&w->payload, w->number, last, p, len, w->sealed);
	w->number++; /* whatever becomes of it: this number is used */
	return send_to_sink(w, w->sealed, len + AGE_TAG_SIZE, e);
}

static enum status tell_over(const struct age_writer *w, struct err *e)
{
	return err_set(e, ST_OUTPUT, "%s", w->why.message);
}

enum status age_writer_write(struct age_writer *w, const void *p, size_t len, struct err *e)
{
	const uint8_t *at = p;
	enum status st = ST_OK;

	if (w->over)
		return tell_over(w, e);
	while (len && !st) {
		if (w->held == AGE_CHUNK) {
			st = send_chunk(w, w->plain, AGE_CHUNK, false, e);
			w->held = 0;
		} else if (!w->held && len > AGE_CHUNK) {
			st = send_chunk(w, at, AGE_CHUNK, false, e);
			at += AGE_CHUNK;
			len -= AGE_CHUNK;
		} else {
			const size_t n = MIN(len, AGE_CHUNK - w->held);

			memcpy(w->plain + w->held, at, n);
			w->held += n;
			at += n;
			len -= n;
		}
	}
	return st;
}

enum status age_writer_end(struct age_writer *w, struct err *e)
{
	enum status st;

	if (w->over)
		return tell_over(w, e);
	st = send_chunk(w, w->plain, w->held, true, e);
	if (!st && !w->full)
		err_set(&w->why, ST_OUTPUT, "the encryption has already ended");
	w->over = true;
	return st;
}

bool age_writer_is_full(const struct age_writer *w, struct err *e)
{
	if (w->full)
		err_set(e, ST_OUTPUT, "%s", w->why.message);
	return w->full;
}

bool age_writer_is_over(const struct age_writer *w)
{
	return w->over;
}

uint64_t age_writer_stored(const struct age_writer *w)
{
	return w->stored;
}

/*
 * Read back
 */

static enum status load_written(struct written *x, uint64_t number, struct err *e)
{
	const struct age__payload *p = &x->writer->payload;
	enum status st;

	if (x->number == number)
		return ST_OK;
	x->number = UINT64_MAX;
	st = blob_read(x->stored, p->at + number * AGE_STORED, x->chunk, AGE_STORED, e);
	if (st)
		return st;
	if (!age__chunk_open(p, number, false, x->chunk, AGE_STORED, x->chunk))
		return err_set(e, ST_INPUT, "what was written is no longer there");
	x->number = number;
	return ST_OK;
}

static enum status read_written(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				struct err *e)
{
	struct written *x = (struct written *)b;
	const struct age_writer *w = x->writer;

	for (*got = 0; *got < len && off < b->size;) {
		const uint64_t number = off / AGE_CHUNK;
		const size_t from = (size_t)(off % AGE_CHUNK),
			     n = (size_t)MIN(MIN(len - *got, AGE_CHUNK - from), b->size - off);
		const enum status st = number < w->number ? load_written(x, number, e) : ST_OK;

		if (st)
			return st;
		memcpy((uint8_t *)p + *got, (number < w->number ? x->chunk : w->plain) + from, n);
		*got += n;
		off += n;
	}
	return ST_OK;
}

struct blob *age_writer_blob(struct age_writer *w, struct blob *stored)
{
	w->written.blob =
		(struct blob){ .read_at = read_written, .size = w->number * AGE_CHUNK + w->held };
	w->written.stored = stored;
	w->written.writer = w;
	w->written.number = UINT64_MAX;
	return &w->written.blob;
}
