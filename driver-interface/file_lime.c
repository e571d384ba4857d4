/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LiME as a source: formats/image/lime.h. With compress=1 everything that LiME writes, headers and
 * memory, is one zlib stream (504ensicsLabs/LiME 7511bff, src/main.c, write_vaddr(), and
 * src/deflate.c: a window of 2 KiB). Its module ends that by a single write of at most a page
 * (write_flush()), and so the end of such a file may be missing though nothing went wrong.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "driver-interface/file_internal.h"
#include "formats/base/bytes.h"
#include "formats/image/inflated.h"
#include "formats/image/lime.h"

/*
 * What has the header of a zlib stream, and unpacks that far without an error, is one: memory that
 * does so by chance was not seen, and raw:PATH reads that, too.
 */
#define PROBE_SIZE ((size_t)64 << 10)

/* So many records that were passed over are followed. */
#define STRAYS_MAX 256

struct packed_bytes {
	struct extents_bytes bytes;
	struct inflated inflated;
};

static void check_lime(struct file_drv *f, const struct lime *l)
{
	if (l->cut)
		file__lost(f,
			   "%zu record%s shorter than %s: %" PRIu64
			   " bytes are missing at the end, and are unreadable",
			   l->cut, l->cut == 1 ? " is" : "s are",
			   l->cut == 1 ? "its header says" : "their headers say", l->lacked);
	if (l->passed)
		file__lost(
			f,
			"%" PRIu64
			" bytes between records are left out, because their address is not known",
			l->passed);
	switch (l->end) {
	case LIME_WHOLE:
		break;
	case LIME_CUT_RANGE:
		file__note(f, "the file is cut short; what is missing is unreadable");
		break;
	case LIME_CUT_HEADER:
		file__lost(f,
			   "the file ends inside the header of record %zu: that record and any "
			   "after it are lost",
			   l->count);
		break;
	case LIME_ZEROS:
		file__note(f, "%" PRIu64 " bytes of zeros after the last record are left out",
			   l->rest);
		break;
	case LIME_NO_HEADER:
		file__lost(f,
			   "no record begins after record %zu (%s): %" PRIu64
			   " bytes are left out, and that record may be longer than it was",
			   l->count - 1, l->problem.message, l->rest);
		break;
	}
}

static enum status add_lime_range(struct file_drv *f, struct range_list *map,
				  const struct skew_record *r, struct err *e)
{
	const uint64_t len = range_bytes(r->range);
	/* Beyond PHYS_LIMIT nobody reads. */
	const uint64_t left = MIN(len - r->present, PHYS_LIMIT);
	enum status st = file__add_range(f, map, r->range.first, len, r->present, r->offset, e);

	return st ? st
		  : extents_add(&f->extents, r->range.first + r->present, left, EXTENTS_NOTHING, e);
}

/*
 * `damaged`: of a range that is cut its header may be what is damaged, and so it is believed as far
 * as there are bytes. `module`: as skew_judge() has it.
 */
static enum status add_records(struct file_drv *f, struct range_list *map, struct blob *b,
			       bool damaged, bool module, struct err *e)
{
	_cleanup_free_ struct skew_record *r = NULL;
	struct lime l;
	enum status st = lime_init(&l, b, e);

	if (!st) {
		r = calloc(l.count, sizeof(*r));
		st = r ? ST_OK : err_nomem(e);
	}
	for (size_t i = 0; i < l.count && !st; i++) {
		r[i] = (struct skew_record){ l.at[i].range, l.at[i].present, l.at[i].offset };
		if (l.at[i].zeros)
			r[i].present = range_bytes(r[i].range), r[i].offset = EXTENTS_ZEROS;
		if (damaged && r[i].present && r[i].offset + r[i].present == b->size)
			r[i].range.last = r[i].range.first + r[i].present - 1;
	}
	if (!st) {
		if (!module && skew_is_avml(r, l.count))
			file__note_avml(f, l.zeros);
		file__resolve_skew(f, r, l.count, module);
		for (size_t i = 0; i < l.count && !st; i++)
			if (r[i].present || !damaged)
				st = add_lime_range(f, map, &r[i], e);
		check_lime(f, &l);
	}
	lime_deinit(&l);
	f->records = true;
	f->origin = "LiME headers";
	return st;
}

static bool is_end_of_bytes(struct extents_bytes *b, uint64_t off)
{
	uint8_t byte;

	return off && b->read(b, off - 1, &byte, 1).bytes == 1 && !b->read(b, off, &byte, 1).bytes;
}

static bool read_header(struct file_drv *f, uint64_t off, struct range *ret)
{
	uint8_t h[LIME_HEADER_SIZE];

	return f->bytes->read(f->bytes, off, h, sizeof(h)).bytes == sizeof(h) &&
	       lime_is_header(h, ret);
}

/* A file of LiME's that is in the page cache leads on to its own end, which is nothing here. */
static bool is_stray_header(struct file_drv *f, uint64_t addr)
{
	struct range r;
	uint64_t off, at;

	if (!extents_offset(&f->extents, addr, &off) || !read_header(f, off, &r) ||
	    extents_touch(&f->extents, r))
		return false;
	for (unsigned i = 0; i < STRAYS_MAX; i++) {
		if (range_bytes(r) > UINT64_MAX / 2 - off)
			return false;
		off += LIME_HEADER_SIZE + range_bytes(r);
		if (is_end_of_bytes(f->bytes, off))
			return true;
		if (!read_header(f, off, &r))
			return false;
		if (extents_offset(&f->extents, r.first, &at) && at == off + LIME_HEADER_SIZE)
			return true;
	}
	return false;
}

void file__find_stray(struct file_drv *f, uint64_t addr, const uint8_t *buf, size_t len)
{
	const uint8_t *at = buf, *const end = buf + len;

	while (!f->stray && end - at >= 8 &&
	       (at = memchr(at, LIME_MAGIC & 0xff, (size_t)(end - at) - 7))) {
		if (get_le32(at) == LIME_MAGIC && get_le32(at + 4) == LIME_VERSION &&
		    is_stray_header(f, addr + (uint64_t)(at - buf)) &&
		    !atomic_exchange(&f->stray, true)) {
			file__lost(
				f,
				"in the memory at 0x%" PRIx64
				" stands the header of a record that is not in the map: what is "
				"there and behind it may be that record's, because the one around "
				"it is shorter than its header says",
				addr + (uint64_t)(at - buf));
			f->drv.info.lost = f->lost;
		}
		at++;
	}
}

enum status file__add_lime(struct file_drv *f, struct range_list *map, struct err *e)
{
	return add_records(f, map, &f->whole.blob, false, false, e);
}

static struct pread_result lime_packed_read(struct extents_bytes *b, uint64_t off, void *buf,
					    size_t len)
{
	struct blob *plain = &((struct packed_bytes *)b)->inflated.blob;
	struct pread_result r = { .error = DRV_NO_DATA, .exact = true };
	const enum status st = plain->read_at(plain, off, buf, len, &r.bytes, NULL);

	if (st)
		r.error = st == ST_CORRUPT ? DRV_DAMAGED : DRV_FAILED;
	return !st && r.bytes == len ? (struct pread_result){ .bytes = len } : r;
}

static void packed_free(struct extents_bytes *b)
{
	inflated_deinit(&((struct packed_bytes *)b)->inflated);
	free(b);
}

static void check_lime_stream(struct file_drv *f, const struct inflated *i)
{
	const uint64_t rest = f->whole.blob.size - i->packed_end;

	switch (i->end) {
	case INFLATED_WHOLE:
		if (rest)
			file__note(f, "%" PRIu64 " bytes after the zlib stream are left out", rest);
		break;
	case INFLATED_CUT:
		file__lost(f, "its zlib stream is cut short: anything after it is lost, and what "
			      "is there cannot be verified");
		break;
	case INFLATED_DAMAGED:
		file__lost(f,
			   "its zlib stream is damaged at or before byte %" PRIu64
			   " of the file: what follows is lost, and what precedes may be wrong",
			   i->packed_end);
		break;
	case INFLATED_SUM:
		file__lost(f, "its bytes do not match the checksum at the end of the zlib stream: "
			      "some are wrong, and it is not known which");
		break;
	}
}

/* Whether a LiME file begins behind zlib's header; another stream is refused by name. */
static enum status probe_packed_lime(struct blob *b, struct err *e)
{
	_cleanup_free_ uint8_t *buf = malloc(PROBE_SIZE);
	size_t got = 0;
	enum status st = buf ? inflated_probe(b, buf, PROBE_SIZE, &got, e) : err_nomem(e);

	if (st || (got >= LIME_HEADER_SIZE && get_le32(buf) == LIME_MAGIC))
		return st;
	if (got < PROBE_SIZE)
		return ST_NOT_MINE;
	return err_set(e, ST_INPUT,
		       "is a zlib stream, but not of LiME's format=lime; unpack it first (--source "
		       "raw:PATH reads it as memory anyway)");
}

enum status file__add_packed_lime(struct file_drv *f, struct range_list *map, struct err *e)
{
	enum status st = probe_packed_lime(&f->whole.blob, e);
	struct packed_bytes *b = st ? NULL : calloc(1, sizeof(*b));

	if (st)
		return st;
	if (!b)
		return err_nomem(e);
	b->bytes.read = lime_packed_read;
	f->bytes = &b->bytes;
	f->unpacked_free = packed_free;
	st = inflated_init(&b->inflated, &f->whole.blob, INFLATED_SPACING, INFLATED_PLACES, e);
	if (!st)
		st = add_records(f, map, &b->inflated.blob,
				 b->inflated.end == INFLATED_DAMAGED ||
					 b->inflated.end == INFLATED_SUM,
				 true, e);
	if (!st)
		check_lime_stream(f, &b->inflated);
	return st;
}
