/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compressed kdump. What stands before the pages depends on all of them, so it is written where
 * it belongs as soon as there is enough of it; in a pipe as a record that says where that is.
 * Both forms hold the same bytes in the same places.
 *
 * An image that ends early, or whose process dies, is a dump of what was put until then: the
 * header says that it is incomplete, and bits are set behind the descriptors that they stand for.
 */
#include <inttypes.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "formats/base/bytes.h"
#include "formats/image/elf_core.h"
#include "formats/image/kdump.h"

#define BLOCK            PAGE_SIZE
#define UTS_MACHINE      4 /* the fifth text of struct new_utsname */
#define FRAMES_PER_BLOCK ((uint64_t)BLOCK * 8)

/*
 * What is collected before it is written: a block of bits, which stands for 128 MiB of memory,
 * and the descriptors of so many pages. crash sorts records of the flattened form by insertion,
 * and libkdumpfile looks through all of them for each page, so there should not be too many: of 1
 * TiB of memory that compresses to a third these are some 100,000.
 */
#define PAGES_ROOM       ((size_t)4 << 20)
#define DESCRIPTORS_ROOM ((size_t)FRAMES_PER_BLOCK * KDUMP_DESC_SIZE)

/* bitmap_blocks is an int32_t in libkdumpfile: no PC has so many frames. */
#define FRAMES_MAX       ((uint64_t)INT32_MAX / 2 * FRAMES_PER_BLOCK)

/* A frame of each page, stored pages included, one behind the other. */
struct code {
	size_t size[IMAGE_PIECE_PAGES]; /* 0: it is not among them */
	size_t len;
	uint8_t bytes[IMAGE_PIECE_BYTES];
};

/* Bytes for one place of the file, on their way there. */
struct part {
	uint8_t *at;
	size_t len;
	size_t room;
	uint64_t offset; /* of the first of them */
};

struct kdump_writer {
	struct image_writer base;
	bool flattened;
	ZSTD_CCtx **zstd; /* one for each worker */
	uint64_t end;     /* of the file that is written, or of what the records say */

	size_t sub_blocks;
	uint64_t bitmap_blocks; /* of one */
	uint64_t zero_page;     /* offset of the page that all pages of zeros share */
	struct part pages;
	struct part descriptors;
	struct part bits; /* a block of a bitmap, or nothing */
};

static const struct kdump_settings *kdump_settings_of(const struct kdump_writer *w)
{
	static const struct kdump_settings none;

	return w->base.spec->own ? w->base.spec->own : &none;
}

static const struct image_kernel *kdump_kernel_of(const struct kdump_writer *w)
{
	static const struct image_kernel none;
	const struct image_kernel *k = kdump_settings_of(w)->kernel;

	return k ? k : &none;
}

static uint64_t frames_of(const struct kdump_writer *w)
{
	return (image_end(w->base.spec) + PAGE_SIZE - 1) / PAGE_SIZE;
}

static uint64_t bitmap_offset(const struct kdump_writer *w, unsigned which)
{
	return (1 + w->sub_blocks + which * w->bitmap_blocks) * BLOCK;
}

/*
 * Placing bytes
 */

static enum status put_flat_record(struct sink *out, uint64_t offset, uint64_t len, struct err *e)
{
	uint8_t h[KDUMP_FLAT_RECORD_SIZE];

	put_be64(h, offset);
	put_be64(h + 8, len);
	return sink_write(out, h, sizeof(h), e);
}

static enum status begin_flattened(struct sink *out, struct err *e)
{
	uint8_t h[KDUMP_FLAT_HEADER_SIZE] = KDUMP_FLAT_SIGNATURE;

	put_be64(h + KDUMP_FLAT_SIGNATURE_SIZE, KDUMP_FLAT_TYPE);
	put_be64(h + KDUMP_FLAT_SIGNATURE_SIZE + 8, KDUMP_FLAT_VERSION);
	return sink_write(out, h, sizeof(h), e);
}

/* What lies between the file's end and `offset` becomes a hole. */
static enum status place_bytes(struct kdump_writer *w, uint64_t offset, const void *p, size_t len,
			       struct err *e)
{
	struct sink *out = w->base.out;
	enum status st = ST_OK;

	if (w->flattened) {
		st = put_flat_record(out, offset, len, e);
	} else if (offset < w->end) {
		return out->rewrite(out, offset, p, len, e);
	} else if (offset > w->end) {
		st = sink_skip(out, offset - w->end, e);
	}
	if (st)
		return st;
	w->end = MAX(w->end, offset + len);
	return sink_write(out, p, len, e);
}

static enum status part_init(struct part *p, size_t room, struct err *e)
{
	p->at = calloc(1, room);
	p->room = room;
	return p->at ? ST_OK : err_nomem(e);
}

static enum status part_flush(struct kdump_writer *w, struct part *p, struct err *e)
{
	const size_t len = p->len;
	enum status st;

	if (!len)
		return ST_OK;
	st = place_bytes(w, p->offset, p->at, len, e);
	p->offset += len;
	p->len = 0;
	return st;
}

/* Where these bytes will be is part_end() before. */
static enum status part_add(struct kdump_writer *w, struct part *p, const void *bytes, size_t len,
			    struct err *e)
{
	const enum status st = len > p->room - p->len ? part_flush(w, p, e) : ST_OK;

	if (st)
		return st;
	memcpy(p->at + p->len, bytes, len);
	p->len += len;
	return ST_OK;
}

static uint64_t part_end(const struct part *p)
{
	return p->offset + p->len;
}

/*
 * Bitmaps
 */

/* The bit of a descriptor that is only collected would promise what is not there. */
static enum status flush_bits(struct kdump_writer *w, struct err *e)
{
	enum status st = part_flush(w, &w->pages, e);

	if (!st)
		st = part_flush(w, &w->descriptors, e);
	if (!st)
		st = part_flush(w, &w->bits, e);
	memset(w->bits.at, 0, BLOCK);
	return st;
}

/* `which` bitmap; frames rise. Where no bit is set nothing is written: a hole, or no record. */
static enum status set_bit(struct kdump_writer *w, unsigned which, uint64_t frame, struct err *e)
{
	const uint64_t block = bitmap_offset(w, which) + frame / FRAMES_PER_BLOCK * BLOCK;
	struct part *b = &w->bits;

	if (b->len && block != b->offset) {
		const enum status st = flush_bits(w, e);

		if (st)
			return st;
	}
	b->offset = block;
	b->len = BLOCK;
	b->at[frame / 8 % BLOCK] |= (uint8_t)(1u << frame % 8);
	return ST_OK;
}

static enum status put_bitmap_1(struct kdump_writer *w, struct err *e)
{
	const struct range_list *l = w->base.spec->ranges;
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count; i++)
		for (uint64_t f = l->at[i].first >> PAGE_SHIFT;
		     f <= l->at[i].last >> PAGE_SHIFT && !st; f++)
			st = set_bit(w, 0, f, e);
	return st ? st : flush_bits(w, e);
}

/*
 * Headers
 */

/* A kernel that dumps leaves one for each processor, /proc/kcore has one of its own process. */
static uint32_t count_cpus(const struct image_kernel *k)
{
	struct cursor c = cursor_over(k->notes, k->notes_size);
	struct elf_note note;
	uint32_t found = 0;

	while (elf_note_next(&c, &note))
		found += note.type == ELF_NT_PRSTATUS && elf_note_is(&note, "CORE");
	return found;
}

/*
 * libkdumpfile knows the architecture by the machine's name, and believes that only beside a
 * system, a release and a version (uts_looks_sane() in util.c).
 */
static void put_kdump_uts(uint8_t *at, const struct image_kernel *k, bool linux_kernel)
{
	static const char *const known[IMAGE_UTS_TEXTS] = { "Linux",   "",       "unknown",
							    "unknown", "x86_64", "" };

	for (size_t i = 0; i < IMAGE_UTS_TEXTS; i++, at += IMAGE_UTS_SIZE) {
		const bool is_arm64 = i == UTS_MACHINE && k->machine.arch == ARCH_ARM64;
		const char *text = k->uts[i];

		if (!*text && is_arm64)
			text = "aarch64";
		else if (!*text && linux_kernel)
			text = known[i];
		memcpy(at, text, strnlen(text, IMAGE_UTS_SIZE - 1));
	}
}

static enum status put_main_header(struct kdump_writer *w, bool whole, struct err *e)
{
	const struct image_kernel *k = kdump_kernel_of(w);
	const int level = kdump_settings_of(w)->level;
	uint8_t h[BLOCK] = KDUMP_SIGNATURE;
	size_t ignored;

	put_le32(h + KDUMP_SIGNATURE_SIZE, KDUMP_VERSION);
	put_kdump_uts(h + KDUMP_UTS, k,
		      k->notes && elf_note_find(k->notes, k->notes_size, "VMCOREINFO", &ignored));
	/*
	 * No time: a live machine's memory is of no single moment. And where its microseconds are
	 * those of a page size, libkdumpfile takes the header for that of a 32-bit kernel
	 * (try_header_32(), which comes first).
	 */
	put_le32(h + KDUMP_STATUS,
		 (level == IMAGE_LEVEL_STORE ? 0 : KDUMP_ZSTD) | (whole ? 0 : KDUMP_INCOMPLETE));
	put_le32(h + KDUMP_BLOCK_SIZE, BLOCK);
	put_le32(h + KDUMP_SUB_HEADER_BLOCKS, (uint32_t)w->sub_blocks);
	put_le32(h + KDUMP_BITMAP_BLOCKS, (uint32_t)(2 * w->bitmap_blocks));
	put_le32(h + KDUMP_MAX_MAPNR, (uint32_t)MIN(frames_of(w), UINT32_MAX));
	put_le32(h + KDUMP_CPUS, MAX(count_cpus(k), 1)); /* crash warns of 0 */
	return place_bytes(w, 0, h, sizeof(h), e);
}

/* VMCOREINFO is named by itself, and lies within the notes. */
static void fill_sub_header(const struct kdump_writer *w, uint8_t *h)
{
	const struct image_kernel *k = kdump_kernel_of(w);
	const uint64_t notes = BLOCK + KDUMP_SUB_HEADER_SIZE;
	size_t size = 0;
	const uint8_t *info =
		k->notes ? elf_note_find(k->notes, k->notes_size, "VMCOREINFO", &size) : NULL;
	int64_t phys_base;

	if (info) {
		if (vmcoreinfo_decimal(info, size, "NUMBER(phys_base)", &phys_base))
			put_le64(h + KDUMP_SUB_PHYS_BASE, (uint64_t)phys_base);
		put_le64(h + KDUMP_SUB_VMCOREINFO,
			 notes + (size_t)(info - (const uint8_t *)k->notes));
		put_le64(h + KDUMP_SUB_VMCOREINFO + 8, size);
	}
	if (k->notes_size) {
		put_le64(h + KDUMP_SUB_NOTES, notes);
		put_le64(h + KDUMP_SUB_NOTES + 8, k->notes_size);
		memcpy(h + KDUMP_SUB_HEADER_SIZE, k->notes, k->notes_size);
	}
	put_le64(h + KDUMP_SUB_MAX_MAPNR, frames_of(w));
}

static enum status put_sub_header(struct kdump_writer *w, struct err *e)
{
	_cleanup_free_ uint8_t *h = calloc(w->sub_blocks, BLOCK);

	if (!h)
		return err_nomem(e);
	fill_sub_header(w, h);
	return place_bytes(w, BLOCK, h, w->sub_blocks * BLOCK, e);
}

/* Room for a descriptor of every page; those of gaps are not needed. */
static uint64_t pages_offset(const struct kdump_writer *w)
{
	const uint64_t pages = range_list_bytes(w->base.spec->ranges) >> PAGE_SHIFT;

	return w->descriptors.offset + pages * KDUMP_DESC_SIZE;
}

static enum status put_start(struct kdump_writer *w, struct err *e)
{
	static const uint8_t zeros[PAGE_SIZE];
	enum status st = ST_OK;

	w->sub_blocks =
		(KDUMP_SUB_HEADER_SIZE + kdump_kernel_of(w)->notes_size + BLOCK - 1) / BLOCK;
	w->bitmap_blocks = MAX((frames_of(w) + FRAMES_PER_BLOCK - 1) / FRAMES_PER_BLOCK, 1);
	w->descriptors.offset = bitmap_offset(w, 2);
	w->pages.offset = w->zero_page = pages_offset(w);
	if (w->flattened)
		st = begin_flattened(w->base.out, e);
	/*
	 * A stream that breaks off lacks its last record; a second header would stand twice in
	 * it.
	 */
	if (!st)
		st = put_main_header(w, w->flattened, e);
	if (!st)
		st = put_sub_header(w, e);
	if (!st)
		st = put_bitmap_1(w, e);
	/* The first page is there in any case: it ends the file behind the descriptors. */
	if (!st)
		st = part_add(w, &w->pages, zeros, sizeof(zeros), e);
	return st ? st : part_flush(w, &w->pages, e);
}

/*
 * Pages
 */

static enum status pack_kdump_page(struct kdump_writer *w, ZSTD_CCtx *z, const uint8_t *page,
				   uint8_t *to, size_t *ret, struct err *e)
{
	const int level = kdump_settings_of(w)->level;
	/* Room for less than the page: what does not shrink is stored. */
	const size_t n = level == IMAGE_LEVEL_STORE
				 ? 0
				 : ZSTD_compressCCtx(z, to, PAGE_SIZE - 1, page, PAGE_SIZE, level);

	if (n && !ZSTD_isError(n)) {
		*ret = n;
		return ST_OK;
	}
	if (n && ZSTD_getErrorCode(n) != ZSTD_error_dstSize_tooSmall)
		return err_set(e, ST_SYSTEM, "zstd: %s", ZSTD_getErrorName(n));
	memcpy(to, page, PAGE_SIZE);
	*ret = PAGE_SIZE;
	return ST_OK;
}

static bool has_bytes(struct page_status s)
{
	return !page_is_gap(s) && !page_reads_as_zeros(s);
}

static enum status kdump_encode(struct image_writer *base, unsigned worker, struct image_piece *p,
				struct err *e)
{
	struct kdump_writer *w = (struct kdump_writer *)base;
	struct code *code = p->code;
	enum status st = ST_OK;

	code->len = 0;
	for (size_t i = 0; i < p->pages && !st; i++) {
		code->size[i] = 0;
		if (has_bytes(p->status[i]))
			st = pack_kdump_page(w, w->zstd[worker], p->data + i * PAGE_SIZE,
					     code->bytes + code->len, &code->size[i], e);
		code->len += code->size[i];
	}
	return st;
}

static enum status put_descriptor(struct kdump_writer *w, uint64_t frame, uint64_t offset,
				  size_t size, struct err *e)
{
	uint8_t d[KDUMP_DESC_SIZE];
	struct appender a = { d };
	enum status st;

	app_le64(&a, offset);
	app_le32(&a, (uint32_t)size);
	app_le32(&a, size < PAGE_SIZE ? KDUMP_ZSTD : 0);
	app_le64(&a, 0);
	st = part_add(w, &w->descriptors, d, sizeof(d), e);
	return st ? st : set_bit(w, 1, frame, e);
}

static enum status kdump_put(struct image_writer *base, const struct image_piece *p, struct err *e)
{
	struct kdump_writer *w = (struct kdump_writer *)base;
	const struct code *code = p->code;
	const uint8_t *at = code->bytes;
	enum status st = ST_OK;

	for (size_t i = 0; i < p->pages && !st; i++) {
		const uint64_t frame = (p->address >> PAGE_SHIFT) + i;
		uint64_t offset = w->zero_page;

		if (page_is_gap(p->status[i]))
			continue;
		if (code->size[i]) {
			st = part_add(w, &w->pages, at, code->size[i], e);
			offset = part_end(&w->pages) - code->size[i];
			at += code->size[i];
		}
		if (!st)
			st = put_descriptor(w, frame, offset,
					    code->size[i] ? code->size[i] : PAGE_SIZE, e);
	}
	return st;
}

static enum status kdump_finish(struct image_writer *base, bool whole, struct err *e)
{
	struct kdump_writer *w = (struct kdump_writer *)base;
	enum status st = flush_bits(w, e);

	if (!st && !(w->flattened && whole))
		st = put_main_header(w, whole, e);
	if (st || !w->flattened)
		return st;
	return put_flat_record(base->out, KDUMP_FLAT_END, KDUMP_FLAT_END, e);
}

/*
 * Lifetime
 */

static void kdump_destroy(struct image_writer *base)
{
	struct kdump_writer *w = (struct kdump_writer *)base;

	if (!w)
		return;
	for (unsigned i = 0; w->zstd && i < MAX(base->spec->threads, 1); i++)
		ZSTD_freeCCtx(w->zstd[i]);
	free(w->zstd);
	free(w->pages.at);
	free(w->descriptors.at);
	free(w->bits.at);
	free(w);
}

static enum status make_zstd(struct kdump_writer *w, struct err *e)
{
	const unsigned threads = MAX(w->base.spec->threads, 1);

	w->zstd = calloc(threads, sizeof(*w->zstd));
	if (!w->zstd)
		return err_nomem(e);
	for (unsigned i = 0; i < threads; i++) {
		w->zstd[i] = ZSTD_createCCtx();
		if (!w->zstd[i])
			return err_nomem(e);
	}
	return ST_OK;
}

static enum status kdump_fill(struct kdump_writer *w, struct err *e)
{
	enum status st = make_zstd(w, e);

	if (!st)
		st = part_init(&w->pages, PAGES_ROOM, e);
	if (!st)
		st = part_init(&w->descriptors, DESCRIPTORS_ROOM, e);
	if (!st)
		st = part_init(&w->bits, BLOCK, e);
	return st ? st : put_start(w, e);
}

static enum status kdump_create(const struct image_spec *spec, struct sink *out,
				struct image_writer **ret, struct err *e)
{
	struct kdump_writer *w = calloc(1, sizeof(*w));
	enum status st;

	if (!w)
		return err_nomem(e);
	w->base = (struct image_writer){ .format = &kdump_format, .spec = spec, .out = out };
	w->flattened = !out->rewrite;
	if (machine_page_size(&kdump_kernel_of(w)->machine) != PAGE_SIZE)
		st = err_set(e, ST_INPUT,
			     "a kdump of a kernel with pages of %" PRIu32
			     " bytes cannot be written, only of one with 4096; use ELF",
			     kdump_kernel_of(w)->machine.page_size);
	else if (frames_of(w) > FRAMES_MAX)
		st = err_set(e, ST_INPUT, "ends at 0x%" PRIx64 ", beyond what a kdump can hold",
			     image_end(spec));
	else
		st = kdump_fill(w, e);
	if (st) {
		kdump_destroy(&w->base);
		return st;
	}
	*ret = &w->base;
	return ST_OK;
}

const struct image_format kdump_format = {
	.name = "kdump",
	.summary = "compressed kdump, gaps left out: for crash, drgn, libkdumpfile",
	.suffix = ".kdump",
	.compresses = true,
	.keeps_gaps = true,
	.rewrites = true,
	.code_size = sizeof(struct code),
	.create = kdump_create,
	.encode = kdump_encode,
	.put = kdump_put,
	.finish = kdump_finish,
	.destroy = kdump_destroy,
};
