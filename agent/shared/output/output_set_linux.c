/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/shared/output/output_linux.h"
#include "agent/shared/output/output_set_internal.h"

struct set_place {
	int directory; /* where the files will be */
	int inner;     /* where they are; -1: not made */
};

const char set__separator = '/';

const char *set__last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int set__compare_names(const char *a, const char *b, size_t len)
{
	return strncmp(a, b, len);
}

enum status set__open(struct output_set *s, struct err *e)
{
	_cleanup_free_ char *path = target_directory_of(s->first);

	s->place = malloc(sizeof(*s->place));
	if (!path || !s->place)
		return err_nomem(e);
	s->place->inner = -1;
	s->place->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->place->directory < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	return ST_OK;
}

void set__close(struct set_place *p)
{
	if (p && p->inner >= 0)
		close(p->inner);
	if (p && p->directory >= 0)
		close(p->directory);
	free(p);
}

bool set__room(const struct output_set *s, uint64_t *ret)
{
	return target_room_at(s->place->directory, ret);
}

/* mkdir() follows no link, and what is below 0700 nobody can plant one into. */
enum status set__make(struct output_set *s, struct err *e)
{
	enum status st;

	if (!mkdir(s->partial, 0700))
		return ST_OK;
	if (errno != EEXIST)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", s->partial);
	st = target_check_idle(AT_FDCWD, s->partial, e);
	return st ? err_add(e, st, "%s", s->partial) : ST_NOT_MINE;
}

enum status set__enter(struct output_set *s, struct err *e)
{
	s->place->inner = open(s->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->place->inner < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", s->partial);
	return target_lock(s->place->inner, false, e);
}

void set__leave(struct output_set *s)
{
	if (s->place->inner >= 0)
		rmdir(s->partial); /* fails unless it is empty */
}

static enum status list_set_folder(const struct output_set *s, DIR *d, struct set_names *ret,
				   struct err *e)
{
	struct dirent *entry;
	enum status st = ST_OK;

	while (!st && (errno = 0, (entry = readdir(d))))
		st = set__found(s, entry->d_name, ret, e);
	return st || !errno ? st : err_from_errno(e, ST_OUTPUT, errno, "%s: list", s->partial);
}

enum status set__list(const struct output_set *s, bool made, struct set_names *ret, struct err *e)
{
	const int fd = openat(made ? s->place->inner : s->place->directory, ".",
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	enum status st;

	if (!d) {
		st = err_from_errno(e, ST_OUTPUT, errno, "%s: list", s->partial);
		if (fd >= 0)
			close(fd);
		return st;
	}
	st = list_set_folder(s, d, ret, e);
	closedir(d);
	return st;
}

enum status set__check_old(const struct output_set *s, const char *name, const char *const *inputs,
			   struct err *e)
{
	if (target_is_input(s->place->directory, name, inputs))
		return err_set(e, ST_OUTPUT, "%s: is the input that is being read", name);
	return ST_OK;
}

bool set__is_place(const struct output_set *s, const char *directory)
{
	struct stat a, b;

	return !stat(directory, &a) && !fstat(s->place->directory, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

enum status set__remove(const struct output_set *s, const char *name, struct err *e)
{
	if (unlinkat(s->place->directory, name, 0))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: replace", name);
	return ST_OK;
}

/* libewf makes files that others may read. */
enum status set__sync(const struct output_set *s, const char *name, uint64_t *ret, struct err *e)
{
	_cleanup_close_ int fd = openat(s->place->inner, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat sb;

	if (fd < 0 || fchmod(fd, 0600) || fsync(fd) || fstat(fd, &sb))
		return err_from_errno(e, ST_OUTPUT, errno, "%s/%s: sync", s->partial, name);
	*ret = (uint64_t)sb.st_size;
	return ST_OK;
}

enum status set__publish(const struct output_set *s, const char *name, struct err *e)
{
	const int failed = target_rename_new(s->place->inner, name, s->place->directory, name);

	if (failed == EEXIST)
		return ST_NOT_MINE;
	if (failed)
		return err_from_errno(e, ST_OUTPUT, failed, "%s/%s: rename", s->partial, name);
	return ST_OK;
}

void set__withdraw(const struct output_set *s, const char *name)
{
	target_rename_new(s->place->directory, name, s->place->inner, name);
}

enum status set__finish(struct output_set *s, struct err *e)
{
	return target_sync_directory(s->place->directory, s->first, e);
}
