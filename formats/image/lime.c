/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/lime.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* What is searched through at a time. */
#define SEARCH_STEP       ((size_t)64 << 10)

/* A disk with so many bad places is not searched any further. */
#define SEARCH_ERRORS_MAX 16

static enum status parse_lime_header(const uint8_t *h, struct range *ret, struct err *e)
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

static enum status append_lime_record(struct lime *l, struct range r, uint64_t offset,
				      struct err *e)
{
	if (l->count == LIME_RECORDS_MAX)
		return err_set(e, ST_CORRUPT, "more than %zu records", LIME_RECORDS_MAX);
	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return err_nomem(e);
	l->at[l->count++] =
		(struct lime_record){ .range = r, .offset = offset, .present = range_bytes(r) };
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

bool lime_is_header(const uint8_t *h, struct range *ret)
{
	return !parse_lime_header(h, ret, NULL) && !get_le64(h + 24) && ret->last < PHYS_LIMIT;
}

static bool has_header(struct blob *b, uint64_t off, struct range *ret)
{
	uint8_t h[LIME_HEADER_SIZE];

	return !blob_read(b, off, h, sizeof(h), NULL) && lime_is_header(h, ret);
}

/*
 * A header of AVML's that has nothing behind it but the next one, or the end. That is also where a
 * file ends that was cut, or AVML ended while it read the block: it is believed if there are
 * others.
 */
static bool is_header_alone(const struct lime *l, struct blob *b, struct range r, uint64_t off)
{
	struct range next;

	if (range_bytes(r) > LIME_ZERO_RANGE_MAX || (r.last & 7) != 6)
		return false;
	if (off == b->size)
		return l->zeros;
	if (!has_header(b, off, &next) || next.first <= r.last)
		return false;
	/* Not if it is memory, and the next one is where it should be. */
	return !range_fits(off, range_bytes(r), b->size) ||
	       (off + range_bytes(r) != b->size && !has_header(b, off + range_bytes(r), &next));
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
	st = parse_lime_header(h, &r, &why);
	if (st && l->count)
		return check_end(l, b, *off, false, &why, e);
	if (st)
		return err_set(e, st, "%s", why.message);
	st = append_lime_record(l, r, *off + sizeof(h), e);
	if (st)
		return st;
	*off += sizeof(h);
	if (is_header_alone(l, b, r, *off)) {
		l->at[l->count - 1].present = 0;
		l->at[l->count - 1].zeros = true;
		l->zeros += range_bytes(r);
		return ST_OK;
	}
	if (!range_fits(*off, range_bytes(r), b->size)) {
		l->at[l->count - 1].present = b->size - *off;
		l->end = LIME_CUT_RANGE;
		return ST_END;
	}
	*off += range_bytes(r);
	return ST_OK;
}

/* What a search for the next header has found behind the last record. */
struct search {
	uint64_t first; /* candidate, believed or not: what is in front of it is the record's */
	uint64_t found; /* that is believed */
	bool any, ok;
	bool last; /* look for records up to the end of the file only */
};

/* Whether the record of a header at `off` leads to another one, or to the end of the file. */
static bool is_chained(struct blob *b, uint64_t off, struct range r)
{
	const uint64_t begin = off + LIME_HEADER_SIZE;
	struct range next;

	if (!range_fits(begin, range_bytes(r), b->size))
		return false;
	return begin + range_bytes(r) == b->size || (has_header(b, begin + range_bytes(r), &next) &&
						     (next.first > r.last || next.last < r.first));
}

/* Whether one record leads to another up to the end of the file, as no header in memory does. */
static bool leads_to_end(struct lime *l, struct blob *b, uint64_t off, struct range r)
{
	while (l->compared++ < LIME_COMPARE_MAX) {
		const uint64_t begin = off + LIME_HEADER_SIZE;

		if (!range_fits(begin, range_bytes(r), b->size))
			return false;
		off = begin + range_bytes(r);
		if (off == b->size)
			return true;
		if (!has_header(b, off, &r))
			return false;
	}
	return false;
}

/*
 * Whether memory of `r` is in the file already, the last record being believed up to `off`. Headers
 * of records that were written before are in the page cache, and so in the memory behind them.
 */
static bool is_range_known(struct lime *l, struct range r, uint64_t off)
{
	for (size_t i = l->count; i-- > 0;) {
		const struct lime_record *k = &l->at[i];
		const uint64_t have =
			i == l->count - 1 ? MIN(k->present, off - k->offset) : k->present;

		if (l->compared++ >= LIME_COMPARE_MAX)
			return true;
		if (r.first == k->range.first)
			return true;
		if (have && r.first <= k->range.first + (have - 1) && r.last >= k->range.first)
			return true;
	}
	return false;
}

/*
 * Whether a record behind it, one of those that lead to the end of the file, has memory of the same
 * range: then this one is of another file, which was in the page cache, or of a first try.
 */
static bool is_copied(struct lime *l, uint64_t off, struct range r)
{
	for (size_t i = 0; i < l->n_last; i++) {
		const struct lime_record *k = &l->last[i];

		if (l->compared++ >= LIME_COMPARE_MAX)
			return true;
		if (off + LIME_HEADER_SIZE < k->offset && r.first <= k->range.last &&
		    r.last >= k->range.first)
			return true;
	}
	return false;
}

static void judge_last(struct lime *l, struct blob *b, uint64_t off, struct search *s)
{
	struct range r;

	s->ok = has_header(b, off, &r) && leads_to_end(l, b, off, r);
	s->found = off;
}

static void judge_candidate(struct lime *l, struct blob *b, uint64_t off, struct search *s)
{
	const struct lime_record *k = &l->at[l->count - 1];
	const uint64_t inside = off - k->offset;
	struct range r;

	if (s->last) {
		judge_last(l, b, off, s);
		return;
	}
	if (!has_header(b, off, &r) || (is_range_known(l, r, off) && !leads_to_end(l, b, off, r)))
		return;
	if (!s->any)
		s->first = off;
	s->any = true;
	s->ok = !is_copied(l, off, r) &&
		(is_chained(b, off, r) ||
		 (!(inside & (PAGE_SIZE - 1)) && inside < range_bytes(k->range)));
	if (s->ok)
		s->found = off;
	else if (l->n_doubted < LIME_DOUBTED_MAX)
		l->doubted[l->n_doubted++] = r;
}

static void search_buffer(struct lime *l, struct blob *b, uint64_t off, const uint8_t *buf,
			  size_t len, struct search *s)
{
	const uint8_t *at = buf, *end = buf + len;

	while (!s->ok && (at = memchr(at, LIME_MAGIC & 0xff, (size_t)(end - at)))) {
		if (end - at >= 8 && get_le32(at) == LIME_MAGIC && get_le32(at + 4) == LIME_VERSION)
			judge_candidate(l, b, off + (uint64_t)(at - buf), s);
		at++;
	}
}

static enum status search_lime_header(struct lime *l, struct blob *b, uint64_t off, uint64_t end,
				      struct search *s, struct err *e)
{
	_cleanup_free_ uint8_t *buf = malloc(SEARCH_STEP);
	unsigned errors = 0;

	if (!buf)
		return err_nomem(e);
	while (!s->ok && off < end) {
		/* What begins in this step may end behind it. */
		const size_t len = (size_t)MIN(end - off, SEARCH_STEP);
		size_t got = 0;
		const enum status st = b->read_at(b, off, buf, len, &got, e);

		if (st && (st != ST_INPUT || ++errors == SEARCH_ERRORS_MAX))
			return st;
		search_buffer(l, b, off, buf, got, s);
		if (len < SEARCH_STEP)
			break;
		off += SEARCH_STEP - 7;
	}
	return ST_OK;
}

/* Whether what stands where a header should is one, and damaged: the record before is whole. */
static bool looks_like_header(struct blob *b, uint64_t off)
{
	uint8_t h[LIME_HEADER_SIZE];

	if (blob_read(b, off, h, sizeof(h), NULL))
		return false;
	return get_le32(h) == LIME_MAGIC ||
	       (get_le32(h + 4) == LIME_VERSION && get_le64(h + 8) <= get_le64(h + 16) &&
		get_le64(h + 16) < PHYS_LIMIT && !get_le64(h + 24));
}

/* What lies in front of the first candidate is the record's, as far as that goes. */
static void end_lime_record(struct lime *l, struct blob *b, const struct search *s)
{
	struct lime_record *k = &l->at[l->count - 1];
	struct range next;

	k->present = MIN(k->present, s->first - k->offset);
	l->passed += s->found - (k->offset + k->present);
	/* A header that reaches into the next range is itself what is wrong. */
	if (has_header(b, s->found, &next) && next.first > k->range.first &&
	    next.first <= k->range.last && next.first - k->range.first >= k->present)
		k->range.last = next.first - 1;
	l->cut += k->present < range_bytes(k->range);
	l->lacked += range_bytes(k->range) - k->present;
}

/* The first header in the file from which on each record leads to the next, up to the end. */
static enum status find_last_records(struct lime *l, struct blob *b, uint64_t from, uint64_t end,
				     struct err *e)
{
	struct search s = { .last = true };
	enum status st = search_lime_header(l, b, from, end, &s, e);
	size_t room = 0;
	struct range r;

	l->looked_for_last = true;
	while (!st && s.ok && s.found < b->size && l->n_last < LIME_RECORDS_MAX &&
	       has_header(b, s.found, &r)) {
		if (!ARRAY_ROOM(l->last, l->n_last, room))
			return err_nomem(e);
		s.found += LIME_HEADER_SIZE;
		l->last[l->n_last++] = (struct lime_record){ .range = r, .offset = s.found };
		s.found += range_bytes(r);
	}
	return st;
}

/* Behind the last record no header was found where one should be: where the next one is. */
static enum status find_again(struct lime *l, struct blob *b, uint64_t *off, struct err *e)
{
	const struct lime_record *k = &l->at[l->count - 1];
	const uint64_t behind = k->offset + k->present;
	const bool near = l->end != LIME_CUT_RANGE && looks_like_header(b, behind);
	const uint64_t from = near ? behind + 1 : k->offset;
	/* A disk has old bytes behind the last record, and where those were zeros nothing is. */
	const uint64_t end = l->end == LIME_NO_HEADER && !b->device ? b->size : behind;
	struct search s = { 0 };
	enum status st = ST_OK;

	if (from < end && !l->looked_for_last)
		st = find_last_records(l, b, from, end, e);
	if (from < end && !st)
		st = search_lime_header(l, b, from, end, &s, e);
	if (st)
		return st;
	if (!s.any)
		return ST_END;
	if (!s.ok)
		s.found = b->size;
	end_lime_record(l, b, &s);
	l->found += s.ok;
	l->end = LIME_WHOLE;
	l->problem = (struct err)ERR_INIT;
	l->rest = 0;
	*off = s.found;
	return s.ok ? ST_OK : ST_END;
}

static bool overlaps_any(const struct lime *l, struct range r)
{
	for (size_t i = 0; i < l->count; i++)
		if (r.first <= l->at[i].range.last && r.last >= l->at[i].range.first)
			return true;
	return false;
}

/* What headers name that were not believed may be missing: nobody knows which bytes are theirs. */
static enum status add_doubted(struct lime *l, struct blob *b, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < l->n_doubted && !st; i++) {
		const struct range r = l->doubted[i];

		if (overlaps_any(l, r))
			continue;
		st = append_lime_record(l, r, b->size, e);
		if (st)
			break;
		l->at[l->count - 1].present = 0;
		l->cut++;
		l->lacked += range_bytes(r);
	}
	return st;
}

static bool has_lime_magic(struct blob *b)
{
	uint8_t magic[4];

	return !blob_read(b, 0, magic, sizeof(magic), NULL) && get_le32(magic) == LIME_MAGIC;
}

enum status lime_init(struct lime *l, struct blob *b, struct err *e)
{
	uint64_t off = 0;
	enum status st = ST_OK;

	*l = (struct lime){ 0 };
	if (!has_lime_magic(b))
		return err_set(e, ST_NOT_MINE, "not a LiME file");
	while (!st) {
		st = next_record(l, b, &off, e);
		if (st == ST_END && l->end != LIME_WHOLE)
			st = find_again(l, b, &off, e);
		if (st && st != ST_END)
			return err_add(e, st, "record %zu", l->count);
	}
	return add_doubted(l, b, e);
}

void lime_deinit(struct lime *l)
{
	free(l->at);
	free(l->last);
	*l = (struct lime){ 0 };
}
