/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/session.h"

#include <inttypes.h>
#include <string.h>

#include "agent/collect/wire/frame_link.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"

/* What is new becomes durable at one or the other (PROTOCOL.md, section 3, step 2). */
#define SYNC_BYTES      ((uint64_t)8 << 20)
#define SYNC_MS         100

/* A refusal is lost if the connection is reset because we did not read what was sent. */
#define LINGER_MS       5000

/* While the file is checked: so that the sender does not take us for dead. */
#define SIGN_OF_LIFE_MS 1000

#define FULL_WAIT_MS    5000

/* A sender begins with HELLO, at once. */
#define HELLO_MS        10000

struct session {
	const struct session_options *options;
	struct frame_link talk;
	struct upload *upload;
	uint64_t new_ns;   /* when the first byte came that is not durable; 0: all are */
	uint64_t heard_ns; /* when the last bytes of the upload came */
	bool over;         /* DONE was sent */
	bool dawdled;      /* HELLO never came */
};

static uint64_t session_now(void)
{
	return clock__mono_ns();
}

static unsigned ms_since(uint64_t ns)
{
	return (unsigned)MIN((session_now() - ns) / (NS_PER_SECOND / 1000), UINT32_MAX);
}

static enum status send_ack(struct session *s, struct err *e)
{
	const struct upload *u = s->upload;

	return frame_send(&s->talk,
			  &(struct frame){ .type = FRAME_ACK,
					   .durable = u->complete ? u->done.total : u->durable },
			  e);
}

static enum status sync_now(struct session *s, struct frame_refused *why)
{
	struct err e = ERR_INIT;

	s->new_ns = 0;
	if (s->upload->complete || !upload_sync(s->upload, &e))
		return ST_OK;
	log_warning("receive-disk", "%s", e.message);
	return frame_refuse(why, REFUSED_DISK, "its disk fails");
}

/* ST_END, here and below: the connection is over, and nobody is there to be told anything. */
static enum status sync_and_say(struct session *s, struct frame_refused *why)
{
	const enum status st = sync_now(s, why);

	return st ? st : send_ack(s, NULL) ? ST_END : ST_OK;
}

static void tell_seated(const struct session *s, bool is)
{
	if (s->options->seated)
		s->options->seated(s->options->arg, is);
}

static enum status answer_hello(struct session *s, const struct frame *f, atomic_bool *evicted,
				struct frame_refused *why)
{
	const struct frame_hello *hello = &f->hello;
	struct frame welcome = { .type = FRAME_WELCOME };
	enum status st;

	if (f->type != FRAME_HELLO)
		return frame_refuse(why, REFUSED_BAD, "the first frame must be HELLO");
	if (hello->version != FRAME_VERSION)
		return frame_refuse(why, REFUSED_VERSION, "the protocol version here is %u, not %u",
				    FRAME_VERSION, (unsigned)hello->version);
	st = store_claim(s->options->store, hello, &s->options->peer, evicted, &s->upload, why);
	if (!st)
		st = sync_now(s, why);
	if (st)
		return st;
	tell_seated(s, true);
	s->heard_ns = session_now();
	welcome.welcome = (struct frame_welcome){
		.version = FRAME_VERSION,
		.idle_s = s->options->idle_s,
		.durable = s->upload->complete ? s->upload->done.total : s->upload->durable,
		.most = store_max_size(s->options->store),
	};
	log_info("receive-began", "%s: sends %s, from byte %" PRIu64 " on",
		 s->options->peer.address, s->upload->file, welcome.welcome.durable);
	return frame_send(&s->talk, &welcome, NULL) ? ST_END : ST_OK;
}

static void tell_complete(const struct session *s, const struct frame_end *end)
{
	const struct upload *u = s->upload;
	const struct frame_done *d = &u->done;
	char file[UPLOAD_FILE_SIZE], sha256[SHA256_HEX_SIZE], root[SHA256_HEX_SIZE];

	upload_choose_name(u, d->finding, file);
	sha256_hex(d->sha256, sha256);
	log_result_with(JSON_FIELDS(field_text("file", file), field_u64("bytes", d->total),
				    field_text("sha256", sha256),
				    field_text("root", upload_root_text(d->root, root)),
				    field_bool("sealed", end->sealed),
				    field_text("verified", finding_name(d->finding)),
				    field_text("peer", s->options->peer.pin),
				    field_text("address", s->options->peer.address)),
			"receive-complete",
			"%s: arrived whole, %" PRIu64 " bytes, as a container: %s, SHA-256 %s",
			file, d->total, finding_name(d->finding), sha256);
}

static enum status receive_data(struct session *s, const struct frame_data *d,
				struct frame_refused *why)
{
	const enum status st =
		store_append(s->options->store, s->upload, d, &s->options->peer, why);

	if (st)
		return st;
	if (!s->new_ns)
		s->new_ns = session_now();
	if (s->upload->position - s->upload->durable < SYNC_BYTES && ms_since(s->new_ns) < SYNC_MS)
		return ST_OK;
	return sync_and_say(s, why);
}

static bool should_stop(const struct session *s)
{
	const struct link_options *o = &s->talk.link->options;

	return o->stop && o->stop(o->arg);
}

static enum status refuse_stopping(struct frame_refused *why)
{
	return frame_refuse(why, REFUSED_STOPPING, "it was stopped");
}

/* A check that could not come to its end. The next one begins anew. */
static enum status judge_check(struct session *s, const struct checked *c,
			       struct frame_refused *why)
{
	if (!c->st)
		return ST_OK;
	upload_close(s->upload);
	if (c->st == ST_INTERRUPTED)
		return refuse_stopping(why);
	log_warning("receive-disk", "%s: %s", s->upload->file, c->why.message);
	return frame_refuse(why, REFUSED_DISK, "its disk fails");
}

/*
 * What is in the file is read to its end. That goes on if the connection breaks meanwhile, or a new
 * one takes its place: the sender comes back for the answer.
 */
static enum status await_check(struct session *s, struct checked *ret, struct frame_refused *why)
{
	upload_end(s->upload);
	while (!checker_wait(s->upload->checker, SIGN_OF_LIFE_MS, ret)) {
		if (should_stop(s))
			return refuse_stopping(why);
		(void)!send_ack(s, NULL);
	}
	return judge_check(s, ret, why);
}

/* Of what ends early the sender need not know one. */
static bool hash_fits(const struct frame_end *end, const uint8_t found[static SHA256_SIZE])
{
	static const uint8_t none[SHA256_SIZE];

	return !memcmp(found, end->sha256, SHA256_SIZE) ||
	       (!end->sealed && !memcmp(none, end->sha256, SHA256_SIZE));
}

static enum status complete_upload(struct session *s, const struct frame_end *end,
				   struct frame_refused *why)
{
	struct upload *u = s->upload;
	struct checked found;
	enum status st;

	if (!end->total)
		return frame_refuse(why, REFUSED_BAD, "END without any data");
	if (end->total != u->position)
		return frame_refuse(why, REFUSED_OFFSET,
				    "an end at %" PRIu64 ", and it has %" PRIu64, end->total,
				    u->position);
	st = sync_now(s, why);
	if (!st)
		st = await_check(s, &found, why);
	if (!st && !hash_fits(end, found.sha256))
		st = frame_refuse(why, REFUSED_MISMATCH,
				  "the hash of the bytes on its disk does not match");
	if (!st)
		st = store_complete(s->options->store, u, end, &found, &s->options->peer, why);
	if (u->complete)
		tell_complete(s, end);
	return st;
}

static enum status take_end(struct session *s, const struct frame_end *end,
			    struct frame_refused *why)
{
	struct frame f = { .type = FRAME_DONE };
	enum status st = s->upload->complete ? ST_OK : complete_upload(s, end, why);

	if (st)
		return st;
	f.done = s->upload->done;
	if (f.done.total != end->total || !hash_fits(end, f.done.sha256))
		return frame_refuse(why, REFUSED_MISMATCH,
				    "the hash of the complete file here does not match");
	s->over = true;
	/* A receiver that has what it was started for still says so. */
	s->talk.link->options.stop = NULL;
	return frame_send(&s->talk, &f, NULL) ? ST_END : ST_OK;
}

static enum status handle_frame(struct session *s, const struct frame *f, struct frame_refused *why)
{
	enum status st;

	switch (f->type) {
	case FRAME_DATA:
		st = receive_data(s, &f->data, why);
		s->heard_ns = session_now();
		return st;
	case FRAME_PING:
		return sync_and_say(s, why);
	case FRAME_END:
		return take_end(s, &f->end, why);
	default:
		return frame_refuse(why, REFUSED_BAD, "unexpected frame");
	}
}

/* The time that it has for the next bytes. A PING, or any number of them, is none. */
static unsigned patience_ms(const struct session *s)
{
	return s->upload ? s->options->idle_s * 1000 : MIN(HELLO_MS, s->options->idle_s * 1000);
}

/* Was it long enough? */
static enum status judge_idle(struct session *s, struct frame_refused *why)
{
	if (ms_since(s->heard_ns) < patience_ms(s))
		return ST_OK;
	s->dawdled = !s->upload;
	return frame_refuse(why, REFUSED_IDLE, "no data for %u seconds", patience_ms(s) / 1000);
}

/* Nothing came for a while: what is new becomes durable. */
static enum status take_silence(struct session *s, struct frame_refused *why)
{
	if (s->new_ns && ms_since(s->new_ns) >= SYNC_MS)
		return sync_and_say(s, why);
	return ST_OK;
}

static unsigned wait_ms(const struct session *s)
{
	const unsigned heard = ms_since(s->heard_ns), new = ms_since(s->new_ns);

	if (s->new_ns)
		return new < SYNC_MS ? SYNC_MS - new : 0;
	return patience_ms(s) > heard ? MIN(patience_ms(s) - heard, 60000U) : 0;
}

/* What a failed read means. */
static enum status refuse_failed_read(enum status st, const struct err *e,
				      struct frame_refused *why)
{
	if (st == ST_CORRUPT)
		return frame_refuse(why, REFUSED_BAD, "%s", e->message);
	if (st == ST_INTERRUPTED)
		return refuse_stopping(why);
	return ST_END;
}

static enum status talk_to_sender(struct session *s, atomic_bool *evicted,
				  struct frame_refused *why)
{
	enum status st = ST_OK;

	while (!st && !s->over) {
		struct err e = ERR_INIT;
		struct frame f;

		st = frame_receive(&s->talk, wait_ms(s), &f, &e);
		if (st == ST_NOT_MINE)
			st = take_silence(s, why);
		else if (st)
			st = refuse_failed_read(st, &e, why);
		else if (!s->upload)
			st = answer_hello(s, &f, evicted, why);
		else
			st = handle_frame(s, &f, why);
		if (!st && !s->over)
			st = judge_idle(s, why);
	}
	return st;
}

static bool is_dropped(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

/* Being told to stop is no reason to lose the answer that says so; making way for others is. */
static void go_on_unless_dropped(struct session *s)
{
	struct link_options *o = &s->talk.link->options;

	o->stop = s->options->dropped ? is_dropped : NULL;
	o->arg = s->options->dropped;
}

/* Until the sender has closed, too. */
static void linger_before_close(struct session *s)
{
	struct link *l = s->talk.link;
	const uint64_t began = session_now();
	uint8_t dropped[4096];
	size_t got;

	l->ops->end(l);
	go_on_unless_dropped(s);
	while (ms_since(began) < LINGER_MS)
		if (link_read(l, dropped, sizeof(dropped), LINGER_MS - ms_since(began), &got, NULL))
			break;
}

static void tell_refusal(struct session *s, const struct frame_refused *why)
{
	struct frame f = { .type = FRAME_REFUSED, .refused = *why };

	if (why->reason == REFUSED_FULL)
		f.refused.wait_ms = FULL_WAIT_MS;
	if (!s->options->unwelcome)
		log_warning("receive-refused", "%s: refused (%s): %s", s->options->peer.address,
			    refusal_name(why->reason), why->text);
	go_on_unless_dropped(s);
	if (!frame_send(&s->talk, &f, NULL))
		linger_before_close(s);
}

/* As much as came is kept; the sender may have gone for good. */
static void leave_upload(struct session *s)
{
	struct frame_refused why;

	if (!s->upload)
		return;
	if (s->upload->open)
		(void)!sync_now(s, &why);
	store_release(s->options->store, s->upload, &s->options->peer);
	s->upload = NULL;
	tell_seated(s, false);
}

enum status session_run(struct link *l, const struct session_options *o, atomic_bool *evicted)
{
	struct session s = { .options = o, .heard_ns = session_now() };
	struct frame_refused why = { 0 };
	enum status st;

	st = frame_link_init(&s.talk, l, NULL);
	if (st)
		return st;
	if (o->unwelcome)
		st = frame_refuse(&why, REFUSED_UNWELCOME, "this sender's key is unknown to it");
	else
		st = talk_to_sender(&s, evicted, &why);
	/* First of all: the same sender may be waiting for it. */
	leave_upload(&s);
	if (st == ST_OUTPUT)
		tell_refusal(&s, &why);
	else if (!st)
		linger_before_close(&s);
	frame_link_deinit(&s.talk);
	return s.dawdled ? ST_END : ST_OK;
}
