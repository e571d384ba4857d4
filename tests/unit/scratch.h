/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of its own for a test, and whole files in and out. */
#ifndef RAMSEAL_TESTS_UNIT_SCRATCH_H
#define RAMSEAL_TESTS_UNIT_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/gen/temporary.h"

#ifdef _WIN32
#include <direct.h>
#include <io.h>

/* Only plain files and folders are made there. */
#define lstat             stat
#define mkdir(path, mode) _mkdir(path)

static inline char *mkdtemp(char *path)
{
	return *_mktemp(path) && _mkdir(path) == 0 ? path : NULL;
}
#endif

struct scratch {
	char path[TEMPORARY_MAX];
	char at[512]; /* what scratch_path() returned last */
};

static inline void scratch_init(struct scratch *s)
{
	snprintf(s->path, sizeof(s->path), "%s/ramseal-test-XXXXXX", temporary_folder());
	assert_non_null(mkdtemp(s->path));
}

static inline void scratch_remove(const char *path)
{
	DIR *d = remove(path) ? opendir(path) : NULL;
	struct dirent *entry;
	char below[1024];

	while (d && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
		    (int)sizeof(below))
			scratch_remove(below);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static inline void scratch_deinit(struct scratch *s)
{
	scratch_remove(s->path);
}

/* DIRECTORY/name, valid until the next call. */
static inline const char *scratch_path(struct scratch *s, const char *name)
{
	snprintf(s->at, sizeof(s->at), "%s/%s", s->path, name);
	return s->at;
}

/* Makes the directories above it too. */
static inline void scratch_write(struct scratch *s, const char *name, const void *p, size_t len)
{
	char *path = strdup(scratch_path(s, name));
	FILE *f;

	for (char *c = path + strlen(s->path) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(path, 0700);
		*c = '/';
	}
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	free(path);
}

/* The content with a NUL behind it, for free(); NULL if there is no such file. */
static inline char *scratch_read(struct scratch *s, const char *name)
{
	FILE *f = fopen(scratch_path(s, name), "rb");
	char *text = calloc(1, 1 << 20);

	if (!f) {
		free(text);
		return NULL;
	}
	(void)!fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	return text;
}

static inline bool scratch_has(struct scratch *s, const char *name)
{
	struct stat sb;

	return lstat(scratch_path(s, name), &sb) == 0;
}

#endif
