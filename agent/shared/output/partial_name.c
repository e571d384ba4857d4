/* SPDX-License-Identifier: Apache-2.0 */
/* What an unfinished file is called, and what is read back from one; the same on every system. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/shared/output/direct_file.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"

char *target_partial_path(const char *path, unsigned n)
{
	char *partial = NULL;

	if ((n > 1 ? asprintf(&partial, "%s.%u%s", path, n, PARTIAL_SUFFIX)
		   : asprintf(&partial, "%s%s", path, PARTIAL_SUFFIX)) < 0)
		return NULL;
	return partial;
}

char *target_complete_name(const char *path)
{
	const size_t len = strlen(path), suffix = strlen(PARTIAL_SUFFIX);
	_cleanup_free_ char *name = NULL;
	struct err e = ERR_INIT;

	if (len <= suffix || strcmp(path + len - suffix, PARTIAL_SUFFIX) != 0 ||
	    strchr("/\\:", path[len - suffix - 1]))
		return strdup(path);
	name = strdup(path);
	if (!name)
		return NULL;
	name[len - suffix] = '\0';
	if (!target_rename(path, name, &e))
		return take_ptr(name);
	log_warning("name-kept", "%s is complete, but keeps its name: %s", path, e.message);
	return strdup(path);
}

void target_tell_partials(const char *path, const char *partial)
{
	log_warning("unfinished-output",
		    "%s%s exists: an unfinished output. It stays as it is (`ramseal seal` closes a "
		    "container); this one is %s until it is complete",
		    path, PARTIAL_SUFFIX, partial);
}

static enum status read_target_back(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				    struct err *e)
{
	const struct target *t = ((const struct target_blob *)b)->target;
	ssize_t n = 1;

	if (t->direct)
		return direct_file_read(t->direct, off, p, len, got, e);
	for (*got = 0; *got < len && n; *got += (size_t)n) {
		do
			n = os_pread(t->fd, (uint8_t *)p + *got, MIN(len - *got, IO_MAX),
				     off + *got);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return err_from_errno(e, ST_INPUT, errno, "%s: read", t->path);
	}
	return ST_OK;
}

struct blob *target_blob_of(struct target_blob *b, const struct target *t, uint64_t size)
{
	*b = (struct target_blob){ .blob = { .read_at = read_target_back, .size = size },
				   .target = t };
	return &b->blob;
}

enum status target_write(struct target *t, struct sink *sink, const void *p, size_t len,
			 struct err *e)
{
	return t->direct ? direct_file_write(t->direct, p, len, e) : sink_write(sink, p, len, e);
}

enum status target_rewrite(struct target *t, struct sink *sink, uint64_t offset, const void *p,
			   size_t len, uint64_t end, struct err *e)
{
	enum status st;

	if (t->direct)
		return direct_file_rewrite(t->direct, offset, p, len, e);
	st = target_seek(t, offset, e);
	if (!st)
		st = sink_write(sink, p, len, e);
	return st ? st : target_seek(t, end, e);
}

void direct__end(struct target *t)
{
	direct_file_destroy(t->direct);
	free(t->direct_io);
	t->direct = NULL;
	t->direct_io = NULL;
}
