/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/uploader_internal.h"

#include <inttypes.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/random.h"
#include "agent/shared/program/share.h"
#include "agent/shared/program/text.h"
#include "agent/shared/program/timed_cond.h"

/* Between two tries: at random from the first to twice as much each time, up to the last. */
#define BACKOFF_LEAST (NS_PER_SECOND / 2)
#define BACKOFF_MOST  (60 * NS_PER_SECOND)

/* So long nothing may move within a request (http.h, tls.c). */
#define STALL_S       30

/*
 * Patience
 */

static void went_well(struct uploader *u)
{
	if (u->failures)
		log_info("upload-goes-on", "%s: goes on", u->remote->shown);
	u->failures = 0;
}

/* A request may have hung for a while since. */
static uint64_t signalled_at(const struct uploader *u)
{
	const uint64_t noticed = u->o.signalled ? *u->o.signalled : 0;

	return noticed ? noticed : uploader__now(u);
}

/* Behind a signal. What failed first may have moved nothing before, up to the limit for that. */
static uint64_t hurry_until(const struct uploader *u, uint64_t seconds)
{
	const uint64_t stall = STALL_S * NS_PER_SECOND;

	return MAX(u->hurry, u->since > stall ? u->since - stall : 0) + seconds * NS_PER_SECOND;
}

/* When it is given up. A signal makes it sooner. */
static uint64_t deadline(struct uploader *u)
{
	const uint64_t patient = u->since + u->patience_s * NS_PER_SECOND;

	if (!interrupted())
		return patient;
	if (!u->hurry)
		u->hurry = signalled_at(u);
	if (u->last)
		return MIN(patient, u->last);
	return MIN(patient, hurry_until(u, HURRY_S));
}

static uint32_t draw_random(const struct uploader *u)
{
	uint32_t ret;

	if (u->o.time)
		return u->o.time->draw(u->o.time->arg);
	return random_bytes(&ret, sizeof(ret), NULL) ? (uint32_t)clock__mono_ns() : ret;
}

/* From 0 up to `most`. */
static uint64_t at_random(const struct uploader *u, uint64_t most)
{
	const uint64_t random = draw_random(u);

	return (most >> 32) * random + ((most & UINT32_MAX) * random >> 32);
}

/*
 * Everybody who was cut off at once, or told to come back then, is not to come back at once: full
 * jitter, or a tenth more than was said.
 */
static uint64_t backoff(const struct uploader *u, unsigned wait_ms)
{
	const uint64_t most = MIN(BACKOFF_MOST, BACKOFF_LEAST << MIN(u->failures, 10U));
	const uint64_t told = wait_ms * (NS_PER_SECOND / 1000);

	if (told)
		return told + at_random(u, MAX(told / 10, BACKOFF_LEAST));
	return BACKOFF_LEAST + at_random(u, most - BACKOFF_LEAST);
}

/* Waits before the next try; false if there is none. */
static bool try_later(struct uploader *u, unsigned wait_ms, struct err *e)
{
	const uint64_t now = uploader__now(u);
	char text[TEXT_DURATION_MAX];
	uint64_t until, pause;

	/* What has taken hours before it failed has used up no patience. */
	if (!u->failures)
		u->since = now;
	until = deadline(u);
	if (now >= until) {
		text_duration((now - u->since) / NS_PER_SECOND, text);
		err_add(e, ST_OUTPUT, "gave up after %s without progress", text);
		return false;
	}
	if (!u->failures++)
		log_warning("upload-stalls", "%s: %s; trying again", u->remote->shown, e->message);
	pthread_mutex_lock(&u->lock);
	u->stats.retries++;
	pthread_mutex_unlock(&u->lock);
	pause = backoff(u, wait_ms);
	uploader__pause(u, MIN(pause, until - now));
	return true;
}

/* The last word, which is never nothing. */
static bool upload_refused(struct err *e)
{
	if (!e->message[0])
		err_set(e, ST_OUTPUT, "refuses");
	return false;
}

bool uploader__insist(struct uploader *u, uploader_ask *ask, struct err *e)
{
	u->failures = 0;
	for (;;) {
		const struct remote_result r = ask(u, e);

		if (r.end == REMOTE_DONE) {
			went_well(u);
			e->message[0] = '\0';
			return true;
		}
		if (r.end == REMOTE_NEVER) {
			u->refused = r.st;
			return upload_refused(e);
		}
		if (!try_later(u, r.wait_ms, e))
			return false;
	}
}

/*
 * Steps: each returns false when there is no other, with a message if something is wrong.
 */

static bool is_uploader_asked(struct uploader *u, int what)
{
	bool ret;

	pthread_mutex_lock(&u->lock);
	ret = (int)u->asked == what;
	pthread_mutex_unlock(&u->lock);
	return ret;
}

/* *ret_moved: there is more of it than before. */
static bool acknowledge(struct uploader *u, uint64_t acknowledged, bool *ret_moved, struct err *e)
{
	*ret_moved = false;
	if (acknowledged > u->sent) {
		err_set(e, ST_OUTPUT,
			"acknowledges %" PRIu64 " bytes, and only %" PRIu64 " were sent",
			acknowledged, u->sent);
		return false;
	}
	if (acknowledged <= spool_begin(u->spool))
		return true;
	*ret_moved = true;
	went_well(u);
	pthread_mutex_lock(&u->lock);
	spool_forget(u->spool, acknowledged);
	u->stats.acknowledged = acknowledged;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	return true;
}

static bool resync(struct uploader *u, struct err *e)
{
	uint64_t at = 0;
	const struct remote_result r = u->remote->ops->where(u->remote, &at, e);

	if (r.end == REMOTE_AGAIN)
		return try_later(u, r.wait_ms, e);
	if (r.end == REMOTE_NEVER)
		return upload_refused(e);
	if (at < spool_begin(u->spool) || at > u->sent) {
		err_set(e, ST_OUTPUT,
			"has %" PRIu64 " bytes now, but acknowledged %" PRIu64 " of %" PRIu64, at,
			spool_begin(u->spool), u->sent);
		return false;
	}
	u->next = at;
	u->resync = false;
	return true;
}

static bool failed_for_now(struct uploader *u, struct remote_result r, struct err *e)
{
	if (r.end == REMOTE_NEVER)
		return upload_refused(e);
	u->resync = u->remote->ops->where;
	if (!u->resync)
		u->next = spool_begin(u->spool);
	return try_later(u, r.wait_ms, e);
}

/* A whole piece, or at the end what there is. */
static bool next_upload_piece(struct uploader *u, struct remote_piece *ret)
{
	const size_t size = u->remote->piece_size, want = size - (size_t)(u->next % size);
	const bool ending = is_uploader_asked(u, UPLOADER_FINISHES);
	const uint64_t end = spool_end(u->spool);

	*ret = (struct remote_piece){ .number = u->next / size, .offset = u->next };
	ret->at = spool_at(u->spool, u->next, want, &ret->len);
	ret->last = ending && u->next + ret->len == end;
	return ret->len && (ret->len == want || ret->last);
}

static bool send_piece(struct uploader *u, const struct remote_piece *p, struct err *e)
{
	uint64_t acknowledged = spool_begin(u->spool);
	struct remote_result r;
	bool moved;

	u->sent = MAX(u->sent, p->offset + p->len);
	r = u->remote->ops->put(u->remote, p, &acknowledged, e);
	pthread_mutex_lock(&u->lock);
	u->stats.sent += p->len;
	pthread_mutex_unlock(&u->lock);
	if (!acknowledge(u, acknowledged, &moved, e))
		return false;
	if (r.end != REMOTE_DONE)
		return failed_for_now(u, r, e);
	u->next = p->offset + p->len;
	if (u->remote->ops->settle || spool_begin(u->spool) >= u->next)
		return true;
	u->next = spool_begin(u->spool);
	if (moved)
		return true;
	err_set(e, ST_OUTPUT, "the server accepts no data");
	return try_later(u, 0, e);
}

static bool settle_acknowledged(struct uploader *u, struct err *e)
{
	uint64_t acknowledged = spool_begin(u->spool);
	const struct remote_result r = u->remote->ops->settle(u->remote, &acknowledged, e);
	bool moved;

	if (!acknowledge(u, acknowledged, &moved, e))
		return false;
	if (r.end != REMOTE_DONE)
		return failed_for_now(u, r, e);
	if (moved)
		return true;
	err_set(e, ST_OUTPUT, "the server acknowledged nothing");
	return try_later(u, 0, e);
}

static bool checkpoint_is_due(const struct uploader *u)
{
	return u->remote->ops->checkpoint && !u->no_checkpoint &&
	       spool_begin(u->spool) > u->checkpointed && uploader__now(u) >= u->checkpoint_at;
}

/* It makes nothing worse if it fails: the next one may do better. */
static void make_checkpoint(struct uploader *u)
{
	struct err e = ERR_INIT;
	const struct remote_result r = u->remote->ops->checkpoint(u->remote, &e);

	if (r.end == REMOTE_DONE)
		u->checkpointed = spool_begin(u->spool);
	u->no_checkpoint = r.end == REMOTE_NEVER;
	if (u->no_checkpoint)
		log_warning("no-checkpoints", "%s: %s; it cannot be read before it is complete",
			    u->remote->shown, e.message);
	u->checkpoint_at = uploader__now(u) + CHECKPOINT_EVERY_S * NS_PER_SECOND;
}

static void wait_for_work(struct uploader *u)
{
	/* A checkpoint may be due then. */
	const struct timespec until = timed_cond_until(u->clock, NS_PER_SECOND);

	pthread_mutex_lock(&u->lock);
	if (u->asked == UPLOADER_GOES_ON && spool_end(u->spool) - u->next < u->remote->piece_size)
		pthread_cond_timedwait(&u->changed, &u->lock, &until);
	pthread_mutex_unlock(&u->lock);
}

/* What goes from the disk to memory makes room, and may be too little to be sent: that is told. */
static bool fill_from_spool(struct uploader *u, struct err *e)
{
	bool moved;
	const enum status st = spool_fill(u->spool, &moved, e);

	if (moved) {
		pthread_mutex_lock(&u->lock);
		pthread_cond_broadcast(&u->changed);
		pthread_mutex_unlock(&u->lock);
	}
	return !st;
}

static bool upload_step(struct uploader *u, struct err *e)
{
	struct remote_piece p;

	if (is_uploader_asked(u, UPLOADER_ABANDONS))
		return false;
	if (u->resync)
		return resync(u, e);
	if (checkpoint_is_due(u))
		make_checkpoint(u);
	if (!fill_from_spool(u, e))
		return false;
	if (next_upload_piece(u, &p))
		return send_piece(u, &p, e);
	if (u->next > spool_begin(u->spool))
		return settle_acknowledged(u, e);
	if (is_uploader_asked(u, UPLOADER_FINISHES) && u->next == spool_end(u->spool))
		return false;
	wait_for_work(u);
	return true;
}

/*
 * The end
 */

static struct remote_result ask_finish(struct uploader *u, struct err *e)
{
	return u->remote->ops->finish(u->remote, spool_begin(u->spool), u->finish_sealed, e);
}

static struct remote_result ask_abandon(struct uploader *u, struct err *e)
{
	return u->remote->ops->abandon(u->remote, e);
}

static enum uploader_end abandon_upload(struct uploader *u)
{
	struct err e = ERR_INIT;

	u->patience_s = PATIENCE_SHORT_S;
	if (uploader__insist(u, ask_abandon, &e))
		return UPLOAD_NOTHING;
	log_warning("upload-not-removed", "%s: %s", u->remote->shown, e.message);
	return UPLOAD_OPEN;
}

/* Who is in a hurry has one end for all that is left. */
static bool is_late(struct uploader *u)
{
	if (!u->hurry)
		return false;
	u->last = hurry_until(u, HURRY_END_S);
	return uploader__now(u) >= u->last;
}

/* What has arrived without a gap is completed. */
static enum uploader_end salvage(struct uploader *u)
{
	struct err e = ERR_INIT;

	if (is_late(u))
		return UPLOAD_OPEN;
	if (!spool_begin(u->spool))
		return abandon_upload(u);
	u->finish_sealed = false;
	u->patience_s = PATIENCE_SHORT_S;
	if (uploader__insist(u, ask_finish, &e)) {
		u->lock_st = uploader__lock(u, &u->lock_why);
		if (u->lock_st)
			log_warning("object-lock-missing", "%s", u->lock_why.message);
		return UPLOAD_SHORT;
	}
	log_warning("upload-not-completed", "%s: %s", u->remote->shown, e.message);
	return UPLOAD_OPEN;
}

static void tell_upload_end(const struct uploader *u, enum uploader_end end, struct err *e)
{
	const struct err why = *e;
	_cleanup_free_ char *how = uploader_how_to_finish(u);
	char size[TEXT_SIZE_MAX];

	text_size(spool_begin(u->spool), size);
	if (end == UPLOAD_SHORT)
		err_set(e, ST_OUTPUT, "%s: %.300s; the first %s were completed there",
			u->remote->shown, why.message, size);
	else if (end == UPLOAD_OPEN && how)
		err_set(e, ST_OUTPUT, "%s: %.300s; %s arrived: complete them with %s",
			u->remote->shown, why.message, size, how);
	else
		err_set(e, ST_OUTPUT, "%s: %.300s", u->remote->shown, why.message);
}

static struct remote_result ask_lock(struct uploader *u, struct err *e)
{
	return u->remote->ops->lock(u->remote, e);
}

enum status uploader__lock(struct uploader *u, struct err *e)
{
	const struct object_lock *l = &u->remote->lock;

	if (!l->mode)
		return ST_OK;
	if (!uploader__insist(u, ask_lock, e)) {
		const struct err why = *e;

		return err_set(e, ST_OUTPUT,
			       "%s: the upload is complete, but the lock is not confirmed: %.300s",
			       u->remote->shown, why.message);
	}
	if (l->seen == LOCK_UNSEEN)
		log_warning("object-lock-unseen", "%s: the store does not allow checking the lock",
			    u->remote->shown);
	return ST_OK;
}

static bool is_upload_sealed(struct uploader *u)
{
	bool ret;

	pthread_mutex_lock(&u->lock);
	ret = u->sealed;
	pthread_mutex_unlock(&u->lock);
	return ret;
}

static enum uploader_end come_to_end(struct uploader *u, struct err *e)
{
	enum uploader_end end;

	if (is_uploader_asked(u, UPLOADER_ABANDONS))
		return abandon_upload(u);
	if (e->message[0]) {
		end = salvage(u);
	} else {
		if (!spool_end(u->spool))
			return abandon_upload(u);
		u->finish_sealed = is_upload_sealed(u);
		if (uploader__insist(u, ask_finish, e)) {
			u->lock_st = uploader__lock(u, &u->lock_why);
			return UPLOAD_COMPLETE;
		}
		end = UPLOAD_OPEN;
	}
	tell_upload_end(u, end, e);
	return end;
}

void *uploader__run(void *uploader)
{
	struct uploader *u = uploader;
	struct err e = ERR_INIT;
	enum uploader_end end;
	struct share_meter meter;

	share_join(SHARE_WRITING);
	share_meter_begin(&meter, SHARE_WRITING);
	if (u->o.log_apart)
		log_apart();
	u->checkpoint_at = uploader__now(u) + CHECKPOINT_EVERY_S * NS_PER_SECOND;
	while (upload_step(u, &e)) {
		e.message[0] = '\0';
		share_give_way(&meter);
	}
	share_meter_end(&meter);
	end = come_to_end(u, &e);
	pthread_mutex_lock(&u->lock);
	u->end = end;
	u->st = e.message[0] && u->asked != UPLOADER_ABANDONS ? ST_OUTPUT : ST_OK;
	u->why = e;
	u->ended = true;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	return NULL;
}
