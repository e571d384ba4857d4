/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/record.h"

#include <string.h>

#include "formats/base/bytes.h"

/* The update sequence guards every 512 bytes, whatever the sector size (ntfs.h, SECTOR_SIZE). */
#define FIXUP_STRIDE 512

enum status fixup_apply(uint8_t *p, size_t size, const char magic[static 4], struct err *e)
{
	const size_t at = get_le16(p + 4), count = get_le16(p + 6);

	if (memcmp(p, magic, 4) != 0)
		return err_set(e, ST_CORRUPT, "is not a %.4s record", magic);
	if (count != size / FIXUP_STRIDE + 1 || !range_fits(at, 2 * count, FIXUP_STRIDE - 2))
		return err_set(e, ST_CORRUPT, "update sequence of %zu words at %zu", count, at);
	for (size_t i = 1; i < count; i++) {
		uint8_t *end = p + i * FIXUP_STRIDE - 2;

		if (memcmp(end, p + at, 2) != 0)
			return err_set(e, ST_CORRUPT, "sector %zu is torn (update sequence)",
				       i - 1);
		memcpy(end, p + at + 2 * i, 2);
	}
	return ST_OK;
}

struct record_header record_header_of(const uint8_t *record)
{
	const uint16_t flags = get_le16(record + 22);

	return (struct record_header){
		.base = get_le64(record + 32),
		.sequence = get_le16(record + 16),
		.in_use = flags & 1,
		.directory = flags & 2,
	};
}

/* Fields of an attribute of `len` bytes at `p`; false if they point out of it. */
static bool parse_attribute(const uint8_t *p, size_t len, struct attribute *ret)
{
	const size_t name_at = get_le16(p + 10), name_units = p[9];

	*ret = (struct attribute){
		.type = get_le32(p),
		.resident = p[8] == 0,
		.flags = get_le16(p + 12),
		.id = get_le16(p + 14),
	};
	if (name_units) {
		if (!range_fits(name_at, 2 * name_units, len))
			return false;
		name_from_disk(p + name_at, name_units, &ret->name);
	}
	if (ret->resident) {
		ret->value_size = get_le32(p + 16);
		ret->value = p + get_le16(p + 20);
		ret->size = ret->allocated = ret->initialised = ret->value_size;
		return range_fits(get_le16(p + 20), ret->value_size, len);
	}
	if (len < 64)
		return false;
	ret->first_cluster = get_le64(p + 16);
	ret->last_cluster = get_le64(p + 24);
	if (get_le16(p + 32) < 64 || get_le16(p + 32) > len)
		return false;
	ret->runs = p + get_le16(p + 32);
	ret->runs_size = len - get_le16(p + 32);
	ret->no_clusters = ret->last_cluster == UINT64_MAX;
	ret->allocated = get_le64(p + 40);
	ret->size = get_le64(p + 48);
	ret->initialised = get_le64(p + 56);
	return ret->no_clusters || ret->first_cluster <= ret->last_cluster;
}

bool attribute_next(struct attribute_walk *w, struct attribute *ret)
{
	const size_t used = MIN(w->size, get_le32(w->record + 24));
	uint32_t len;

	if (!w->at)
		w->at = get_le16(w->record + 20);
	if (w->at < 42 || !range_fits(w->at, 24, used) ||
	    get_le32(w->record + w->at) == (uint32_t)ATTRIBUTE_END)
		return false;
	len = get_le32(w->record + w->at + 4);
	if (len < 24 || (len & 7) || !range_fits(w->at, len, used) ||
	    !parse_attribute(w->record + w->at, len, ret))
		return false;
	ret->at = w->at;
	w->at += len;
	return true;
}

bool attribute_find(const uint8_t *record, size_t size, uint32_t type, const struct name *name,
		    struct attribute *ret)
{
	struct attribute_walk w = { .record = record, .size = size };

	while (attribute_next(&w, ret))
		if (ret->type == type && (!name || name_same(&ret->name, name)))
			return true;
	return false;
}

/* `n` bytes, at most 8, as a number with a sign. */
static uint64_t get_signed(const uint8_t *p, size_t n)
{
	uint64_t v = n && (p[n - 1] & 0x80) ? UINT64_MAX : 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/*
 * A run list: for each run a byte whose low half is the size of the count and whose high half is
 * the size of the distance from the run before, then those two; without a distance it is a hole.
 * The end is a size of 0 for the count. Linux 6.1 fs/ntfs3/run.c, run_unpack().
 */
bool run_next(struct run_walk *w, struct data_run *ret)
{
	const uint8_t count = w->at < w->size ? w->runs[w->at] & 15 : 0;
	const uint8_t distance = count ? w->runs[w->at] >> 4 : 0;

	if (!count || count > 8 || distance > 8 ||
	    !range_fits(w->at, 1u + count + distance, w->size))
		return false;
	w->last += get_signed(w->runs + w->at + 1 + count, distance);
	*ret = (struct data_run){
		.count = get_signed(w->runs + w->at + 1, count),
		.first = w->last,
		.hole = !distance,
	};
	w->at += 1u + count + distance;
	return ret->count != 0;
}

/* The list comes to its end mark, and no size in it is made up. */
static bool runs_end(const uint8_t *runs, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const uint8_t count = runs[at] & 15, distance = runs[at] >> 4;

		if (!count)
			return true;
		if (count > 8 || distance > 8)
			return false;
		at += 1 + count + distance;
	}
	return false;
}

static bool attribute_is_sound(const struct attribute *a)
{
	if (!a->resident)
		return runs_end(a->runs, a->runs_size) && a->type != ATTRIBUTE_FILE_NAME &&
		       a->type != ATTRIBUTE_VOLUME_INFORMATION;
	if (a->type == ATTRIBUTE_FILE_NAME)
		return a->value_size >= 66 && 2u * a->value[64] <= a->value_size - 66;
	return a->type != ATTRIBUTE_VOLUME_INFORMATION || a->value_size >= 12;
}

/* `judge` NULL: every attribute will do. */
static bool walk_ends(const uint8_t *record, size_t size, bool (*judge)(const struct attribute *a))
{
	struct attribute_walk w = { .record = record, .size = size };
	struct attribute a;

	while (attribute_next(&w, &a))
		if (judge && !judge(&a))
			return false;
	return range_fits(w.at, 4, size) && get_le32(record + w.at) == (uint32_t)ATTRIBUTE_END;
}

bool attributes_end(const uint8_t *record, size_t size)
{
	return walk_ends(record, size, NULL);
}

bool record_is_sound(const uint8_t *record, size_t size)
{
	return walk_ends(record, size, attribute_is_sound);
}

bool list_next(struct list_walk *w, struct list_entry *ret)
{
	const uint8_t *p = w->list + w->at;
	size_t len, name_units;

	if (!range_fits(w->at, 26, w->size))
		return false;
	len = get_le16(p + 4);
	name_units = p[6];
	if (len < 26 || !range_fits(w->at, len, w->size) ||
	    (name_units && !range_fits(p[7], 2 * name_units, len)))
		return false;
	ret->type = get_le32(p);
	ret->first_cluster = get_le64(p + 8);
	ret->reference = get_le64(p + 16);
	ret->id = get_le16(p + 24);
	name_from_disk(p + p[7], name_units, &ret->name);
	w->at += len;
	return true;
}
