/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/lime.h"

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

/* Reads the record at *off and moves *off behind it; ST_END where the file ends. */
static enum status next_record(struct lime *l, struct blob *b, uint64_t *off, struct err *e)
{
	uint8_t h[LIME_HEADER_SIZE];
	struct range r = { 0 };
	size_t got = 0;
	enum status st = b->read_at(b, *off, h, sizeof(h), &got, e);

	if (st)
		return st;
	if (got < sizeof(h)) {
		l->cut = got > 0;
		return ST_END;
	}
	st = parse_header(h, &r, e);
	if (!st)
		st = add_record(l, r, *off + sizeof(h), e);
	if (st)
		return st;
	*off += sizeof(h);
	if (!range_fits(*off, range_bytes(r), b->size)) {
		l->cut = true;
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
