/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "agent/collect/receive/own_file.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"

struct journal {
	char *path;
	const struct disk *disk;
	int fd;
	bool inside;           /* the last line has no end */
	bool broken;           /* what is in the file is not known */
	_Atomic uint64_t size; /* bytes that are on the disk */
	pthread_mutex_t lock;
};

static enum status read_old(struct journal *j,
			    enum status (*fn)(void *arg, json_t *line, struct err *e), void *arg,
			    struct err *e)
{
	const int fd = os_open(j->path, O_RDONLY);
	struct file_blob in;
	uint64_t strange = 0;
	bool ends = true;
	enum status st;

	if (fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "open");
	st = file_blob_take(&in, fd, e);
	if (!st)
		st = witness_read(&in.blob, fn, arg, &strange, &ends, e);
	file_blob_deinit(&in);
	if (!st && strange)
		log_warning("log-line-strange", "%s: %" PRIu64 " lines are not valid", j->path,
			    strange);
	j->inside = !ends;
	return st;
}

/* What is there may be in the system's cache alone: nothing is written behind that. */
static enum status go_to_end(struct journal *j, struct err *e)
{
	const off_t size = lseek(j->fd, 0, SEEK_END);

	if (size < 0 || j->disk->sync(j->fd))
		return err_from_errno(e, ST_OUTPUT, errno, "%s", size < 0 ? "seek" : "sync");
	j->size = (uint64_t)size;
	return ST_OK;
}

enum status journal_open(const char *path, const struct disk *disk,
			 enum status (*fn)(void *arg, json_t *line, struct err *e), void *arg,
			 struct journal **ret, struct err *e)
{
	struct journal *j = calloc(1, sizeof(*j));
	enum status st = ST_OK;

	if (!j)
		return err_nomem(e);
	j->fd = -1;
	j->disk = disk;
	pthread_mutex_init(&j->lock, NULL);
	j->path = strdup(path);
	if (!j->path)
		st = err_nomem(e);
	if (!st && !os_exists(path))
		st = own_file_create(path, "", e);
	if (!st)
		st = own_file_open(path, &j->fd, e);
	if (!st)
		st = read_old(j, fn, arg, e);
	if (!st)
		st = go_to_end(j, e);
	if (st) {
		journal_close(j);
		return err_add(e, st, "%s", path);
	}
	*ret = j;
	return ST_OK;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	pthread_mutex_destroy(&j->lock);
	free(j->path);
	free(j);
}

uint64_t journal_size(const struct journal *j)
{
	return j->size;
}

/*
 * Of a line that could not be written, or synced, nothing stays: a later sync would call it written
 * (upload.h), and a reader would believe it.
 */
static void truncate_journal(struct journal *j)
{
	j->broken = j->disk->truncate(j->fd, j->size) || lseek(j->fd, 0, SEEK_END) < 0;
}

static enum status write_line(struct journal *j, const char *text, struct err *e)
{
	const char *const parts[] = { j->inside ? "\n" : "", text, "\n" };
	struct fd_sink out;
	uint64_t len = 0;
	enum status st = ST_OK;

	fd_sink_init(&out, j->fd, j->path);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !st; i++) {
		st = sink_write(&out.sink, parts[i], strlen(parts[i]), e);
		len += strlen(parts[i]);
	}
	if (!st && j->disk->sync(j->fd))
		st = err_from_errno(e, ST_OUTPUT, errno, "%s: sync", j->path);
	if (!st) {
		j->inside = false;
		j->size += len;
	}
	return st;
}

static enum status append_journal_line(struct journal *j, const char *text, struct err *e)
{
	enum status st;

	pthread_mutex_lock(&j->lock);
	if (j->broken)
		st = err_set(e, ST_OUTPUT, "%s: an earlier write failed", j->path);
	else
		st = write_line(j, text, e);
	if (st && !j->broken)
		truncate_journal(j);
	pthread_mutex_unlock(&j->lock);
	return st;
}

enum status journal_write(struct journal *j, const char *event, const struct json_field *fields,
			  struct err *e)
{
	char time[CLOCK_RFC3339_SIZE], *text = NULL;
	json_t *line;
	enum status st;

	clock_rfc3339(clock__wall_ns(), time);
	line = json_fields(JSON_FIELDS(field_text("time", time), field_text("event", event)));
	if (json_add_fields(line, fields))
		text = json_dumps(line, JSON_COMPACT);
	json_decref(line);
	if (!text)
		return err_nomem(e);
	st = append_journal_line(j, text, e);
	free(text);
	return st;
}
