/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EnCase images (E01, split or not) through libewf itself, so that its errors reach us as numbers
 * of sectors, not as libtsk's texts.
 */
#include "tsk-extract/reader.h"

#include <errno.h>
#include <string.h>

#include "formats/image/ewf.h"

struct ewf_reader {
	struct reader reader;
	libewf_handle_t *handle;
	uint32_t sector; /* bytes; what libewf counts in */
};

/* The one place where a libewf error becomes ours; it frees `error`. */
static enum status err_from_ewf_reader(struct err *e, enum status st, libewf_error_t **error,
				       const char *path)
{
	char text[ERR_MESSAGE_MAX] = "";
	char *line;

	if (*error)
		libewf_error_sprint(*error, text, sizeof(text));
	libewf_error_free(error);
	line = strchr(text, '\n');
	if (line)
		*line = '\0';
	return err_set(e, st, "%s: is an E01 that is damaged or cut short (libewf: %s)", path,
		       text[0] ? text : "no reason given");
}

/*
 * Of `len` bytes at `off` that libewf has just read, how many at the front are those of the media.
 * Chunks that are missing or whose checksum is wrong it gives as zeros, without an error; but it
 * keeps a list of their sectors.
 */
static size_t count_good(const struct ewf_reader *w, uint64_t off, size_t len)
{
	uint64_t end = off + len;
	uint32_t n = 0;

	if (libewf_handle_get_number_of_checksum_errors(w->handle, &n, NULL) != 1)
		return len;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t first = 0, count = 0;

		if (libewf_handle_get_checksum_error(w->handle, i, &first, &count, NULL) != 1)
			continue;
		if (first * w->sector < end && (first + count) * w->sector > off)
			end = MAX(first * w->sector, off);
	}
	return (size_t)(end - off);
}

static uint32_t ewf_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	struct ewf_reader *w = (struct ewf_reader *)r;

	while (*good < len) {
		libewf_error_t *error = NULL;
		size_t part;
		const ssize_t n =
			libewf_handle_read_random(w->handle, (uint8_t *)buf + *good, len - *good,
						  (off64_t)(off + *good), &error);

		libewf_error_free(&error);
		if (n < 0)
			return EIO;
		if (n == 0)
			return READ_PAST_END;
		part = count_good(w, off + *good, (size_t)n);
		*good += part;
		if (part < (size_t)n)
			return EIO;
	}
	return 0;
}

static void ewf_close(struct reader *r)
{
	struct ewf_reader *w = (struct ewf_reader *)r;

	if (w->handle) {
		libewf_handle_close(w->handle, NULL);
		libewf_handle_free(&w->handle, NULL);
	}
	free(w);
}

static enum status open_segments(struct ewf_reader *w, const char *path, struct err *e)
{
	libewf_error_t *error = NULL;
	const bool ok = libewf_handle_initialize(&w->handle, &error) == 1 &&
			ewf_open_set(w->handle, path, &error) == 1;

	return ok ? ST_OK : err_from_ewf_reader(e, ST_INPUT, &error, path);
}

static enum status read_geometry(struct ewf_reader *w, const char *path, struct err *e)
{
	libewf_error_t *error = NULL;
	size64_t size = 0;
	size32_t chunk = 0;
	uint32_t sector = 0;

	if (libewf_handle_get_media_size(w->handle, &size, &error) != 1 ||
	    libewf_handle_get_bytes_per_sector(w->handle, &sector, &error) != 1 ||
	    libewf_handle_get_chunk_size(w->handle, &chunk, &error) != 1)
		return err_from_ewf_reader(e, ST_INPUT, &error, path);
	if (libewf_handle_segment_files_corrupted(w->handle, NULL) == 1)
		w->reader.note = "the E01 is damaged or cut short; what it lacks is unreadable";
	w->sector = sector;
	w->reader.unit = chunk;
	if (sector < 512 || (sector & (sector - 1)))
		sector = 512;
	w->reader.size = size;
	w->reader.sector = sector;
	return ST_OK;
}

enum status reader__open_ewf(const char *path, struct reader **ret, struct err *e)
{
	static const struct reader_ops ops = { .kind = "EWF",
					       .read = ewf_read,
					       .close = ewf_close };
	struct ewf_reader *w;
	enum status st;

	if (ewf_check_signature(path) != 1)
		return ST_NOT_MINE;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(e);
	w->reader.ops = &ops;
	st = open_segments(w, path, e);
	if (!st)
		st = read_geometry(w, path, e);
	if (st) {
		ewf_close(&w->reader);
		return st;
	}
	*ret = &w->reader;
	return ST_OK;
}
