/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/disk.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/mft.h"
#include "tsk-extract/tsk.h"

struct disk {
	struct reader *reader;
	enum disk_table table;
	uint32_t table_sector; /* bytes; the unit of the partition table */
	uint32_t mbr_signature;
	struct volume *at;
	size_t count;
};

/* Looks at what begins at the volume's offset and fills in the rest. */
static void probe_volume(struct reader *r, struct volume *v)
{
	uint8_t probe[VOLUME_PROBE_SIZE] = { 0 };
	enum status st;
	size_t good;

	reader_read(r, v->offset, probe, sizeof(probe), &good);
	v->kind = volume_kind_of(probe);
	if (v->kind != VOLUME_NTFS)
		return;
	st = ntfs_boot_parse(probe, &v->boot, &v->problem);
	if (!st) {
		v->length = MIN(v->length, v->boot.clusters * v->boot.cluster);
		st = mft_read_label(r, v, v->label, &v->note, &v->problem);
	}
	v->readable = !st;
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

/*
 * Gives each volume the GUID of its GPT entry, which libtsk does not tell. Layout: UEFI 2.10,
 * 5.3.2 and 5.3.3. A backup table at the end is not looked for: without GUIDs all else works.
 */
static void add_guids(struct disk *d)
{
	uint8_t header[92], entry[128];
	uint64_t table;
	uint32_t count, size;
	size_t good;

	if (reader_read(d->reader, d->table_sector, header, sizeof(header), &good) ||
	    memcmp(header, "EFI PART", 8) != 0)
		return;
	table = get_le64(header + 72);
	count = MIN(get_le32(header + 80), 1024);
	size = get_le32(header + 84);
	if (table > d->reader->size / d->table_sector || size < sizeof(entry) || size > 4096)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (reader_read(d->reader, table * d->table_sector + (uint64_t)i * size, entry,
				sizeof(entry), &good))
			return;
		for (size_t v = 0; v < d->count; v++) {
			if (d->at[v].offset / d->table_sector != get_le64(entry + 32))
				continue;
			memcpy(d->at[v].guid, entry + 16, sizeof(d->at[v].guid));
			d->at[v].has_guid = true;
		}
	}
}

static enum status add_partitions(struct disk *d, const TSK_VS_INFO *vs, struct err *e)
{
	const uint64_t limit = (uint64_t)INT64_MAX / vs->block_size;

	d->table_sector = vs->block_size;
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
static enum status open_table(struct disk *d, struct tsk_window *w, TSK_VS_TYPE_ENUM type,
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

static enum status open_tables(struct disk *d, struct err *e)
{
	struct tsk_window *w = NULL;
	uint8_t mbr[512];
	size_t good;
	enum status st = tsk_window_create(d->reader, 0, d->reader->size, NULL, &w, e);

	if (st)
		return st;
	st = open_table(d, w, TSK_VS_TYPE_GPT, e);
	if (!st) {
		d->table = TABLE_GPT;
		add_guids(d);
	}
	if (st == ST_NOT_MINE) {
		st = open_table(d, w, TSK_VS_TYPE_DOS, e);
		if (!st && !reader_read(d->reader, 0, mbr, sizeof(mbr), &good)) {
			d->table = TABLE_MBR;
			d->mbr_signature = get_le32(mbr + 0x1b8);
		}
	}
	tsk_window_destroy(w);
	if (st == ST_NOT_MINE)
		st = err_set(e, ST_INPUT, "holds no partition table and no known file system");
	return st;
}

static enum status look_for_volumes(struct disk *d, struct err *e)
{
	uint8_t probe[VOLUME_PROBE_SIZE] = { 0 };
	enum volume_kind kind;
	size_t good;

	reader_read(d->reader, 0, probe, sizeof(probe), &good);
	if (!good)
		return err_set(e, ST_INPUT, "cannot be read at the beginning");
	kind = volume_kind_of(probe);
	return kind == VOLUME_UNKNOWN || kind == VOLUME_EMPTY ? open_tables(d, e)
							      : open_bare(d, 0, e);
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
		st = err_set(e, ST_INPUT, "%s: offset %" PRIu64 " is behind its end (%" PRIu64 ")",
			     paths[0], offset, r->size);
		reader_close(r);
		return st;
	}
	st = disk_create(r, &d, e);
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
		return err_set(e, ST_INPUT, "has %zu NTFS volumes; name one by its offset: %s",
			       readable, list);
	return err_set(e, ST_INPUT, "has no NTFS volume that can be read: %s",
		       d->count ? list : "no partitions");
}
