/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of its own for a test, and whole files in and out. */
#ifndef RAMSEAL_TESTS_UNIT_SCRATCH_H
#define RAMSEAL_TESTS_UNIT_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
	char path[64];
	char at[512]; /* what scratch_path() returned last */
};

static inline void scratch_init(struct scratch *s)
{
	snprintf(s->path, sizeof(s->path), "/tmp/ramseal-test-XXXXXX");
	assert_non_null(mkdtemp(s->path));
}

static inline int scratch_remove(const char *path, const struct stat *sb, int kind, struct FTW *w)
{
	(void)sb, (void)kind, (void)w;
	return remove(path);
}

static inline void scratch_deinit(struct scratch *s)
{
	nftw(s->path, scratch_remove, 8, FTW_DEPTH | FTW_PHYS);
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
