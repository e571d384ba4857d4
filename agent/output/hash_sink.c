/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/hash_sink.h"

#include "agent/output/output_sink.h"
#include "agent/program/interrupt.h"

struct hash_output {
	struct output output;
	struct sha256 *hash;
	bool broken; /* interrupted in the middle of a hole */
};

/* Hashed in half a second: nobody is kept waiting by a shorter one. */
#define LONG_HOLE ((uint64_t)1 << 30)

static enum status hash_write(struct output *o, const void *p, size_t len, struct err *e)
{
	const enum status st = sink_write(output_sink(o->below), p, len, e);

	if (!st)
		sha256_update(((struct hash_output *)o)->hash, p, len);
	return st;
}

/*
 * A hole may be terabytes wide. It is made before it is hashed, because that may be what fails; and
 * who does not want to wait for the rest can interrupt, but then there is no hash.
 */
static enum status hash_skip(struct output *o, uint64_t len, struct err *e)
{
	static const uint8_t zeros[64 * 1024];
	struct hash_output *h = (struct hash_output *)o;
	const enum status st = sink_skip(output_sink(o->below), len, e);

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

static void hash_destroy(struct output *o)
{
	sha256_destroy(((struct hash_output *)o)->hash);
	free(o);
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
	*o = &h->output;
	return ST_OK;
}

void hash_sink_end(struct output *o, char ret[static SHA256_HEX_SIZE])
{
	struct hash_output *h = (struct hash_output *)o;
	uint8_t digest[SHA256_SIZE];

	sha256_end(h->hash, digest);
	if (h->broken)
		ret[0] = '\0';
	else
		sha256_hex(digest, ret);
}
