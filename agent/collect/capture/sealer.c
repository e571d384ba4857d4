/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/sealer.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "agent/collect/capture/clock_watch.h"
#include "agent/collect/capture/sleep_watch.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/random.h"
#include "formats/base/bytes.h"

/* The log is written when so much of it has come together, or at the end. */
#define LOG_FLUSH ((size_t)16 << 10)
/* Lines beyond this (a flood between two chunks) are dropped, and their number is told. */
#define LOG_ROOM  ((size_t)64 << 10)

const char *const sealer_stream_names[SEALER_STREAM_NAMES] = {
	"manifest", "log", "memory", "fragment", "page tables before", "page tables after",
};

struct sealer {
	struct output *out;
	struct rsz_writer *writer;
	struct rsz_begin begin;
	char id[2 * RSZ_ID_SIZE + 1];
	uint32_t manifest, log; /* streams */
	uint64_t manifest_bytes, log_bytes;
	bool manifest_torn; /* its last line lacks its end */
	struct sleep_watch sleeps;
	struct clock_watch clock;

	pthread_mutex_t writing; /* guards all of the above: two passes may run at once */
	pthread_mutex_t lock;    /* guards the rest */
	char lines[LOG_ROOM];
	size_t n_lines; /* bytes */
	uint64_t lost;  /* lines */
};

static void keep_line(void *arg, const char *line, size_t len)
{
	struct sealer *s = arg;

	pthread_mutex_lock(&s->lock);
	if (len <= sizeof(s->lines) - s->n_lines) {
		memcpy(s->lines + s->n_lines, line, len);
		s->n_lines += len;
	} else {
		s->lost++;
	}
	pthread_mutex_unlock(&s->lock);
}

/*
 * Writes what has come together, without the lock: lines may go on coming meanwhile, and stay
 * behind what was written. Lines leave the buffer only when they are in the container.
 */
static enum status flush_log(struct sealer *s, size_t least, struct err *e)
{
	size_t len;
	enum status st;

	pthread_mutex_lock(&s->lock);
	len = s->n_lines;
	pthread_mutex_unlock(&s->lock);
	if (len <= least)
		return ST_OK;
	/*
	 * Only this function, under `writing`, ever takes bytes away: the first `len` stand still.
	 */
	st = rsz_writer_text(s->writer, s->log, &s->log_bytes, s->lines, len, clock_mono_ns(), e);
	if (st)
		return st;
	pthread_mutex_lock(&s->lock);
	s->n_lines -= len;
	memmove(s->lines, s->lines + len, s->n_lines);
	pthread_mutex_unlock(&s->lock);
	return ST_OK;
}

static enum status make_container_id(struct sealer *s, const char *of, struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 *h = NULL;
	enum status st;

	if (!of)
		return random_bytes(s->begin.id, sizeof(s->begin.id), e);
	st = sha256_create(&h, e);
	if (st)
		return st;
	sha256_begin(h);
	sha256_update(h, of, strlen(of));
	sha256_end(h, digest);
	sha256_destroy(h);
	memcpy(s->begin.id, digest, sizeof(s->begin.id));
	return ST_OK;
}

static enum status begin_seal_file(struct sealer *s, const char *id_of, struct err *e)
{
	enum status st = make_container_id(s, id_of, e);

	if (st)
		return st;
	bytes_to_hex(s->begin.id, RSZ_ID_SIZE, s->id);
	s->begin.wall = clock_wall_ns();
	s->begin.mono = clock_mono_ns();
	sleep_watch_begin(&s->sleeps);
	clock_watch_begin(&s->clock);
	s->begin.text = "ramseal " RAMSEAL_VERSION;
	st = rsz_writer_create(output_sink(s->out), &s->begin, &s->writer, e);
	if (!st)
		st = rsz_writer_stream(s->writer, RSZ_KIND_MANIFEST, "manifest", NULL, &s->manifest,
				       e);
	if (!st)
		st = rsz_writer_stream(s->writer, RSZ_KIND_LOG, "log", NULL, &s->log, e);
	return st;
}

enum status sealer_create(struct output *out, const char *id_of, struct sealer **ret, struct err *e)
{
	struct sealer *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	s->out = out;
	pthread_mutex_init(&s->writing, NULL);
	pthread_mutex_init(&s->lock, NULL);
	st = begin_seal_file(s, id_of, e);
	if (st) {
		sealer_destroy(s);
		return st;
	}
	log_tee(keep_line, s);
	*ret = s;
	return ST_OK;
}

void sealer_destroy(struct sealer *s)
{
	if (!s)
		return;
	log_tee(NULL, NULL);
	rsz_writer_destroy(s->writer);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->writing);
	free(s);
}

const char *sealer_id(const struct sealer *s)
{
	return s->id;
}

uint64_t sealer_begin_wall(const struct sealer *s)
{
	return s->begin.wall;
}

uint64_t sealer_begin_mono(const struct sealer *s)
{
	return s->begin.mono;
}

uint64_t sealer_size(const struct sealer *s)
{
	return rsz_writer_whole(s->writer);
}

double sealer_backlog(const struct sealer *s)
{
	return output_backlog(s->out);
}

/*
 * One record may have been written with the room that is kept for the end, and none after it.
 * Before the next one this is asked, too: of two passes only one has been told.
 */
static enum status check_sealer_room(const struct sealer *s, enum status st, struct err *e)
{
	return st ? st : output_check(s->out, e);
}

enum status sealer_stream(struct sealer *s, enum rsz_kind kind, const char *name, json_t *meta,
			  uint32_t *ret, struct err *e)
{
	_cleanup_free_ char *text = meta ? json_dumps(meta, JSON_COMPACT) : NULL;
	const bool lost = meta && !text;
	enum status st;

	json_decref(meta);
	if (lost)
		return err_nomem(e);
	pthread_mutex_lock(&s->writing);
	st = check_sealer_room(s, ST_OK, e);
	if (!st)
		st = rsz_writer_stream(s->writer, kind, name, text, ret, e);
	pthread_mutex_unlock(&s->writing);
	return st;
}

bool sealer_has_stream(struct sealer *s, const char *name)
{
	bool ret;

	pthread_mutex_lock(&s->writing);
	ret = rsz_writer_has_stream(s->writer, name);
	pthread_mutex_unlock(&s->writing);
	return ret;
}

enum status sealer_put(struct sealer *s, struct rsz_frame *f, struct err *e)
{
	enum status st;

	pthread_mutex_lock(&s->writing);
	sleep_watch_sample(&s->sleeps);
	clock_watch_sample(&s->clock);
	st = check_sealer_room(s, ST_OK, e);
	if (!st)
		st = rsz_writer_put(s->writer, f, e);
	if (!st)
		st = flush_log(s, LOG_FLUSH, e);
	st = check_sealer_room(s, st, e);
	pthread_mutex_unlock(&s->writing);
	return st;
}

/* A line that a full disk has cut short is ended before the next one begins. */
static enum status write_seal_line(struct sealer *s, const char *text, size_t len, struct err *e)
{
	const uint64_t now = clock_mono_ns(), begin = s->manifest_bytes;
	enum status st = ST_OK;

	if (s->manifest_torn)
		st = rsz_writer_text(s->writer, s->manifest, &s->manifest_bytes, "\n", 1, now, e);
	if (!st) {
		s->manifest_torn = false;
		st = rsz_writer_text(s->writer, s->manifest, &s->manifest_bytes, text, len, now, e);
	}
	if (st && s->manifest_bytes != begin)
		s->manifest_torn = true;
	return st;
}

enum status sealer_manifest(struct sealer *s, json_t *doc, struct err *e)
{
	_cleanup_free_ char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	size_t len;
	enum status st;

	json_decref(doc);
	if (!text)
		return err_nomem(e);
	len = strlen(text);
	text[len++] = '\n'; /* in place of the NUL: nobody looks for it any more */
	pthread_mutex_lock(&s->writing);
	st = check_sealer_room(s, ST_OK, e);
	if (!st)
		st = write_seal_line(s, text, len, e);
	pthread_mutex_unlock(&s->writing);
	return st;
}

json_t *sealer_sleeps_json(struct sealer *s)
{
	json_t *ret;

	pthread_mutex_lock(&s->writing);
	sleep_watch_sample(&s->sleeps);
	ret = sleep_watch_json(&s->sleeps);
	pthread_mutex_unlock(&s->writing);
	return ret;
}

json_t *sealer_clock_json(struct sealer *s)
{
	json_t *ret;

	pthread_mutex_lock(&s->writing);
	clock_watch_sample(&s->clock);
	ret = clock_watch_json(&s->clock);
	pthread_mutex_unlock(&s->writing);
	return ret;
}

struct blob *sealer_written(struct sealer *s)
{
	struct blob *ret = output_blob(s->out);

	if (ret)
		ret->size = rsz_writer_whole(s->writer);
	return ret;
}

enum status sealer_recover(struct sealer *s, struct err *e)
{
	const enum status st = sink_cut(output_sink(s->out), rsz_writer_whole(s->writer), e);

	if (!st)
		rsz_writer_resume(s->writer);
	return st;
}

enum status sealer_close(struct sealer *s, char ret_root[static SHA256_HEX_SIZE], struct err *e)
{
	uint8_t root[SHA256_SIZE];
	enum status st;

	st = flush_log(s, 0, e);
	/* Behind that, because there may be no room for this line either. */
	if (!st && s->lost) {
		log_warning("log-lines-lost", "%" PRIu64 " lines of the log were lost", s->lost);
		st = flush_log(s, 0, e);
	}
	if (!st)
		st = rsz_writer_close(s->writer, root, e);
	if (!st)
		sha256_hex(root, ret_root);
	return st;
}
