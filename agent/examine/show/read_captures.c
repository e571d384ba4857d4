/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/read_captures.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/container/container.h"
#include "agent/image/image_captures.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/container/captures.h"
#include "formats/base/bytes.h"
#include "formats/base/sha256.h"

struct telling {
	const struct captures_request *r;
	struct container c;
	struct stream_captures all;
	const struct captures *memory;
	uint32_t stream;
	uint64_t begun; /* the container's first moment, monotonic ns */
	struct rsz_cursor *cursor;
	struct sha256 *sha;
	const struct older_page *older; /* of the page, and */
	size_t n;
	size_t captures; /* with the newest, if that can be read */
};

/* One of them: the newest is behind the older ones. */
struct one {
	uint64_t start, end;
	uint32_t reason;
	uint8_t bytes[PAGE_SIZE];
};

static enum status load_newest(struct telling *t, struct one *ret, struct err *e)
{
	struct rsz_page p;
	const enum status st = rsz_cursor_page(t->cursor, t->stream, t->r->pa, &p, e);

	if (st)
		return st;
	*ret = (struct one){ .start = p.start, .end = p.end, .reason = p.reason };
	memcpy(ret->bytes, p.data, p.length);
	return ST_OK;
}

static enum status load_capture(struct telling *t, size_t i, struct one *ret, struct err *e)
{
	const struct older_page *o;

	if (i == t->n)
		return load_newest(t, ret, e);
	o = &t->older[i];
	*ret = (struct one){ .start = o->start, .end = o->end, .reason = o->reason };
	return captures_read_older(t->cursor, o, ret->bytes, e);
}

static enum status tell_one(const struct telling *t, size_t i, const struct one *x, struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	const bool newest = i == t->n;

	sha256_begin(t->sha);
	sha256_update(t->sha, x->bytes, PAGE_SIZE);
	sha256_end(t->sha, digest);
	bytes_to_hex(digest, sizeof(digest), hex);
	if (t->r->json)
		return json_print(
			json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:s, s:b, s:s}", "schema",
				  JSON_SCHEMA("read"), "pa", json_sprintf("0x%" PRIx64, t->r->pa),
				  "capture", (json_int_t)i + 1, "captures", (json_int_t)t->captures,
				  "start_ns", (json_int_t)x->start, "end_ns", (json_int_t)x->end,
				  "reason", image_reason_name(x->reason), "newest", newest,
				  "sha256", hex),
			JSON_COMPACT, e);
	if (!t->r->silent)
		lines_print(
			stdout, 4, "0x%" PRIx64 "  capture %zu of %zu at %.6f s (%s)%s, sha256 %s",
			t->r->pa, i + 1, t->captures, ((double)x->start - (double)t->begun) / 1e9,
			image_reason_name(x->reason), newest ? ", the newest" : "", hex);
	return ST_OK;
}

static enum status tell_captures(struct telling *t, struct err *e)
{
	const uint64_t wanted = t->r->number ? t->r->number : t->captures;
	struct one x;
	enum status st = ST_OK;

	if (!t->captures)
		return err_set(e, ST_UNREADABLE, "nothing was captured at 0x%" PRIx64, t->r->pa);
	if (wanted > t->captures)
		return err_set(e, ST_USAGE, "0x%" PRIx64 " has %zu captures", t->r->pa,
			       t->captures);
	for (size_t i = 0; i < t->captures && !st; i++) {
		st = load_capture(t, i, &x, e);
		if (!st)
			st = tell_one(t, i, &x, e);
		if (!st && t->r->out && i + 1 == wanted)
			st = sink_write(output_sink(t->r->out), x.bytes, PAGE_SIZE, e);
	}
	return st;
}

static enum status open_page(struct telling *t, struct err *e)
{
	const uint64_t page = t->r->pa & ~(uint64_t)(PAGE_SIZE - 1);
	struct capture newest;
	enum status st = container_find_kind(&t->c, RSZ_KIND_MEMORY, &t->stream, e);

	if (!st)
		st = stream_captures_load(&t->all, t->c.blob, t->c.reader, e);
	if (!st)
		st = rsz_cursor_create(t->c.reader, 2, &t->cursor, e);
	if (!st)
		st = sha256_create(&t->sha, e);
	if (st)
		return st;
	t->begun = rsz_reader_identity(t->c.reader)->mono;
	t->memory = &t->all.streams[t->stream];
	t->older = captures_older(t->memory, page, &t->n);
	t->captures = t->n + (captures_from(t->memory, page, page | (PAGE_SIZE - 1), &newest) &&
			      capture_is_readable(&newest));
	return ST_OK;
}

enum status read_captures(const struct captures_request *r, struct err *e)
{
	struct telling t = { .r = r };
	enum status st = container_open(r->path, r->identities, &t.c, e);

	if (st)
		return st;
	st = open_page(&t, e);
	if (!st)
		st = tell_captures(&t, e);
	st = container_answer(&t.c, st, e);
	sha256_destroy(t.sha);
	rsz_cursor_destroy(t.cursor);
	stream_captures_deinit(&t.all);
	container_close(&t.c);
	return st ? err_add(e, st, "%s", r->path) : ST_OK;
}
