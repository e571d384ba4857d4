/* SPDX-License-Identifier: Apache-2.0 */
/* A file that can be read anywhere: the chunks that a read needs, some of which are kept. */
#include <pthread.h>
#include <string.h>

#include "formats/age/age_internal.h"

/* So many chunks are kept: readers of a container go forward, some of them at once. */
#define KEPT 8

struct kept {
	uint64_t number; /* UINT64_MAX: none */
	uint64_t used;   /* when it was, by `clock` */
	uint8_t content[AGE_CHUNK];
};

struct age_reader {
	struct blob blob;
	struct blob *stored; /* borrowed */
	struct age__payload payload;
	uint64_t size; /* of the content; blob's may be made smaller by who reads a part of it */
	/* Number of the last chunk, which is shorter or not; UINT64_MAX: it is not there. */
	uint64_t last;

	pthread_mutex_t lock; /* guards the rest */
	struct age_end end;
	uint64_t clock;
	uint8_t sealed[AGE_STORED];
	struct kept kept[KEPT];
};

static size_t content_of(const struct age_reader *r, uint64_t number)
{
	return (size_t)MIN(r->size - number * AGE_CHUNK, AGE_CHUNK);
}

static void tell_damage(struct age_reader *r, uint64_t number)
{
	const uint64_t at = r->payload.at + number * AGE_STORED;

	if (!r->end.damaged || at < r->end.offset)
		r->end.offset = at;
	r->end.damaged = true;
}

/* Zeros, if it is not what it should be. `sealed` has room for the whole of it. */
static enum status decrypt(struct age_reader *r, uint64_t number, uint8_t *sealed, uint8_t *out,
			   bool *ret_good, struct err *e)
{
	const size_t len = content_of(r, number), stored = len + AGE_TAG_SIZE;
	size_t got = 0;
	const enum status st = r->stored->read_at(r->stored, r->payload.at + number * AGE_STORED,
						  sealed, stored, &got, e);

	if (st)
		return st;
	*ret_good = got == stored &&
		    age__chunk_open(&r->payload, number, number == r->last, sealed, stored, out);
	if (!*ret_good)
		memset(out, 0, len);
	return ST_OK;
}

/* One that is kept now. Under the lock. */
static enum status keep_decrypted(struct age_reader *r, uint64_t number, const struct kept **ret,
				  struct err *e)
{
	struct kept *to = r->kept;
	bool good;
	enum status st;

	for (size_t i = 0; i < KEPT; i++) {
		if (r->kept[i].number == number) {
			r->kept[i].used = ++r->clock;
			*ret = &r->kept[i];
			return ST_OK;
		}
		if (r->kept[i].used < to->used)
			to = &r->kept[i];
	}
	to->number = UINT64_MAX;
	st = decrypt(r, number, r->sealed, to->content, &good, e);
	if (st)
		return st;
	if (!good)
		tell_damage(r, number);
	to->number = number;
	to->used = ++r->clock;
	*ret = to;
	return ST_OK;
}

static enum status read_part(struct age_reader *r, uint64_t number, size_t from, uint8_t *p,
			     size_t len, struct err *e)
{
	const struct kept *k;
	enum status st;

	pthread_mutex_lock(&r->lock);
	st = keep_decrypted(r, number, &k, e);
	if (!st)
		memcpy(p, k->content + from, len);
	pthread_mutex_unlock(&r->lock);
	return st;
}

/* A whole chunk goes straight to whoever wants it, and nobody waits for him. */
static enum status read_whole(struct age_reader *r, uint64_t number, uint8_t *p, uint8_t *sealed,
			      struct err *e)
{
	bool good;
	const enum status st = decrypt(r, number, sealed, p, &good, e);

	if (st || good)
		return st;
	pthread_mutex_lock(&r->lock);
	tell_damage(r, number);
	pthread_mutex_unlock(&r->lock);
	return ST_OK;
}

static enum status read_decrypted(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				  struct err *e)
{
	struct age_reader *r = (struct age_reader *)b;
	_cleanup_free_ uint8_t *sealed = len >= AGE_CHUNK ? malloc(AGE_STORED) : NULL;
	enum status st = ST_OK;

	for (*got = 0; !st && *got < len && off < b->size;) {
		const uint64_t number = off / AGE_CHUNK;
		const size_t from = (size_t)(off % AGE_CHUNK),
			     most = MIN(len - *got, b->size - off),
			     n = MIN(most, content_of(r, number) - from);
		uint8_t *to = (uint8_t *)p + *got;

		st = sealed && n == AGE_CHUNK ? read_whole(r, number, to, sealed, e)
					      : read_part(r, number, from, to, n, e);
		*got += n;
		off += n;
	}
	return st;
}

/*
 * Where the content ends: the specification has the last chunk checked before one believes the
 * file's size. Without it the content is that of all whole chunks.
 */
static enum status find_end(struct age_reader *r, struct err *e)
{
	const uint64_t body = r->stored->size - r->payload.at, rest = body % AGE_STORED;
	bool good = false;
	enum status st = ST_OK;

	if (age_content_size(body, &r->size)) {
		r->last = r->size ? (r->size - 1) / AGE_CHUNK : 0;
		st = decrypt(r, r->last, r->sealed, r->kept[0].content, &good, e);
	}
	if (st || good) {
		r->end.whole = good;
		return st;
	}
	r->size = body / AGE_STORED * AGE_CHUNK;
	r->last = UINT64_MAX;
	r->end.cut = rest;
	return ST_OK;
}

enum status age_reader_create(struct blob *stored, const struct age_identities *x,
			      struct age_reader **ret, struct err *e)
{
	struct age_reader *r = calloc(1, sizeof(*r));
	enum status st = r ? age__payload_of(stored, x, &r->payload, e) : err_nomem(e);

	if (st) {
		free(r);
		return st;
	}
	pthread_mutex_init(&r->lock, NULL);
	r->stored = stored;
	r->blob.read_at = read_decrypted;
	for (size_t i = 0; i < KEPT; i++)
		r->kept[i].number = UINT64_MAX;
	st = find_end(r, e);
	if (st) {
		age_reader_destroy(r);
		return st;
	}
	r->blob.size = r->size;
	*ret = r;
	return ST_OK;
}

void age_reader_destroy(struct age_reader *r)
{
	if (!r)
		return;
	age__payload_deinit(&r->payload);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

struct blob *age_reader_blob(struct age_reader *r)
{
	return &r->blob;
}

void age_reader_end(struct age_reader *r, struct age_end *ret)
{
	pthread_mutex_lock(&r->lock);
	*ret = r->end;
	pthread_mutex_unlock(&r->lock);
}
