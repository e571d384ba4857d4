/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/hash_sink.h"

#include "agent/program/interrupt.h"

/* Hashed in half a second: nobody is kept waiting by a shorter one. */
#define LONG_HOLE ((uint64_t)1 << 30)

static enum status hash_write(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct hash_sink *h = (struct hash_sink *)s;
	const enum status st = sink_write(h->to, p, len, e);

	if (!st)
		sha256_update(h->hash, p, len);
	return st;
}

/*
 * A hole may be terabytes wide. It is made before it is hashed, because that may be what fails; and
 * who does not want to wait for the rest can interrupt, but then there is no hash.
 */
static enum status hash_skip(struct sink *s, uint64_t len, struct err *e)
{
	static const uint8_t zeros[64 * 1024];
	struct hash_sink *h = (struct hash_sink *)s;
	const enum status st = sink_skip(h->to, len, e);

	if (st)
		return st;
	for (; len >= LONG_HOLE; len -= sizeof(zeros)) {
		if (interrupted()) {
			h->broken = true;
			return interrupt_status(e);
		}
		sha256_update(h->hash, zeros, sizeof(zeros));
	}
	for (size_t n; len; len -= n) {
		n = (size_t)MIN(len, sizeof(zeros));
		sha256_update(h->hash, zeros, n);
	}
	return ST_OK;
}

enum status hash_sink_init(struct hash_sink *h, struct sink *to, struct err *e)
{
	const enum status st = sha256_create(&h->hash, e);

	h->sink = (struct sink){ .write = hash_write, .skip = hash_skip };
	h->to = to;
	h->broken = false;
	if (!st)
		sha256_begin(h->hash);
	return st;
}

void hash_sink_deinit(struct hash_sink *h)
{
	sha256_destroy(h->hash);
	h->hash = NULL;
}

void hash_sink_end(struct hash_sink *h, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	sha256_end(h->hash, digest);
	if (h->broken)
		ret[0] = '\0';
	else
		sha256_hex(digest, ret);
}
