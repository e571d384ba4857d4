/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/packed.h"

#include <inttypes.h>
#include <string.h>

#include "tsk-extract/tsk.h"

/* A type that no one gives to an attribute; an $ATTRIBUTE_LIST's while it is hidden. */
#define ATTRIBUTE_HIDDEN 0x0ff0

struct packed {
	const struct volume *volume;
	uint64_t number;
	struct tsk_window *window;
	TSK_FS_INFO *fs;
	TSK_FS_FILE *file;
	const TSK_FS_ATTR *data;
};

/* The volume shall read as if this attribute of a record were of another type. */
static void hide_attribute(struct packed *p, const struct mft *n, uint64_t number,
			   const struct attribute *a, uint16_t type)
{
	uint64_t at;

	if (mft_place(n, number, a->at, &at))
		tsk_window_patch(p->window, at, type);
}

/*
 * What of the volume libtsk must not see: of $MFT its attribute list, if a record in there is not
 * sound; libtsk then finds the records that come first. And $Secure: it would load all of it,
 * megabytes on a real volume, for the owners of files, which no one asks for, and parse its index.
 */
static enum status hide_from_tsk(struct packed *p, struct mft *n, struct err *e)
{
	static const struct name unnamed;
	const uint32_t size = mft_boot_of(n)->record;
	_cleanup_free_ uint8_t *record = malloc(size);
	struct attribute a;
	enum status st = record ? mft_record_sound(n, RECORD_MFT, record, e) : err_nomem(e);

	if (!st && attribute_find(record, size, ATTRIBUTE_LIST, NULL, &a) &&
	    mft_check_listed(n, RECORD_MFT, NULL))
		hide_attribute(p, n, RECORD_MFT, &a, ATTRIBUTE_HIDDEN);
	if (!st)
		st = mft_record_sound(n, RECORD_VOLUME, record, e);
	if (!st)
		st = mft_record_sound(n, RECORD_BITMAP, record, e);
	if (!st && (!attribute_find(record, size, ATTRIBUTE_DATA, &unnamed, &a) || a.resident))
		st = err_set(e, ST_CORRUPT, "$Bitmap has no content");
	if (!st && !mft_record_sound(n, RECORD_SECURE, record, NULL) &&
	    attribute_find(record, size, ATTRIBUTE_STANDARD_INFORMATION, NULL, &a))
		hide_attribute(p, n, RECORD_SECURE, &a, 0);
	return st;
}

static enum status open_packed_volume(struct packed *p, struct mft *n, struct err *e)
{
	enum status st = tsk_window_create(mft_reader(n), p->volume->offset, p->volume->length,
					   &p->volume->boot, &p->window, e);

	if (!st)
		st = hide_from_tsk(p, n, e);
	if (st)
		return st;
	p->fs = tsk_fs_open_img(tsk_window_image(p->window), 0, TSK_FS_TYPE_NTFS);
	return p->fs ? ST_OK : err_from_tsk(e, ST_CORRUPT, "cannot be opened");
}

/* The compressed stream of that name, of the file that is open. */
static enum status find_packed_stream(struct packed *p, const struct name *name, struct err *e)
{
	const int count = tsk_fs_file_attr_getsize(p->file);
	char text[NAME_UTF8_SIZE];

	name_to_utf8(name, text, sizeof(text));
	for (int i = 0; i < count; i++) {
		const TSK_FS_ATTR *a = tsk_fs_file_attr_get_idx(p->file, i);

		if (a && a->type == TSK_FS_ATTR_TYPE_NTFS_DATA && (a->flags & TSK_FS_ATTR_COMP) &&
		    a->nrd.compsize && strcmp(a->name ? a->name : "", text) == 0) {
			p->data = a;
			return ST_OK;
		}
	}
	return err_set(e, ST_CORRUPT, "libtsk finds no compressed stream");
}

static enum status packed_fill(struct packed *p, struct mft *n, const struct name *name,
			       struct err *e)
{
	enum status st = mft_check_listed(n, p->number, e);

	if (!st)
		st = open_packed_volume(p, n, e);
	if (st)
		return st;
	p->file = tsk_fs_file_open_meta(p->fs, NULL, p->number);
	return p->file ? find_packed_stream(p, name, e) : err_from_tsk(e, ST_CORRUPT, "the record");
}

enum status packed_open(struct mft *n, uint64_t number, const struct name *name,
			struct packed **ret, struct err *e)
{
	struct packed *p = calloc(1, sizeof(*p));
	enum status st;

	if (!p)
		return err_nomem(e);
	p->volume = mft_volume(n);
	p->number = number;
	st = packed_fill(p, n, name, e);
	if (st) {
		packed_close(p);
		return err_add(e, st, "MFT record %" PRIu64 ", compressed", number);
	}
	*ret = p;
	return ST_OK;
}

void packed_close(struct packed *p)
{
	if (!p)
		return;
	if (p->file)
		tsk_fs_file_close(p->file);
	if (p->fs)
		tsk_fs_close(p->fs);
	tsk_window_destroy(p->window);
	free(p);
}

/* FILLER is libtsk's word for clusters whose runs it has not seen; those stay out. */
enum status packed_extents(const struct packed *p, struct extent_list *ret, struct err *e)
{
	const uint64_t cluster = p->volume->boot.cluster;
	const uint64_t limit = MFT_SIZE_LIMIT / cluster;
	enum status st = ST_OK;

	for (const TSK_FS_ATTR_RUN *r = p->data->nrd.run; r && !st; r = r->next) {
		const bool hole = r->flags & TSK_FS_ATTR_RUN_FLAG_SPARSE;

		if ((r->flags & TSK_FS_ATTR_RUN_FLAG_FILLER) || !r->len || r->offset >= limit ||
		    r->len > limit || (!hole && r->addr >= limit))
			continue;
		st = extent_list_add(ret,
				     (struct extent){
					     .file = r->offset * cluster,
					     .length = r->len * cluster,
					     .disk = hole ? 0 : r->addr * cluster,
					     .kind = hole ? EXTENT_HOLE : EXTENT_DISK,
				     },
				     e);
	}
	return st;
}

uint64_t packed_unit_size(const struct packed *p)
{
	return (uint64_t)p->data->nrd.compsize * p->volume->boot.cluster;
}

enum status packed_read(struct packed *p, uint64_t off, void *buf, size_t len, struct err *e)
{
	ssize_t got;

	tsk_window_refill(p->window);
	got = tsk_fs_attr_read(p->data, (TSK_OFF_T)off, buf, len, TSK_FS_FILE_READ_FLAG_NONE);
	if (got < 0 || (size_t)got < len)
		return err_from_tsk(e, ST_CORRUPT, "byte %" PRIu64, off);
	return ST_OK;
}
