/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "agent/log.h"
#include "agent/output_linux.h"

struct output_set {
	char *first;   /* path of the first file */
	char *partial; /* path of the directory; until it is made, where it would be */
	char *base;    /* of the files in it */
	char *stem;    /* of the files: the last component of `base` */
	int directory; /* where the files will be */
	int inner;     /* where they are; -1: not made */
	char **names;  /* of what was committed, in order */
	size_t count;
	uint64_t bytes;
	bool force;
	bool committed;
};

/* "STEM." and an ending of three: E01 … E99, EAA … EZZ, FAA … ZZZ; as libewf counts. */
static bool is_member(const struct output_set *s, const char *name)
{
	const size_t len = strlen(s->stem);
	const char *end = name + len + 1;

	if (strncmp(name, s->stem, len) != 0 || name[len] != '.' || strlen(end) != 3)
		return false;
	if (end[0] == 'E' && strspn(end + 1, "0123456789") == 2)
		return true;
	return end[0] >= 'E' && strspn(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
	while (count)
		free(names[--count]);
	free(names);
}

/* Members of the set in a directory; digits sort before letters, so the order is libewf's. */
static enum status list_members(const struct output_set *s, int directory, char ***ret,
				size_t *ret_count, struct err *e)
{
	const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	char **names = NULL;
	size_t count = 0;
	int failed;

	if (!d && fd >= 0)
		close(fd);
	if (!d)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: list", s->partial);
	while (errno = 0, (entry = readdir(d))) {
		char **more;

		if (!is_member(s, entry->d_name))
			continue;
		more = realloc(names, (count + 1) * sizeof(*names));
		if (more)
			names = more;
		if (!more || !(names[count] = strdup(entry->d_name))) {
			free_names(names, count);
			closedir(d);
			return err_nomem(e);
		}
		count++;
	}
	failed = errno;
	closedir(d);
	if (failed) {
		free_names(names, count);
		return err_from_errno(e, ST_OUTPUT, failed, "%s: list", s->partial);
	}
	if (count)
		qsort(names, count, sizeof(*names), compare_names);
	*ret = names;
	*ret_count = count;
	return ST_OK;
}

/* Where the files are until they are complete. */
static enum status name_partial(struct output_set *s, unsigned n, struct err *e)
{
	free(s->partial);
	free(s->base);
	s->base = NULL;
	s->partial = target_partial_path(s->first, n);
	if (!s->partial || asprintf(&s->base, "%s/%s", s->partial, s->stem) < 0) {
		s->base = NULL;
		return err_nomem(e);
	}
	return ST_OK;
}

/* Splits the path into where and what, and derives all names from that. */
static enum status make_names(struct output_set *s, const char *path, const char *suffix,
			      struct err *e)
{
	const size_t len = strlen(path), ending = strlen(suffix);
	const bool has = len > ending && !strcasecmp(path + len - ending, suffix);
	const int stem_len = (int)(has ? len - ending : len);
	const char *slash = strrchr(path, '/');
	const int before = slash ? (int)(slash + 1 - path) : 0;

	if (stem_len <= before)
		return err_set(e, ST_OUTPUT, "'%s' is not the name of a file", path);
	if (asprintf(&s->first, "%.*s%s", stem_len, path, suffix) < 0)
		s->first = NULL;
	s->stem = strndup(path + before, (size_t)(stem_len - before));
	if (!s->first || !s->stem)
		return err_nomem(e);
	return name_partial(s, 1, e);
}

static enum status check_new(const struct output_set *s, const struct output_options *o,
			     struct err *e)
{
	char **names = NULL;
	size_t count = 0;
	enum status st = list_members(s, s->directory, &names, &count, e);

	for (size_t i = 0; i < count && !st; i++)
		if (target_is_input(s->directory, names[i], o->inputs))
			st = err_set(e, ST_OUTPUT, "%s: is what is being read", names[i]);
	if (!st && count && !s->force)
		st = err_set(e, ST_OUTPUT, "%s exists; --force replaces it", names[0]);
	free_names(names, count);
	return st;
}

/* mkdir() follows no link, and what is below 0700 nobody can plant one into. */
static enum status make_directory(struct output_set *s, struct err *e)
{
	unsigned n = 1;

	while (mkdir(s->partial, 0700)) {
		enum status st;

		if (errno != EEXIST)
			return err_from_errno(e, ST_OUTPUT, errno, "%s", s->partial);
		st = target_check_idle(AT_FDCWD, s->partial, e);
		if (st)
			return err_add(e, st, "%s", s->partial);
		if (n++ == PARTIALS_MAX)
			return err_set(e, ST_OUTPUT,
				       "%s: has %u unfinished outputs; move them away", s->first,
				       PARTIALS_MAX);
		st = name_partial(s, n, e);
		if (st)
			return st;
	}
	if (n > 1)
		target_tell_partials(s->first, s->partial);
	s->inner = open(s->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->inner < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", s->partial);
	return target_lock(s->inner, false, e);
}

static enum status open_set(struct output_set *s, const struct output_options *o, struct err *e)
{
	_cleanup_free_ char *standard = o->path ? NULL : output_default_path(o->suffix);
	_cleanup_free_ char *directory = NULL;
	uint64_t room;
	enum status st;

	if (!o->path && !standard)
		return err_nomem(e);
	if (o->path && !strcmp(o->path, "-"))
		return err_set(e, ST_OUTPUT, "stdout: this format needs files, and seeks in them");
	st = make_names(s, o->path ? o->path : standard, o->suffix, e);
	if (st)
		return st;
	directory = target_directory_of(s->first);
	if (!directory)
		return err_nomem(e);
	s->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->directory < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", directory);
	st = check_new(s, o, e);
	if (!st && !s->force && target_room_at(s->directory, &room))
		st = output_judge_room(room, o->expected, s->first, e);
	return st ? st : make_directory(s, e);
}

enum status output_set_open(const struct output_options *o, struct output_set **ret, struct err *e)
{
	struct output_set *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	s->directory = s->inner = -1;
	s->force = o->force;
	st = open_set(s, o, e);
	if (st) {
		output_set_destroy(s);
		return st;
	}
	*ret = s;
	return ST_OK;
}

void output_set_destroy(struct output_set *s)
{
	if (!s)
		return;
	if (s->inner >= 0) {
		rmdir(s->partial); /* fails unless it is empty */
		close(s->inner);
	}
	if (s->directory >= 0)
		close(s->directory);
	free_names(s->names, s->count);
	free(s->first);
	free(s->partial);
	free(s->base);
	free(s->stem);
	free(s);
}

const char *output_set_base(const struct output_set *s)
{
	return s->base;
}

bool output_set_has(const struct output_set *s, const char *path)
{
	_cleanup_free_ char *directory = target_directory_of(path);
	const char *slash = strrchr(path, '/');
	struct stat a, b;

	return is_member(s, slash ? slash + 1 : path) && directory && !stat(directory, &a) &&
	       !fstat(s->directory, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Everything to the disk, and for the owner alone: libewf makes files that others may read. */
static enum status secure(struct output_set *s, const char *name, struct err *e)
{
	_cleanup_close_ int fd = openat(s->inner, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat sb;

	if (fd < 0 || fchmod(fd, 0600) || fsync(fd) || fstat(fd, &sb))
		return err_from_errno(e, ST_OUTPUT, errno, "%s/%s: sync", s->partial, name);
	s->bytes += (uint64_t)sb.st_size;
	return ST_OK;
}

/* What an earlier, larger set would leave behind this one would be taken for a part of it. */
static enum status remove_old(struct output_set *s, struct err *e)
{
	char **names = NULL;
	size_t count = 0;
	enum status st = list_members(s, s->directory, &names, &count, e);

	for (size_t i = 0; i < count && !st; i++)
		if (unlinkat(s->directory, names[i], 0))
			st = err_from_errno(e, ST_OUTPUT, errno, "%s: replace", names[i]);
	free_names(names, count);
	return st;
}

static enum status publish(struct output_set *s, const char *name, struct err *e)
{
	const int failed = target_rename_new(s->inner, name, s->directory, name);

	if (failed == EEXIST)
		return err_set(e, ST_OUTPUT, "%s appeared meanwhile; ours is complete, in %s", name,
			       s->partial);
	if (failed)
		return err_from_errno(e, ST_OUTPUT, failed, "%s/%s: rename", s->partial, name);
	return ST_OK;
}

enum status output_set_commit(struct output_set *s, struct err *e)
{
	enum status st = list_members(s, s->inner, &s->names, &s->count, e);

	for (size_t i = 0; i < s->count && !st; i++)
		st = secure(s, s->names[i], e);
	if (!st && s->force)
		st = remove_old(s, e);
	for (size_t i = s->count; i-- && !st;)
		st = publish(s, s->names[i], e);
	if (st)
		return st;
	if (fsync(s->directory) && errno != EINVAL)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: sync of its directory", s->first);
	s->committed = true;
	return ST_OK;
}

const char *output_set_where(const struct output_set *s)
{
	return s->committed ? s->first : s->partial;
}

const char *output_set_name(const struct output_set *s)
{
	return s->first;
}

uint64_t output_set_bytes(const struct output_set *s)
{
	return s->bytes;
}

json_t *output_set_files(const struct output_set *s)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < s->count; i++)
		json_array_append_new(list, json_bytes(s->names[i], strlen(s->names[i])));
	return list;
}
