/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/hash_sink.h"

#include <pthread.h>

#include "agent/shared/program/share.h"
#include "agent/shared/output/output_sink.h"
#include "agent/shared/program/interrupt.h"

/*
 * A SHA-256 of a whole output is one thread's work, and no less than to write it. So it has a
 * thread of its own, which hashes while the same bytes are written below.
 */
struct hash_output {
	struct output output;
	struct sha256 *hash;
	bool broken; /* interrupted in the middle of a hole, or not all was written */
	bool beside; /* there is that thread; else whoever writes hashes */
	pthread_t thread;
	pthread_mutex_t lock; /* guards the rest; `hash` is the thread's while there is work */
	pthread_cond_t changed;
	const void *p; /* what it hashes; NULL: zeros */
	size_t len;    /* 0: nothing */
	bool end;
};

/* Hashed in half a second: nobody is kept waiting by a shorter one. */
#define LONG_HOLE ((uint64_t)1 << 30)
/* Sooner hashed than handed over. */
#define SHORT     ((size_t)16 << 10)
#define MIB       ((size_t)1 << 20)

static void hash_zeros(struct hash_output *h, size_t len)
{
	static const uint8_t zeros[64 * 1024];

	for (size_t n; len; len -= n) {
		n = MIN(len, sizeof(zeros));
		sha256_update(h->hash, zeros, n);
	}
}

static void hash_bytes(struct hash_output *h, const void *p, size_t len)
{
	if (p)
		sha256_update(h->hash, p, len);
	else
		hash_zeros(h, len);
}

static void *hash_thread(void *arg)
{
	struct hash_output *h = arg;

	share_join(SHARE_WRITING);
	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (!h->len && !h->end)
			pthread_cond_wait(&h->changed, &h->lock);
		if (!h->len)
			break;
		pthread_mutex_unlock(&h->lock);
		hash_bytes(h, h->p, h->len);
		pthread_mutex_lock(&h->lock);
		h->len = 0;
		pthread_cond_broadcast(&h->changed);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* Until all that was handed over is hashed. */
static void wait_for_hash(struct hash_output *h)
{
	if (!h->beside)
		return;
	pthread_mutex_lock(&h->lock);
	while (h->len)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

/* In its turn. The bytes must stay until wait_for_hash(). */
static void begin_hash(struct hash_output *h, const void *p, size_t len)
{
	wait_for_hash(h);
	if (!h->beside || len < SHORT) {
		hash_bytes(h, p, len);
		return;
	}
	pthread_mutex_lock(&h->lock);
	h->p = p;
	h->len = len;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

static enum status hash_write(struct output *o, const void *p, size_t len, struct err *e)
{
	struct hash_output *h = (struct hash_output *)o;
	enum status st;

	begin_hash(h, p, len);
	st = sink_write(output_sink(o->below), p, len, e);
	wait_for_hash(h);
	h->broken = h->broken || st;
	return st;
}

/*
 * A hole may be terabytes wide. It is made before it is hashed, because that may be what fails; and
 * who does not want to wait for the rest can interrupt, but then there is no hash.
 */
static enum status hash_skip(struct output *o, uint64_t len, struct err *e)
{
	struct hash_output *h = (struct hash_output *)o;
	const enum status st = sink_skip(output_sink(o->below), len, e);

	if (st)
		return st;
	wait_for_hash(h);
	for (; len >= LONG_HOLE; len -= MIB) {
		if (interrupted()) {
			h->broken = true;
			return interrupt_status(e);
		}
		hash_zeros(h, MIB);
	}
	begin_hash(h, NULL, (size_t)len);
	return ST_OK;
}

static void hash_destroy(struct output *o)
{
	struct hash_output *h = (struct hash_output *)o;

	if (h->beside) {
		pthread_mutex_lock(&h->lock);
		h->end = true;
		pthread_cond_broadcast(&h->changed);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	sha256_destroy(h->hash);
	free(h);
}

static const struct output_ops hash_sink = {
	.name = "hash",
	.write = hash_write,
	.skip = hash_skip,
	.destroy = hash_destroy,
};

enum status hash_sink_put_on(struct output **o, struct err *e)
{
	struct hash_output *h = calloc(1, sizeof(*h));
	enum status st = h ? sha256_create(&h->hash, e) : err_nomem(e);

	if (st) {
		free(h);
		return st;
	}
	output_init(&h->output, &hash_sink, *o);
	sha256_begin(h->hash);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	h->beside = !pthread_create(&h->thread, NULL, hash_thread, h);
	*o = &h->output;
	return ST_OK;
}

void hash_sink_end(struct output *o, char ret[static SHA256_HEX_SIZE])
{
	struct hash_output *h = (struct hash_output *)o;
	uint8_t digest[SHA256_SIZE];

	wait_for_hash(h);
	sha256_end(h->hash, digest);
	if (h->broken)
		ret[0] = '\0';
	else
		sha256_hex(digest, ret);
}
