/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/extent.h"

#include <string.h>

#include "formats/base/array.h"

const char *extent_kind_name(enum extent_kind kind)
{
	static const char *const names[] = {
		[EXTENT_DISK] = "disk", [EXTENT_HOLE] = "hole", [EXTENT_LOST] = "lost"
	};

	return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

void extent_list_deinit(struct extent_list *l)
{
	free(l->at);
	*l = (struct extent_list){ 0 };
}

enum status extent_list_add(struct extent_list *l, struct extent x, struct err *e)
{
	if (!x.length)
		return ST_OK;
	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return err_nomem(e);
	l->at[l->count++] = x;
	return ST_OK;
}

static bool continues_extent(const struct extent *a, const struct extent *b)
{
	return a->kind == b->kind && a->file + a->length == b->file &&
	       (a->kind != EXTENT_DISK || a->disk + a->length == b->disk);
}

/* Appends, joining with the last one where they continue each other. */
static enum status append_extent(struct extent_list *l, struct extent x, struct err *e)
{
	if (l->count && x.length && continues_extent(&l->at[l->count - 1], &x)) {
		l->at[l->count - 1].length += x.length;
		return ST_OK;
	}
	return extent_list_add(l, x, e);
}

/* Cuts `by` bytes off the front. */
static void cut_extent_front(struct extent *x, uint64_t by)
{
	x->file += by;
	x->length -= by;
	if (x->kind == EXTENT_DISK)
		x->disk += by;
}

static int by_file(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->disk < y->disk ? -1 : x->disk > y->disk;
}

static bool is_sorted(const struct extent_list *l)
{
	for (size_t i = 1; i < l->count; i++)
		if (l->at[i].file < l->at[i - 1].file)
			return false;
	return true;
}

static enum status fill_gap(struct extent_list *l, uint64_t from, uint64_t to, struct err *e)
{
	const struct extent gap = { .file = from, .length = to - from, .kind = EXTENT_LOST };

	return to > from ? append_extent(l, gap, e) : ST_OK;
}

enum status extent_list_settle(struct extent_list *l, uint64_t length, size_t *ret_overlaps,
			       struct err *e)
{
	struct extent_list out = { 0 };
	size_t overlaps = 0;
	uint64_t end = 0;
	enum status st = ST_OK;

	if (!is_sorted(l))
		qsort(l->at, l->count, sizeof(*l->at), by_file);
	for (size_t i = 0; i < l->count && !st; i++) {
		struct extent x = l->at[i];

		if (x.file < end) {
			overlaps++;
			if (x.length <= end - x.file)
				continue;
			cut_extent_front(&x, end - x.file);
		}
		if (x.file >= length)
			break;
		x.length = MIN(x.length, length - x.file);
		st = fill_gap(&out, end, x.file, e);
		if (!st)
			st = append_extent(&out, x, e);
		end = x.file + x.length;
	}
	if (!st)
		st = fill_gap(&out, end, length, e);
	if (ret_overlaps)
		*ret_overlaps = overlaps;
	extent_list_deinit(st ? &out : l);
	if (!st)
		*l = out;
	return st;
}

const struct extent *extent_list_find(const struct extent_list *l, uint64_t off)
{
	const size_t behind = FIRST_WHERE(i, l->count, l->at[i].file > off);
	const struct extent *x = behind ? &l->at[behind - 1] : NULL;

	return x && off - x->file < x->length ? x : NULL;
}

size_t extent_list_fragments(const struct extent_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		n += l->at[i].kind == EXTENT_DISK;
	return n;
}

enum status extent_list_changes(const struct extent_list *before, const struct extent_list *now,
				struct extent_list *ret, struct err *e)
{
	enum status st = ST_OK;
	size_t b = 0;

	for (size_t n = 0; n < now->count && !st; n++) {
		struct extent x = now->at[n];

		while (x.length && !st) {
			struct extent piece = x, old;

			while (b < before->count &&
			       before->at[b].file + before->at[b].length <= x.file)
				b++;
			old = b < before->count ? before->at[b] : (struct extent){ 0 };
			if (old.length) {
				cut_extent_front(&old, x.file - old.file);
				piece.length = MIN(x.length, old.length);
			}
			if (!old.length || old.kind != piece.kind || old.disk != piece.disk)
				st = append_extent(ret, piece, e);
			cut_extent_front(&x, piece.length);
		}
	}
	return st;
}
