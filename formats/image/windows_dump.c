/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/windows_dump.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

#define MACHINE_AMD64 0x8664
#define MACHINE_ARM64 0xaa64

/* "PAGE" twice: a field that was not set. */
#define NOT_SET       UINT64_C(0x4547415045474150)

#define SUMMARY       0x2000 /* what types 5 and 6 have behind the header */
#define SUMMARY_SIZE  0x38
#define BITMAP        0x2038
#define BITMAP_STEP   ((size_t)64 << 10)

#define PAGE_FRAMES   (PHYS_LIMIT >> PAGE_SHIFT)

const char *windows_dump_type_name(uint32_t type)
{
	return type == WINDOWS_DUMP_FULL          ? "complete"
	       : type == WINDOWS_DUMP_BITMAP_FULL ? "bitmap"
						  : "kernel bitmap";
}

/* rizinorg/rizin f82993a, librz/bin/format/dmp/dmp_specs.h; types 8 to 10: kdmp-parser. */
static const char *other_type(uint32_t type)
{
	switch (type) {
	case 2:
		return "a kernel dump with a list of pages (type 2), as Windows 2000 to 7 wrote it";
	case 3:
		return "the header of a crash dump (type 3), without memory";
	case 4:
		return "a small crash dump (type 4), which has hardly any memory";
	case 8:
	case 9:
	case 10:
		return "a live dump by WinDbg (types 8 to 10)";
	default:
		return NULL;
	}
}

static enum status check_dump_kind(struct windows_dump *d, const uint8_t *h, struct err *e)
{
	const uint32_t machine = get_le32(h + 0x30);

	d->type = get_le32(h + 0xf98);
	if (machine == MACHINE_ARM64)
		return err_set(e, ST_INPUT,
			       "is a Windows crash dump of ARM64, only x86-64 is read");
	if (machine != MACHINE_AMD64)
		return err_set(e, ST_INPUT,
			       "is a Windows crash dump of machine 0x%" PRIx32
			       ", only x86-64 is read",
			       machine);
	if (d->type == WINDOWS_DUMP_FULL || d->type == WINDOWS_DUMP_BITMAP_FULL ||
	    d->type == WINDOWS_DUMP_BITMAP_KERNEL)
		return ST_OK;
	if (other_type(d->type))
		return err_set(e, ST_INPUT, "is %s; only types 1, 5 and 6 are read",
			       other_type(d->type));
	return err_set(e, ST_INPUT,
		       "is a Windows crash dump of type %" PRIu32
		       "; only types 1, 5 and 6 are read",
		       d->type);
}

static enum status add_dump_part(struct windows_dump *d, uint64_t frame, uint64_t pages,
				 uint64_t offset, struct err *e)
{
	const uint64_t first = frame << PAGE_SHIFT;

	if (d->count == WINDOWS_DUMP_PARTS_MAX)
		return err_set(e, ST_CORRUPT, "more than %zu ranges of pages",
			       WINDOWS_DUMP_PARTS_MAX);
	if (!ARRAY_ROOM(d->at, d->count, d->room))
		return err_nomem(e);
	d->at[d->count++] =
		(struct windows_dump_part){ { first, first + (pages << PAGE_SHIFT) - 1 }, offset };
	return ST_OK;
}

/* The runs of the header, into `ram`. Where they are not set, none. */
static enum status parse_runs(struct windows_dump *d, const uint8_t *h, struct err *e)
{
	const uint32_t runs = get_le32(h + 0x88);
	const uint64_t pages = get_le64(h + 0x90);
	uint64_t sum = 0;
	enum status st = ST_OK;

	if (runs == (uint32_t)NOT_SET || pages == NOT_SET)
		return ST_OK;
	if (runs > WINDOWS_DUMP_RUNS_MAX)
		return err_set(e, ST_CORRUPT, "%" PRIu32 " runs, but the header has room for %d",
			       runs, WINDOWS_DUMP_RUNS_MAX);
	for (uint32_t i = 0; i < runs && !st; i++) {
		const uint64_t base = get_le64(h + 0x98 + 16 * (size_t)i);
		const uint64_t count = get_le64(h + 0xa0 + 16 * (size_t)i);

		if (!range_fits(base, count, PAGE_FRAMES))
			return err_set(e, ST_CORRUPT,
				       "run %" PRIu32 " of 0x%" PRIx64 " pages from 0x%" PRIx64
				       " is beyond 2^52 bytes",
				       i, count, base);
		sum += count;
		if (count)
			st = range_list_add(&d->ram, base << PAGE_SHIFT,
					    ((base + count) << PAGE_SHIFT) - 1, e);
	}
	if (!st && sum != pages)
		st = err_set(e, ST_CORRUPT, "%" PRIu64 " pages, but its runs have %" PRIu64, pages,
			     sum);
	if (!st && sum > WINDOWS_DUMP_PAGES_MAX)
		st = err_set(e, ST_CORRUPT, "%" PRIu64 " pages are more than Windows can have",
			     sum);
	return st;
}

static enum status add_runs(struct windows_dump *d, struct err *e)
{
	uint64_t offset = WINDOWS_DUMP_HEADER;
	enum status st = ST_OK;

	if (!d->ram.count)
		return err_set(e, ST_CORRUPT, "no runs of memory");
	for (size_t i = 0; i < d->ram.count && !st; i++) {
		const struct range *r = &d->ram.at[i];

		st = add_dump_part(d, r->first >> PAGE_SHIFT, range_bytes(*r) >> PAGE_SHIFT, offset,
				   e);
		offset += range_bytes(*r);
	}
	return st;
}

/* What types 5 and 6 have behind the header. */
struct summary {
	uint64_t first; /* page's offset */
	uint64_t pages;
	uint64_t bits;
};

static enum status parse_summary(struct blob *b, struct summary *ret, struct err *e)
{
	uint8_t s[SUMMARY_SIZE];
	const enum status st = blob_read(b, SUMMARY, s, sizeof(s), e);

	if (st)
		return st;
	if (memcmp(s, "SDMPDUMP", 8) && memcmp(s, "FDMPDUMP", 8))
		return err_set(e, ST_CORRUPT, "no bitmap after its header");
	*ret = (struct summary){ get_le64(s + 0x20), get_le64(s + 0x28), get_le64(s + 0x30) };
	if (ret->bits > PAGE_FRAMES)
		return err_set(e, ST_CORRUPT, "a bitmap of 0x%" PRIx64 " bits, beyond 2^52 bytes",
			       ret->bits);
	if (ret->pages > ret->bits || ret->pages > WINDOWS_DUMP_PAGES_MAX)
		return err_set(e, ST_CORRUPT, "%" PRIu64 " pages in a bitmap of %" PRIu64 " bits",
			       ret->pages, ret->bits);
	if (ret->first < BITMAP || (ret->bits + 7) / 8 > ret->first - BITMAP)
		return err_set(e, ST_CORRUPT,
			       "its first page is at 0x%" PRIx64 ", inside the bitmap", ret->first);
	if (ret->first > b->size)
		return err_set(e, ST_CORRUPT, "the file ends at 0x%" PRIx64 ", before the pages",
			       b->size);
	return ST_OK;
}

/* A run of bits that is still growing. */
struct growing {
	uint64_t frame, pages, offset;
};

static enum status end_run(struct windows_dump *d, struct growing *g, struct err *e)
{
	const enum status st =
		g->pages ? add_dump_part(d, g->frame, g->pages, g->offset, e) : ST_OK;

	g->offset += g->pages << PAGE_SHIFT;
	g->pages = 0;
	return st;
}

static enum status take_bitmap_bits(struct windows_dump *d, struct growing *g, const uint8_t *map,
				    uint64_t frame, size_t bits, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < bits && !st; i++) {
		/* Most bytes are all ones or zeros. */
		if (i % 8 == 0 && bits - i >= 8 && map[i / 8] == (g->pages ? 0xff : 0)) {
			g->pages += g->pages ? 8 : 0;
			i += 7;
		} else if (map[i / 8] >> i % 8 & 1) {
			if (!g->pages++)
				g->frame = frame + i;
		} else {
			st = end_run(d, g, e);
		}
	}
	return st;
}

static enum status add_bitmap(struct windows_dump *d, struct blob *b, struct err *e)
{
	_cleanup_free_ uint8_t *map = malloc(BITMAP_STEP);
	struct summary s = { 0 };
	struct growing g;
	enum status st = map ? parse_summary(b, &s, e) : err_nomem(e);

	if (st)
		return st;
	g = (struct growing){ .offset = s.first };
	for (uint64_t at = 0; at < s.bits && !st; at += 8 * BITMAP_STEP) {
		const size_t bits = (size_t)MIN(s.bits - at, 8 * BITMAP_STEP);

		st = blob_read(b, BITMAP + at / 8, map, (bits + 7) / 8, e);
		if (!st)
			st = take_bitmap_bits(d, &g, map, at, bits, e);
	}
	if (!st)
		st = end_run(d, &g, e);
	if (!st && g.offset != s.first + (s.pages << PAGE_SHIFT))
		st = err_set(e, ST_CORRUPT, "%" PRIu64 " pages, but its bitmap has %" PRIu64,
			     s.pages, (g.offset - s.first) >> PAGE_SHIFT);
	if (!st && !d->count)
		st = err_set(e, ST_CORRUPT, "an empty bitmap");
	return st;
}

static void take_facts(struct windows_dump *d, const uint8_t *h)
{
	const uint64_t dtb = get_le64(h + 0x10), time = get_le64(h + 0xfa8);

	d->build = get_le32(h + 0xc);
	d->processors = get_le32(h + 0x34);
	d->bug_check = get_le32(h + 0x38);
	d->dtb = dtb < PHYS_LIMIT ? dtb : 0;
	d->system_time = time == NOT_SET ? 0 : time;
}

enum status windows_dump_init(struct windows_dump *d, struct blob *b, struct err *e)
{
	_cleanup_free_ uint8_t *h = calloc(1, WINDOWS_DUMP_HEADER);
	const struct windows_dump_part *last;
	size_t got = 0;
	enum status st;

	*d = (struct windows_dump){ 0 };
	st = h ? b->read_at(b, 0, h, WINDOWS_DUMP_HEADER, &got, e) : err_nomem(e);
	if (st)
		return st;
	if (got < 8 || memcmp(h, WINDOWS_DUMP_SIGNATURE, 8))
		return err_set(e, ST_NOT_MINE, "not a crash dump of 64-bit Windows");
	if (got < WINDOWS_DUMP_HEADER)
		return err_set(e, ST_CORRUPT, "crash dump: the header is cut short");
	st = check_dump_kind(d, h, e);
	if (st)
		return st;
	take_facts(d, h);
	st = parse_runs(d, h, e);
	if (!st)
		st = d->type == WINDOWS_DUMP_FULL ? add_runs(d, e) : add_bitmap(d, b, e);
	if (st)
		return err_add(e, st, "crash dump");
	last = &d->at[d->count - 1];
	d->cut = !range_fits(last->offset, range_bytes(last->range), b->size);
	return ST_OK;
}

void windows_dump_deinit(struct windows_dump *d)
{
	range_list_deinit(&d->ram);
	free(d->at);
	*d = (struct windows_dump){ 0 };
}
