/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image as a source: raw, ELF core, LiME, AVML, or a crash dump of Windows or Linux, told
 * apart by content; as "raw" it is raw, and nobody looks. What is none of these is refused if it
 * is known to be something else (formats/image/foreign.h).
 *
 * A raw file is the range 0..size-1, if nobody says otherwise (file_map.c). Pages are whole or not
 * there: where a range of the file begins or ends inside a page and no other has the rest, that
 * page is unreadable, the map's faults count it, and the note says so. To fill it up would be to
 * invent memory.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "driver-interface/file_internal.h"
#include "formats/image/foreign.h"

static void file_drv_close(struct drv *d)
{
	struct file_drv *f = (struct file_drv *)d;

	if (f->unpacked_free)
		f->unpacked_free(f->bytes);
	file_blob_deinit(&f->file);
	elf_core_deinit(&f->core);
	extents_deinit(&f->extents);
	drv__deinit(d);
	free(f);
}

void file__note(struct file_drv *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	drv__add_clause(f->note, sizeof(f->note), fmt, ap);
	va_end(ap);
}

void file__lost(struct file_drv *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	drv__add_clause(f->lost, sizeof(f->lost), fmt, ap);
	va_end(ap);
}

enum status file__add_range(struct file_drv *f, struct range_list *map, uint64_t first,
			    uint64_t len, uint64_t present, uint64_t offset, struct err *e)
{
	const uint64_t last = first + MIN(len - 1, UINT64_MAX - first);
	enum status st = extents_add(&f->extents, first, present, offset, e);

	return st ? st : range_list_add(map, first, last, e);
}

void file__resolve_skew(struct file_drv *f, struct skew_record *r, size_t count, bool module)
{
	struct skew s = skew_judge(r, count, module, f->bytes);

	if (!s.asked)
		return;
	if (f->drv.ops != &file_ops) {
		s.pages = f->drv.ops == &lime_pages_ops;
		s.sure = true;
	}
	if (s.pages)
		skew_move(r, count);
	if (!s.sure)
		file__lost(f,
			   "records begin inside a page, and it is uncertain whether they hold the "
			   "bytes of the addresses in their headers (--source lime-bytes:PATH) or "
			   "the whole pages around them (lime-pages:PATH, as LiME's module writes "
			   "them): they are taken for %s",
			   s.pages ? "whole pages" : "the bytes of their addresses");
	else if (s.pages)
		file__note(f, "records begin inside a page but hold whole pages from there on, as "
			      "LiME's module writes them");
}

/*
 * A segment with -1 is not physical memory. If there are several and all say 0, nobody filled
 * p_paddr in: the core of a process, or /proc/kcore of a kernel before 4.11.
 */
static bool has_physical(const struct elf_core *c)
{
	for (size_t i = 0; i < c->n_loads; i++)
		if (c->loads[i].paddr != ELF_PADDR_NONE && (c->loads[i].paddr || c->n_loads == 1))
			return true;
	return false;
}

/* Bytes of the segment that the file has. */
static uint64_t present_bytes(const struct file_drv *f, const struct elf_segment *s)
{
	const uint64_t size = f->whole.blob.size;

	return s->offset > size ? 0 : MIN(s->filesz, size - s->offset);
}

/* From `skip` on. What the file should have of it and lacks goes to `cut`: another may have it. */
static enum status add_segment(struct file_drv *f, struct range_list *map,
			       const struct elf_segment *s, uint64_t skip, struct range_list *cut,
			       struct err *e)
{
	const uint64_t present = present_bytes(f, s), from = s->paddr + skip;
	const uint64_t lacks = MAX(present, skip);
	const uint64_t last = s->paddr + MIN(s->filesz - 1, UINT64_MAX - s->paddr);
	enum status st =
		file__add_range(f, map, from, s->memsz - skip, present - MIN(present, skip),
				extents_claimed(s->offset + skip), e);

	if (!st && lacks < s->filesz && lacks <= last - s->paddr)
		st = range_list_add(cut, s->paddr + lacks, last, e);
	return st;
}

/* Unreadable, unless it is in the file at another place. */
static enum status add_cut(struct file_drv *f, struct range_list *cut, struct err *e)
{
	_cleanup_ranges_ struct range_list known = { 0 }, rest = { 0 };
	enum status st = ST_OK;

	for (size_t i = 0; i < f->extents.count && !st; i++)
		st = range_list_add(&known, f->extents.at[i].range.first,
				    f->extents.at[i].range.last, e);
	range_list_tidy(&known, NULL);
	range_list_tidy(cut, NULL);
	if (!st)
		st = range_list_subtract(cut, &known, &rest, e);
	for (size_t i = 0; i < rest.count && !st; i++)
		st = extents_add(&f->extents, rest.at[i].first, range_bytes(rest.at[i]),
				 EXTENTS_NOTHING, e);
	return st;
}

/*
 * The kernel's image of ARM64 is in a file twice, and its own mapping may begin with zeros: in
 * /proc/kcore, of which the file may be a copy. So of that only what the linear map's segment lacks
 * is read.
 */
static enum status add_image_again(struct file_drv *f, struct range_list *map,
				   const struct elf_segment *s, const struct elf_segment *linear,
				   struct range_list *cut, struct err *e)
{
	const uint64_t before = s->paddr - linear->paddr, present = present_bytes(f, linear);
	const uint64_t skip = present > before ? present - before : 0;

	if (skip >= s->memsz) {
		file__note(f, "the kernel's image is in the file twice; the linear map's copy is "
			      "read");
		return ST_OK;
	}
	file__note(f, "the linear map is cut short, so some of the kernel's image is read from its "
		      "own mapping; if the file is a copy of /proc/kcore, that may begin with "
		      "zeros that are not memory's");
	return add_segment(f, map, s, skip, cut, e);
}

static enum status add_elf(struct file_drv *f, struct range_list *map, struct err *e)
{
	_cleanup_ranges_ struct range_list cut = { 0 };
	enum status st = elf_core_init(&f->core, &f->whole.blob, e);

	if (st)
		return st;
	if (!has_physical(&f->core))
		return err_set(e, ST_INPUT, "is a core without physical addresses");
	for (size_t i = 0; i < f->core.n_loads && !st; i++) {
		const struct elf_segment *s = &f->core.loads[i];
		const struct elf_segment *linear = drv__linear_view(&f->core, s);

		if (linear)
			st = add_image_again(f, map, s, linear, &cut, e);
		else if (s->paddr != ELF_PADDR_NONE)
			st = add_segment(f, map, s, 0, &cut, e);
	}
	if (!st)
		st = add_cut(f, &cut, e);
	if (cut.count)
		file__note(f, "the file is cut short; what is missing is unreadable");
	f->drv.info.has_machine = true;
	f->drv.info.machine.arch = f->core.arch;
	drv__use_notes(&f->drv, &f->core);
	f->origin = f->core.xen ? "a Xen core's frames" : "ELF program headers";
	return st;
}

/* The last of the kinds: what is none of the others, nor known to be something else. */
static enum status check_raw(struct file_drv *f, struct range_list *map, struct err *e)
{
	const struct foreign *is;
	const enum status st = foreign_find(&f->whole.blob, &is, e);

	if (!st && is)
		return err_set(
			e, ST_INPUT,
			"is %s, not memory%s%s (--source raw:PATH reads it as memory anyway)",
			is->what, is->advice ? "; " : "", is->advice ? is->advice : "");
	return st ? st : ST_NOT_MINE;
}

static enum status add_raw(struct file_drv *f, struct range_list *map, struct err *e)
{
	const uint64_t size = f->whole.blob.size;

	if (size < PAGE_SIZE)
		return err_set(e, ST_INPUT, "%" PRIu64 " bytes are less than a page", size);
	f->origin = file__by_size;
	return file__add_range(f, map, 0, size, size, 0, e);
}

/*
 * Headers can declare any amount of memory, and each page of it costs time and room, though there
 * is nothing to read. A file that was cut short has its missing pages in the map, as unreadable,
 * and a dump those that were not dumped (makedumpfile leaves out nine of ten), up to this, and up
 * to so many times what is there; beyond that its headers are what is wrong.
 */
#define UNBACKED_MAX ((uint64_t)4 << 30)
#define CUT_TIMES    16
#define ABSENT_TIMES 1024

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a + MIN(b, UINT64_MAX - a);
}

/* Bytes of an extent that are in the file, or are zeros that are not written down. */
static uint64_t backed_bytes(const struct file_drv *f, const struct file_extent *x)
{
	const uint64_t len = range_bytes(x->range), size = f->whole.blob.size;

	if (x->offset >= EXTENTS_NOTHING)
		return 0;
	if (x->offset >= EXTENTS_ZEROS || f->bytes != &f->plain.bytes)
		return len;
	return x->offset < size ? MIN(len, size - x->offset) : 0;
}

/* What no byte of the file stands for is left out of the map where that is out of proportion. */
static enum status leave_out_unbacked(struct file_drv *f, struct range_list *map, struct err *e)
{
	_cleanup_ranges_ struct range_list backed = { 0 };
	uint64_t declared = 0, bytes = 0, cut = 0, absent;
	enum status st = ST_OK;

	for (size_t i = 0; i < map->count; i++)
		declared = add_up(declared, range_bytes(map->at[i]));
	for (size_t i = 0; i < f->extents.count && !st; i++) {
		const struct file_extent *x = &f->extents.at[i];
		const uint64_t len = backed_bytes(f, x);

		bytes = add_up(bytes, len);
		cut = add_up(cut, range_bytes(x->range) - len);
		if (len)
			st = range_list_add(&backed, x->range.first, x->range.first + len - 1, e);
	}
	absent = declared - MIN(declared, add_up(bytes, cut));
	if (st || ((cut <= UNBACKED_MAX || cut / CUT_TIMES <= bytes) &&
		   (absent <= UNBACKED_MAX || absent / ABSENT_TIMES <= bytes)))
		return st;
	file__lost(f,
		   "its headers declare %" PRIu64 " MiB, and the file has %" PRIu64
		   " bytes of it: the rest is left out",
		   declared >> 20, bytes);
	range_list_deinit(map);
	*map = backed;
	backed = (struct range_list){ 0 };
	return ST_OK;
}

/*
 * All pages that the file has a byte of become the map; its faults are those of the file's ranges.
 */
static enum status add_file_pages(struct file_drv *f, struct range_list *map, struct err *e)
{
	const uint64_t mask = PAGE_SIZE - 1;
	_cleanup_ranges_ struct range_list whole = { 0 };
	struct range_faults faults;
	uint64_t bytes;
	enum status st = range_list_copy(&whole, map, e);

	if (st)
		return st;
	range_list_tidy(&whole, &faults);
	if (!whole.count)
		return err_set(e, ST_INPUT, "%s: has less than one page of memory",
			       f->drv.info.path);
	for (size_t i = 0; i < map->count; i++) {
		map->at[i].first &= ~mask;
		map->at[i].last |= mask;
	}
	st = drv__add_map(&f->drv, f->origin, map, e);
	if (st)
		return st;
	f->drv.info.maps[0].faults = faults;
	bytes = range_list_bytes(&f->drv.info.maps[0].ranges) - range_list_bytes(&whole);
	if (bytes)
		file__note(f, "pages that are only partly in the file are unreadable: %" PRIu64,
			   bytes / PAGE_SIZE);
	return ST_OK;
}

/* What stands there twice is told, and what of it cannot both be right. */
static void tidy_extents(struct file_drv *f)
{
	struct extents_twice t;

	extents_tidy_and_compare(&f->extents, f->bytes, &t);
	if (!t.bytes)
		return;
	if (!t.differ && t.compared == t.bytes)
		file__note(f,
			   "%" PRIu64
			   " bytes of memory are in the file twice, with the same content",
			   t.bytes);
	else
		file__lost(f,
			   "%" PRIu64 " bytes of memory are in the file twice; of the %" PRIu64
			   " that were compared %" PRIu64 " differ; the first range is used",
			   t.bytes, t.compared, t.differ);
}

static enum status read_asking(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
			       struct err *e)
{
	struct asking_blob *a = (struct asking_blob *)b;

	if (!a->opened && !a->stopped && drv_stop)
		a->stopped = drv_stop();
	if (!a->stopped)
		return a->of->read_at(a->of, off, p, len, got, e);
	*got = 0;
	return err_set(e, ST_INTERRUPTED, "interrupted by %s", a->stopped);
}

static enum status open_as_first_kind(struct file_drv *f, const file_kind_fn *kinds,
				      const char *path, struct err *e)
{
	_cleanup_ranges_ struct range_list map = { 0 };
	enum status st = ST_NOT_MINE;

	while (st == ST_NOT_MINE)
		st = (*kinds++)(f, &map, e);
	if (st)
		return err_add(e, st, "%s", path);
	if (drv_map_file && !f->mapped)
		return err_set(e, ST_INPUT,
			       "%s: says where its memory belongs; --map is for raw images", path);
	st = leave_out_unbacked(f, &map, e);
	if (!st)
		st = add_file_pages(f, &map, e);
	if (st)
		return st;
	tidy_extents(f);
	return ST_OK;
}

static enum status file_drv_fill(struct file_drv *f, const struct drv_ops *ops,
				 const file_kind_fn *kinds, const char *path, struct err *e)
{
	enum status st = drv__init(&f->drv, ops, path, e);

	f->drv.info.image = true;
	if (!st)
		st = file_blob_open(&f->file, path, e);
	if (st)
		return st;
	f->whole = (struct asking_blob){ .blob = f->file.blob, .of = &f->file.blob };
	f->whole.blob.read_at = read_asking;
	extents_file_init(&f->plain, f->file.fd);
	f->bytes = &f->plain.bytes;
	st = open_as_first_kind(f, kinds, path, e);
	f->whole.opened = true;
	/* Whoever tries a read, or compares, takes one that fails for an answer. */
	if (f->whole.stopped)
		return err_set(e, ST_INTERRUPTED, "%s: interrupted by %s while it was opened", path,
			       f->whole.stopped);
	if (st)
		return st;
	/* What is unpacked is so behind a position of its own. */
	if (f->bytes == &f->plain.bytes)
		f->drv.info.parallel = "any thread can read a file at any offset (pread)";
	f->drv.info.note = f->note[0] ? f->note : NULL;
	f->drv.info.lost = f->lost[0] ? f->lost : NULL;
	return ST_OK;
}

static enum status open_as(const struct drv_ops *ops, const file_kind_fn *kinds, const char *path,
			   struct drv **ret, struct err *e)
{
	struct file_drv *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return err_nomem(e);
	f->file.fd = -1;
	st = file_drv_fill(f, ops, kinds, path, e);
	if (st) {
		file_drv_close(&f->drv);
		return st;
	}
	*ret = &f->drv;
	return ST_OK;
}

static enum status file_drv_open(const char *path, struct drv **ret, struct err *e)
{
	static const file_kind_fn kinds[] = {
		add_elf,        file__add_lime,         file__add_packed_lime,
		file__add_avml, file__add_windows_dump, file__add_kdump,
		check_raw,      file__add_stated,       file__add_vmem,
		add_raw,
	};

	return open_as(&file_ops, kinds, path, ret, e);
}

/* Both formats have records whose bytes are in question. */
static enum status refuse_others(struct file_drv *f, struct range_list *map, struct err *e)
{
	(void)f;
	(void)map;
	return err_set(e, ST_INPUT, "is neither a LiME nor an AVML image");
}

static const file_kind_fn record_kinds[] = {
	file__add_lime,
	file__add_packed_lime,
	file__add_avml,
	refuse_others,
};

static enum status lime_pages_open(const char *path, struct drv **ret, struct err *e)
{
	return open_as(&lime_pages_ops, record_kinds, path, ret, e);
}

static enum status lime_bytes_open(const char *path, struct drv **ret, struct err *e)
{
	return open_as(&lime_bytes_ops, record_kinds, path, ret, e);
}

static enum status raw_open(const char *path, struct drv **ret, struct err *e)
{
	static const file_kind_fn kinds[] = { file__add_stated, add_raw };

	return open_as(&raw_ops, kinds, path, ret, e);
}

static struct drv_result file_drv_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct file_drv *f = (struct file_drv *)d;

	const struct drv_result r = extents_read(&f->extents, f->bytes, addr, buf, len);

	if (f->records)
		file__find_stray(f, addr, buf, r.good);
	return r;
}

/* A file under each of its names. */
#define FILE_OPS                                                                                   \
	.kind = DRV_DEAD, .reason = "an image does not change", .read_max = DRV_READ_LARGE,        \
	.read = file_drv_read, .close = file_drv_close

const struct drv_ops file_ops = {
	.name = "file",
	.summary = "an image: raw, ELF core, LiME (also with compress=1), AVML, kdump or a Windows "
		   "crash dump, as file:PATH",
	.open = file_drv_open,
	FILE_OPS,
};

const struct drv_ops raw_ops = {
	.name = "raw",
	.summary = "the same, but always read as raw, as raw:PATH",
	.open = raw_open,
	FILE_OPS,
};

const struct drv_ops lime_pages_ops = {
	.name = "lime-pages",
	.summary = "a LiME image in which records that begin inside a page hold whole pages, as "
		   "LiME's module writes them, as lime-pages:PATH",
	.open = lime_pages_open,
	FILE_OPS,
};

const struct drv_ops lime_bytes_ops = {
	.name = "lime-bytes",
	.summary = "the same, but with exactly the bytes of their headers' addresses, as AVML "
		   "writes them, as lime-bytes:PATH",
	.open = lime_bytes_open,
	FILE_OPS,
};
