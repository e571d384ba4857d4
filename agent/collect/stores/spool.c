/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/spool.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "agent/collect/wire/private_file.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"

struct spool {
	pthread_mutex_t lock; /* guards the offsets and `full` */
	uint8_t *ring;
	size_t size;
	uint64_t begin, resident, end;
	int fd;             /* -1: no file */
	uint64_t file_size; /* a ring, too */
	bool full;          /* it takes no more */
	/* The writer's: how far the file was sent to the disk, left the cache, and was written. */
	uint64_t begun, settled, end_of_file;
};

/* So much of the file, and the same again on its way to the disk, is in the system's cache. */
#define SPOOL_STEP ((uint64_t)4 << 20)

/* A range of the stream that lies in the file, in one part or in two. */
static void for_part_of_file(const struct spool *s, uint64_t from, uint64_t to,
			     void (*act)(int fd, uint64_t from, uint64_t len))
{
	while (from < to) {
		const uint64_t at = from % s->file_size;
		const uint64_t n = MIN(to - from, s->file_size - at);

		act(s->fd, at, n);
		from += n;
	}
}

/*
 * The last step but one has had the time of a step to get to the disk. What went to memory in
 * between is in no file: begin anew behind it.
 */
static void settle_spool_file(struct spool *s, uint64_t written_from, uint64_t end)
{
	if (written_from != s->end_of_file)
		s->begun = s->settled = written_from;
	s->end_of_file = end;
	if (end - s->begun < SPOOL_STEP)
		return;
	for_part_of_file(s, s->begun, end, private_file_begin_leave);
	for_part_of_file(s, s->settled, s->begun, private_file_leave_cache);
	s->settled = s->begun;
	s->begun = end;
}

static enum status open_spool_file(struct spool *s, const char *folder, uint64_t most,
				   struct err *e)
{
	if (!folder)
		return ST_OK;
	s->fd = private_file_nameless(folder);
	if (s->fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: a spool", folder);
	s->file_size = most;
	return ST_OK;
}

enum status spool_create(size_t memory, size_t piece, const char *folder, uint64_t most,
			 struct spool **ret, struct err *e)
{
	struct spool *s = calloc(1, sizeof(*s));
	enum status st = s ? ST_OK : err_nomem(e);

	if (st)
		return st;
	pthread_mutex_init(&s->lock, NULL);
	s->fd = -1;
	s->size = MAX((memory + piece - 1) / piece, (size_t)2) * piece;
	s->ring = malloc(s->size);
	if (!s->ring)
		st = err_set(e, ST_NOMEM, "no memory for a spool of %zu bytes", s->size);
	if (!st)
		st = open_spool_file(s, folder, most, e);
	if (st)
		spool_destroy(s);
	else
		*ret = s;
	return st;
}

void spool_destroy(struct spool *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s->ring);
	free(s);
}

size_t spool_memory(const struct spool *s)
{
	return s->size;
}

uint64_t spool_begin(struct spool *s)
{
	uint64_t ret;

	pthread_mutex_lock(&s->lock);
	ret = s->begin;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

uint64_t spool_end(struct spool *s)
{
	uint64_t ret;

	pthread_mutex_lock(&s->lock);
	ret = s->end;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/*
 * In memory and in the file; a byte goes to memory only if all before it are there. Under the lock.
 */
static uint64_t memory_room(const struct spool *s)
{
	return s->size - (s->resident - s->begin);
}

static uint64_t spool_file_room(const struct spool *s)
{
	return s->full ? 0 : s->file_size - (s->end - s->resident);
}

uint64_t spool_room(struct spool *s)
{
	uint64_t ret;

	pthread_mutex_lock(&s->lock);
	ret = (s->resident == s->end ? memory_room(s) : 0) + spool_file_room(s);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/*
 * Only the writer moves `resident` while nothing is in the file, and only the reader while
 * something is: so what is copied, or written, needs no lock.
 */
static size_t write_memory(struct spool *s, const uint8_t *p, size_t len)
{
	size_t at, n;

	pthread_mutex_lock(&s->lock);
	at = (size_t)(s->resident % s->size);
	n = s->resident < s->end ? 0 : MIN(len, (size_t)MIN(memory_room(s), s->size - at));
	pthread_mutex_unlock(&s->lock);
	if (!n)
		return 0;
	memcpy(s->ring + at, p, n);
	pthread_mutex_lock(&s->lock);
	s->resident += n;
	s->end += n;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void give_up_spool_file(struct spool *s, int error)
{
	log_warning("spool-full",
		    "the spool on disk failed: %s; continuing with the spool in memory",
		    strerror(error));
	pthread_mutex_lock(&s->lock);
	s->full = true;
	pthread_mutex_unlock(&s->lock);
}

static size_t write_spool_file(struct spool *s, const uint8_t *p, size_t len)
{
	uint64_t at, n, from;
	ssize_t done;

	pthread_mutex_lock(&s->lock);
	at = s->file_size ? s->end % s->file_size : 0;
	n = MIN(len, MIN(spool_file_room(s), s->file_size - at));
	pthread_mutex_unlock(&s->lock);
	if (!n)
		return 0;
	do
		done = private_file_put(s->fd, p, (size_t)n, at);
	while (done < 0 && errno == EINTR);
	if (done <= 0) {
		give_up_spool_file(s, done < 0 ? errno : ENOSPC);
		return 0;
	}
	pthread_mutex_lock(&s->lock);
	from = s->end;
	s->end += (uint64_t)done;
	pthread_mutex_unlock(&s->lock);
	settle_spool_file(s, from, from + (uint64_t)done);
	return (size_t)done;
}

size_t spool_write(struct spool *s, const void *p, size_t len)
{
	const uint8_t *from = p;
	size_t done = 0, n;

	while (done < len) {
		n = write_memory(s, from + done, len - done);
		if (!n)
			n = write_spool_file(s, from + done, len - done);
		if (!n)
			break;
		done += n;
	}
	return done;
}

static enum status read_spooled(const struct spool *s, uint8_t *to, size_t len, uint64_t at,
				struct err *e)
{
	while (len) {
		const ssize_t n = os_pread(s->fd, to, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_from_errno(e, ST_OUTPUT, n ? errno : EIO,
					      "the spool on disk cannot be read");
		to += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return ST_OK;
}

enum status spool_fill(struct spool *s, bool *ret_moved, struct err *e)
{
	*ret_moved = false;
	for (;;) {
		uint64_t from, n;
		size_t to;
		enum status st;

		pthread_mutex_lock(&s->lock);
		to = (size_t)(s->resident % s->size);
		from = s->file_size ? s->resident % s->file_size : 0;
		n = MIN(s->end - s->resident, MIN(memory_room(s), s->size - to));
		n = MIN(n, s->file_size - from);
		pthread_mutex_unlock(&s->lock);
		if (!n)
			return ST_OK;
		st = read_spooled(s, s->ring + to, (size_t)n, from, e);
		if (st)
			return st;
		private_file_drop_cache(s->fd, from, n);
		pthread_mutex_lock(&s->lock);
		s->resident += n;
		pthread_mutex_unlock(&s->lock);
		*ret_moved = true;
	}
}

const void *spool_at(struct spool *s, uint64_t at, size_t len, size_t *ret_len)
{
	const size_t in_ring = (size_t)(at % s->size);
	uint64_t resident;

	pthread_mutex_lock(&s->lock);
	resident = s->resident;
	pthread_mutex_unlock(&s->lock);
	*ret_len = (size_t)MIN(MIN(len, s->size - in_ring), resident - at);
	return s->ring + in_ring;
}

void spool_forget(struct spool *s, uint64_t up_to)
{
	pthread_mutex_lock(&s->lock);
	s->begin = MAX(s->begin, up_to);
	pthread_mutex_unlock(&s->lock);
}
