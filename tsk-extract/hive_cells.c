/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/hive_cells.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"

#define BASE_BLOCK     0x1000 /* offsets count from its end */
#define ROOT_AT        36
#define KEY_SIZE       76
#define VALUE_SIZE     20
#define IN_THE_VALUE   0x80000000 /* of a length: up to 4 bytes stand in place of the offset */
#define DATA_IN_VALUE  4
#define DATA_IN_A_CELL 16344 /* more is in several */

/* What is in a cell, behind its length. */
struct cell {
	const uint8_t *at;
	size_t len;
};

/* `off` counts from the beginning of the file. A cell that is free has nothing in it. */
static bool open_cell(struct hive_cells *h, uint64_t off, size_t least, struct cell *ret)
{
	int64_t len;

	if (off < BASE_BLOCK || off % 4 || !range_fits(off, 4, h->size))
		return false;
	len = -(int64_t)(int32_t)get_le32(h->at + off) - 4;
	if (len < (int64_t)least || !range_fits(off + 4, (uint64_t)len, h->size))
		return false;
	*ret = (struct cell){ h->at + off + 4, (size_t)len };
	return true;
}

static bool is_cell_of_kind(struct hive_cells *h, uint64_t off, const char *kind, size_t size,
			    size_t name_at)
{
	struct cell c;

	return open_cell(h, off, size, &c) && !memcmp(c.at, kind, 2) &&
	       range_fits(size, get_le16(c.at + name_at), c.len);
}

static bool is_key(struct hive_cells *h, uint64_t off)
{
	return is_cell_of_kind(h, off, "nk", KEY_SIZE, 72);
}

static bool is_value_cell(struct hive_cells *h, uint64_t off)
{
	return is_cell_of_kind(h, off, "vk", VALUE_SIZE, 2);
}

size_t hive_cells_root(struct hive_cells *h)
{
	const uint64_t at = BASE_BLOCK + (uint64_t)get_le32(h->at + ROOT_AT);

	return is_key(h, at) ? (size_t)at : 0;
}

/* Offsets that are being collected: there is room for all of them, and the zero. */
struct list {
	size_t *at;
	size_t count;
	size_t room;
};

static void add_hive_cell(struct hive_cells *h, struct list *l, uint32_t offset,
			  bool (*fits)(struct hive_cells *h, uint64_t off))
{
	const uint64_t at = BASE_BLOCK + (uint64_t)offset;

	if (l->count < l->room && fits(h, at))
		l->at[l->count++] = (size_t)at;
	else
		h->bad++;
}

/* "li", "lf" and "lh" have keys, the latter two with a hint or a hash each; "ri" has such lists. */
static void add_subkeys(struct hive_cells *h, uint64_t off, struct list *l, bool below)
{
	struct cell c;
	size_t count, size;

	if (!open_cell(h, off, 4, &c)) {
		h->bad++;
		return;
	}
	size = memcmp(c.at, "lf", 2) && memcmp(c.at, "lh", 2) ? 4 : 8;
	count = MIN((size_t)get_le16(c.at + 2), (c.len - 4) / size);
	h->bad += count < get_le16(c.at + 2);
	if (!memcmp(c.at, "ri", 2) && !below) {
		for (size_t i = 0; i < count; i++)
			add_subkeys(h, BASE_BLOCK + (uint64_t)get_le32(c.at + 4 + 4 * i), l, true);
	} else if (size == 8 || !memcmp(c.at, "li", 2)) {
		for (size_t i = 0; i < count; i++)
			add_hive_cell(h, l, get_le32(c.at + 4 + size * i), is_key);
	} else {
		h->bad++;
	}
}

static bool grow_cell_list(struct list *l, size_t count)
{
	l->room = MIN(count, HIVE_CELLS_MAX);
	l->at = calloc(l->room + 1, sizeof(*l->at));
	return l->at;
}

size_t *hive_cells_subkeys(struct hive_cells *h, size_t key)
{
	struct list l = { 0 };
	struct cell c = { 0 };
	const bool is = is_key(h, key) && open_cell(h, key, KEY_SIZE, &c);
	const uint32_t count = is ? get_le32(c.at + 20) : 0;

	h->bad += !is;
	if (grow_cell_list(&l, count) && count)
		add_subkeys(h, BASE_BLOCK + (uint64_t)get_le32(c.at + 28), &l, false);
	return l.at;
}

size_t *hive_cells_values(struct hive_cells *h, size_t key)
{
	struct list l = { 0 };
	struct cell c = { 0 }, list = { 0 };
	const bool is = is_key(h, key) && open_cell(h, key, KEY_SIZE, &c);
	size_t count = is ? get_le32(c.at + 36) : 0;

	h->bad += !is;
	if (count && !open_cell(h, BASE_BLOCK + (uint64_t)get_le32(c.at + 40), 4, &list)) {
		h->bad++;
		count = 0;
	}
	h->bad += count > list.len / 4;
	count = MIN(count, list.len / 4);
	if (!grow_cell_list(&l, count))
		return NULL;
	for (size_t i = 0; i < count; i++)
		add_hive_cell(h, &l, get_le32(list.at + 4 * i), is_value_cell);
	return l.at;
}

enum status hive_cells_value(struct hive_cells *h, size_t value, uint32_t *type,
			     const uint8_t **data, size_t *len, struct err *e)
{
	struct cell c, d;
	uint32_t size;

	if (!is_value_cell(h, value) || !open_cell(h, value, VALUE_SIZE, &c))
		return err_set(e, ST_CORRUPT, "is not in its cell");
	size = get_le32(c.at + 4);
	*type = get_le32(c.at + 12);
	*data = c.at + 8;
	*len = size & ~IN_THE_VALUE;
	if (size & IN_THE_VALUE)
		return *len <= DATA_IN_VALUE
			       ? ST_OK
			       : err_set(e, ST_CORRUPT, "%zu bytes of data in its cell", *len);
	if (*len > DATA_IN_A_CELL ||
	    (*len && !open_cell(h, BASE_BLOCK + (uint64_t)get_le32(c.at + 8), *len, &d)))
		return err_set(e, ST_CORRUPT, "%zu bytes of data are not in one cell", *len);
	if (*len)
		*data = d.at;
	return ST_OK;
}
