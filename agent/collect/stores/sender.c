/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/sender.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/random.h"

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

enum status sender_init(struct sender *s, uint64_t expected, const char *name, unsigned stall_ms,
			struct err *e)
{
	enum status st;

	*s = (struct sender){ .stall_ms = stall_ms };
	s->hello.version = FRAME_VERSION;
	s->hello.expected = expected;
	snprintf(s->hello.name, sizeof(s->hello.name), "%s", name ? name : "");
	st = random_bytes(s->hello.id, sizeof(s->hello.id), e);
	if (!st)
		st = sha256_create(&s->hash, e);
	if (!st)
		sha256_begin(s->hash);
	return st;
}

void sender_hang_up(struct sender *s)
{
	frame_link_deinit(&s->talk);
}

void sender_deinit(struct sender *s)
{
	sender_hang_up(s);
	sha256_destroy(s->hash);
	*s = (struct sender){ 0 };
}

static struct remote_result sender_refused(struct sender *s, const struct frame_refused *r,
					   struct err *e)
{
	err_set(e, ST_OUTPUT, "the receiver says: %s", r->text);
	s->refused = true;
	s->unwelcome = r->reason == REFUSED_UNWELCOME;
	sender_hang_up(s);
	return (struct remote_result){
		.end = refusal_is_passing(r->reason) ? REMOTE_AGAIN : REMOTE_NEVER,
		.wait_ms = r->wait_ms,
	};
}

/* Of a receiver that has its key, but does not keep to the protocol. */
static struct remote_result answer_is_nonsense(struct sender *s, struct err *e)
{
	err_set(e, ST_OUTPUT, "unexpected answer from the receiver; is it the same version?");
	sender_hang_up(s);
	return never;
}

/*
 * A connection that failed. Perhaps the other end has said why, and closed: that is still to be
 * read.
 */
static struct remote_result connection_broke(struct sender *s, enum status st, struct err *e)
{
	struct frame f;

	if (st == ST_CORRUPT)
		return answer_is_nonsense(s, e);
	if (st == ST_END)
		err_set(e, ST_OUTPUT, "the receiver has closed the connection");
	while (st == ST_OUTPUT && !frame_receive(&s->talk, 0, &f, NULL))
		if (f.type == FRAME_REFUSED)
			return sender_refused(s, &f.refused, e);
	sender_hang_up(s);
	if (st == ST_INTERRUPTED || st == ST_NOMEM)
		return never;
	return (struct remote_result){ .end = REMOTE_AGAIN };
}

/* The next frame; REMOTE_DONE. */
static struct remote_result receive_frame(struct sender *s, unsigned wait_ms, struct frame *ret,
					  bool *none, struct err *e)
{
	const enum status st = frame_receive(&s->talk, wait_ms, ret, e);

	*none = st == ST_NOT_MINE;
	if (st && !*none)
		return connection_broke(s, st, e);
	return !st && ret->type == FRAME_REFUSED ? sender_refused(s, &ret->refused, e) : done;
}

/* Some answer within the time that is given for one. */
static struct remote_result await_answer(struct sender *s, struct frame *ret, struct err *e)
{
	bool none;
	const struct remote_result r = receive_frame(s, s->stall_ms, ret, &none, e);

	if (r.end != REMOTE_DONE || !none)
		return r;
	err_set(e, ST_OUTPUT, "the receiver does not answer");
	sender_hang_up(s);
	return (struct remote_result){ .end = REMOTE_AGAIN };
}

static bool take_ack(struct sender *s, const struct frame *f)
{
	if (f->type != FRAME_ACK || f->durable < s->acknowledged || f->durable > s->position)
		return false;
	s->acknowledged = f->durable;
	return true;
}

/* Better now than when so much has come. */
static struct remote_result too_large(struct sender *s, uint64_t most, struct err *e)
{
	err_set(e, ST_OUTPUT,
		"the receiver accepts %" PRIu64 " bytes per file (its --max-size), and this one "
		"has %" PRIu64,
		most, s->hello.expected);
	sender_hang_up(s);
	return never;
}

static struct remote_result take_welcome(struct sender *s, const struct frame *f, struct err *e)
{
	const struct frame_welcome *w = &f->welcome;

	if (f->type != FRAME_WELCOME || w->version != FRAME_VERSION || w->durable > s->hashed)
		return answer_is_nonsense(s, e);
	if (w->durable < s->acknowledged) {
		err_set(e, ST_OUTPUT,
			"the receiver had %" PRIu64 " bytes, and has %" PRIu64
			" now: it has lost the rest",
			s->acknowledged, w->durable);
		sender_hang_up(s);
		return never;
	}
	if (s->exactly && s->hello.expected > w->most)
		return too_large(s, w->most, e);
	s->acknowledged = s->position = w->durable;
	s->most = w->most;
	return done;
}

struct remote_result sender_greet(struct sender *s, struct link *l, struct err *e)
{
	struct frame f = { .type = FRAME_HELLO, .hello = s->hello };
	struct remote_result r;
	enum status st;

	sender_hang_up(s);
	st = frame_link_init(&s->talk, l, e);
	if (st)
		return never;
	f.hello.acknowledged = s->acknowledged;
	st = frame_send(&s->talk, &f, e);
	if (st)
		return connection_broke(s, st, e);
	r = await_answer(s, &f, e);
	return r.end == REMOTE_DONE ? take_welcome(s, &f, e) : r;
}

static struct remote_result not_connected(struct err *e)
{
	err_set(e, ST_OUTPUT, "there is no connection");
	return (struct remote_result){ .end = REMOTE_AGAIN };
}

/* Acknowledgements that are there already. */
static struct remote_result take_acks(struct sender *s, struct err *e)
{
	for (;;) {
		struct frame f;
		bool none;
		const struct remote_result r = receive_frame(s, 0, &f, &none, e);

		if (r.end != REMOTE_DONE || none)
			return r;
		if (!take_ack(s, &f))
			return answer_is_nonsense(s, e);
	}
}

/* Each byte once, however often it is sent. */
static void add_to_hash(struct sender *s, uint64_t offset, const uint8_t *p, size_t len)
{
	const uint64_t known = s->hashed - offset;

	if (known >= len)
		return;
	sha256_update(s->hash, p + known, len - (size_t)known);
	s->hashed = offset + len;
}

static enum status send_data(struct sender *s, const uint8_t *p, size_t len, struct err *e)
{
	enum status st = ST_OK;

	for (size_t n; len && !st; p += n, len -= n) {
		n = MIN(len, FRAME_DATA_MAX);
		st = frame_send(
			&s->talk,
			&(struct frame){ .type = FRAME_DATA, .data = { s->position, p, n } }, e);
		s->position += st ? 0 : n;
	}
	return st;
}

struct remote_result sender_put(struct sender *s, uint64_t offset, const void *p, size_t len,
				struct err *e)
{
	enum status st;

	if (offset <= s->hashed)
		add_to_hash(s, offset, p, len);
	if (!s->talk.link)
		return not_connected(e);
	if (offset != s->position) {
		err_set(e, ST_OUTPUT, "offset %" PRIu64 " is not where the receiver goes on",
			offset);
		sender_hang_up(s);
		return (struct remote_result){ .end = REMOTE_AGAIN };
	}
	st = send_data(s, p, len, e);
	return st ? connection_broke(s, st, e) : take_acks(s, e);
}

static struct remote_result sender_send(struct sender *s, const struct frame *f, struct err *e)
{
	enum status st;

	if (!s->talk.link)
		return not_connected(e);
	st = frame_send(&s->talk, f, e);
	return st ? connection_broke(s, st, e) : done;
}

struct remote_result sender_settle(struct sender *s, struct err *e)
{
	struct remote_result r = sender_send(s, &(struct frame){ .type = FRAME_PING }, e);
	struct frame f;

	while (r.end == REMOTE_DONE && s->acknowledged < s->position) {
		r = await_answer(s, &f, e);
		if (r.end == REMOTE_DONE && !take_ack(s, &f))
			return answer_is_nonsense(s, e);
	}
	return r;
}

static bool has_hash(const struct frame_end *end)
{
	static const uint8_t none[SHA256_SIZE];

	return memcmp(end->sha256, none, sizeof(none)) != 0;
}

/* Are they the bytes that were sent, and as good as they were? */
static struct remote_result judge_done(struct sender *s, const struct frame_end *end, struct err *e)
{
	const struct frame_done *d = &s->done;

	if (d->total != end->total ||
	    (has_hash(end) && memcmp(d->sha256, end->sha256, SHA256_SIZE))) {
		err_set(e, ST_OUTPUT, "the receiver's bytes differ from those that were sent");
		return never;
	}
	s->acknowledged = d->total;
	if (d->finding == FOUND_DAMAGED) {
		err_set(e, ST_OUTPUT,
			"the receiver has all bytes, but finds them damaged behind the first "
			"%" PRIu64,
			d->whole);
		return never;
	}
	return done;
}

/*
 * Of everything that was sent; once, however often the end is said. What ends early may have lost
 * its last bytes on the way: then there is no hash of the others.
 */
static bool set_hash(struct sender *s, struct frame_end *end)
{
	if (end->total != s->hashed)
		return !end->sealed;
	if (!s->summed)
		sha256_end(s->hash, s->sum);
	s->summed = true;
	memcpy(end->sha256, s->sum, sizeof(s->sum));
	return true;
}

/* Acknowledgements until DONE. */
static struct remote_result await_done(struct sender *s, struct err *e)
{
	struct remote_result r;
	struct frame f;

	for (;;) {
		r = await_answer(s, &f, e);
		if (r.end != REMOTE_DONE)
			return r;
		if (f.type == FRAME_DONE)
			break;
		if (!take_ack(s, &f))
			return answer_is_nonsense(s, e);
	}
	s->done = f.done;
	return r;
}

struct remote_result sender_finish(struct sender *s, bool sealed, struct err *e)
{
	struct frame f = { .type = FRAME_END, .end = { .total = s->position, .sealed = sealed } };
	struct remote_result r;

	if (!set_hash(s, &f.end)) {
		err_set(e, ST_OUTPUT, "%" PRIu64 " bytes have arrived of %" PRIu64, s->position,
			s->hashed);
		return never;
	}
	r = sender_send(s, &f, e);
	if (r.end == REMOTE_DONE)
		r = await_done(s, e);
	return r.end == REMOTE_DONE ? judge_done(s, &f.end, e) : r;
}
