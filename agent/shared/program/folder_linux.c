/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

bool folder_is(const char *path)
{
	struct stat s;

	return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* Not every file system tells it with the name. */
static enum folder_kind folder_entry_kind(DIR *d, const char *name)
{
	struct stat s;

	if (fstatat(dirfd(d), name, &s, AT_SYMLINK_NOFOLLOW))
		return FOLDER_OTHER;
	if (S_ISDIR(s.st_mode))
		return FOLDER_FOLDER;
	return S_ISREG(s.st_mode) ? FOLDER_FILE : FOLDER_OTHER;
}

enum status folder_list(const char *path, folder_fn *fn, void *arg, struct err *e)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	enum status st = ST_OK;

	if (!d)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	while (!st && (errno = 0, (entry = readdir(d)))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			st = fn(arg, name, folder_entry_kind(d, name), e);
	}
	if (!st && errno)
		st = err_from_errno(e, ST_INPUT, errno, "%s", path);
	closedir(d);
	return st;
}
