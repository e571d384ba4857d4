/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "agent/collect/receive/store_log.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "agent/shared/program/timed_cond.h"
#include "formats/base/bytes.h"
#include "formats/base/os.h"

/* A session that is told to go is between two frames, or syncs. */
#define EVICTION_S 15

/* What a file takes at least: --max-total bounds their number, too. */
#define FILE_LEAST 4096

struct store {
	struct store_options options;
	char *dir, *log_path;
	struct journal *log;
	pthread_mutex_t lock;
	pthread_cond_t released;
	clockid_t clock; /* that it waits by */
	struct upload *uploads;
	uint64_t total; /* bytes of all files */
	unsigned completed;
};

enum status store_refuse(struct frame_refused *why, enum refusal reason, const char *fmt, ...)
{
	va_list args;

	*why = (struct frame_refused){ .reason = (uint16_t)reason };
	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
	return ST_OUTPUT;
}

/* A failure of our own: its message is for our log; paths are none of the sender's business. */
static enum status refuse_disk(struct frame_refused *why, bool full, const struct err *e)
{
	log_warning("receive-disk", "%s", e->message);
	return full ? store_refuse(why, REFUSED_FULL, "its disk is full")
		    : store_refuse(why, REFUSED_DISK, "its disk fails");
}

static uint64_t size_counted(uint64_t bytes)
{
	return MAX(bytes, FILE_LEAST);
}

/* So many bytes of it are in the total from now on. */
static void count(struct store *s, struct upload *u, uint64_t bytes)
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

/* Of a file, or 0. */
static uint64_t size_at(const char *path)
{
	const int fd = os_open(path, O_RDONLY);
	const off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

	if (fd >= 0)
		close(fd);
	return size > 0 ? (uint64_t)size : 0;
}

static char *path_in(const struct store *s, const char *file, const char *suffix)
{
	char *ret = NULL;

	return asprintf(&ret, "%s/%s%s", s->dir, file, suffix) < 0 ? NULL : ret;
}

static void free_upload(struct upload *u)
{
	if (u)
		upload_close(u);
	if (u)
		free(u->path);
	free(u);
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
	if (os_exists(partial))
		st = upload_name(u, u->done.finding, e);
	if (os_exists(named))
		count(s, u, size_counted(u->done.total));
	return st;
}

/* False: its file is gone, and so it is forgotten. */
static bool is_there(struct store *s, struct upload *u)
{
	_cleanup_free_ char *partial = path_in(s, u->file, PARTIAL_SUFFIX);

	if (!partial || !os_exists(partial))
		return false;
	count(s, u, size_counted(size_at(partial)));
	return true;
}

static enum status settle_all(struct store *s, struct err *e)
{
	enum status st = ST_OK;

	for (struct upload **at = &s->uploads; *at && !st;) {
		struct upload *u = *at;

		u->disk = s->options.disk;
		u->begun = true;
		u->path = path_in(s, u->file, "");
		if (!u->path)
			return err_nomem(e);
		if (u->complete) {
			st = settle_complete(s, u, e);
		} else if (!is_there(s, u)) {
			*at = u->next;
			free_upload(u);
			continue;
		}
		at = &u->next;
	}
	return st;
}

static enum status check_folder(const char *dir, struct err *e)
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
	s->clock = timed_cond_init(&s->released);
	s->dir = strdup(o->dir);
	s->log_path = o->log ? strdup(o->log) : s->dir ? path_in(s, "witness.jsonl", "") : NULL;
	st = s->dir && s->log_path ? check_folder(s->dir, e) : err_nomem(e);
	if (!st)
		st = journal_open(s->log_path, s->options.disk, store_log_take, &s->uploads,
				  &s->log, e);
	if (!st)
		st = settle_all(s, e);
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
	while (s->uploads) {
		struct upload *u = s->uploads;

		s->uploads = u->next;
		free_upload(u);
	}
	journal_close(s->log);
	pthread_cond_destroy(&s->released);
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

unsigned store_completed(struct store *s)
{
	unsigned ret;

	pthread_mutex_lock(&s->lock);
	ret = s->completed;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static unsigned count_owned(const struct store *s)
{
	unsigned n = 0;

	for (const struct upload *u = s->uploads; u; u = u->next)
		n += u->owner != NULL;
	return n;
}

unsigned store_under_way(struct store *s)
{
	unsigned ret = 0;

	pthread_mutex_lock(&s->lock);
	for (const struct upload *u = s->uploads; u; u = u->next)
		ret += u->owner && !u->complete;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static struct upload *find(struct store *s, const char *id)
{
	struct upload *u = s->uploads;

	while (u && strcmp(u->id, id) != 0)
		u = u->next;
	return u;
}

/*
 * Files of uploads that nobody sends stay open, so that a connection that breaks costs nothing; but
 * not more of them than there may be senders.
 */
static void close_oldest(struct store *s)
{
	struct upload *oldest = NULL;
	unsigned n = 0;

	for (struct upload *u = s->uploads; u; u = u->next) {
		if (u->owner || !u->open)
			continue;
		n++;
		if (!oldest || u->left_ns < oldest->left_ns)
			oldest = u;
	}
	if (n > s->options.max_senders)
		upload_close(oldest);
}

/* The one who has it is told to go. */
static enum status take_over(struct store *s, struct upload *u, struct frame_refused *why)
{
	const struct timespec until = timed_cond_until(s->clock, EVICTION_S * NS_PER_SECOND);
	int late = 0;

	u->waited_for++;
	while (u->owner && !late) {
		atomic_store(u->owner, true);
		late = pthread_cond_timedwait(&s->released, &s->lock, &until);
	}
	u->waited_for--;
	return u->owner ? store_refuse(why, REFUSED_BUSY, "another connection has this upload")
			: ST_OK;
}

static void forget(struct store *s, struct upload *u)
{
	struct upload **at = &s->uploads;

	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	count(s, u, 0);
	if (u->begun)
		upload_remove(u);
	free_upload(u);
}

static void disown(struct store *s, struct upload *u)
{
	pthread_mutex_lock(&s->lock);
	u->owner = NULL;
	u->left_ns = clock__mono_ns();
	if (!u->complete && !u->position && !u->waited_for)
		forget(s, u);
	close_oldest(s);
	pthread_cond_broadcast(&s->released);
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
		return store_refuse(why, REFUSED_LOST, "it does not know this upload any more");
	if (!has_room(s, FILE_LEAST))
		return store_refuse(why, REFUSED_FULL, "its --max-total is reached");
	u = calloc(1, sizeof(*u));
	if (!u)
		return store_refuse(why, REFUSED_DISK, "out of memory");
	clock_file_name(clock__wall_ns(), time);
	bytes_to_hex(hello->id, sizeof(hello->id), u->id);
	snprintf(u->peer, sizeof(u->peer), "%s", peer->pin);
	snprintf(u->name, sizeof(u->name), "%s", hello->name);
	snprintf(u->file, sizeof(u->file), "%s-%s.rsz", time, u->id);
	u->expected = hello->expected;
	u->disk = s->options.disk;
	u->next = s->uploads;
	s->uploads = u;
	*ret = u;
	return ST_OK;
}

static enum status old_upload(struct store *s, struct upload *u, const struct store_peer *peer,
			      struct frame_refused *why)
{
	if (strcmp(u->peer, peer->pin) != 0)
		return store_refuse(why, REFUSED_NOT_YOURS, "this upload belongs to another key");
	return u->owner ? take_over(s, u, why) : ST_OK;
}

/* From now on it is the session's. */
static enum status own(struct store *s, const struct frame_hello *hello,
		       const struct store_peer *peer, atomic_bool *evicted, struct upload **ret,
		       struct frame_refused *why)
{
	char id[UPLOAD_ID_HEX];
	struct upload *u;
	enum status st;

	bytes_to_hex(hello->id, sizeof(hello->id), id);
	pthread_mutex_lock(&s->lock);
	u = find(s, id);
	if ((!u || !u->owner) && count_owned(s) >= s->options.max_senders)
		st = store_refuse(why, REFUSED_BUSY, "as many senders as it takes are there");
	else
		st = u ? old_upload(s, u, peer, why) : new_upload(s, hello, peer, &u, why);
	if (!st) {
		u->owner = evicted;
		*ret = u;
	}
	close_oldest(s);
	pthread_mutex_unlock(&s->lock);
	return st;
}

/* This takes as long as the disk does: without the lock, as all that only the owner touches. */
static enum status open_again(struct store *s, struct upload *u, struct frame_refused *why)
{
	struct err e = ERR_INIT;

	if (upload_reopen(u, &e))
		return refuse_disk(why, false, &e);
	pthread_mutex_lock(&s->lock);
	count(s, u, size_counted(u->position));
	pthread_mutex_unlock(&s->lock);
	return ST_OK;
}

enum status store_claim(struct store *s, const struct frame_hello *hello,
			const struct store_peer *peer, atomic_bool *evicted, struct upload **ret,
			struct frame_refused *why)
{
	struct upload *u = NULL;
	enum status st = own(s, hello, peer, evicted, &u, why);

	if (st)
		return st;
	if (u->begun && !u->complete && !u->open)
		st = open_again(s, u, why);
	if (!st && hello->acknowledged > (u->complete ? u->done.total : u->durable))
		st = store_refuse(why, REFUSED_LOST, "less of this upload is there than was");
	if (st)
		disown(s, u);
	else
		*ret = u;
	return st;
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
	disown(s, u);
}

/* Before they are written: two senders cannot both have the last room. */
static bool reserve(struct store *s, struct upload *u, size_t len)
{
	const uint64_t bytes = size_counted(u->position + len);
	bool fits;

	pthread_mutex_lock(&s->lock);
	fits = has_room(s, bytes - u->counted);
	if (fits)
		count(s, u, bytes);
	pthread_mutex_unlock(&s->lock);
	return fits;
}

static void give_back(struct store *s, struct upload *u)
{
	pthread_mutex_lock(&s->lock);
	count(s, u, u->begun ? size_counted(u->position) : 0);
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
		return store_refuse(why, REFUSED_OFFSET,
				    "bytes for offset %" PRIu64 ", and it has %" PRIu64, d->offset,
				    u->complete ? u->done.total : u->position);
	if (!range_fits(d->offset, d->len, store_max_size(s)))
		return store_refuse(why, REFUSED_TOO_LARGE, "its --max-size is %" PRIu64 " bytes",
				    store_max_size(s));
	if (!reserve(s, u, d->len))
		return store_refuse(why, REFUSED_FULL, "its --max-total is reached");
	st = begin_upload(s, u, peer, &e);
	if (!st)
		st = upload_append(u, d->at, d->len, &full, &e);
	if (!st)
		return ST_OK;
	give_back(s, u);
	return refuse_disk(why, full, &e);
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
		s->completed++;
		pthread_mutex_unlock(&s->lock);
		st = upload_name(u, u->done.finding, &e);
	}
	return st ? refuse_disk(why, false, &e) : ST_OK;
}
