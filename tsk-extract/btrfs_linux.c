/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/btrfs_linux.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/btrfs_tree.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

static enum status add_btrfs_chunk(struct btrfs_chunks *to, uint64_t logical, const uint8_t *item,
				   size_t size, struct err *e)
{
	const uint8_t *stripe = item + offsetof(struct btrfs_chunk, stripe);

	if (size < sizeof(struct btrfs_chunk))
		return err_set(e, ST_INPUT, "btrfs: a chunk item of %zu bytes", size);
	if (!ARRAY_ROOM(to->at, to->count, to->room))
		return err_nomem(e);
	to->at[to->count++] = (struct btrfs_place){
		.logical = logical,
		.length = get_le64(item + offsetof(struct btrfs_chunk, length)),
		.profile = get_le64(item + offsetof(struct btrfs_chunk, type)) &
			   BTRFS_BLOCK_GROUP_PROFILE_MASK,
		.device = get_le64(stripe + offsetof(struct btrfs_stripe, devid)),
		.physical = get_le64(stripe + offsetof(struct btrfs_stripe, offset)),
	};
	return ST_OK;
}

enum status btrfs__take_items(struct btrfs_chunks *to, const struct btrfs_ioctl_search_args *a,
			      uint64_t *last, struct err *e)
{
	const uint8_t *at = (const uint8_t *)a->buf, *end = at + sizeof(a->buf);
	struct btrfs_ioctl_search_header h;
	enum status st = ST_OK;

	for (uint32_t i = 0; i < a->key.nr_items && !st; i++) {
		if ((size_t)(end - at) < sizeof(h))
			return err_set(e, ST_INPUT, "btrfs: items that do not fit");
		memcpy(&h, at, sizeof(h));
		at += sizeof(h);
		if ((size_t)(end - at) < h.len)
			return err_set(e, ST_INPUT, "btrfs: items that do not fit");
		*last = h.offset;
		if (h.objectid == BTRFS_FIRST_CHUNK_TREE_OBJECTID && h.type == BTRFS_CHUNK_ITEM_KEY)
			st = add_btrfs_chunk(to, h.offset, at, h.len, e);
		at += h.len;
	}
	return st;
}

static enum status load_chunks(int fd, struct btrfs_chunks *ret, struct err *e)
{
	struct btrfs_ioctl_search_args a;
	uint64_t last = 0;
	enum status st;

	for (uint64_t from = 0;; from = last + 1) {
		memset(&a, 0, sizeof(a));
		a.key = (struct btrfs_ioctl_search_key){
			.tree_id = BTRFS_CHUNK_TREE_OBJECTID,
			.min_objectid = BTRFS_FIRST_CHUNK_TREE_OBJECTID,
			.max_objectid = BTRFS_FIRST_CHUNK_TREE_OBJECTID,
			.min_offset = from,
			.max_offset = UINT64_MAX,
			.max_transid = UINT64_MAX,
			.min_type = BTRFS_CHUNK_ITEM_KEY,
			.max_type = BTRFS_CHUNK_ITEM_KEY,
			.nr_items = UINT32_MAX,
		};
		if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &a))
			return err_from_errno(e, ST_INPUT, errno, "btrfs: the list of chunks");
		if (!a.key.nr_items)
			return ST_OK;
		st = btrfs__take_items(ret, &a, &last, e);
		if (st || last == UINT64_MAX)
			return st;
	}
}

static const struct btrfs_place *find_btrfs_chunk(const struct btrfs_chunks *l, uint64_t logical)
{
	for (size_t i = 0; i < l->count; i++)
		if (logical >= l->at[i].logical && logical - l->at[i].logical < l->at[i].length)
			return &l->at[i];
	return NULL;
}

/* The profile and the one device that swapon wants. */
static enum status check_chunk(const struct btrfs_place *c, uint64_t logical, uint64_t device,
			       struct err *e)
{
	if (!c)
		return err_set(e, ST_INPUT, "btrfs: no chunk has %" PRIu64, logical);
	if (c->profile)
		return err_set(e, ST_INPUT, "btrfs: its profile is not \"single\"");
	if (device && c->device != device)
		return err_set(e, ST_INPUT, "btrfs: lies on more than one device");
	return ST_OK;
}

/* FIEMAP joins what follows each other logically: that may be in two chunks. */
static enum status place_one(const struct btrfs_chunks *l, struct extent x, uint64_t *device,
			     struct extent_list *to, struct err *e)
{
	while (x.length) {
		const struct btrfs_place *c = find_btrfs_chunk(l, x.disk);
		enum status st = check_chunk(c, x.disk, *device, e);
		struct extent part = x;

		if (st)
			return st;
		part.length = MIN(x.length, c->length - (x.disk - c->logical));
		part.disk = c->physical + (x.disk - c->logical);
		*device = c->device;
		st = extent_list_add(to, part, e);
		if (st)
			return st;
		x.file += part.length;
		x.disk += part.length;
		x.length -= part.length;
	}
	return ST_OK;
}

enum status btrfs__place_all(const struct btrfs_chunks *l, struct extent_list *blocks,
			     uint64_t *ret_device, struct err *e)
{
	struct extent_list placed = { 0 };
	enum status st = ST_OK;

	*ret_device = 0; /* devices count from 1 */
	for (size_t i = 0; i < blocks->count && !st; i++)
		st = place_one(l, blocks->at[i], ret_device, &placed, e);
	extent_list_deinit(st ? &placed : blocks);
	if (!st)
		*blocks = placed;
	return st;
}

static enum status btrfs_device_path(int fd, uint64_t device, char **ret, struct err *e)
{
	struct btrfs_ioctl_dev_info_args a = { .devid = device };

	if (ioctl(fd, BTRFS_IOC_DEV_INFO, &a))
		return err_from_errno(e, ST_INPUT, errno, "btrfs: its device");
	*ret = strndup((const char *)a.path, sizeof(a.path));
	return *ret ? ST_OK : err_nomem(e);
}

enum status btrfs_place(int fd, struct extent_list *blocks, char **ret_device, struct err *e)
{
	struct btrfs_chunks l = { 0 };
	uint64_t device = 0;
	enum status st = load_chunks(fd, &l, e);

	if (!st)
		st = btrfs__place_all(&l, blocks, &device, e);
	free(l.at);
	return st ? st : btrfs_device_path(fd, device, ret_device, e);
}
