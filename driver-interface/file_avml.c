/* SPDX-License-Identifier: Apache-2.0 */
/* AVML's compressed images as a source: formats/image/avml.h. */
#include <inttypes.h>

#include "driver-interface/file_internal.h"
#include "formats/image/avml.h"

struct avml_bytes {
	struct extents_bytes bytes;
	struct avml avml;
};

static struct pread_result avml_bytes_read(struct extents_bytes *b, uint64_t off, void *buf,
					   size_t len)
{
	struct avml *a = &((struct avml_bytes *)b)->avml;
	struct pread_result r = { .error = DRV_NO_DATA, .exact = true };
	enum status st;

	st = avml_read(a, off, buf, len, &r.bytes, NULL);
	if (st)
		r.error = st == ST_CORRUPT ? DRV_DAMAGED : DRV_FAILED;
	if (r.bytes == len)
		r = (struct pread_result){ .bytes = len };
	return r;
}

static void avml_bytes_free(struct extents_bytes *b)
{
	avml_deinit(&((struct avml_bytes *)b)->avml);
	free(b);
}

/* Blocks that go on where the one before ends are one range of the map. */
static enum status add_avml_block(struct file_drv *f, struct range_list *map,
				  const struct skew_record *k, struct err *e)
{
	struct range *before = map->count ? &map->at[map->count - 1] : NULL;
	const uint64_t left = MIN(range_bytes(k->range) - k->present, PHYS_LIMIT);
	enum status st = extents_add(&f->extents, k->range.first, k->present, k->offset, e);

	if (!st)
		st = extents_add(&f->extents, k->range.first + k->present, left, EXTENTS_NOTHING,
				 e);
	if (st)
		return st;
	if (!before || !k->range.first || before->last != k->range.first - 1)
		return range_list_add(map, k->range.first, k->range.last, e);
	before->last = k->range.last;
	return ST_OK;
}

/* avml-convert makes such blocks of LiME's records, too, and leaves their ranges as they are. */
static enum status add_blocks(struct file_drv *f, struct range_list *map, const struct avml *a,
			      struct err *e)
{
	_cleanup_free_ struct skew_record *r = calloc(a->count, sizeof(*r));
	enum status st = r ? ST_OK : err_nomem(e);

	for (size_t i = 0; i < a->count && !st; i++)
		r[i] = (struct skew_record){ a->at[i].range, a->at[i].present, a->at[i].plain };
	if (!st)
		file__resolve_skew(f, r, a->count, false);
	for (size_t i = 0; i < a->count && !st; i++)
		st = add_avml_block(f, map, &r[i], e);
	return st;
}

void file__note_avml(struct file_drv *f, uint64_t zeros)
{
	file__note(f, "AVML leaves out blocks of zeros: a gap between its ranges can be zeros or "
		      "no memory");
	if (zeros)
		file__note(f,
			   "%" PRIu64
			   " bytes have only a header, which stands for zeros (AVML 0.16, 0.17)",
			   zeros);
}

static void tell_of_avml(struct file_drv *f, const struct avml *a)
{
	file__note_avml(f, a->zeros);
	if (a->damaged)
		file__lost(f,
			   "it is damaged in %" PRIu64 " place%s: %" PRIu64
			   " bytes of the file are skipped, which may include whole blocks",
			   a->damaged, a->damaged == 1 ? "" : "s", a->passed);
	if (a->overstated)
		file__lost(f,
			   "%" PRIu64 " headers name more than %" PRIu64
			   " MiB: no such block is whole, and what is beyond is left out",
			   a->overstated, AVML_CLAIM_MAX >> 20);
	switch (a->end) {
	case AVML_WHOLE:
		break;
	case AVML_CUT:
		file__note(f, "the file is cut short; what is missing is unreadable");
		break;
	case AVML_CUT_END:
		file__lost(f, "the file is cut short after block %zu: later blocks are lost",
			   a->count - 1);
		break;
	case AVML_DAMAGED:
		file__lost(f,
			   "behind block %zu no other is found: what the last %" PRIu64
			   " bytes of the file held is lost",
			   a->count - 1, a->rest);
		break;
	}
}

enum status file__add_avml(struct file_drv *f, struct range_list *map, struct err *e)
{
	struct avml_bytes *b = calloc(1, sizeof(*b));
	enum status st;

	if (!b)
		return err_nomem(e);
	b->bytes.read = avml_bytes_read;
	st = avml_init(&b->avml, &f->whole.blob, e);
	if (st) {
		avml_bytes_free(&b->bytes);
		return st;
	}
	f->bytes = &b->bytes;
	f->unpacked_free = avml_bytes_free;
	f->origin = "AVML headers";
	st = add_blocks(f, map, &b->avml, e);
	if (!st)
		tell_of_avml(f, &b->avml);
	return st;
}
