/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/e01.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

#include "formats/base/md5_sha1.h"
#include "formats/base/sha256.h"
#include "formats/image/ewf.h"

#define SECTOR_SIZE  512
#define CHUNK_PAGES  8
#define CHUNK_BYTES  (CHUNK_PAGES * PAGE_SIZE) /* 64 sectors: what every writer uses */
#define PIECE_CHUNKS (IMAGE_PIECE_PAGES / CHUNK_PAGES)

/* libewf counts chunks in an int. */
#define MEDIA_MAX    ((uint64_t)INT32_MAX * CHUNK_BYTES)

/* A chunk as it goes into the file: a zlib stream, or the bytes themselves and their Adler-32. */
struct chunk {
	const uint8_t *at;
	size_t stored;
	size_t bytes; /* of media */
	uint32_t checksum;
	bool compressed;
};

struct code {
	struct chunk chunks[PIECE_CHUNKS];
	uint8_t room[PIECE_CHUNKS][CHUNK_BYTES];
};

struct e01_writer {
	struct image_writer base;
	libewf_handle_t *handle;
	struct libdeflate_compressor **compressors; /* one for each worker */
	uint64_t end;                               /* of the media */
	uint8_t zeros[CHUNK_BYTES];                 /* a chunk of them, */
	uint8_t packed[CHUNK_BYTES];                /* and that compressed */
	struct chunk zero;
	struct md5_sha1 *hash;
	struct sha256 *sha256; /* NULL: not asked for */
};

/* The border to libewf; consumes its error. errno may know what libewf does not tell. */
static enum status err_from_ewf_writer(struct err *e, enum status st, libewf_error_t **error,
				       const char *what)
{
	const int system = errno;
	char trace[1024] = "";
	size_t len;

	if (*error)
		libewf_error_backtrace_sprint(*error, trace, sizeof(trace));
	libewf_error_free(error);
	/* One call a line, the innermost first: that is the one that says why. */
	len = strcspn(trace, "\n");
	len -= len && trace[len - 1] == '.';
	trace[len] = '\0';
	if (system)
		return err_from_errno(e, st, system, "%s: libewf: %s", what, trace);
	return err_set(e, st, "%s: libewf: %s", what, *trace ? trace : "no reason given");
}

static void pack_e01_chunk(struct libdeflate_compressor *c, const uint8_t *data, size_t bytes,
			   uint8_t room[static CHUNK_BYTES], struct chunk *ret)
{
	/* Room for less than the media's bytes: a chunk that does not shrink is stored. */
	const size_t n = c ? libdeflate_zlib_compress(c, data, bytes, room, bytes - 1) : 0;

	*ret = (struct chunk){ .at = data, .stored = bytes, .bytes = bytes };
	if (n) {
		ret->compressed = true;
		ret->at = room;
		ret->stored = n;
		/* libewf wants the end of the zlib stream as it lies in memory. */
		memcpy(&ret->checksum, room + n - sizeof(ret->checksum), sizeof(ret->checksum));
	} else {
		ret->checksum = libdeflate_adler32(1, data, bytes);
	}
}

static bool are_zero_pages(const struct page_status *status, size_t pages)
{
	while (pages && page_reads_as_zeros(status[pages - 1]))
		pages--;
	return !pages;
}

/* The media ends with a whole sector. */
static size_t media_bytes(const struct e01_writer *w, uint64_t address)
{
	const uint64_t left = w->end - address;

	return (size_t)MIN((left + SECTOR_SIZE - 1) & ~(uint64_t)(SECTOR_SIZE - 1), CHUNK_BYTES);
}

static enum status e01_encode(struct image_writer *base, unsigned worker, struct image_piece *p,
			      struct err *e)
{
	struct e01_writer *w = (struct e01_writer *)base;
	struct code *code = p->code;

	for (size_t page = 0, i = 0; page < p->pages; page += CHUNK_PAGES, i++) {
		const size_t bytes = media_bytes(w, p->address + page * PAGE_SIZE);

		if (bytes == CHUNK_BYTES && are_zero_pages(p->status + page, CHUNK_PAGES))
			code->chunks[i] = w->zero;
		else
			pack_e01_chunk(w->compressors[worker], p->data + page * PAGE_SIZE, bytes,
				       code->room[i], &code->chunks[i]);
	}
	return ST_OK;
}

static enum status put_chunk(struct e01_writer *w, const struct chunk *c, struct err *e)
{
	libewf_error_t *error = NULL;
	uint8_t scratch[4]; /* for the checksum of a stored chunk */
	ssize_t n;

	errno = 0;
	n = libewf_handle_write_chunk(w->handle, c->at, c->stored, c->bytes, c->compressed, scratch,
				      c->checksum, !c->compressed, &error);
	if (n > 0)
		return ST_OK;
	/* libewf takes a short write for an error of its own; a full disk is what makes one. */
	if (!errno)
		errno = ENOSPC;
	return err_from_ewf_writer(e, ST_OUTPUT, &error, w->base.spec->base);
}

static bool is_error(struct page_status s)
{
	return page_is_gap(s) && !page_reads_as_zeros(s);
}

/* Runs of pages without content, as the format lists them. */
static enum status put_errors(struct e01_writer *w, const struct image_piece *p, struct err *e)
{
	const uint64_t per_page = PAGE_SIZE / SECTOR_SIZE;
	const uint64_t first = p->address / SECTOR_SIZE;
	libewf_error_t *error = NULL;

	for (size_t i = 0, n; i < p->pages; i += n) {
		const bool bad = is_error(p->status[i]);

		for (n = 1; i + n < p->pages && is_error(p->status[i + n]) == bad;)
			n++;
		errno = 0;
		if (bad && libewf_handle_append_acquiry_error(w->handle, first + i * per_page,
							      n * per_page, &error) != 1)
			return err_from_ewf_writer(e, ST_SYSTEM, &error, "acquisition error");
	}
	return ST_OK;
}

static enum status e01_put(struct image_writer *base, const struct image_piece *p, struct err *e)
{
	struct e01_writer *w = (struct e01_writer *)base;
	const struct code *code = p->code;
	enum status st = put_errors(w, p, e);

	for (size_t page = 0, i = 0; page < p->pages && !st; page += CHUNK_PAGES, i++) {
		const uint8_t *data = p->data + page * PAGE_SIZE;
		const struct chunk *c = &code->chunks[i];

		md5_sha1_update(w->hash, data, c->bytes);
		if (w->sha256)
			sha256_update(w->sha256, data, c->bytes);
		st = put_chunk(w, c, e);
	}
	return st;
}

static struct image_digest *add_digest(struct image_writer *w, const char *name, size_t size)
{
	struct image_digest *d = &w->digests[w->n_digests++];

	d->name = name;
	d->size = size;
	return d;
}

static enum status e01_finish(struct image_writer *base, bool whole, struct err *e)
{
	struct e01_writer *w = (struct e01_writer *)base;
	struct image_digest *md5 = add_digest(base, "md5", MD5_SIZE);
	struct image_digest *sha1 = add_digest(base, "sha1", SHA1_SIZE);
	libewf_error_t *error = NULL;

	(void)whole; /* the media ends with what was put */
	md5_sha1_end(w->hash, md5->bytes, sha1->bytes);
	if (w->sha256)
		sha256_end(w->sha256, add_digest(base, "sha256", SHA256_SIZE)->bytes);
	errno = 0;
	if (libewf_handle_set_md5_hash(w->handle, md5->bytes, MD5_SIZE, &error) != 1 ||
	    libewf_handle_set_sha1_hash(w->handle, sha1->bytes, SHA1_SIZE, &error) != 1 ||
	    libewf_handle_write_finalize(w->handle, &error) < 0 ||
	    libewf_handle_close(w->handle, &error) != 0)
		return err_from_ewf_writer(e, ST_OUTPUT, &error, base->spec->base);
	return ST_OK;
}

static void e01_destroy(struct image_writer *base)
{
	struct e01_writer *w = (struct e01_writer *)base;

	if (!w)
		return;
	libewf_handle_free(&w->handle, NULL);
	for (unsigned i = 0; w->compressors && i < base->spec->threads; i++)
		libdeflate_free_compressor(w->compressors[i]);
	free(w->compressors);
	md5_sha1_destroy(w->hash);
	sha256_destroy(w->sha256);
	free(w);
}

/* The format's own word for the level. */
static int8_t level_word(int level)
{
	if (level == IMAGE_LEVEL_STORE)
		return LIBEWF_COMPRESSION_NONE;
	return level < 9 ? LIBEWF_COMPRESSION_FAST : LIBEWF_COMPRESSION_BEST;
}

/* Empty values are left out. The text must be UTF-8: the format holds UTF-16. */
static enum status set_header_text(struct e01_writer *w, const char *key, const char *value,
				   struct err *e)
{
	libewf_error_t *error = NULL;

	errno = 0;
	if (value && *value &&
	    libewf_handle_set_utf8_header_value(w->handle, (const uint8_t *)key, strlen(key),
						(const uint8_t *)value, strlen(value), &error) != 1)
		return err_from_ewf_writer(e, ST_USAGE, &error, key);
	return ST_OK;
}

static const struct e01_settings *e01_settings_of(const struct e01_writer *w)
{
	static const struct e01_settings none;

	return w->base.spec->own ? w->base.spec->own : &none;
}

static enum status set_texts(struct e01_writer *w, struct err *e)
{
	const struct e01_text *t = &e01_settings_of(w)->text;
	const char *const texts[][2] = {
		{ "case_number", t->case_number },
		{ "evidence_number", t->evidence_number },
		{ "examiner_name", t->examiner },
		{ "notes", t->notes },
		{ "description", t->description },
		{ "acquiry_software_version", "ramseal " RAMSEAL_VERSION },
	};
	enum status st = ST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && !st; i++)
		st = set_header_text(w, texts[i][0], texts[i][1], e);
	return st;
}

/*
 * The media's size stays unset, as when ewfacquirestream writes from a pipe: libewf then corrects
 * it at the end, whatever was written by then.
 */
static enum status set_values(struct e01_writer *w, struct err *e)
{
	const struct e01_settings *s = e01_settings_of(w);
	const uint64_t segment = s->segment_size ? s->segment_size : E01_SEGMENT_DEFAULT;
	libewf_handle_t *h = w->handle;
	libewf_error_t *error = NULL;

	errno = 0;
	if (libewf_handle_set_format(h, LIBEWF_FORMAT_ENCASE6, &error) != 1 ||
	    libewf_handle_set_maximum_segment_size(h, segment, &error) != 1 ||
	    libewf_handle_set_bytes_per_sector(h, SECTOR_SIZE, &error) != 1 ||
	    libewf_handle_set_sectors_per_chunk(h, CHUNK_BYTES / SECTOR_SIZE, &error) != 1 ||
	    libewf_handle_set_error_granularity(h, PAGE_SIZE / SECTOR_SIZE, &error) != 1 ||
	    libewf_handle_set_media_type(h, LIBEWF_MEDIA_TYPE_MEMORY, &error) != 1 ||
	    libewf_handle_set_media_flags(h, LIBEWF_MEDIA_FLAG_PHYSICAL, &error) != 1 ||
	    libewf_handle_set_compression_values(h, level_word(s->level), 0, &error) != 1)
		return err_from_ewf_writer(e, ST_SYSTEM, &error, "libewf");
	return ST_OK;
}

static enum status open_handle(struct e01_writer *w, struct err *e)
{
	libewf_error_t *error = NULL;
	enum status st;

	errno = 0;
	if (libewf_handle_initialize(&w->handle, &error) != 1 ||
	    ewf_open_new(w->handle, w->base.spec->base, &error) != 1)
		return err_from_ewf_writer(e, ST_OUTPUT, &error, w->base.spec->base);
	st = set_values(w, e);
	return st ? st : set_texts(w, e);
}

/* Zeros are compressed even where nothing else is, and once for all. */
static enum status pack_zeros(struct e01_writer *w, struct err *e)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);

	if (!c)
		return err_nomem(e);
	pack_e01_chunk(c, w->zeros, CHUNK_BYTES, w->packed, &w->zero);
	libdeflate_free_compressor(c);
	return ST_OK;
}

static enum status make_compressors(struct e01_writer *w, struct err *e)
{
	const unsigned threads = w->base.spec->threads;
	const int level = e01_settings_of(w)->level;

	w->compressors = calloc(threads, sizeof(*w->compressors));
	if (!w->compressors)
		return err_nomem(e);
	for (unsigned i = 0; i < threads && level != IMAGE_LEVEL_STORE; i++) {
		w->compressors[i] = libdeflate_alloc_compressor(level);
		if (!w->compressors[i])
			return err_nomem(e);
	}
	return pack_zeros(w, e);
}

static enum status e01_fill(struct e01_writer *w, struct err *e)
{
	enum status st = make_compressors(w, e);

	if (!st)
		st = md5_sha1_create(&w->hash, e);
	if (!st && w->base.spec->sha256)
		st = sha256_create(&w->sha256, e);
	if (!st && w->sha256)
		sha256_begin(w->sha256);
	return st ? st : open_handle(w, e);
}

static enum status e01_create(const struct image_spec *spec, struct sink *out,
			      struct image_writer **ret, struct err *e)
{
	struct e01_writer *w;
	enum status st;

	if (image_end(spec) > MEDIA_MAX)
		return err_set(e, ST_INPUT, "ends at 0x%" PRIx64 ", beyond what an E01 can hold",
			       image_end(spec));
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(e);
	w->base = (struct image_writer){ .format = &e01_format, .spec = spec };
	w->end = image_end(spec);
	st = e01_fill(w, e);
	if (st) {
		e01_destroy(&w->base);
		return st;
	}
	*ret = &w->base;
	return ST_OK;
}

const struct image_format e01_format = {
	.name = "e01",
	.summary = "EnCase 6 evidence files: compressed, with MD5 and SHA-1",
	.suffix = ".E01",
	.padded = true,
	.wants_holes = true,
	.own_files = true,
	.compresses = true,
	.code_size = sizeof(struct code),
	.create = e01_create,
	.encode = e01_encode,
	.put = e01_put,
	.finish = e01_finish,
	.destroy = e01_destroy,
};
