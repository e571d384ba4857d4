/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/base/bytes.h"
#include "formats/base/os.h"

enum status sink_skip(struct sink *s, uint64_t len, struct err *e)
{
	static const uint8_t zeros[64 * 1024];
	enum status st = ST_OK;

	if (s->skip)
		return s->skip(s, len, e);
	while (len && !st) {
		const size_t n = (size_t)MIN(len, sizeof(zeros));

		st = sink_write(s, zeros, n, e);
		len -= n;
	}
	return st;
}

enum status sink_cut(struct sink *s, uint64_t len, struct err *e)
{
	return s->cut ? s->cut(s, len, e)
		      : err_set(e, ST_OUTPUT, "what was written cannot be taken back");
}

static enum status fd_sink_write(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct fd_sink *f = (struct fd_sink *)s;
	const uint8_t *at = p;

	while (len) {
		const ssize_t n = write(f->fd, at, (unsigned)MIN(len, IO_MAX));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_from_errno(e, ST_OUTPUT, errno, "%s: write", f->name);
		at += n;
		len -= (size_t)n;
	}
	return ST_OK;
}

void fd_sink_init(struct fd_sink *s, int fd, const char *name)
{
	*s = (struct fd_sink){ .sink.write = fd_sink_write, .fd = fd, .name = name };
}

static enum status mem_sink_write(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct mem_sink *m = (struct mem_sink *)s;

	if (!range_fits(m->len, len, m->limit))
		return err_set(e, ST_OUTPUT, "memory: write: limit of %zu bytes reached", m->limit);
	if (len > m->room - m->len) {
		const size_t room = MAX(2 * m->room, m->len + len);
		uint8_t *at = realloc(m->at, room);

		if (!at)
			return err_nomem(e);
		m->at = at;
		m->room = room;
	}
	memcpy(m->at + m->len, p, len);
	m->len += len;
	return ST_OK;
}

void mem_sink_init(struct mem_sink *s, size_t limit)
{
	*s = (struct mem_sink){ .sink.write = mem_sink_write, .limit = limit };
}

void mem_sink_deinit(struct mem_sink *s)
{
	free(s->at);
	s->at = NULL;
	s->len = s->room = 0;
}

enum status blob_read(struct blob *b, uint64_t off, void *p, size_t len, struct err *e)
{
	size_t got = 0;
	const enum status st = b->read_at(b, off, p, len, &got, e);

	if (st)
		return st;
	if (got < len)
		return err_set(e, ST_CORRUPT, "ends at offset %" PRIu64 ", %zu bytes too early",
			       off + got, len - got);
	return ST_OK;
}

static enum status file_blob_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				     struct err *e)
{
	struct file_blob *f = (struct file_blob *)b;

	*got = 0;
	while (*got < len) {
		const ssize_t n =
			os_pread(f->fd, (uint8_t *)p + *got, MIN(len - *got, IO_MAX), off + *got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_from_errno(e, ST_INPUT, errno, "read at offset %" PRIu64,
					      off + *got);
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return ST_OK;
}

enum status input_is_no_pipe(const char *path, struct err *e)
{
	if (!os_is_pipe(path))
		return ST_OK;
	return err_set(e, ST_INPUT, "%s: is a pipe, not a file or a device", path);
}

enum status file_blob_take(struct file_blob *b, int fd, struct err *e)
{
	struct stat sb = { 0 };
	off_t end;

	*b = (struct file_blob){ .blob.read_at = file_blob_read_at, .fd = fd };
	if (fstat(fd, &sb) == 0 && S_ISDIR(sb.st_mode))
		return err_from_errno(e, ST_INPUT, EISDIR, "open");
	/* Seeking to the end gives the size of block devices too, which fstat() reports as 0. */
	end = lseek(fd, 0, SEEK_END);
	if (end < 0)
		return err_from_errno(e, ST_INPUT, errno, "has no size");
	b->blob.size = (uint64_t)end;
	b->blob.device = S_ISBLK(sb.st_mode);
	return ST_OK;
}

enum status file_blob_open(struct file_blob *b, const char *path, struct err *e)
{
	enum status st = input_is_no_pipe(path, e);
	int fd;

	*b = (struct file_blob){ .fd = -1 };
	if (st)
		return st;
	fd = os_open(path, O_RDONLY);
	if (fd < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	st = file_blob_take(b, fd, e);
	if (st) {
		file_blob_deinit(b);
		return err_add(e, st, "%s", path);
	}
	return ST_OK;
}

void file_blob_deinit(struct file_blob *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}

static enum status load_blob(struct blob *b, size_t max, char **ret, struct err *e)
{
	enum status st;
	char *text;

	if (b->size > max)
		return err_set(e, ST_INPUT, "is too large for such a file");
	text = malloc((size_t)b->size + 1);
	if (!text)
		return err_nomem(e);
	st = blob_read(b, 0, text, (size_t)b->size, e);
	if (st) {
		free(text);
		return st == ST_CORRUPT ? ST_INPUT : st;
	}
	text[b->size] = '\0';
	*ret = text;
	return ST_OK;
}

enum status file_load(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e)
{
	struct file_blob file;
	enum status st = file_blob_open(&file, path, e);

	if (st)
		return st;
	st = load_blob(&file.blob, max, ret, e);
	*ret_len = (size_t)file.blob.size;
	file_blob_deinit(&file);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

static enum status mem_blob_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				    struct err *e)
{
	const struct mem_blob *m = (const struct mem_blob *)b;

	*got = off < b->size ? (size_t)MIN(len, b->size - off) : 0;
	if (*got)
		memcpy(p, m->at + off, *got);
	return ST_OK;
}

void mem_blob_init(struct mem_blob *b, const void *p, size_t len)
{
	*b = (struct mem_blob){ .blob = { .read_at = mem_blob_read_at, .size = len }, .at = p };
}
