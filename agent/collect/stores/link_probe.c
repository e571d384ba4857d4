/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/link_probe.h"

#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/random.h"

/* The first pieces are for a connection that begins slowly, and for links that are slow. */
#define PIECE_LEAST ((size_t)64 << 10)
#define PIECE_MOST  ((size_t)8 << 20)
#define GROWS       4
#define PROBE_NS    (LINK_PROBE_S * NS_PER_SECOND)

/* What compresses on the way would measure something else. xorshift64, Marsaglia 2003. */
static enum status make_noise(uint8_t *p, size_t len, struct err *e)
{
	uint64_t x;
	enum status st = random_bytes(&x, sizeof(x), e);

	x |= 1;
	for (size_t i = 0; i < len && !st; i += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, sizeof(x));
	}
	return st;
}

/* Larger ones, as long as one is likely to end in time. */
static size_t next_size(size_t size, uint64_t took_ns, uint64_t begin)
{
	const uint64_t now = clock__mono_ns();

	if (size < PIECE_MOST && now - begin + GROWS * took_ns < PROBE_NS)
		return MIN(size * GROWS, PIECE_MOST);
	return size;
}

static enum remote_end send_noise(struct remote *r, const uint8_t *noise, struct link_speed *ret,
				  struct err *e)
{
	const uint64_t begin = clock__mono_ns();
	size_t size = PIECE_LEAST, last = 0;

	while (ret->sent + size <= LINK_PROBE_BYTES && clock__mono_ns() - begin < PROBE_NS) {
		const uint64_t from = clock__mono_ns();
		const struct remote_result sent = r->ops->probe(r, noise, size, e);
		const uint64_t took = clock__mono_ns() - from;

		if (sent.end != REMOTE_DONE)
			return sent.end;
		if (size != last)
			ret->bytes = ret->ns = 0;
		ret->sent += size;
		ret->bytes += size;
		ret->ns += took;
		last = size;
		size = next_size(size, took, begin);
	}
	ret->rate =
		(uint64_t)((double)ret->bytes * (double)NS_PER_SECOND / (double)MAX(ret->ns, 1U));
	return REMOTE_DONE;
}

/* From here on a signal does not keep it from being taken back. */
static void abandon_probe(struct network *n, struct remote *r, struct link_speed *ret)
{
	struct err why = ERR_INIT;

	n->began = true;
	if (r->ops->abandon(r, &why).end != REMOTE_DONE)
		snprintf(ret->left, sizeof(ret->left), "%s stays there: %.150s", r->ops->probe_is,
			 why.message);
	else if (r->ops->probe_leaves)
		snprintf(ret->left, sizeof(ret->left), "%s", r->ops->probe_leaves);
}

static enum status measure_link(struct network *n, struct remote *r, const uint8_t *noise,
				struct link_speed *ret, struct err *e)
{
	if (r->ops->begin(r, e).end != REMOTE_DONE)
		return interrupted() ? ST_INTERRUPTED : ST_OUTPUT;
	e->message[0] = '\0'; /* of a name that is free */
	if (send_noise(r, noise, ret, e) != REMOTE_DONE)
		ret->rate = 0;
	abandon_probe(n, r, ret);
	return interrupted() ? interrupt_status(e) : ST_OK;
}

enum status link_probe(struct network *n, struct link_speed *ret, struct err *e)
{
	_cleanup_free_ uint8_t *noise = malloc(PIECE_MOST);
	struct remote *r = NULL;
	enum status st = noise ? make_noise(noise, PIECE_MOST, e) : err_nomem(e);

	*ret = (struct link_speed){ 0 };
	n->remote.probe = true;
	if (!st)
		st = remote_open(&n->remote, &r, e);
	if (!st && !r->ops->probe)
		err_set(e, ST_OUTPUT, "--probe-link cannot measure this kind of address");
	else if (!st)
		st = measure_link(n, r, noise, ret, e);
	if (st)
		err_add(e, st, "%s", n->shown);
	remote_destroy(r);
	return st;
}
