/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/slot_map.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

#define VERSION_AT     1024
#define LAST_PAGE_AT   1028
#define BAD_PAGES_AT   1032
#define SIGNATURE      "SWAPSPACE2"
#define SIGNATURE_SIZE 10

void slot_map_deinit(struct slot_map *m)
{
	extent_list_deinit(&m->extents);
	*m = (struct slot_map){ 0 };
}

static uint64_t round_down(uint64_t v)
{
	return v & ~(uint64_t)(PAGE_SIZE - 1);
}

/* The whole and aligned pages of an extent: [*first, *end) on the device. False: there are none. */
static bool whole_pages_of_extent(const struct extent *x, uint64_t *first, uint64_t *end)
{
	*first = round_down(x->disk + (PAGE_SIZE - 1));
	*end = round_down(x->disk + x->length);
	return *first < *end;
}

/* Of the file's first `size` bytes. */
static uint64_t count_slots(const struct extent_list *blocks, uint64_t size)
{
	uint64_t slots = 0, first, end;

	for (size_t i = 0; i < blocks->count; i++) {
		struct extent x = blocks->at[i];

		if (x.file >= size)
			break;
		x.length = MIN(x.length, size - x.file);
		if (whole_pages_of_extent(&x, &first, &end))
			slots += (end - first) / PAGE_SIZE;
	}
	return slots;
}

/* Appends behind the last one what lies on the device at [from, to). */
static enum status append_device_range(struct extent_list *l, uint64_t from, uint64_t to,
				       struct err *e)
{
	const struct extent *last = l->count ? &l->at[l->count - 1] : NULL;
	const struct extent x = {
		.file = last ? last->file + last->length : 0,
		.length = to - from,
		.disk = from,
	};

	return extent_list_add(l, x, e);
}

/* Appends either the first `slots` slots, or all but these. */
static enum status place_all(const struct extent_list *blocks, uint64_t slots, bool rest,
			     struct extent_list *to, struct err *e)
{
	uint64_t first, end;
	enum status st = ST_OK;

	for (size_t i = 0; i < blocks->count && !st; i++) {
		const struct extent *x = &blocks->at[i];
		const uint64_t behind = x->disk + x->length;

		if (!whole_pages_of_extent(x, &first, &end))
			first = end = behind;
		end = MIN(end, first + slots * PAGE_SIZE);
		slots -= (end - first) / PAGE_SIZE;
		if (!rest) {
			st = append_device_range(to, first, end, e);
			continue;
		}
		st = append_device_range(to, x->disk, first, e);
		if (!st)
			st = append_device_range(to, end, behind, e);
	}
	return st;
}

static enum status check_blocks(const struct extent_list *blocks, struct err *e)
{
	for (size_t i = 0; i < blocks->count; i++) {
		const struct extent *x = &blocks->at[i];

		if (x->kind != EXTENT_DISK)
			return err_set(e, ST_INPUT, "has a hole at %" PRIu64, x->file);
		if (x->disk > INT64_MAX || x->length > INT64_MAX - x->disk)
			return err_set(e, ST_INPUT, "lies beyond the end of any device");
	}
	return ST_OK;
}

/*
 * How many slots the kernel has, if that can be. iomap looks at whole pages of the file's length,
 * generic_swapfile_activate() at whole blocks: where the two differ, one page at the end is or is
 * not a slot, and none has another number.
 */
static enum status agree_on_pages(const struct extent_list *blocks, const struct slot_facts *f,
				  uint64_t *ret, struct err *e)
{
	const uint64_t most = f->last_page + 1;
	const uint64_t pages = MIN(count_slots(blocks, round_down(f->size)), most);
	const uint64_t with_blocks = MIN(count_slots(blocks, f->size), most);

	*ret = f->in_use / PAGE_SIZE + 1;
	if (*ret == pages || *ret == with_blocks)
		return ST_OK;
	return err_set(e, ST_INPUT,
		       "its extents make %" PRIu64 " slots, but the kernel has %" PRIu64, pages,
		       *ret);
}

enum status slot_map_make(const struct extent_list *blocks, const struct slot_facts *facts,
			  struct slot_map *ret, struct err *e)
{
	struct slot_map m = { 0 };
	enum status st = check_blocks(blocks, e);

	if (!st)
		st = agree_on_pages(blocks, facts, &m.slots, e);
	if (!st)
		st = place_all(blocks, m.slots, false, &m.extents, e);
	if (!st)
		st = place_all(blocks, m.slots, true, &m.extents, e);
	if (!st)
		st = extent_list_settle(&m.extents, facts->size, NULL, e);
	m.fragments = blocks->count;
	if (st)
		slot_map_deinit(&m);
	else
		*ret = m;
	return st;
}

bool slot_map_same(const struct slot_map *a, const struct slot_map *b)
{
	if (a->slots != b->slots || a->extents.count != b->extents.count)
		return false;
	for (size_t i = 0; i < a->extents.count; i++) {
		const struct extent *x = &a->extents.at[i], *y = &b->extents.at[i];

		if (x->file != y->file || x->length != y->length || x->disk != y->disk)
			return false;
	}
	return true;
}

enum status swap_header_parse(const uint8_t *header, uint64_t *ret_last_page, struct err *e)
{
	if (memcmp(header + SWAP_HEADER_SIZE - SIGNATURE_SIZE, SIGNATURE, SIGNATURE_SIZE))
		return err_set(e, ST_INPUT, "does not begin with the header of a swap file");
	/* swapon also takes headers of the other byte order; these are rare, and not read here. */
	if (get_le32(header + VERSION_AT) != 1)
		return err_set(e, ST_INPUT, "has a swap header of another version or byte order");
	if (get_le32(header + BAD_PAGES_AT))
		return err_set(e, ST_INPUT, "has a swap header with bad pages");
	*ret_last_page = get_le32(header + LAST_PAGE_AT);
	return ST_OK;
}
