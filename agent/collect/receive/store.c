/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "agent/collect/receive/leftovers.h"
#include "agent/collect/receive/seats.h"
#include "agent/collect/receive/store_log.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"
#include "formats/base/os.h"

/* Who was cut off comes back within a minute (uploader_thread.c): so long its room is kept. */
#define PROMISE_KEPT_S 120

/* store_options.quiet_s */
#define QUIET_S        30

struct store {
	struct store_options options;
	char *dir, *log_path;
	struct journal *log;
	pthread_mutex_t lock;
	struct upload_table uploads;
	struct seats seats;
	uint64_t total;    /* bytes of all files */
	size_t n_promised; /* uploads that were promised room */
	unsigned completed;
};

/* A failure of our own: its message is for our log; paths are none of the sender's business. */
static enum status refuse_for_disk(struct frame_refused *why, bool full, const struct err *e)
{
	log_warning("receive-disk", "%s", e->message);
	return full ? frame_refuse(why, REFUSED_FULL, "its disk is full")
		    : frame_refuse(why, REFUSED_DISK, "its disk fails");
}

static uint64_t size_counted(uint64_t bytes)
{
	return MAX(bytes, FILE_LEAST);
}

/* So many bytes of it are in the total from now on. */
static void count_upload(struct store *s, struct upload *u, uint64_t bytes)
{
	s->total += bytes - u->counted;
	u->counted = bytes;
}

static bool has_room(const struct store *s, uint64_t bytes)
{
	const uint64_t used = s->total + journal_size(s->log);

	return !s->options.max_total ||
	       (used <= s->options.max_total && bytes <= s->options.max_total - used);
}

/* Its room is kept: somebody sends it, or is expected back. */
static bool is_expected(const struct upload *u)
{
	return u->owner || clock__mono_ns() - u->left_ns < PROMISE_KEPT_S * NS_PER_SECOND;
}

static void set_promised(struct store *s, struct upload *u, uint64_t bytes)
{
	s->n_promised += (bytes != 0) - (size_t)(u->promised != 0);
	u->promised = bytes;
}

/* Of what was promised to others, the bytes that have not come yet. The newest stand first. */
static uint64_t owed_beside(const struct store *s, const struct upload *but)
{
	size_t left = s->n_promised;
	uint64_t owed = 0;

	for (const struct upload *u = s->uploads.first; u && left; u = u->next) {
		left -= u->promised != 0;
		if (u != but && u->promised > u->counted && is_expected(u))
			owed += u->promised - u->counted;
	}
	return owed;
}

/* Bytes for which there is room now, in --max-total and on the disk. */
static uint64_t room_left(const struct store *s)
{
	const uint64_t used = s->total + journal_size(s->log), most = s->options.max_total;
	uint64_t ret = UINT64_MAX, disk;

	if (most)
		ret = most > used ? most - used : 0;
	if (s->options.disk->room && s->options.disk->room(s->dir, &disk))
		ret = MIN(ret, disk);
	return ret;
}

/*
 * What is begun should come to its end. If more is begun than there is room for, and all of it
 * grows until the disk is full, nothing does, though most would fit. So each upload is promised as
 * much as it says that it needs, if there is that much beside what others were promised. Who was
 * promised nothing sends while there is more room than that.
 */
static void promise(struct store *s, struct upload *u)
{
	uint64_t room, owed;

	pthread_mutex_lock(&s->lock);
	set_promised(s, u, 0);
	if (u->expected) {
		room = room_left(s);
		owed = owed_beside(s, u);
		if (owed <= room && u->expected > u->counted &&
		    u->expected - u->counted <= room - owed)
			set_promised(s, u, u->expected);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Is there room for `more` bytes of it beside what others were promised? */
static bool fits_beside(const struct store *s, const struct upload *u, uint64_t more)
{
	const uint64_t own = u->promised > u->counted ? u->promised - u->counted : 0;
	uint64_t owed, room;

	if (more <= own)
		return true;
	owed = owed_beside(s, u);
	if (!owed)
		return true;
	room = room_left(s);
	return owed <= room && more - own <= room - owed;
}

static char *path_in(const struct store *s, const char *file, const char *suffix)
{
	char *ret = NULL;

	return asprintf(&ret, "%s/%s%s", s->dir, file, suffix) < 0 ? NULL : ret;
}

/* What was logged as complete gets its name now, if the receiver died before that. */
static enum status settle_complete(struct store *s, struct upload *u, struct err *e)
{
	_cleanup_free_ char *partial = path_in(s, u->file, PARTIAL_SUFFIX);
	_cleanup_free_ char *named = NULL;
	char file[UPLOAD_FILE_SIZE];
	enum status st = ST_OK;

	upload_choose_name(u, u->done.finding, file);
	named = path_in(s, file, "");
	if (!partial || !named)
		return err_nomem(e);
	/* It died within a rename that had to reserve the name (target_rename()). */
	if (os_exists(partial) && os_exists(named) && leftovers_is_empty(named))
		(void)!os_remove(named);
	if (os_exists(partial))
		st = upload_name(u, u->done.finding, e);
	if (os_exists(named))
		count_upload(s, u, size_counted(u->done.total));
	return st;
}

/*
 * False: its file is gone, or was emptied when it was about to be forgotten. So nothing of it was
 * acknowledged, or somebody has taken it away.
 */
static bool is_partial_there(struct store *s, struct upload *u)
{
	_cleanup_free_ char *partial = path_in(s, u->file, PARTIAL_SUFFIX);

	if (!partial || !os_exists(partial) || leftovers_is_empty(partial))
		return false;
	/* What is durable shows when it is opened. If that fails, it still holds something. */
	u->position = MAX(leftovers_size_at(partial), 1);
	count_upload(s, u, size_counted(u->position));
	return true;
}

static const struct upload *find_of(void *store, const char *id)
{
	return upload_table_find(&((struct store *)store)->uploads, id);
}

/* What no upload owns counts as well. */
static enum status settle_rest(struct store *s, struct err *e)
{
	uint64_t bytes;
	const enum status st = leftovers_settle(s->dir, find_of, s, &bytes, e);

	if (!st)
		s->total += bytes;
	return st;
}

static enum status settle_all(struct store *s, struct err *e)
{
	enum status st = ST_OK;
	struct upload *next;

	for (struct upload *u = s->uploads.first; u && !st; u = next) {
		next = u->next;
		u->disk = s->options.disk;
		u->begun = true;
		u->path = path_in(s, u->file, "");
		if (!u->path)
			return err_nomem(e);
		if (u->complete)
			st = settle_complete(s, u, e);
		else if (!is_partial_there(s, u))
			upload_table_remove(&s->uploads, u);
	}
	return st;
}

static enum status check_store_folder(const char *dir, struct err *e)
{
	_cleanup_free_ char *inside = NULL;

	if (asprintf(&inside, "%s/.", dir) < 0)
		return err_nomem(e);
	return os_exists(inside) ? ST_OK : err_set(e, ST_OUTPUT, "%s: is no folder", dir);
}

enum status store_open(const struct store_options *o, struct store **ret, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	s->options = *o;
	if (!o->disk)
		s->options.disk = &system_disk;
	pthread_mutex_init(&s->lock, NULL);
	st = seats_init(&s->seats, &s->lock, o->max_senders, o->quiet_s ? o->quiet_s : QUIET_S, e);
	s->dir = strdup(o->dir);
	s->log_path = o->log ? strdup(o->log) : s->dir ? path_in(s, "witness.jsonl", "") : NULL;
	if (!st)
		st = s->dir && s->log_path ? check_store_folder(s->dir, e) : err_nomem(e);
	if (!st)
		st = upload_table_init(&s->uploads, e);
	if (!st)
		st = journal_open(s->log_path, s->options.disk, store_log_take, &s->uploads,
				  &s->log, e);
	if (!st)
		st = settle_all(s, e);
	if (!st)
		st = settle_rest(s, e);
	if (st)
		store_close(s);
	else
		*ret = s;
	return st;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	upload_table_deinit(&s->uploads);
	journal_close(s->log);
	seats_deinit(&s->seats);
	pthread_mutex_destroy(&s->lock);
	free(s->dir);
	free(s->log_path);
	free(s);
}

const char *store_log(const struct store *s)
{
	return s->log_path;
}

uint64_t store_max_size(const struct store *s)
{
	return s->options.max_size ? s->options.max_size : UINT64_MAX;
}

void store_expected(struct store *s, void (*fn)(void *arg, const char *address), void *arg)
{
	for (const struct upload *u = s->uploads.first; u; u = u->next)
		if (!u->complete)
			fn(arg, u->address);
}

unsigned store_completed(struct store *s)
{
	unsigned ret;

	pthread_mutex_lock(&s->lock);
	ret = s->completed;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

unsigned store_under_way(struct store *s)
{
	unsigned ret = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->seats.count; i++)
		ret += !s->seats.at[i]->complete;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/*
 * Files of uploads that nobody sends stay open, so that a connection that breaks costs nothing; but
 * not more of them than there may be senders.
 */
static void close_oldest(struct store *s)
{
	struct upload *oldest = NULL;
	unsigned n = 0;

	for (struct upload *u = s->uploads.first; u; u = u->next) {
		if (u->owner || !u->open)
			continue;
		n++;
		if (!oldest || u->left_ns < oldest->left_ns)
			oldest = u;
	}
	if (n > s->options.max_senders)
		upload_close(oldest);
}

static void forget_upload(struct store *s, struct upload *u)
{
	count_upload(s, u, 0);
	set_promised(s, u, 0);
	if (u->begun)
		upload_remove(u);
	upload_table_remove(&s->uploads, u);
}

static void disown_upload(struct store *s, struct upload *u)
{
	pthread_mutex_lock(&s->lock);
	seats_release(&s->seats, u);
	if (!u->complete && !u->position && !u->waited_for)
		forget_upload(s, u);
	close_oldest(s);
	pthread_mutex_unlock(&s->lock);
}

/* In memory alone: what sends no byte leaves none here. */
static enum status new_upload(struct store *s, const struct frame_hello *hello,
			      const struct store_peer *peer, struct upload **ret,
			      struct frame_refused *why)
{
	char time[CLOCK_FILE_NAME_SIZE];
	struct upload *u;

	if (hello->acknowledged)
		return frame_refuse(why, REFUSED_LOST, "it no longer knows this upload");
	if (!has_room(s, FILE_LEAST))
		return frame_refuse(why, REFUSED_FULL, "its --max-total is reached");
	u = calloc(1, sizeof(*u));
	if (!u)
		return frame_refuse(why, REFUSED_DISK, "out of memory");
	clock_file_name(clock__wall_ns(), time);
	bytes_to_hex(hello->id, sizeof(hello->id), u->id);
	snprintf(u->peer, sizeof(u->peer), "%s", peer->pin);
	snprintf(u->name, sizeof(u->name), "%s", hello->name);
	snprintf(u->file, sizeof(u->file), "%s-%s.rsz", time, u->id);
	u->expected = hello->expected;
	u->disk = s->options.disk;
	if (upload_table_add(&s->uploads, u, NULL)) {
		free(u);
		return frame_refuse(why, REFUSED_DISK, "out of memory");
	}
	*ret = u;
	return ST_OK;
}

static enum status old_upload(struct store *s, struct upload *u, const struct store_peer *peer,
			      struct frame_refused *why)
{
	if (strcmp(u->peer, peer->pin) != 0)
		return frame_refuse(why, REFUSED_NOT_YOURS, "this upload belongs to another key");
	return u->owner ? seats_take_over(&s->seats, u, why) : ST_OK;
}

/* From now on it is the session's. */
static enum status own_upload(struct store *s, const struct frame_hello *hello,
			      const struct store_peer *peer, atomic_bool *evicted,
			      struct upload **ret, struct frame_refused *why)
{
	char id[UPLOAD_ID_HEX];
	struct upload *u;
	enum status st;

	bytes_to_hex(hello->id, sizeof(hello->id), id);
	pthread_mutex_lock(&s->lock);
	u = upload_table_find(&s->uploads, id);
	st = u && u->owner ? ST_OK : seats_make_room(&s->seats, peer->pin, why);
	/* The lock was open meanwhile. */
	u = upload_table_find(&s->uploads, id);
	if (!st)
		st = u ? old_upload(s, u, peer, why) : new_upload(s, hello, peer, &u, why);
	if (!st) {
		seats_give(&s->seats, u, evicted);
		*ret = u;
	}
	close_oldest(s);
	pthread_mutex_unlock(&s->lock);
	return st;
}

/* This takes as long as the disk does: without the lock, as all that only the owner touches. */
static enum status reopen_upload(struct store *s, struct upload *u, struct frame_refused *why)
{
	struct err e = ERR_INIT;

	if (upload_reopen(u, &e))
		return refuse_for_disk(why, false, &e);
	pthread_mutex_lock(&s->lock);
	count_upload(s, u, size_counted(u->position));
	pthread_mutex_unlock(&s->lock);
	return ST_OK;
}

enum status store_claim(struct store *s, const struct frame_hello *hello,
			const struct store_peer *peer, atomic_bool *evicted, struct upload **ret,
			struct frame_refused *why)
{
	struct upload *u = NULL;
	enum status st = own_upload(s, hello, peer, evicted, &u, why);

	if (st)
		return st;
	if (u->begun && !u->complete && !u->open)
		st = reopen_upload(s, u, why);
	if (!st && hello->acknowledged > (u->complete ? u->done.total : u->durable))
		st = frame_refuse(why, REFUSED_LOST, "it has less of this upload than before");
	if (st) {
		disown_upload(s, u);
		return st;
	}
	if (!u->complete)
		promise(s, u);
	*ret = u;
	return ST_OK;
}

void store_release(struct store *s, struct upload *u, const struct store_peer *peer)
{
	struct err e = ERR_INIT;

	/* Once for what has come: else whoever may send could fill the disk with lines. */
	if (!u->complete && u->durable > u->logged) {
		u->logged = u->durable;
		if (store_log_broke_off(s->log, u, peer, &e))
			log_warning("receive-log", "%s", e.message);
	}
	disown_upload(s, u);
}

/* Before they are written: two senders cannot both have the last room. ST_OUTPUT, with *why. */
static enum status reserve_upload_room(struct store *s, struct upload *u, size_t len,
				       struct frame_refused *why)
{
	const uint64_t bytes = size_counted(u->position + len);
	enum status st = ST_OK;

	pthread_mutex_lock(&s->lock);
	if (!has_room(s, bytes - u->counted))
		st = frame_refuse(why, REFUSED_FULL, "its --max-total is reached");
	else if (!fits_beside(s, u, bytes - u->counted))
		st = frame_refuse(why, REFUSED_FULL,
				  "the room that it has left is for uploads that came first");
	else
		count_upload(s, u, bytes);
	u->heard_ns = clock__mono_ns();
	pthread_mutex_unlock(&s->lock);
	return st;
}

static void release_upload_room(struct store *s, struct upload *u)
{
	pthread_mutex_lock(&s->lock);
	count_upload(s, u, u->begun ? size_counted(u->position) : 0);
	pthread_mutex_unlock(&s->lock);
}

/* With its first bytes it gets its files, and is logged. */
static enum status begin_upload(struct store *s, struct upload *u, const struct store_peer *peer,
				struct err *e)
{
	enum status st;

	if (u->begun)
		return ST_OK;
	free(u->path);
	u->path = path_in(s, u->file, "");
	st = u->path ? upload_begin(u, e) : err_nomem(e);
	if (st)
		return st;
	st = store_log_began(s->log, u, peer->address, e);
	if (st)
		upload_remove(u);
	u->begun = !st;
	return st;
}

enum status store_append(struct store *s, struct upload *u, const struct frame_data *d,
			 const struct store_peer *peer, struct frame_refused *why)
{
	struct err e = ERR_INIT;
	bool full = false;
	enum status st;

	if (u->complete || d->offset != u->position)
		return frame_refuse(why, REFUSED_OFFSET,
				    "bytes for offset %" PRIu64 ", and it has %" PRIu64, d->offset,
				    u->complete ? u->done.total : u->position);
	if (!range_fits(d->offset, d->len, store_max_size(s)))
		return frame_refuse(why, REFUSED_TOO_LARGE, "its --max-size is %" PRIu64 " bytes",
				    store_max_size(s));
	st = reserve_upload_room(s, u, d->len, why);
	if (st)
		return st;
	st = begin_upload(s, u, peer, &e);
	if (!st)
		st = upload_append(u, d->at, d->len, &full, &e);
	if (!st)
		return ST_OK;
	release_upload_room(s, u);
	return refuse_for_disk(why, full, &e);
}

static void set_done(struct upload *u, const struct frame_end *end, const struct checked *found)
{
	u->done = (struct frame_done){
		.total = end->total,
		.whole = found->end.whole,
		.records = found->end.records,
		.finding = found->finding,
	};
	memcpy(u->done.sha256, found->sha256, SHA256_SIZE);
	memcpy(u->done.root, found->end.root, SHA256_SIZE);
}

enum status store_complete(struct store *s, struct upload *u, const struct frame_end *end,
			   const struct checked *found, const struct store_peer *peer,
			   struct frame_refused *why)
{
	struct err e = ERR_INIT;
	enum status st;

	set_done(u, end, found);
	st = store_log_complete(s->log, u, end->sealed, found, peer, &e);
	/* From now on it is so, whatever becomes of the name: what is logged is not taken back. */
	if (!st) {
		pthread_mutex_lock(&s->lock);
		u->complete = true;
		set_promised(s, u, 0);
		s->completed++;
		pthread_mutex_unlock(&s->lock);
		st = upload_name(u, u->done.finding, &e);
	}
	return st ? refuse_for_disk(why, false, &e) : ST_OK;
}
