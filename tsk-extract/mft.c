/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/mft_internal.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/packed.h"

struct mft {
	struct reader *reader;
	const struct volume *volume;
	struct extent_list table; /* of the whole $MFT */
	uint64_t table_size;
	uint8_t *own; /* $MFT's own record, or its copy where that had to be taken */
	bool listed;  /* it has an attribute list */
	struct err note;
	uint8_t *upcase; /* UPCASE_SIZE bytes; NULL: not looked for, or it cannot be read */
	bool upcase_sought;
	struct packed *packed; /* the compressed stream that was loaded last */
};

static struct extent_list take_extents(struct extent_list *l)
{
	const struct extent_list taken = *l;

	*l = (struct extent_list){ 0 };
	return taken;
}

enum status mft__add_runs(const struct mft *n, const struct attribute *a, struct extent_list *ret,
			  struct err *e)
{
	const uint64_t cluster = n->volume->boot.cluster;
	const uint64_t limit = MFT_SIZE_LIMIT / cluster;
	struct run_walk w = { .runs = a->runs, .size = a->runs_size };
	uint64_t at = a->first_cluster;
	struct data_run r;
	enum status st = ST_OK;

	while (!st && at <= a->last_cluster && at < limit && run_next(&w, &r)) {
		const uint64_t count = MIN(r.count, a->last_cluster - at + 1);

		if (r.count > limit)
			break;
		if (r.hole || r.first < limit)
			st = extent_list_add(ret,
					     (struct extent){
						     .file = at * cluster,
						     .length = count * cluster,
						     .disk = r.hole ? 0 : r.first * cluster,
						     .kind = r.hole ? EXTENT_HOLE : EXTENT_DISK,
					     },
					     e);
		at += r.count;
	}
	return st;
}

/*
 * Takes the record that lies at `cluster` for $MFT's own, and the clusters that it names for $MFT.
 */
static enum status open_table_at(struct mft *n, uint64_t cluster, const char *magic, struct err *e)
{
	static const struct name unnamed;
	const struct ntfs_boot *b = &n->volume->boot;
	const uint64_t at = cluster * b->cluster;
	struct attribute a, list;
	size_t good;
	enum status st;

	if (!range_fits(at, b->record, n->volume->length) ||
	    reader_read(n->reader, n->volume->offset + at, n->own, b->record, &good))
		return err_set(e, ST_CORRUPT, "cannot be read");
	st = fixup_apply(n->own, b->record, magic, e);
	if (st)
		return st;
	if (!attribute_find(n->own, b->record, ATTRIBUTE_DATA, &unnamed, &a) || a.resident ||
	    a.first_cluster || !a.size || a.size > MFT_SIZE_LIMIT)
		return err_set(e, ST_CORRUPT, "names no clusters");
	n->listed = attribute_find(n->own, b->record, ATTRIBUTE_LIST, NULL, &list);
	extent_list_deinit(&n->table);
	n->table_size = a.size;
	st = mft__add_runs(n, &a, &n->table, e);
	return st ? st : extent_list_settle(&n->table, n->table_size, NULL, e);
}

/*
 * $MFTMirr has a copy of the first records. Windows calls a record BAAD that was torn when it was
 * read; what it is called does not make it unreadable, if it is not torn now.
 */
static enum status open_mft_table(struct mft *n, struct err *e)
{
	const struct ntfs_boot *b = &n->volume->boot;
	struct err why = ERR_INIT;
	const enum status st = open_table_at(n, b->mft_cluster, "FILE", &why);

	if (!st)
		return ST_OK;
	if (b->mirror_cluster && b->mirror_cluster < b->clusters &&
	    !open_table_at(n, b->mirror_cluster, "FILE", NULL)) {
		err_set(&n->note, ST_OK, "MFT record 0 %s; its copy in $MFTMirr was used",
			why.message);
		return ST_OK;
	}
	if (!open_table_at(n, b->mft_cluster, "BAAD", NULL)) {
		err_set(&n->note, ST_OK, "MFT record 0 is marked as bad");
		return ST_OK;
	}
	return err_set(e, st, "MFT record 0: %s", why.message);
}

/*
 * So often is $MFT's list gone through; each time it may lead on to records that were out of sight.
 */
#define TABLE_ROUNDS 16

/* The clusters of $MFT that its other records name. Those records lie in $MFT, too. */
static enum status follow_mft_table(struct mft *n, struct err *e)
{
	static const struct name unnamed;
	struct err why = ERR_INIT;
	size_t lost = SIZE_MAX;
	enum status st = ST_OK;

	for (unsigned i = 0; i < TABLE_ROUNDS && lost && n->listed && !st; i++) {
		struct mft_stream s = { 0 };

		st = mft_stream_load(n, RECORD_MFT, ATTRIBUTE_DATA, &unnamed, &s, &why);
		if (!st && s.lost_records < lost) {
			lost = s.lost_records;
			why = s.problem;
			extent_list_deinit(&n->table);
			n->table = take_extents(&s.extents);
		} else if (!st) {
			st = ST_END;
		}
		mft_stream_deinit(&s);
	}
	if (st == ST_NOMEM)
		return err_nomem(e);
	if (why.message[0] && !n->note.message[0])
		err_set(&n->note, ST_OK, "$MFT is incomplete: %s", why.message);
	return ST_OK;
}

enum status mft_open(struct reader *r, const struct volume *v, struct mft **ret, struct err *e)
{
	struct mft *n = calloc(1, sizeof(*n));
	enum status st;

	if (!n)
		return err_nomem(e);
	n->reader = r;
	n->volume = v;
	n->own = malloc(v->boot.record);
	st = n->own ? open_mft_table(n, e) : err_nomem(e);
	if (!st)
		st = follow_mft_table(n, e);
	if (st)
		mft_close(n);
	else
		*ret = n;
	return st;
}

void mft_close(struct mft *n)
{
	if (!n)
		return;
	packed_close(n->packed);
	extent_list_deinit(&n->table);
	free(n->upcase);
	free(n->own);
	free(n);
}

const struct err *mft_note(const struct mft *n)
{
	return &n->note;
}

struct reader *mft_reader(const struct mft *n)
{
	return n->reader;
}

const struct volume *mft_volume(const struct mft *n)
{
	return n->volume;
}

const struct ntfs_boot *mft_boot_of(const struct mft *n)
{
	return &n->volume->boot;
}

enum status mft__read_extents(struct mft *n, const struct extent_list *extents, uint64_t off,
			      uint8_t *buf, size_t len, struct err *e)
{
	while (len) {
		const struct extent *x = extent_list_find(extents, off);
		const uint64_t in = x ? off - x->file : 0;
		const size_t part = x ? (size_t)MIN(len, x->length - in) : 0;
		size_t good;

		if (!x || x->kind == EXTENT_LOST)
			return err_set(e, ST_CORRUPT, "nothing says where byte %" PRIu64 " is",
				       off);
		if (x->kind == EXTENT_HOLE)
			memset(buf, 0, part);
		else if (!range_fits(x->disk + in, part, n->volume->length) ||
			 reader_read(n->reader, n->volume->offset + x->disk + in, buf, part, &good))
			return err_set(e, ST_CORRUPT,
				       "cannot be read at byte %" PRIu64 " of the volume",
				       x->disk + in);
		buf += part;
		off += part;
		len -= part;
	}
	return ST_OK;
}

uint64_t mft_records(const struct mft *n)
{
	return n->table_size / n->volume->boot.record;
}

uint64_t mft_stretch(const struct mft *n, uint64_t number, enum extent_kind *kind)
{
	const uint64_t off = number * n->volume->boot.record;
	const struct extent *x = extent_list_find(&n->table, off);
	uint64_t left = x ? x->length - (off - x->file) : 0;

	*kind = x ? x->kind : EXTENT_LOST;
	if (!x)
		return 1;
	if (x->kind == EXTENT_DISK) {
		const uint64_t disk = x->disk + (off - x->file);

		if (disk >= n->volume->length)
			*kind = EXTENT_LOST;
		else
			left = MIN(left, n->volume->length - disk);
	}
	/* A record larger than a cluster can begin in one extent and end in the next. */
	if (left < n->volume->boot.record)
		*kind = EXTENT_DISK;
	return MAX(left / n->volume->boot.record, (uint64_t)1);
}

enum status mft_raw_records(struct mft *n, uint64_t number, size_t count, uint8_t *ret,
			    struct err *e)
{
	const uint64_t size = n->volume->boot.record;

	return mft__read_extents(n, &n->table, number * size, ret, count * size, e);
}

enum status mft_record(struct mft *n, uint64_t number, uint8_t *ret, struct err *e)
{
	const uint32_t size = n->volume->boot.record;
	enum status st;

	if (number >= mft_records(n))
		return err_set(e, ST_CORRUPT, "MFT record %" PRIu64 " of %" PRIu64, number,
			       mft_records(n));
	if (number == RECORD_MFT) {
		memcpy(ret, n->own, size);
		return ST_OK;
	}
	st = mft_raw_records(n, number, 1, ret, e);
	if (!st)
		st = fixup_apply(ret, size, "FILE", e);
	return st ? err_add(e, st, "MFT record %" PRIu64, number) : ST_OK;
}

enum status mft_record_sound(struct mft *n, uint64_t number, uint8_t *ret, struct err *e)
{
	const enum status st = mft_record(n, number, ret, e);

	if (!st && !record_is_sound(ret, n->volume->boot.record))
		return err_set(e, ST_CORRUPT,
			       "MFT record %" PRIu64 ": its attributes make no sense", number);
	return st;
}

enum status mft_read_label(struct reader *r, const struct volume *v,
			   char ret[static VOLUME_LABEL_SIZE], struct err *note, struct err *e)
{
	static const struct name unnamed;
	_cleanup_free_ uint8_t *record = malloc(v->boot.record);
	struct mft *n = NULL;
	struct attribute a;
	struct name label;
	enum status st = record ? mft_open(r, v, &n, e) : err_nomem(e);

	if (st)
		return st;
	ret[0] = '\0';
	*note = n->note;
	if (!mft_record(n, RECORD_VOLUME, record, NULL) &&
	    attribute_find(record, v->boot.record, ATTRIBUTE_VOLUME_NAME, &unnamed, &a) &&
	    a.resident) {
		name_from_disk(a.value, a.value_size / 2, &label);
		name_to_utf8(&label, ret, VOLUME_LABEL_SIZE);
	}
	mft_close(n);
	return ST_OK;
}

bool mft_place(const struct mft *n, uint64_t number, size_t at, uint64_t *ret)
{
	const uint64_t off = number * n->volume->boot.record + at;
	const struct extent *x = extent_list_find(&n->table, off);

	if (!x || x->kind != EXTENT_DISK)
		return false;
	*ret = x->disk + (off - x->file);
	return true;
}

struct packed **mft__packed(struct mft *n)
{
	return &n->packed;
}

uint64_t mft_unit_size(const struct mft *n)
{
	return n->packed ? packed_unit_size(n->packed) : 0;
}

enum status mft_unit_read(struct mft *n, uint64_t off, void *buf, size_t len, struct err *e)
{
	return packed_read(n->packed, off, buf, len, e);
}

static enum status load_upcase(struct mft *n, struct err *e)
{
	static const struct name unnamed;
	_cleanup_stream_ struct mft_stream s = { 0 };
	_cleanup_free_ uint8_t *bytes = NULL;
	enum status st = mft_stream_load(n, RECORD_UPCASE, ATTRIBUTE_DATA, &unnamed, &s, NULL);

	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st)
		return ST_OK;
	bytes = malloc(UPCASE_SIZE);
	if (!bytes)
		return err_nomem(e);
	if (!mft_stream_read(n, &s, 0, bytes, UPCASE_SIZE, NULL))
		n->upcase = take_ptr(bytes);
	return ST_OK;
}

enum status mft_upcase(struct mft *n, const uint8_t **ret, struct err *e)
{
	const enum status st = n->upcase_sought ? ST_OK : load_upcase(n, e);

	n->upcase_sought = !st;
	*ret = n->upcase;
	return st;
}
