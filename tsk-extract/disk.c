/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/disk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/foreign.h"
#include "tsk-extract/gpt.h"
#include "tsk-extract/mft.h"
#include "tsk-extract/tsk.h"

struct disk {
	struct reader *reader;
	enum disk_table table;
	uint32_t mbr_signature;
	struct err note;
	struct volume *at;
	size_t count;
};

static void add_note(struct disk *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void add_note(struct disk *d, const char *fmt, ...)
{
	const struct err before = d->note;
	char text[ERR_MESSAGE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&d->note, ST_OK, "%s%s%s", before.message, before.message[0] ? "; " : "", text);
}

static enum status open_ntfs(struct reader *r, struct volume *v)
{
	v->length = MIN(v->length, v->boot.clusters * v->boot.cluster);
	return mft_read_label(r, v, v->label, &v->note, &v->problem);
}

/*
 * NTFS keeps a copy of its boot sector in the last sector of the partition (Linux 6.1
 * fs/ntfs3/super.c, ntfs_init_from_boot(); mkntfs writes it there, too).
 */
static bool find_copy(struct reader *r, const struct volume *v, struct ntfs_boot *ret)
{
	static const uint32_t sectors[] = { 512, 4096, 1024, 2048 };
	const uint64_t length = MIN(v->length, r->size - MIN(r->size, v->offset));

	for (size_t i = 0; i < ARRAY_SIZE(sectors); i++) {
		uint8_t copy[512];
		size_t good;

		if (length < 2 * sectors[i] ||
		    reader_read(r, v->offset + length - sectors[i], copy, sizeof(copy), &good) ||
		    ntfs_boot_parse(copy, ret, NULL) || ret->sector > sectors[i] ||
		    ret->clusters > length / ret->cluster)
			continue;
		memcpy(ret->copy, copy, sizeof(copy));
		ret->from_copy = true;
		return true;
	}
	return false;
}

/* The volume's own boot sector is lost. */
static bool open_by_copy(struct reader *r, struct volume *v, const char *why)
{
	struct volume x = *v;

	x.kind = VOLUME_NTFS;
	x.problem = (struct err)ERR_INIT;
	if (!find_copy(r, v, &x.boot) || open_ntfs(r, &x))
		return false;
	if (!x.note.message[0])
		err_set(&x.note, ST_OK, "its boot sector %s; the copy at its end was used", why);
	x.readable = true;
	*v = x;
	return true;
}

/*
 * A volume that was made in the place of one of NTFS, and begins with zeros (btrfs, ZFS), keeps the
 * copy and much of $MFT: to take those would give the files of the former one.
 */
static void mention_copy(struct reader *r, struct volume *v)
{
	struct ntfs_boot unused;

	if (find_copy(r, v, &unused))
		err_set(&v->problem, ST_OK,
			"its last sector is a copy of the boot sector of an NTFS volume, possibly "
			"a former one");
}

/* Looks at what begins at the volume's offset and fills in the rest. */
static void probe_volume(struct reader *r, struct volume *v)
{
	uint8_t probe[VOLUME_PROBE_SIZE] = { 0 };
	enum status st;
	size_t good;
	const uint32_t error = reader_read(r, v->offset, probe, sizeof(probe), &good);

	v->kind = good >= 512 ? volume_kind_of(probe) : VOLUME_UNREADABLE;
	/* What could not be read need not be zeros. */
	if (error && v->kind == VOLUME_EMPTY)
		v->kind = VOLUME_UNKNOWN;
	if (v->kind == VOLUME_NTFS) {
		st = ntfs_boot_parse(probe, &v->boot, &v->problem);
		if (st && open_by_copy(r, v, "makes no sense"))
			return;
		if (!st)
			st = open_ntfs(r, v);
		v->readable = !st;
	} else if (v->kind == VOLUME_UNREADABLE) {
		open_by_copy(r, v, "cannot be read");
	} else if (v->kind == VOLUME_EMPTY || v->kind == VOLUME_UNKNOWN) {
		mention_copy(r, v);
	}
}

static enum status add_volume(struct disk *d, uint64_t offset, uint64_t length, struct err *e)
{
	struct volume *v;

	if (!d->at)
		d->at = calloc(VOLUMES_MAX, sizeof(*d->at));
	if (!d->at)
		return err_nomem(e);
	if (d->count == VOLUMES_MAX || !length)
		return ST_OK;
	v = &d->at[d->count];
	*v = (struct volume){ .number = d->count, .offset = offset, .length = length };
	probe_volume(d->reader, v);
	d->count++;
	return ST_OK;
}

/* One volume that begins at `offset`. Its length is the file system's, if that is cut short too. */
static enum status open_bare(struct disk *d, uint64_t offset, struct err *e)
{
	const uint64_t rest = d->reader->size - offset;
	enum status st = add_volume(d, offset, INT64_MAX - offset, e);

	if (!st && d->at[0].kind != VOLUME_NTFS)
		d->at[0].length = rest;
	return st;
}

static enum status add_partitions(struct disk *d, const TSK_VS_INFO *vs, struct err *e)
{
	const uint64_t limit = (uint64_t)INT64_MAX / vs->block_size;

	for (TSK_PNUM_T i = 0; i < vs->part_count; i++) {
		const TSK_VS_PART_INFO *part = tsk_vs_part_get(vs, i);
		enum status st;

		if (!part || !(part->flags & TSK_VS_PART_FLAG_ALLOC) || part->start >= limit ||
		    part->len > limit - part->start)
			continue;
		st = add_volume(d, part->start * vs->block_size, part->len * vs->block_size, e);
		if (st)
			return st;
	}
	return ST_OK;
}

/* ST_NOT_MINE if there is no table of this type. */
static enum status open_volume_table(struct disk *d, struct tsk_window *w, TSK_VS_TYPE_ENUM type,
				     struct err *e)
{
	TSK_VS_INFO *vs;
	enum status st;

	tsk_window_refill(w);
	vs = tsk_vs_open(tsk_window_image(w), 0, type);
	st = vs ? add_partitions(d, vs, e) : ST_NOT_MINE;
	if (vs)
		tsk_vs_close(vs);
	tsk_error_reset();
	return st;
}

static enum status add_gpt(struct disk *d, const struct gpt *g, struct err *e)
{
	const uint64_t limit = (uint64_t)INT64_MAX / g->sector;
	enum status st = ST_OK;

	d->table = TABLE_GPT;
	for (size_t i = 0; i < g->count && !st; i++) {
		const struct gpt_entry *p = &g->at[i];
		const size_t n = d->count;

		if (p->last >= limit)
			continue;
		st = add_volume(d, p->first * g->sector, (p->last - p->first + 1) * g->sector, e);
		if (st || d->count == n)
			continue;
		memcpy(d->at[n].guid, p->guid, sizeof(p->guid));
		d->at[n].has_guid = true;
	}
	return st;
}

/*
 * libtsk refuses a table of which one entry makes no sense. It counts all the same: what else the
 * disk has, such as a GPT of a former use, is no better known.
 */
static enum status add_primaries(struct disk *d, const uint8_t *mbr, struct err *e)
{
	enum status st = ST_OK;

	add_note(d, "the MBR has entries that make no sense; logical partitions are not looked "
		    "for");
	for (size_t i = 0; i < MBR_ENTRIES && !st; i++) {
		const struct mbr_entry p = mbr_entry_of(mbr, i);

		if (p.sectors && !p.extended)
			st = add_volume(d, (uint64_t)p.first * 512, (uint64_t)p.sectors * 512, e);
	}
	return st;
}

/* `believed`: it has partitions, whatever else it has. */
static enum status open_mbr(struct disk *d, const uint8_t *mbr, bool believed, struct err *e)
{
	struct tsk_window *w = NULL;
	enum status st = tsk_window_create(d->reader, 0, d->reader->size, NULL, &w, e);

	if (st)
		return st;
	st = open_volume_table(d, w, TSK_VS_TYPE_DOS, e);
	tsk_window_destroy(w);
	if (st == ST_NOT_MINE && believed)
		st = add_primaries(d, mbr, e);
	if (st)
		return st;
	d->table = TABLE_MBR;
	d->mbr_signature = get_le32(mbr + 0x1b8);
	return ST_OK;
}

static bool has_partition(const struct gpt *g, uint64_t offset)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->at[i].first == offset / g->sector)
			return true;
	return false;
}

/* What other tables of the disk say that the one that counts does not; `mbr` NULL: nothing. */
static void compare_partition_tables(struct disk *d, const uint8_t *mbr, const struct gpt *g)
{
	size_t beside = 0;

	for (size_t i = 0; mbr && i < MBR_ENTRIES; i++) {
		const struct mbr_entry p = mbr_entry_of(mbr, i);

		beside += p.type != MBR_TYPE_GPT && p.first && p.sectors &&
			  !has_partition(g, (uint64_t)p.first * 512);
	}
	if (beside)
		add_note(d,
			 "the MBR has %zu partitions that the GPT does not have; they are not "
			 "looked into",
			 beside);
	if (gpt_backup_differs(d->reader, g))
		add_note(d, "the backup GPT at the end of the disk, which is sound, names other "
			    "partitions; the primary one was taken");
}

/*
 * UEFI 2.10, 5.3.1: it is the partition of type 0xEE that makes a disk a GPT disk. Beside other
 * partitions a GPT is what was there before, as tools that write an MBR over it leave it behind.
 * If there is no MBR, or nobody can read it, a GPT speaks for itself.
 */
static enum status open_tables(struct disk *d, const uint8_t *mbr, struct err *e)
{
	bool odd_flag = false;
	const enum mbr_kind kind =
		mbr ? mbr_kind_of(mbr, d->reader->size / 512, &odd_flag) : MBR_NONE;
	struct gpt g;
	enum status st = gpt_open(d->reader, &g, e), mbr_st = ST_NOT_MINE;

	if (mbr && (kind == MBR_PARTITIONS || st == ST_NOT_MINE))
		mbr_st = open_mbr(d, mbr, kind == MBR_PARTITIONS, e);
	if (mbr_st != ST_NOT_MINE) {
		if (odd_flag)
			add_note(d, "the MBR has boot indicators that make no sense");
		if (!st)
			add_note(d,
				 "the MBR has partitions but no protective entry: the %s GPT is "
				 "ignored (%zu partitions from an earlier use)",
				 g.backup ? "backup" : "primary", g.count);
		st = mbr_st;
	} else if (!st) {
		st = add_gpt(d, &g, e);
		if (!g.sound)
			add_note(d, "the %s GPT has a wrong checksum",
				 g.backup ? "backup" : "primary");
		else if (g.backup)
			add_note(d, "the primary GPT cannot be read or is damaged; its backup at "
				    "the end of the disk was used");
		compare_partition_tables(d, kind == MBR_PROTECTIVE ? mbr : NULL, &g);
	}
	gpt_deinit(&g);
	return st;
}

/* A volume without a table whose first sector is lost: its last one has a copy. */
static enum status open_bare_by_copy(struct disk *d, struct err *e)
{
	enum status st = add_volume(d, 0, d->reader->size, e);

	if (st || d->at[0].readable)
		return st;
	d->count = 0;
	return ST_NOT_MINE;
}

/* For foreign_find(). What cannot be read is zeros, which no mark has. */
struct reader_blob {
	struct blob blob;
	struct reader *reader;
};

static enum status reader_blob_read(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				    struct err *e)
{
	struct reader *r = ((struct reader_blob *)b)->reader;

	*got = (size_t)MIN(len, r->size - MIN(off, r->size));
	reader_read_around(r, off, p, *got, NULL, NULL);
	return ST_OK;
}

/*
 * Other people's images of disks, whose partitions are not where they say; `any`: also what holds
 * no disk at all. Devices have no such format.
 */
static enum status refuse_foreign(struct reader *r, bool any, struct err *e)
{
	struct reader_blob b = {
		{ .read_at = reader_blob_read, .size = r->size },
		r,
	};
	const struct foreign *is = NULL;
	const enum status st = r->device ? ST_OK : foreign_find(&b.blob, &is, e);

	if (st || !is || is->kind == FOREIGN_DISK || (!any && is->kind != FOREIGN_VIRTUAL_DISK))
		return st;
	return err_set(e, ST_INPUT, "is %s%s%s", is->what, is->advice ? "; " : "",
		       is->advice ? is->advice : "");
}

static enum status look_for_volumes(struct disk *d, struct err *e)
{
	uint8_t probe[VOLUME_PROBE_SIZE] = { 0 };
	enum volume_kind kind = VOLUME_UNKNOWN;
	enum status st;
	size_t good;

	st = refuse_foreign(d->reader, false, e);
	if (st)
		return st;
	reader_read(d->reader, 0, probe, sizeof(probe), &good);
	if (good >= 512)
		kind = volume_kind_of(probe);
	if (kind != VOLUME_UNKNOWN && kind != VOLUME_EMPTY)
		return open_bare(d, 0, e);
	st = open_tables(d, good >= 512 ? probe : NULL, e);
	if (st == ST_NOT_MINE)
		st = open_bare_by_copy(d, e);
	if (st == ST_NOT_MINE && good < 512)
		st = err_set(e, ST_INPUT,
			     "cannot be read at the beginning, and has no backup of a "
			     "partition table or of a boot sector at its end");
	else if (st == ST_NOT_MINE && !(st = refuse_foreign(d->reader, true, e)))
		st = err_set(e, ST_INPUT, "holds no partition table and no known file system");
	else if (!st && good < 512)
		add_note(d, "its first sector cannot be read");
	return st;
}

static enum status disk_create(struct reader *r, struct disk **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret) {
		reader_close(r);
		return err_nomem(e);
	}
	(*ret)->reader = r;
	return ST_OK;
}

enum status disk_from_reader(struct reader *r, struct disk **ret, struct err *e)
{
	struct disk *d = NULL;
	enum status st = disk_create(r, &d, e);

	if (!st)
		st = look_for_volumes(d, e);
	if (st && d && d->reader->note)
		err_add(e, st, "%s", d->reader->note);
	if (st)
		disk_close(d);
	else
		*ret = d;
	return st;
}

enum status disk_open(const char *const *paths, size_t n, struct disk **ret, struct err *e)
{
	struct reader *r = NULL;
	enum status st = reader_open(paths, n, &r, e);

	if (st)
		return st;
	st = disk_from_reader(r, ret, e);
	return st ? err_add(e, st, "%s", paths[0]) : ST_OK;
}

enum status disk_open_at(const char *const *paths, size_t n, uint64_t offset, struct disk **ret,
			 struct err *e)
{
	struct reader *r = NULL;
	struct disk *d = NULL;
	enum status st = reader_open(paths, n, &r, e);

	if (st)
		return st;
	if (offset >= r->size) {
		st = err_set(e, ST_INPUT, "%s: offset %" PRIu64 " is past its end (%" PRIu64 ")",
			     paths[0], offset, r->size);
		reader_close(r);
		return st;
	}
	st = disk_create(r, &d, e);
	if (!st) {
		st = refuse_foreign(r, false, e);
		if (st)
			err_add(e, st, "%s", paths[0]);
	}
	if (!st)
		st = open_bare(d, offset, e);
	if (st)
		disk_close(d);
	else
		*ret = d;
	return st;
}

void disk_close(struct disk *d)
{
	if (!d)
		return;
	reader_close(d->reader);
	free(d->at);
	free(d);
}

const struct volume *disk_volumes(const struct disk *d, size_t *ret_count)
{
	*ret_count = d->count;
	return d->at;
}

enum disk_table disk_table(const struct disk *d)
{
	return d->table;
}

uint32_t disk_mbr_signature(const struct disk *d)
{
	return d->mbr_signature;
}

const struct err *disk_note(const struct disk *d)
{
	return &d->note;
}

struct reader *disk_reader(const struct disk *d)
{
	return d->reader;
}

/* "NTFS at sector 2048, FAT at sector 4096" */
static void describe_volumes(const struct disk *d, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < d->count && used < size; i++) {
		const struct volume *v = &d->at[i];
		const int n = snprintf(out + used, size - used, "%s%s at sector %" PRIu64 "%s%s",
				       i ? ", " : "", volume_kind_text(v->kind), v->offset / 512,
				       v->problem.message[0] ? ": " : "", v->problem.message);

		used += n > 0 ? (size_t)n : 0;
	}
}

enum status disk_only_ntfs(const struct disk *d, const struct volume **ret, struct err *e)
{
	const struct volume *found = NULL;
	size_t readable = 0;
	char list[ERR_MESSAGE_MAX - 64];

	for (size_t i = 0; i < d->count; i++) {
		if (d->at[i].readable) {
			found = &d->at[i];
			readable++;
		}
	}
	if (readable == 1) {
		*ret = found;
		return ST_OK;
	}
	describe_volumes(d, list, sizeof(list));
	if (readable)
		return err_set(e, ST_INPUT, "has %zu NTFS volumes; choose one by its offset: %s",
			       readable, list);
	return err_set(e, ST_INPUT, "has no NTFS volume that can be read: %s",
		       d->count ? list : "no partitions");
}
