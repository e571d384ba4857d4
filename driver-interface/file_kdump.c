/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed kdumps as a source: formats/image/kdump_reader.h. */
#include <inttypes.h>

#include "driver-interface/file_internal.h"
#include "formats/image/kdump_reader.h"

struct kdump_bytes {
	struct extents_bytes bytes;
	struct kdump kdump;
};

/* Offsets are addresses, at which pages begin: ranges of the map are whole pages. */
static struct pread_result kdump_bytes_read(struct extents_bytes *b, uint64_t off, void *buf,
					    size_t len)
{
	struct kdump *k = &((struct kdump_bytes *)b)->kdump;
	struct pread_result r = { .exact = true };

	for (; r.bytes < len; r.bytes += PAGE_SIZE) {
		switch (kdump_read(k, (off + r.bytes) >> PAGE_SHIFT, (uint8_t *)buf + r.bytes)) {
		case KDUMP_PAGE_READ:
			continue;
		case KDUMP_PAGE_LEFT_OUT:
			r.not_offered = true;
			return r;
		case KDUMP_PAGE_LOST:
			r.error = DRV_NO_DATA;
			return r;
		case KDUMP_PAGE_DAMAGED:
			r.error = DRV_DAMAGED;
			return r;
		case KDUMP_PAGE_UNKNOWN:
			r.error = DRV_UNKNOWN;
			return r;
		case KDUMP_PAGE_FAILED:
			r.error = DRV_FAILED;
			return r;
		}
	}
	return r;
}

static void kdump_bytes_free(struct extents_bytes *b)
{
	kdump_deinit(&((struct kdump_bytes *)b)->kdump);
	free(b);
}

static void tell_kdump(struct file_drv *f, const struct kdump *k)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < k->ram.count; i++)
		pages += range_bytes(k->ram.at[i]) >> PAGE_SHIFT;
	if (pages > k->dumped)
		file__note(f, "%" PRIu64 " pages of memory were left out of the dump",
			   pages - k->dumped);
	if (k->status & KDUMP_INCOMPLETE)
		file__note(f, "the dump says that it is incomplete");
	if (k->cut)
		file__note(f, "the file is cut short; what is missing is unreadable or left out");
}

enum status file__add_kdump(struct file_drv *f, struct range_list *map, struct err *e)
{
	struct kdump_bytes *b = calloc(1, sizeof(*b));
	struct kdump *k;
	enum status st;

	if (!b)
		return err_nomem(e);
	b->bytes.read = kdump_bytes_read;
	k = &b->kdump;
	st = kdump_init(k, &f->whole.blob, e);
	if (st) {
		kdump_bytes_free(&b->bytes);
		return st;
	}
	f->bytes = &b->bytes;
	f->unpacked_free = kdump_bytes_free;
	f->origin = "kdump bitmaps";
	for (size_t i = 0; i < k->ram.count && !st; i++) {
		const struct range r = k->ram.at[i];

		st = file__add_range(f, map, r.first, range_bytes(r), range_bytes(r), r.first, e);
	}
	f->drv.info.has_machine = k->has_arch;
	f->drv.info.machine.arch = k->arch;
	/* As of an ELF core, and owned by it from now on. */
	f->core.arch = k->arch;
	f->core.notes = k->notes;
	f->core.notes_size = k->notes_size;
	k->notes = NULL;
	k->notes_size = 0;
	drv__use_notes(&f->drv, &f->core);
	if (!st)
		tell_kdump(f, k);
	return st;
}
