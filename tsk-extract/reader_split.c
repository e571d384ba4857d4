/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A raw image in several files, one after the other: NAME.001, NAME.002 ... (or from .000), or
 * split(1)'s NAME.aa, NAME.ab ...
 */
#include "tsk-extract/reader.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/os.h"

/* 26^2 names of split(1), 999 of the numbered kind. */
#define SEGMENTS_MAX 1000

struct segment {
	struct reader *reader;
	uint64_t first; /* offset of its first byte in the whole */
};

struct split_reader {
	struct reader reader;
	struct segment *at;
	size_t count;
};

static const struct segment *find_split_segment(const struct split_reader *s, uint64_t off)
{
	return &s->at[FIRST_WHERE(i, s->count, s->at[i].first > off) - 1];
}

static uint32_t split_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	const struct split_reader *s = (struct split_reader *)r;

	while (*good < len) {
		const struct segment *seg = find_split_segment(s, off + *good);
		const uint64_t in = off + *good - seg->first;
		const size_t part = (size_t)MIN(len - *good, seg->reader->size - in);
		size_t got = 0;
		const uint32_t error =
			reader_read(seg->reader, in, (uint8_t *)buf + *good, part, &got);

		*good += got;
		if (error)
			return error;
	}
	return 0;
}

static void split_close(struct reader *r)
{
	struct split_reader *s = (struct split_reader *)r;

	for (size_t i = 0; i < s->count; i++)
		reader_close(s->at[i].reader);
	free(s->at);
	free(s);
}

const struct reader_ops reader__split_ops = { .kind = "split raw",
					      .read = split_read,
					      .close = split_close };

static enum status add_split_segment(struct split_reader *s, const char *path, struct err *e)
{
	struct reader *r = NULL;
	struct segment *at;
	const enum status st = reader__open_system(path, &r, e);

	if (st)
		return st;
	if (!r->size) { /* find_split_segment() wants every segment to hold something */
		reader_close(r);
		return ST_OK;
	}
	at = realloc(s->at, (s->count + 1) * sizeof(*at));
	if (!at) {
		reader_close(r);
		return err_nomem(e);
	}
	s->at = at;
	s->at[s->count++] = (struct segment){ .reader = r, .first = s->reader.size };
	s->reader.size += r->size;
	s->reader.sector = MAX(s->reader.sector, r->sector);
	return ST_OK;
}

/* "001" after "000", "ab" after "aa"; false behind the last one. */
static bool next_suffix(char *suffix)
{
	for (size_t i = strlen(suffix); i-- > 0;) {
		const char last = isdigit((unsigned char)suffix[i]) ? '9' : 'z';

		if (suffix[i] != last) {
			suffix[i]++;
			return true;
		}
		suffix[i] = isdigit((unsigned char)suffix[i]) ? '0' : 'a';
	}
	return false;
}

/* Where the suffix of a first segment begins, or NULL if `path` is not named like one. */
static const char *first_suffix(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (!dot || strchr(dot, '/'))
		return NULL;
	dot++;
	return strcmp(dot, "001") == 0 || strcmp(dot, "000") == 0 || strcmp(dot, "aa") == 0 ? dot
											    : NULL;
}

static enum status add_split_segments(struct split_reader *s, const char *first, struct err *e)
{
	_cleanup_free_ char *path = strdup(first);
	char *suffix;

	if (!path)
		return err_nomem(e);
	suffix = path + (first_suffix(first) - first);
	do {
		const enum status st =
			s->count && !os_exists(path) ? ST_END : add_split_segment(s, path, e);

		if (st)
			return st == ST_END ? ST_OK : st;
	} while (s->count < SEGMENTS_MAX && next_suffix(suffix));
	return ST_OK;
}

enum status reader__open_split(const char *const *paths, size_t n, struct reader **ret,
			       struct err *e)
{
	struct split_reader *s;
	enum status st = ST_OK;

	if (n == 1 && !first_suffix(paths[0]))
		return ST_NOT_MINE;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(e);
	s->reader.ops = &reader__split_ops;
	s->reader.sector = 512;
	if (n == 1)
		st = add_split_segments(s, paths[0], e);
	for (size_t i = 0; n > 1 && i < n && !st; i++)
		st = add_split_segment(s, paths[i], e);
	if (!st && !s->count)
		st = err_set(e, ST_INPUT, "%s: is empty", paths[0]);
	if (st) {
		split_close(&s->reader);
		return st;
	}
	*ret = &s->reader;
	return ST_OK;
}
