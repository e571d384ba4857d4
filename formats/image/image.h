/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory images in the formats that analysts' tools read. One file per format, each with one
 * `const struct image_format`, listed in image.c.
 *
 *	create(spec, sink)
 *	encode(piece)             on any thread, in any order; most formats have nothing to do here
 *	put(piece)                on one thread, in rising order of address
 *	finish()
 */
#ifndef RAMSEAL_FORMATS_IMAGE_H
#define RAMSEAL_FORMATS_IMAGE_H

#include "formats/base/io.h"
#include "formats/base/machine.h"
#include "formats/base/page.h"
#include "formats/base/range.h"

/* A piece has at most this many pages and never crosses a multiple of that. */
#define IMAGE_PIECE_PAGES ((size_t)256)
#define IMAGE_PIECE_BYTES (IMAGE_PIECE_PAGES * PAGE_SIZE)

/* Do not compress, in formats that can. */
#define IMAGE_LEVEL_STORE 0
#define IMAGE_LEVEL_MAX   12 /* libdeflate's */

/*
 * struct new_utsname of Linux (include/uapi/linux/utsname.h): system, node, release, version,
 * machine and domain.
 */
#define IMAGE_UTS_TEXTS   6
#define IMAGE_UTS_SIZE    65

/* What a dump says about the kernel. Zero: not known. */
struct image_kernel {
	struct machine_kind machine;
	const void *notes; /* PT_NOTE bytes, or NULL */
	size_t notes_size;
	uint64_t direct_map; /* virtual address at which the kernel maps physical address 0, or 0 */
	/* Where it maps its own image, text and data, in whole pages; 0 bytes: not known. */
	uint64_t image_va;
	uint64_t image_pa;
	uint64_t image_bytes;
	char uts[IMAGE_UTS_TEXTS][IMAGE_UTS_SIZE]; /* NUL-terminated unless it fills the array */
};

/* What must be known before the first page: headers come first. All borrowed until destroy(). */
struct image_spec {
	const struct range_list *ranges; /* tidy: where there is memory, readable or not */
	uint64_t end; /* padded images: the media's size in bytes; 0: the last range's end */

	unsigned threads; /* the number of threads that call encode() */
	bool sha256;      /* hash the media with it too, besides the format's own hashes */
	const char *base; /* for a format with own_files: the beginning of their names */
	/*
	 * For one format only: struct e01_settings, struct image_kernel, struct kdump_settings,
	 * struct dmp_kernel; or NULL.
	 */
	const void *own;
};

struct image_piece {
	uint64_t address;
	size_t pages;
	const uint8_t *data; /* the content of every page in the image, including zeros */
	const struct page_status *status;
	void *code; /* image_format.code_size bytes for encode() to fill and put() to find */
};

/* A hash that the format stores or that was asked for. */
struct image_digest {
	const char *name; /* "md5" */
	uint8_t bytes[32];
	size_t size;
};

struct image_writer;

struct image_format {
	const char *name;    /* what --format calls it */
	const char *summary; /* one line */
	const char *suffix;  /* for default file names, with its dot */

	/* true: address = offset, so that it can hold a file as well as memory. */
	bool padded;
	/*
	 * true: put() gets every page from address 0 to the end, those outside the ranges as
	 * PAGE_HOLE. false: pieces lie within one range, and nothing else is put.
	 */
	bool wants_holes;
	bool own_files;   /* makes its own, at spec->base; create() gets no sink */
	bool compresses;  /* at a level that its own settings have */
	bool keeps_gaps;  /* pages without content are left out, not filled */
	bool rewrites;    /* changes what it has written, if the sink can */
	size_t code_size; /* of image_piece.code */

	/* The sink stays the caller's. */
	enum status (*create)(const struct image_spec *spec, struct sink *out,
			      struct image_writer **ret, struct err *e);
	/* NULL: nothing to do. `worker` < spec->threads tells the threads apart. */
	enum status (*encode)(struct image_writer *w, unsigned worker, struct image_piece *p,
			      struct err *e);
	/* Appends. A format may leave zero pages out, and record unreadable ones in its own way. */
	enum status (*put)(struct image_writer *w, const struct image_piece *p, struct err *e);
	/*
	 * `whole`: everything was put. false: the image ends early, and must be as readable as
	 * possible.
	 */
	enum status (*finish)(struct image_writer *w, bool whole, struct err *e);
	void (*destroy)(struct image_writer *w); /* NULL is fine */
};

/* Every writer begins with this; create() fills it. */
struct image_writer {
	const struct image_format *format;
	const struct image_spec *spec;
	struct sink *out;
	struct image_digest digests[3]; /* after finish() */
	size_t n_digests;
};

/* Ended by NULL. The count lets tables elsewhere assert that they have a row for each. */
#define IMAGE_FORMATS 7
extern const struct image_format *const image_formats[IMAGE_FORMATS + 1];

/* NULL if there is no such format. */
const struct image_format *image_find(const char *name);

/* Where a padded image of that spec ends. */
uint64_t image_end(const struct image_spec *spec);

/* For the formats: `bytes` of the piece to the sink, pages of zeros as holes. */
enum status image__write(struct sink *out, const struct image_piece *p, uint64_t bytes,
			 struct err *e);

#endif
