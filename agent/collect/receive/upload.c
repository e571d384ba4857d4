/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "agent/shared/output/output_target.h"
#include "formats/base/os.h"

/* One sector of any disk: what stands in it is written whole, or not at all. */
#define STATE_MAX 512

static char *with_suffix(const struct upload *u, const char *suffix)
{
	char *ret = NULL;

	return asprintf(&ret, "%s%s", u->path, suffix) < 0 ? NULL : ret;
}

static char *partial_path(const struct upload *u)
{
	return with_suffix(u, PARTIAL_SUFFIX);
}

static char *state_path(const struct upload *u)
{
	return with_suffix(u, ".state");
}

/* The number has always the same width, so that it is overwritten where it stands. */
static void durable_state_text(const struct upload *u, uint64_t durable, char ret[static STATE_MAX])
{
	snprintf(ret, STATE_MAX, "{\"durable\":%20" PRIu64 ",\"id\":\"%s\",\"peer\":\"%s\"}\n",
		 durable, u->id, u->peer);
}

static enum status create_state(const struct upload *u, struct err *e)
{
	_cleanup_free_ char *path = state_path(u);
	char text[STATE_MAX];

	durable_state_text(u, 0, text);
	return path ? own_file_create(path, text, e) : err_nomem(e);
}

static enum status open_state(struct upload *u, struct err *e)
{
	_cleanup_free_ char *path = state_path(u);
	enum status st = path ? own_file_open(path, &u->state, e) : err_nomem(e);

	return st ? err_add(e, st, "%s", path ? path : u->file) : ST_OK;
}

static enum status read_durable(struct upload *u, struct err *e)
{
	char text[STATE_MAX];
	const ssize_t n = os_pread(u->state, text, sizeof(text), 0);
	json_t *state = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	json_t *durable = json_object_get(state, "durable");
	const bool good = json_is_integer(durable) && json_integer_value(durable) >= 0;

	if (good)
		u->durable = (uint64_t)json_integer_value(durable);
	json_decref(state);
	return good ? ST_OK : err_set(e, ST_OUTPUT, "%s.state: is not valid", u->path);
}

static enum status write_durable(struct upload *u, struct err *e)
{
	struct fd_sink out;
	char text[STATE_MAX];
	enum status st;

	durable_state_text(u, u->position, text);
	if (lseek(u->state, 0, SEEK_SET))
		return err_from_errno(e, ST_OUTPUT, errno, "%s.state", u->path);
	fd_sink_init(&out, u->state, u->file);
	st = sink_write(&out.sink, text, strlen(text), e);
	if (!st && u->disk->sync(u->state))
		st = err_from_errno(e, ST_OUTPUT, errno, "%s.state: sync", u->path);
	return st;
}

/* The file is there: from now on it is checked. */
static enum status begin_check(struct upload *u, struct err *e)
{
	_cleanup_free_ char *path = partial_path(u);
	const enum status st = path ? checker_create(path, u->disk, &u->checker, e) : err_nomem(e);

	if (!st)
		checker_advance(u->checker, u->position);
	return st == ST_INPUT ? ST_OUTPUT : st;
}

static enum status create_file(struct upload *u, struct err *e)
{
	_cleanup_free_ char *path = partial_path(u);
	struct target t = { .fd = -1 };
	enum status st = path ? target_create(u->path, false, &t, e) : err_nomem(e);

	if (!st && strcmp(t.partial, path) != 0) {
		st = err_set(e, ST_OUTPUT, "%s: is there already", path);
		target_remove_partial(&t);
	}
	if (!st) {
		u->fd = t.fd;
		t.fd = -1;
	}
	target_deinit(&t);
	return st;
}

enum status upload_begin(struct upload *u, struct err *e)
{
	enum status st;

	u->fd = u->state = -1;
	u->open = true;
	st = create_file(u, e);
	if (!st)
		st = create_state(u, e);
	if (!st)
		st = open_state(u, e);
	if (!st)
		st = begin_check(u, e);
	if (st && u->fd >= 0)
		upload_remove(u);
	return st;
}

/*
 * What lies behind was promised to nobody, and may be anything after a power cut. What the state
 * says may be in the system's cache alone, if its sync failed or never came.
 */
static enum status cut_to_durable(struct upload *u, struct err *e)
{
	const off_t size = lseek(u->fd, 0, SEEK_END);

	if (size < 0 || (uint64_t)size < u->durable)
		return err_set(e, ST_OUTPUT,
			       "%s: has %" PRId64 " bytes, and %" PRIu64 " were durable", u->path,
			       (int64_t)size, u->durable);
	if (u->disk->truncate(u->fd, u->durable) || lseek(u->fd, (off_t)u->durable, SEEK_SET) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: truncate", u->path);
	u->position = u->durable;
	return write_durable(u, e);
}

enum status upload_reopen(struct upload *u, struct err *e)
{
	_cleanup_free_ char *path = partial_path(u);
	enum status st;

	if (!path)
		return err_nomem(e);
	u->fd = u->state = -1;
	u->open = true;
	st = own_file_open(path, &u->fd, e);
	if (st)
		err_add(e, st, "%s", path);
	if (!st)
		st = open_state(u, e);
	if (!st)
		st = read_durable(u, e);
	if (!st)
		st = cut_to_durable(u, e);
	if (!st)
		st = begin_check(u, e);
	if (st)
		upload_close(u);
	return st;
}

void upload_close(struct upload *u)
{
	if (!u->open)
		return;
	checker_destroy(u->checker);
	u->checker = NULL;
	if (u->fd >= 0)
		close(u->fd);
	if (u->state >= 0)
		close(u->state);
	u->fd = u->state = -1;
	u->open = u->ended = false;
}

static bool is_full(int failed)
{
#ifdef EDQUOT
	if (failed == EDQUOT)
		return true;
#endif
	return failed == ENOSPC || failed == EFBIG;
}

/* Nothing of it, as if it had not been tried; else what is there is not known any more. */
static enum status truncate_failed_write(struct upload *u, int failed, bool *full, struct err *e)
{
	*full = is_full(failed);
	if (u->disk->truncate(u->fd, u->position) || lseek(u->fd, (off_t)u->position, SEEK_SET) < 0)
		upload_close(u);
	return err_from_errno(e, ST_OUTPUT, failed, "%s: write", u->path);
}

void upload_end(struct upload *u)
{
	u->ended = true;
	checker_finish(u->checker);
}

/* A checker that has seen an end takes nothing more: who goes on begins with a new one. */
static enum status reopen_ended(struct upload *u, struct err *e)
{
	if (!u->ended)
		return ST_OK;
	upload_close(u);
	return upload_reopen(u, e);
}

enum status upload_append(struct upload *u, const void *p, size_t len, bool *full, struct err *e)
{
	const enum status st = reopen_ended(u, e);
	const uint8_t *at = p;

	*full = false;
	if (st)
		return st;
	for (size_t left = len; left;) {
		const ssize_t n = write(u->fd, at, (unsigned)MIN(left, IO_MAX));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return truncate_failed_write(u, n ? errno : ENOSPC, full, e);
		at += n;
		left -= (size_t)n;
	}
	u->position += len;
	checker_advance(u->checker, u->position);
	return ST_OK;
}

enum status upload_sync(struct upload *u, struct err *e)
{
	enum status st = ST_OK;

	if (u->durable == u->position)
		return ST_OK;
	if (u->disk->sync(u->fd))
		st = err_from_errno(e, ST_OUTPUT, errno, "%s: sync", u->path);
	if (!st)
		st = write_durable(u, e);
	if (st)
		upload_close(u);
	else
		u->durable = u->position;
	return st;
}

void upload_choose_name(const struct upload *u, enum finding v, char ret[static UPLOAD_FILE_SIZE])
{
	const char *dot = strrchr(u->file, '.');
	const int len = dot ? (int)(dot - u->file) : (int)strlen(u->file);
	const char *kind = v == FOUND_ENCRYPTED ? "age" : v == FOUND_NO_CONTAINER ? "data" : "rsz";

	snprintf(ret, UPLOAD_FILE_SIZE, "%.*s.%s", len, u->file, kind);
}

const char *upload_root_text(const uint8_t root[static SHA256_SIZE],
			     char text[static SHA256_HEX_SIZE])
{
	static const uint8_t none[SHA256_SIZE];

	sha256_hex(root, text);
	return memcmp(root, none, sizeof(none)) != 0 ? text : NULL;
}

static void forget_state(const struct upload *u)
{
	_cleanup_free_ char *path = state_path(u);

	if (path)
		(void)!os_remove(path);
}

/* `path` with another last component. */
static char *path_beside(const struct upload *u, const char *file)
{
	const int folder = (int)(strlen(u->path) - strlen(u->file));
	char *ret = NULL;

	return asprintf(&ret, "%.*s%s", folder, u->path, file) < 0 ? NULL : ret;
}

enum status upload_name(struct upload *u, enum finding v, struct err *e)
{
	_cleanup_free_ char *from = partial_path(u);
	_cleanup_free_ char *to = NULL;
	char file[UPLOAD_FILE_SIZE];
	enum status st;

	upload_choose_name(u, v, file);
	to = path_beside(u, file);
	if (!from || !to)
		return err_nomem(e);
	upload_close(u);
	st = target_rename(from, to, e);
	if (!st)
		forget_state(u);
	return st;
}

void upload_remove(struct upload *u)
{
	_cleanup_free_ char *path = partial_path(u);

	upload_close(u);
	forget_state(u);
	if (path)
		(void)!os_remove(path);
}
