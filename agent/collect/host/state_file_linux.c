/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "formats/base/defs.h"
#include "formats/base/io.h"

/* What is below it is gone when the machine is off (XDG Base Directory Specification, 0.8). */
static const char *runtime_folder(void)
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		return "/run";
	return own && own[0] == '/' ? own : NULL;
}

static bool is_in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Not one that others can put files into. */
static enum status check_state_folder(const char *path, struct err *e)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat sb;
	enum status st = ST_OK;

	if (fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (fstat(fd, &sb))
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	else if (sb.st_uid != geteuid() || (sb.st_mode & 022))
		st = err_set(e, ST_OUTPUT, "%s: others may write to it", path);
	else if (!is_in_memory(fd))
		st = err_set(e, ST_OUTPUT, "%s: is on a disk, where it would leave a trace", path);
	close(fd);
	return st;
}

/* The folder above must be in memory, before anything is made there. */
static enum status make_state_folder(const char *above, const char *path, struct err *e)
{
	const int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum status st = ST_OK;

	if (fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", above);
	if (!is_in_memory(fd))
		st = err_set(e, ST_OUTPUT, "%s: is on a disk, where it would leave a trace", above);
	else if (mkdir(path, 0700) && errno != EEXIST)
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	close(fd);
	return st ? st : check_state_folder(path, e);
}

enum status state_folder(bool make, char **ret, struct err *e)
{
	const char *above = runtime_folder();
	_cleanup_free_ char *path = NULL;
	enum status st = ST_OK;

	*ret = NULL;
	if (!above)
		return err_set(e, ST_OUTPUT, "XDG_RUNTIME_DIR is not set");
	if (asprintf(&path, "%s/ramseal", above) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	if (make)
		st = make_state_folder(above, path, e);
	if (st)
		return st;
	*ret = path;
	path = NULL;
	return ST_OK;
}

bool state_folder_is_memory(void)
{
	return true; /* or there is none */
}

enum status state_full_path(const char *path, char **ret, struct err *e)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	_cleanup_free_ char *folder =
		slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
	_cleanup_free_ char *full = folder ? realpath(folder, NULL) : NULL;

	*ret = NULL;
	if (!full)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return err_set(e, ST_OUTPUT, "%s: is a folder", path);
	if (asprintf(ret, "%s/%s", strcmp(full, "/") == 0 ? "" : full, name) < 0) {
		*ret = NULL;
		return err_nomem(e);
	}
	return ST_OK;
}

bool state_file_is_there(const char *path)
{
	struct stat sb;

	return !lstat(path, &sb);
}

static enum status write_new(const char *path, const char *text, struct err *e)
{
	const size_t len = strlen(text);
	int fd;
	enum status st = ST_OK;

	unlink(path); /* of an earlier process that had our number */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	errno = ENOSPC;
	if (fchmod(fd, 0600) || write(fd, text, len) != (ssize_t)len)
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (close(fd) && !st)
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	return st;
}

enum status state_file_write(const char *path, const char *text, struct err *e)
{
	_cleanup_free_ char *fresh = NULL;
	enum status st;

	if (asprintf(&fresh, "%s.%ld", path, (long)getpid()) < 0) {
		fresh = NULL;
		return err_nomem(e);
	}
	st = write_new(fresh, text, e);
	if (!st && rename(fresh, path))
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (st)
		unlink(fresh);
	return st;
}

static enum status read_state_text(int fd, const char *path, char *text, size_t *ret_len,
				   struct err *e)
{
	struct stat sb;
	ssize_t n;

	if (fstat(fd, &sb))
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	if (!S_ISREG(sb.st_mode) || sb.st_size > (off_t)STATE_FILE_MAX)
		return err_set(e, ST_INPUT, "%s: is not a state file", path);
	if (sb.st_uid != geteuid() && sb.st_uid != 0)
		return err_set(e, ST_INPUT, "%s: belongs to another user", path);
	n = read(fd, text, STATE_FILE_MAX);
	if (n < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	*ret_len = (size_t)n;
	return ST_OK;
}

enum status state_file_read(const char *path, json_t **ret, struct err *e)
{
	_cleanup_free_ char *text = malloc(STATE_FILE_MAX);
	size_t len = 0;
	int fd;
	enum status st;

	*ret = NULL;
	if (!text)
		return err_nomem(e);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	st = read_state_text(fd, path, text, &len, e);
	close(fd);
	return st ? st : state_file__parse(path, text, len, ret, e);
}
