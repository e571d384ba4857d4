/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/lime.h"

#include <inttypes.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

static enum status parse_header(const uint8_t *h, struct range *ret, struct err *e)
{
	struct cursor c = cursor_over(h, LIME_HEADER_SIZE);
	const uint32_t magic = cur_le32(&c);
	const uint32_t version = cur_le32(&c);
	const uint64_t first = cur_le64(&c);
	const uint64_t last = cur_le64(&c);

	if (magic != LIME_MAGIC)
		return err_set(e, ST_CORRUPT, "magic is 0x%08" PRIx32, magic);
	if (version != LIME_VERSION)
		return err_set(e, ST_CORRUPT, "version %" PRIu32 " is unknown", version);
	if (last < first)
		return err_set(e, ST_CORRUPT, "range 0x%" PRIx64 "-0x%" PRIx64 " runs backwards",
			       first, last);
	if (last - first == UINT64_MAX)
		return err_set(e, ST_CORRUPT, "range spans the whole address space");
	*ret = (struct range){ .first = first, .last = last };
	return ST_OK;
}

static enum status add_record(struct lime *l, struct range r, uint64_t offset, struct err *e)
{
	if (l->count == LIME_RECORDS_MAX)
		return err_set(e, ST_CORRUPT, "more than %zu records", LIME_RECORDS_MAX);
	if (l->count == l->room) {
		struct lime_record *at = array_grow(l->at, &l->room, sizeof(*at));

		if (!at)
			return err_nomem(e);
		l->at = at;
	}
	l->at[l->count++] = (struct lime_record){ .range = r, .offset = offset };
	return ST_OK;
}

/* Whether nothing but zeros follows, as far as is looked. */
static enum status only_zeros(struct blob *b, uint64_t off, bool *ret, struct err *e)
{
	const uint64_t end = off + MIN(b->size - off, LIME_ZEROS_MAX);
	uint8_t buf[PAGE_SIZE];

	*ret = true;
	for (size_t got = 0; off < end && *ret; off += got) {
		const enum status st =
			b->read_at(b, off, buf, (size_t)MIN(end - off, sizeof(buf)), &got, e);

		if (st)
			return st;
		for (size_t i = 0; i < got; i++)
			*ret = *ret && !buf[i];
		if (!got)
			break;
	}
	return ST_OK;
}

/* What stands where a header should, and is none. */
static enum status check_end(struct lime *l, struct blob *b, uint64_t off, bool cut,
			     const struct err *why, struct err *e)
{
	bool zeros;
	const enum status st = only_zeros(b, off, &zeros, e);

	if (st)
		return st;
	l->rest = b->size - off;
	l->end = zeros ? LIME_ZEROS : cut ? LIME_CUT_HEADER : LIME_NO_HEADER;
	if (l->end == LIME_NO_HEADER)
		l->problem = *why;
	return ST_END;
}

/* Reads the record at *off and moves *off behind it; ST_END where there are no more. */
static enum status next_record(struct lime *l, struct blob *b, uint64_t *off, struct err *e)
{
	uint8_t h[LIME_HEADER_SIZE];
	struct err why = ERR_INIT;
	struct range r = { 0 };
	size_t got = 0;
	enum status st = b->read_at(b, *off, h, sizeof(h), &got, e);

	if (st)
		return st;
	if (!got)
		return ST_END;
	if (got < sizeof(h))
		return check_end(l, b, *off, true, NULL, e);
	st = parse_header(h, &r, &why);
	if (st && l->count)
		return check_end(l, b, *off, false, &why, e);
	if (st)
		return err_set(e, st, "%s", why.message);
	st = add_record(l, r, *off + sizeof(h), e);
	if (st)
		return st;
	*off += sizeof(h);
	if (!range_fits(*off, range_bytes(r), b->size)) {
		l->end = LIME_CUT_RANGE;
		return ST_END;
	}
	*off += range_bytes(r);
	return ST_OK;
}

static bool has_magic(struct blob *b)
{
	uint8_t magic[4];

	return !blob_read(b, 0, magic, sizeof(magic), NULL) && get_le32(magic) == LIME_MAGIC;
}

enum status lime_init(struct lime *l, struct blob *b, struct err *e)
{
	uint64_t off = 0;
	enum status st = ST_OK;

	*l = (struct lime){ 0 };
	if (!has_magic(b))
		return err_set(e, ST_NOT_MINE, "not a LiME file");
	while (!st) {
		st = next_record(l, b, &off, e);
		if (st && st != ST_END)
			return err_add(e, st, "record %zu", l->count);
	}
	return ST_OK;
}

void lime_deinit(struct lime *l)
{
	free(l->at);
	*l = (struct lime){ 0 };
}
