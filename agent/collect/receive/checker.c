/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/checker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/shared/container/verify.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/timed_cond.h"
#include "formats/base/os.h"

#define STEP ((size_t)256 * 1024)

/* How age files begin (C2SP, age.md: the version line). */
static const char age[] = "age-encryption.org/";

struct checker {
	struct blob blob;
	const struct disk *disk;
	int fd;
	pthread_t thread;
	bool started;

	struct sha256 *hash;
	uint64_t hashed;
	uint8_t *buf; /* STEP bytes */
	struct checked result;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	clockid_t clock; /* that it waits by */
	uint64_t written;
	bool complete; /* nothing is added to `written` any more */
	atomic_bool quit;
	bool over; /* the thread has put down its result */
};

static enum status read_received(struct checker *c, uint64_t off, void *p, size_t len,
				 struct err *e)
{
	uint8_t *at = p;

	while (len) {
		const ssize_t n = c->disk->read(c->fd, at, MIN(len, IO_MAX), off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_from_errno(e, ST_INPUT, errno, "read it back");
		if (!n)
			return err_set(e, ST_INPUT,
				       "reading it back: it is shorter than what was written");
		at += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return ST_OK;
}

static enum status hash_up_to(struct checker *c, uint64_t end, struct err *e)
{
	while (c->hashed < end && !c->quit) {
		const size_t n = (size_t)MIN(end - c->hashed, STEP);
		const enum status st = read_received(c, c->hashed, c->buf, n, e);

		if (st)
			return st;
		sha256_update(c->hash, c->buf, n);
		c->hashed += n;
	}
	return ST_OK;
}

/* What is there is hashed at once; the file is as long as it gets when that is known. */
static enum status grow_reach(struct blob *b, uint64_t end, struct err *e)
{
	struct checker *c = (struct checker *)b;
	enum status st = ST_OK;

	pthread_mutex_lock(&c->lock);
	while (!st && !c->quit) {
		const uint64_t written = c->written;
		const bool complete = c->complete;

		pthread_mutex_unlock(&c->lock);
		st = hash_up_to(c, written, e);
		pthread_mutex_lock(&c->lock);
		if (complete)
			b->size = written;
		if (st || complete || written >= end)
			break;
		while (c->written == written && !c->complete && !c->quit)
			pthread_cond_wait(&c->changed, &c->lock);
	}
	if (!st && c->quit)
		st = err_set(e, ST_INTERRUPTED, "given up");
	pthread_mutex_unlock(&c->lock);
	return st;
}

static enum status grow_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				struct err *e)
{
	struct checker *c = (struct checker *)b;
	enum status st = blob_reach(b, off + len, e);

	*got = 0;
	if (st || off >= b->size)
		return st;
	*got = (size_t)MIN(len, b->size - off);
	return read_received(c, off, p, *got, e);
}

static enum status begins_like_age(struct checker *c, bool *ret, struct err *e)
{
	char first[sizeof(age) - 1];
	size_t got;
	const enum status st = grow_read_at(&c->blob, 0, first, sizeof(first), &got, e);

	*ret = !st && got == sizeof(first) && !memcmp(first, age, sizeof(first));
	return st;
}

static enum finding finding_of_end(enum rsz_end end)
{
	switch (end) {
	case RSZ_END_SEALED:
		return FOUND_SEALED;
	case RSZ_END_UNSEALED:
		return FOUND_UNSEALED;
	case RSZ_END_CUT:
		return FOUND_CUT;
	case RSZ_END_DAMAGED:
		break;
	}
	return FOUND_DAMAGED;
}

static enum status check_container(struct checker *c, struct err *e)
{
	struct rsz_scan_result end = { 0 };
	const enum status st = container_verify(&c->blob, 1, PROGRESS_QUIET, &end, NULL, e);

	/* No container: only hashed. (Or it cannot be read: then that shows again.) */
	if (st == ST_INPUT)
		return ST_OK;
	if (st && st != ST_CORRUPT)
		return st;
	c->result.end = end;
	c->result.finding = finding_of_end(end.end);
	return ST_OK;
}

static enum status check_received(struct checker *c, struct err *e)
{
	bool encrypted;
	enum status st = begins_like_age(c, &encrypted, e);

	if (st)
		return st;
	c->result.finding = encrypted ? FOUND_ENCRYPTED : FOUND_NO_CONTAINER;
	if (!encrypted)
		st = check_container(c, e);
	if (!st)
		st = blob_reach(&c->blob, BLOB_ENDLESS, e);
	return st;
}

static void *checker_thread(void *arg)
{
	struct checker *c = arg;

	sha256_begin(c->hash);
	c->result.st = check_received(c, &c->result.why);
	sha256_end(c->hash, c->result.sha256);
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

enum status checker_create(const char *path, const struct disk *disk, struct checker **ret,
			   struct err *e)
{
	struct checker *c = calloc(1, sizeof(*c));
	enum status st = c ? sha256_create(&c->hash, e) : err_nomem(e);

	if (st) {
		free(c);
		return st;
	}
	c->blob =
		(struct blob){ .read_at = grow_read_at, .reach = grow_reach, .size = BLOB_ENDLESS };
	c->disk = disk;
	pthread_mutex_init(&c->lock, NULL);
	c->clock = timed_cond_init(&c->changed);
	c->buf = malloc(STEP);
	c->fd = os_open(path, O_RDONLY);
	if (!c->buf)
		st = err_nomem(e);
	else if (c->fd < 0)
		st = err_from_errno(e, ST_INPUT, errno, "%s", path);
	else if (pthread_create(&c->thread, NULL, checker_thread, c))
		st = err_set(e, ST_NOMEM, "no thread to check with");
	c->started = !st;
	if (st)
		checker_destroy(c);
	else
		*ret = c;
	return st;
}

void checker_advance(struct checker *c, uint64_t written)
{
	pthread_mutex_lock(&c->lock);
	c->written = written;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void checker_finish(struct checker *c)
{
	pthread_mutex_lock(&c->lock);
	c->complete = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

bool checker_wait(struct checker *c, unsigned ms, struct checked *ret)
{
	const struct timespec until = timed_cond_until(c->clock, ms * (NS_PER_SECOND / 1000));
	bool over;

	pthread_mutex_lock(&c->lock);
	while (!c->over && !pthread_cond_timedwait(&c->changed, &c->lock, &until))
		;
	over = c->over;
	pthread_mutex_unlock(&c->lock);
	if (over)
		*ret = c->result;
	return over;
}

void checker_destroy(struct checker *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	if (c->fd >= 0)
		close(c->fd);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	sha256_destroy(c->hash);
	free(c->buf);
	free(c);
}
