/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/image_file.h"
#include "formats/base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_PAGES ((size_t)256)

static uint64_t round_up_to_page(uint64_t address)
{
	return (address + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}

enum status image_file_init(struct image_file *f, uint8_t *head, size_t head_size,
			    struct range_list *ranges, struct err *e)
{
	uint64_t offset = head_size;

	f->ranges = *ranges;
	*ranges = (struct range_list){ 0 };
	f->head = head;
	f->head_size = head_size;
	if (!head)
		return ST_OK;
	f->offsets = calloc(MAX(f->ranges.count, 1), sizeof(*f->offsets));
	if (!f->offsets)
		return err_nomem(e);
	for (size_t i = 0; i < f->ranges.count; i++) {
		f->offsets[i] = offset;
		offset += range_bytes(f->ranges.at[i]);
	}
	f->end = offset;
	return ST_OK;
}

void image_file_deinit(struct image_file *f)
{
	range_list_deinit(&f->ranges);
	free(f->head);
	free(f->offsets);
	free(f->patches);
}

uint64_t image_file_size(const struct image_file *f)
{
	return f->end;
}

uint64_t image_file_stored(const struct image_file *f)
{
	return MIN(f->head_size + range_list_bytes(&f->ranges), f->end);
}

bool image_file_next_data(const struct image_file *f, uint64_t at, struct range *ret)
{
	const size_t i = range_list_from(&f->ranges, at);

	if (f->head)
		*ret = (struct range){ 0, f->end - 1 };
	else if (i < f->ranges.count)
		*ret = (struct range){ f->ranges.at[i].first,
				       MIN(round_up_to_page(f->ranges.at[i].last + 1), f->end) -
					       1 };
	else
		return false;
	return at < f->end;
}

static void patch_pages(const struct dmp_patch *p, uint64_t address, uint8_t *buf, size_t pages)
{
	const uint64_t at = p->address & ~(uint64_t)(PAGE_SIZE - 1);

	if (at >= address && at - address < pages * PAGE_SIZE)
		dmp_patch_apply(p, at, buf + (at - address));
}

static enum status read_shown_pages(const struct image_file *f, uint64_t address, uint8_t *buf,
				    size_t pages, struct err *e)
{
	struct page_status status[BATCH_PAGES];
	enum status st = chunk_cache_read(f->cache, f->stream, address, buf, pages, status, e);

	for (size_t i = 0; i < pages && !st; i++)
		if (image_fill_gap(buf + i * PAGE_SIZE, status[i], &f->gaps->unreadable,
				   &f->gaps->skipped) &&
		    f->gaps->fail)
			st = err_set(e, ST_END, "the page at 0x%" PRIx64 " has no content",
				     address + i * PAGE_SIZE);
	for (size_t i = 0; i < f->n_patches && !st; i++)
		patch_pages(&f->patches[i], address, buf, pages);
	return st;
}

/* Any bytes of whole pages. */
static enum status read_range(const struct image_file *f, uint64_t address, uint8_t *buf,
			      size_t len, struct err *e)
{
	enum status st = ST_OK;

	for (size_t n; len && !st; len -= n, buf += n, address += n) {
		const size_t skip = (size_t)(address % PAGE_SIZE);
		uint8_t page[PAGE_SIZE];

		if (!skip && len >= PAGE_SIZE) {
			n = MIN(len / PAGE_SIZE, BATCH_PAGES) * PAGE_SIZE;
			st = read_shown_pages(f, address, buf, n / PAGE_SIZE, e);
			continue;
		}
		n = MIN(len, PAGE_SIZE - skip);
		st = read_shown_pages(f, address - skip, page, 1, e);
		if (!st)
			memcpy(buf, page + skip, n);
	}
	return st;
}

/* One step: how many bytes it has read. */
static enum status read_padded(const struct image_file *f, uint64_t at, uint8_t *buf, size_t *len,
			       struct err *e)
{
	struct range data;

	if (!image_file_next_data(f, at, &data) || data.first > at) {
		if (image_file_next_data(f, at, &data))
			*len = (size_t)MIN(*len, data.first - at);
		memset(buf, 0, *len);
		return ST_OK;
	}
	*len = (size_t)MIN(*len, data.last + 1 - at);
	return read_range(f, at, buf, *len, e);
}

static enum status read_headed(const struct image_file *f, uint64_t at, uint8_t *buf, size_t *len,
			       struct err *e)
{
	size_t i;
	uint64_t into;

	if (at < f->head_size) {
		*len = (size_t)MIN(*len, f->head_size - at);
		memcpy(buf, f->head + at, *len);
		return ST_OK;
	}
	i = FIRST_WHERE(k, f->ranges.count, f->offsets[k] > at) - 1;
	into = at - f->offsets[i];
	*len = (size_t)MIN(*len, range_bytes(f->ranges.at[i]) - into);
	return read_range(f, f->ranges.at[i].first + into, buf, *len, e);
}

enum status image_file_read(const struct image_file *f, uint64_t at, uint8_t *buf, size_t len,
			    struct err *e)
{
	enum status st = ST_OK;

	for (size_t n; len && !st; len -= n, buf += n, at += n) {
		n = len;
		st = f->head ? read_headed(f, at, buf, &n, e) : read_padded(f, at, buf, &n, e);
	}
	return st;
}
