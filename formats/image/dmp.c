/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/dmp.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

const uint8_t dmp_segments[12] = { 0x10, 0, 0x2b, 0, 0x2b, 0, 0x53, 0, 0x2b, 0, 0, 0 };

/* Offsets in the header. */
#define AT_MAJOR         0x008
#define AT_DTB           0x010
#define AT_MACHINE       0x030
#define AT_PARAMETERS    0x040
#define AT_KDBG          0x080
#define AT_RUNS          0x088
#define AT_CONTEXT       0x348
#define AT_EXCEPTION     0xf00
#define AT_TYPE          0xf98
#define AT_SPACE         0xfa0
#define AT_TIME          0xfa8
#define AT_COMMENT       0xfb0
#define AT_UP_TIME       0x1030
#define AT_MINI          0x1038 /* MiniDumpFields, SecondaryDataState */
#define AT_PRODUCT       0x1040
#define AT_WRITER        0x1048

#define CONTEXT_ROOM     3000
#define EXCEPTION_SIZE   152
#define COMMENT_SIZE     128

#define MAJOR_FREE_BUILD 15
#define MACHINE_AMD64    0x8664
#define LIVE_SYSTEM_DUMP 0x161 /* bugcheck code of a machine that runs on (bugcodes.h) */
#define MXCSR_INITIAL    0x1f80

#define TYPE_FULL        1
#define TYPE_BITMAP      5

/* Of the bitmap's own header, from 0x2000 on. */
#define BITMAP_FIRST     0x20
#define BITMAP_HEADER    (DMP_BITMAP - DMP_HEADER_SIZE)

/*
 * Readers round the number of bits down to 8 (kdmp-parser), 32 (volatility3) or 64 (LeechCore):
 * nobody loses one of a multiple of 64.
 */
#define BITS_STEP        64

#define BITMAP_BATCH     ((size_t)64 << 10) /* bytes of it that are written at once */

struct dmp_writer {
	struct image_writer base;
	struct dmp_kernel kernel;
	/*
	 * A bitmap, in a sink that can take the head anew: then pages without content are left out,
	 * and at the end it says which came.
	 */
	bool rewrites;
	bool left_out; /* a page was, and the head does not name those behind it yet */
	struct range_list got;
};

static const struct dmp_kernel *dmp_kernel_of(const struct image_spec *spec)
{
	static const struct dmp_kernel none;

	return spec->own ? spec->own : &none;
}

/* The pages that are in the file. */
static const struct range_list *dmp_pages_of(const struct image_spec *spec, bool bitmap)
{
	const struct dmp_kernel *k = dmp_kernel_of(spec);

	return bitmap && k->present ? k->present : spec->ranges;
}

static uint64_t first_page(struct range r)
{
	return r.first >> PAGE_SHIFT;
}

static uint64_t pages_in_range(struct range r)
{
	return (r.last >> PAGE_SHIFT) - first_page(r) + 1;
}

static uint64_t count_all(const struct range_list *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		n += pages_in_range(l->at[i]);
	return n;
}

/*
 * The header
 */

static void put_dmp_runs(uint8_t *at, const struct range_list *l)
{
	struct appender a = { at };
	const size_t n = MIN(l->count, (size_t)DMP_RUNS_MAX);

	app_le32(&a, (uint32_t)n);
	app_le32(&a, 0);
	app_le64(&a, count_all(l));
	for (size_t i = 0; i < n; i++) {
		app_le64(&a, first_page(l->at[i]));
		app_le64(&a, pages_in_range(l->at[i]));
	}
}

/*
 * Nobody knows where the processors of a machine that ran on were. Without a context of the
 * kernel's own there is one with nothing in it but what debuggers cannot do without.
 */
static void put_dmp_context(uint8_t *at, const uint8_t *context)
{
	memset(at, 0, CONTEXT_ROOM);
	if (context) {
		memcpy(at, context, DMP_CONTEXT_SIZE);
		return;
	}
	put_le32(at + DMP_CONTEXT_FLAGS, DMP_CONTEXT_ALL);
	put_le32(at + DMP_CONTEXT_MXCSR, MXCSR_INITIAL);
	put_le32(at + DMP_CONTEXT_MXCSR_2, MXCSR_INITIAL);
	memcpy(at + DMP_CONTEXT_SEGMENTS, dmp_segments, sizeof(dmp_segments));
}

/* What the kernel itself has counted; unset if that was not found. */
static void put_dmp_times(uint8_t *h, const struct dmp_kernel *k)
{
	if (!k->has_times)
		return;
	put_le64(h + AT_TIME, k->system_time);
	put_le64(h + AT_UP_TIME, k->up_time);
	put_le32(h + AT_PRODUCT, k->product_type);
	put_le32(h + AT_PRODUCT + 4, k->suite_mask);
}

static void make_header(uint8_t h[static DMP_HEADER_SIZE], const struct dmp_kernel *k,
			uint32_t type, uint64_t size)
{
	struct appender a = { h };

	for (size_t i = 0; i < DMP_HEADER_SIZE; i += 4)
		app_bytes(&a, "PAGE", 4);
	a.at = h + 4;
	app_bytes(&a, "DU64", 4);
	app_le32(&a, MAJOR_FREE_BUILD);
	app_le32(&a, k->build);
	app_le64(&a, k->dtb);
	app_le64(&a, k->pfn_database);
	app_le64(&a, k->modules);
	app_le64(&a, k->processes);
	app_le32(&a, MACHINE_AMD64);
	app_le32(&a, MAX(k->processors, 1U)); /* there is one, counted or not */
	app_le32(&a, LIVE_SYSTEM_DUMP);
	memset(h + AT_PARAMETERS, 0, 4 * sizeof(uint64_t));
	put_le64(h + AT_KDBG, k->kdbg);
	put_dmp_context(h + AT_CONTEXT, k->context);
	memset(h + AT_EXCEPTION, 0, EXCEPTION_SIZE);
	put_le32(h + AT_TYPE, type);
	put_le64(h + AT_SPACE, size);
	put_dmp_times(h, k);
	memset(h + AT_COMMENT, 0, COMMENT_SIZE);
	snprintf((char *)h + AT_COMMENT, COMMENT_SIZE, "ramseal %s", RAMSEAL_VERSION);
	put_le64(h + AT_MINI, 0);
	put_le32(h + AT_WRITER, 0);
}

/*
 * The bitmap
 */

struct bitmap {
	uint64_t bits;
	uint64_t data; /* offset of the first page */
};

static struct bitmap lay_out_bitmap(uint64_t end)
{
	const uint64_t pages = (end + PAGE_SIZE - 1) >> PAGE_SHIFT;
	struct bitmap b = { .bits = (pages + BITS_STEP - 1) & ~(uint64_t)(BITS_STEP - 1) };

	b.data = (DMP_BITMAP + b.bits / 8 + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	return b;
}

static void set_bits(uint8_t *map, uint64_t first, uint64_t end)
{
	while (first < end) {
		const uint64_t whole = (end - first) / 8;

		if (first % 8 || !whole) {
			map[first / 8] |= (uint8_t)(1U << first % 8);
			first++;
			continue;
		}
		memset(map + first / 8, 0xff, (size_t)whole);
		first += 8 * whole;
	}
}

/* The part of it that begins with bit `from`; *range is the first that may have one there. */
static void fill_batch(uint8_t *map, uint64_t from, uint64_t bits, const struct range_list *l,
		       size_t *range)
{
	memset(map, 0, (size_t)(bits / 8));
	for (size_t i = *range; i < l->count && first_page(l->at[i]) < from + bits; i++) {
		const uint64_t first = first_page(l->at[i]);
		const uint64_t end = first + pages_in_range(l->at[i]);

		if (end > from)
			set_bits(map, MAX(first, from) - from, MIN(end, from + bits) - from);
		if (end <= from + bits)
			*range = i + 1;
	}
}

static enum status put_bits(struct sink *out, const struct bitmap *b, const struct range_list *l,
			    struct err *e)
{
	_cleanup_free_ uint8_t *map = malloc(BITMAP_BATCH);
	enum status st = map ? ST_OK : err_nomem(e);
	size_t range = 0;

	for (uint64_t at = 0, n; at < b->bits && !st; at += n) {
		n = MIN(b->bits - at, (uint64_t)BITMAP_BATCH * 8);
		fill_batch(map, at, n, l, &range);
		st = sink_write(out, map, (size_t)(n / 8), e);
	}
	return st;
}

static enum status put_bitmap(struct sink *out, const struct bitmap *b, const struct range_list *l,
			      struct err *e)
{
	uint8_t h[BITMAP_HEADER] = "FDMPDUMP";
	struct appender a = { h + BITMAP_FIRST };
	enum status st;

	app_le64(&a, b->data);
	app_le64(&a, count_all(l));
	app_le64(&a, b->bits);
	st = sink_write(out, h, sizeof(h), e);
	if (!st)
		st = put_bits(out, b, l, e);
	return st ? st : sink_skip(out, b->data - DMP_BITMAP - b->bits / 8, e);
}

/*
 * Both
 */

static enum status put_dmp_head(const struct image_spec *spec, bool bitmap,
				const struct range_list *pages, struct sink *out, struct err *e)
{
	_cleanup_free_ uint8_t *h = malloc(DMP_HEADER_SIZE);
	const struct bitmap b = lay_out_bitmap(image_end(spec));
	const uint64_t data = bitmap ? b.data : DMP_HEADER_SIZE;
	enum status st;

	if (!h)
		return err_nomem(e);
	make_header(h, dmp_kernel_of(spec), bitmap ? TYPE_BITMAP : TYPE_FULL,
		    data + count_all(pages) * PAGE_SIZE);
	/* Where there is a bitmap, nobody asks for the runs, and more than fit are left out. */
	if (!bitmap || pages->count <= DMP_RUNS_MAX)
		put_dmp_runs(h + AT_RUNS, pages);
	st = sink_write(out, h, DMP_HEADER_SIZE, e);
	return st || !bitmap ? st : put_bitmap(out, &b, pages, e);
}

static enum status dmp_create_kind(const struct image_format *format, const struct image_spec *spec,
				   struct sink *out, struct image_writer **ret, struct err *e)
{
	const bool bitmap = format == &dmp_format;
	struct dmp_writer *w;
	enum status st = put_dmp_head(spec, bitmap, dmp_pages_of(spec, bitmap), out, e);

	if (st)
		return st;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(e);
	w->base = (struct image_writer){ .format = format, .spec = spec, .out = out };
	w->kernel = *dmp_kernel_of(spec);
	w->rewrites = bitmap && out->rewrite;
	*ret = &w->base;
	return ST_OK;
}

static enum status dmp_create(const struct image_spec *spec, struct sink *out,
			      struct image_writer **ret, struct err *e)
{
	if (image_end(spec) > DMP_END_MAX)
		return err_set(e, ST_INPUT,
			       "ends at 0x%" PRIx64 ", beyond what a bitmap is written for",
			       image_end(spec));
	return dmp_create_kind(&dmp_format, spec, out, ret, e);
}

static enum status dmp_full_create(const struct image_spec *spec, struct sink *out,
				   struct image_writer **ret, struct err *e)
{
	if (spec->ranges->count > DMP_RUNS_MAX)
		return err_set(e, ST_INPUT,
			       "%zu ranges of memory are more than the %d runs that a full dump "
			       "has room for: use --format dmp",
			       spec->ranges->count, DMP_RUNS_MAX);
	return dmp_create_kind(&dmp_full_format, spec, out, ret, e);
}

bool dmp_patch_apply(const struct dmp_patch *p, uint64_t address, uint8_t page[static PAGE_SIZE])
{
	const size_t offset = (size_t)(p->address % PAGE_SIZE);

	if (p->address - offset != address || memcmp(page + offset, p->original, p->length) != 0)
		return false;
	memcpy(page + offset, p->bytes, p->length);
	return true;
}

bool dmp_patch_page(struct dmp_patch *at, size_t count, uint64_t address,
		    uint8_t page[static PAGE_SIZE])
{
	bool changed = false;

	for (size_t i = 0; i < count; i++)
		if (dmp_patch_apply(&at[i], address, page))
			at[i].done = changed = true;
	return changed;
}

static bool has_patch(const struct dmp_kernel *k, uint64_t address)
{
	for (size_t i = 0; i < k->n_patches; i++)
		if (k->patches[i].address - k->patches[i].address % PAGE_SIZE == address)
			return true;
	return false;
}

/* These are in the file now. They come in rising order. */
static enum status note_dmp_run(struct dmp_writer *w, const struct image_piece *run, struct err *e)
{
	const uint64_t last = run->address + run->pages * PAGE_SIZE - 1;
	struct range_list *got = &w->got;

	if (!w->rewrites)
		return ST_OK;
	if (!got->count || got->at[got->count - 1].last + 1 != run->address)
		return range_list_add(got, run->address, last, e);
	got->at[got->count - 1].last = last;
	return ST_OK;
}

static bool is_page_in_dump(const struct dmp_writer *w, const struct range_list *pages,
			    uint64_t address, struct page_status s)
{
	return !(w->rewrites && page_is_gap(s) && !page_reads_as_zeros(s)) &&
	       range_list_find(pages, address) != NULL;
}

/* A part of the piece, of pages that are all in the file. */
static enum status put_run(struct dmp_writer *w, const struct image_piece *p, size_t first,
			   size_t pages, struct err *e)
{
	const struct image_piece run = {
		.address = p->address + first * PAGE_SIZE,
		.pages = pages,
		.data = p->data + first * PAGE_SIZE,
		.status = p->status + first,
	};
	enum status st;

	if (!pages)
		return ST_OK;
	st = note_dmp_run(w, &run, e);
	return st ? st : image__write(w->base.out, &run, (uint64_t)pages * PAGE_SIZE, e);
}

static enum status put_patched(struct dmp_writer *w, const struct image_piece *p, size_t i,
			       struct err *e)
{
	const struct image_piece one = { .address = p->address + i * PAGE_SIZE, .pages = 1 };
	uint8_t page[PAGE_SIZE];
	enum status st;

	memcpy(page, p->data + i * PAGE_SIZE, PAGE_SIZE);
	if (p->status[i].state != PAGE_DATA ||
	    !dmp_patch_page(w->kernel.patches, w->kernel.n_patches, p->address + i * PAGE_SIZE,
			    page))
		return put_run(w, p, i, 1, e);
	st = note_dmp_run(w, &one, e);
	return st ? st : sink_write(w->base.out, page, PAGE_SIZE, e);
}

/* What is written to it goes over what another one has from its beginning on. */
struct head_sink {
	struct sink sink;
	struct sink *under;
	uint64_t at;
};

static enum status write_over(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct head_sink *h = (struct head_sink *)s;
	const enum status st = h->under->rewrite(h->under, h->at, p, len, e);

	h->at += len;
	return st;
}

/*
 * Behind a page that is left out all others move up. From the first on the head names only those
 * before it: what a full disk or a kill leaves must not name pages that lie elsewhere.
 */
static enum status leave_out_dmp_page(struct dmp_writer *w, struct err *e)
{
	struct head_sink head = { .sink.write = write_over, .under = w->base.out };

	if (w->left_out)
		return ST_OK;
	w->left_out = true;
	return put_dmp_head(w->base.spec, true, &w->got, &head.sink, e);
}

static enum status dmp_put(struct image_writer *base, const struct image_piece *p, struct err *e)
{
	struct dmp_writer *w = (struct dmp_writer *)base;
	const struct range_list *pages = dmp_pages_of(base->spec, base->format == &dmp_format);
	enum status st = ST_OK;
	size_t from = 0;

	for (size_t i = 0; i < p->pages && !st; i++) {
		const uint64_t address = p->address + i * PAGE_SIZE;
		const bool present = is_page_in_dump(w, pages, address, p->status[i]);
		const bool patched = present && has_patch(&w->kernel, address);

		if (present && !patched)
			continue;
		st = put_run(w, p, from, i - from, e);
		if (!st && !present && range_list_find(pages, address))
			st = leave_out_dmp_page(w, e);
		if (!st && patched)
			st = put_patched(w, p, i, e);
		from = i + 1;
	}
	return st ? st : put_run(w, p, from, p->pages - from, e);
}

/*
 * The head as it has become true; it is as long as before. One that cannot be rewritten, and ends
 * early, lacks pages that its head names: readers see that.
 */
static enum status dmp_finish(struct image_writer *base, bool whole, struct err *e)
{
	struct dmp_writer *w = (struct dmp_writer *)base;
	struct head_sink head = { .sink.write = write_over, .under = base->out };

	if (!w->rewrites || count_all(&w->got) == count_all(dmp_pages_of(base->spec, true)))
		return ST_OK;
	return put_dmp_head(base->spec, true, &w->got, &head.sink, e);
}

static void dmp_destroy(struct image_writer *base)
{
	struct dmp_writer *w = (struct dmp_writer *)base;

	if (w)
		range_list_deinit(&w->got);
	free(w);
}

const struct image_format dmp_format = {
	.name = "dmp",
	.summary = "Windows crash dump with a bitmap (type 5), which leaves out missing pages",
	.suffix = ".dmp",
	.rewrites = true,
	.create = dmp_create,
	.put = dmp_put,
	.finish = dmp_finish,
	.destroy = dmp_destroy,
};

const struct image_format dmp_full_format = {
	.name = "dmp-full",
	.summary = "full Windows crash dump (type 1), for tools that cannot read type 5: at most "
		   "42 runs",
	.suffix = ".dmp",
	.create = dmp_full_create,
	.put = dmp_put,
	.finish = dmp_finish,
	.destroy = dmp_destroy,
};
