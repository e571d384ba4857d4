/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/rsz/rsz_wire.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utf8.h"

static const uint8_t mark[4] = { 'R', 'S', 'Z', RSZ_VERSION };
static const uint8_t leaf_prefix = 0; /* RFC 6962, 2.1 */

/* RFC 8878 counts a skippable frame's size from behind the size field. */
#define FRAME_FIELDS 8u

const char *rsz_kind_name(uint32_t kind)
{
	switch (kind) {
	case RSZ_KIND_MEMORY:
		return "physical memory";
	case RSZ_KIND_TABLES_BEFORE:
		return "page tables before";
	case RSZ_KIND_TABLES_AFTER:
		return "page tables after";
	case RSZ_KIND_PAGEFILE:
		return "page file";
	case RSZ_KIND_FILE:
		return "file";
	case RSZ_KIND_LOG:
		return "log";
	case RSZ_KIND_MANIFEST:
		return "manifest";
	case RSZ_KIND_FRAGMENT:
		return "fragment";
	case RSZ_KIND_SWAP_CACHE:
		return "swap cache";
	default:
		return "unknown";
	}
}

static bool kind_is_known(uint32_t kind)
{
	return kind >= RSZ_KIND_MEMORY && kind <= RSZ_KIND_SWAP_CACHE;
}

bool rsz_kind_is_paged(uint32_t kind)
{
	return (kind >= RSZ_KIND_MEMORY && kind <= RSZ_KIND_FILE) || kind == RSZ_KIND_SWAP_CACHE;
}

bool rsz_kind_is_physical(uint32_t kind)
{
	return kind >= RSZ_KIND_MEMORY && kind <= RSZ_KIND_TABLES_AFTER;
}

/*
 * Writing
 */

size_t rsz__put_begin(uint8_t *body, const struct rsz__begin *b)
{
	struct appender a = { body };

	app_le32(&a, RSZ_VERSION);
	app_le32(&a, b->text_length);
	app_le64(&a, b->wall);
	app_le64(&a, b->mono);
	app_bytes(&a, b->text, b->text_length);
	return (size_t)(a.at - body);
}

size_t rsz__put_stream(uint8_t *body, const struct rsz__stream *s)
{
	struct appender a = { body };

	app_le32(&a, s->stream);
	app_le32(&a, s->kind);
	app_le32(&a, s->page_size);
	app_le32(&a, s->name_length);
	app_le32(&a, s->meta_length);
	app_le32(&a, 0);
	app_bytes(&a, s->name, s->name_length);
	app_bytes(&a, s->meta, s->meta_length);
	return (size_t)(a.at - body);
}

/* Only the fixed part: extents and runs follow it, put one by one. */
size_t rsz__put_chunk(uint8_t *body, const struct rsz__chunk *c)
{
	struct appender a = { body };

	app_le32(&a, c->stream);
	app_le32(&a, c->extents);
	app_le32(&a, c->runs);
	app_le32(&a, c->length);
	app_le64(&a, c->start);
	app_le64(&a, c->end);
	return (size_t)(a.at - body);
}

void rsz__put_extent(uint8_t *at, const struct rsz_extent *x)
{
	struct appender a = { at };

	app_le64(&a, x->address);
	app_le32(&a, x->length);
	app_le16(&a, x->pass);
	app_le16(&a, x->reason);
	app_le64(&a, x->start);
	app_le64(&a, x->end);
}

void rsz__put_run(uint8_t *at, uint16_t count, struct page_status status)
{
	struct appender a = { at };

	app_le16(&a, count);
	app_u8(&a, (uint8_t)status.state);
	app_u8(&a, 0);
	app_le32(&a, status.detail);
}

size_t rsz__put_index(uint8_t *body, const struct rsz__index *x)
{
	struct appender a = { body };

	app_le32(&a, x->entries);
	app_le32(&a, 0);
	app_le64(&a, x->previous);
	return (size_t)(a.at - body);
}

void rsz__put_entry(uint8_t *at, const struct rsz__entry *x)
{
	struct appender a = { at };

	app_le64(&a, x->record);
	app_le64(&a, x->address);
	app_le32(&a, x->length);
	app_le32(&a, x->stream);
}

size_t rsz__put_close(uint8_t *body, const struct rsz__close *c)
{
	struct appender a = { body };

	app_le64(&a, c->records);
	app_le64(&a, c->last_index);
	app_bytes(&a, c->root, sizeof(c->root));
	return (size_t)(a.at - body);
}

/* The digest that stands in a header's last 32 bytes: the record's leaf of the tree. */
static void header_digest(const uint8_t *header, size_t len, struct sha256 *h, uint8_t *ret)
{
	sha256_begin(h);
	sha256_update(h, &leaf_prefix, 1);
	sha256_update(h, header, len - SHA256_SIZE);
	sha256_end(h, ret);
}

void rsz__finish(uint8_t *header, struct rsz__prefix *p, struct sha256 *h)
{
	struct appender a = { header };

	app_le32(&a, RSZ__MAGIC);
	app_le32(&a, (uint32_t)(p->header - FRAME_FIELDS));
	app_bytes(&a, mark, sizeof(mark));
	app_le16(&a, p->type);
	app_le16(&a, 0);
	app_bytes(&a, p->id, sizeof(p->id));
	app_le64(&a, p->sequence);
	app_le64(&a, p->offset);
	app_le32(&a, p->stored);
	app_le32(&a, p->content);
	app_le32(&a, p->crc);
	app_le32(&a, 0);
	app_bytes(&a, p->sha256, sizeof(p->sha256));
	header_digest(header, p->header, h, p->digest);
	memcpy(header + p->header - SHA256_SIZE, p->digest, SHA256_SIZE);
}

/*
 * Reading
 */

/* The longest header of each type (SPEC.md, section 3); 0: there is no such type. */
static size_t longest_header(uint16_t type)
{
	switch (type) {
	case RSZ_BEGIN:
		return RSZ__BEGIN_MAX;
	case RSZ_STREAM:
		return RSZ__PREFIX_SIZE + 24 + RSZ_NAME_MAX + RSZ_META_MAX + SHA256_SIZE;
	case RSZ_CHUNK:
		return RSZ_HEADER_MAX;
	case RSZ_INDEX:
		return RSZ__PREFIX_SIZE + 16 + SHA256_SIZE;
	case RSZ_CLOSE:
		return RSZ__CLOSE_SIZE;
	default:
		return 0;
	}
}

bool rsz__may_begin(const uint8_t *first, size_t len)
{
	uint8_t magic[4];

	put_le32(magic, RSZ__MAGIC);
	if (memcmp(first, magic, MIN(len, sizeof(magic))) != 0)
		return false;
	return len <= FRAME_FIELDS ||
	       !memcmp(first + FRAME_FIELDS, mark, MIN(len - FRAME_FIELDS, sizeof(mark)));
}

enum status rsz__get_size(const uint8_t first[static RSZ__SIZE_AT], size_t *ret, struct err *e)
{
	const uint32_t magic = get_le32(first);
	const uint32_t size = get_le32(first + 4);
	const uint16_t type = get_le16(first + 12);

	if (magic != RSZ__MAGIC || memcmp(first + 8, mark, sizeof(mark) - 1))
		return err_set(e, ST_CORRUPT, "no record begins here (0x%08" PRIx32 ")", magic);
	if (first[11] != RSZ_VERSION)
		return err_set(e, ST_CORRUPT, "format version %d; this program reads version %d",
			       first[11], RSZ_VERSION);
	if (!longest_header(type))
		return err_set(e, ST_CORRUPT, "record type %d", type);
	if (size < RSZ__HEADER_MIN - FRAME_FIELDS || size > longest_header(type) - FRAME_FIELDS)
		return err_set(e, ST_CORRUPT, "header of %" PRIu32 " bytes", size);
	*ret = size + FRAME_FIELDS;
	return ST_OK;
}

static bool are_zero_bytes(const uint8_t *p, size_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

static enum status check_payload_sizes(const struct rsz__prefix *p, struct err *e)
{
	if (p->content > RSZ_CONTENT_MAX || p->stored > RSZ_STORED_MAX)
		return err_set(e, ST_CORRUPT, "payload of %" PRIu32 " bytes in %" PRIu32,
			       p->content, p->stored);
	if (!p->content != !p->stored)
		return err_set(e, ST_CORRUPT, "payload has only one of its two sizes");
	if (!p->stored && (p->crc || !are_zero_bytes(p->sha256, SHA256_SIZE)))
		return err_set(e, ST_CORRUPT, "sums without a payload");
	return ST_OK;
}

enum status rsz__get_prefix(const uint8_t *header, size_t len, struct sha256 *h,
			    struct rsz__prefix *ret, struct err *e)
{
	struct cursor c = cursor_over(header, len);
	uint8_t digest[SHA256_SIZE];
	size_t size = 0;
	enum status st;

	if (len < RSZ__HEADER_MIN)
		return err_set(e, ST_CORRUPT, "header is cut short");
	st = rsz__get_size(header, &size, e);
	if (st)
		return st;
	if (size != len)
		return err_set(e, ST_CORRUPT, "header of %zu bytes in %zu", size, len);
	cur_bytes(&c, FRAME_FIELDS + sizeof(mark));
	header_digest(header, len, h, digest);
	if (CHECKS_SUMS && memcmp(digest, header + len - SHA256_SIZE, SHA256_SIZE))
		return err_set(e, ST_CORRUPT, "header does not match its digest");

	ret->header = len;
	ret->type = cur_le16(&c);
	const uint16_t reserved16 = cur_le16(&c);
	memcpy(ret->id, cur_bytes(&c, RSZ_ID_SIZE), RSZ_ID_SIZE);
	ret->sequence = cur_le64(&c);
	ret->offset = cur_le64(&c);
	ret->stored = cur_le32(&c);
	ret->content = cur_le32(&c);
	ret->crc = cur_le32(&c);
	const uint32_t reserved32 = cur_le32(&c);
	memcpy(ret->sha256, cur_bytes(&c, SHA256_SIZE), SHA256_SIZE);
	memcpy(ret->digest, digest, SHA256_SIZE);

	if (reserved16 || reserved32)
		return err_set(e, ST_CORRUPT, "reserved bits are set");
	return check_payload_sizes(ret, e);
}

/* A cursor over a header's body. */
static struct cursor body_of(const uint8_t *header, size_t len)
{
	return cursor_over(header + RSZ__PREFIX_SIZE, len - RSZ__HEADER_MIN);
}

/* The end of each parser: the body must be exactly as long as its fields say. */
static enum status check_length(const struct cursor *c, const char *what, struct err *e)
{
	if (c->bad)
		return err_set(e, ST_CORRUPT, "%s: header is cut short", what);
	if (c->left)
		return err_set(e, ST_CORRUPT, "%s: header is %zu bytes too long", what, c->left);
	return ST_OK;
}

static bool has_payload(const uint8_t *header)
{
	return get_le32(header + 48) != 0;
}

enum status rsz__get_begin(const uint8_t *header, size_t len, struct rsz__begin *ret, struct err *e)
{
	struct cursor c = body_of(header, len);
	const uint32_t version = cur_le32(&c);

	ret->text_length = cur_le32(&c);
	ret->wall = cur_le64(&c);
	ret->mono = cur_le64(&c);
	if (version != RSZ_VERSION)
		return err_set(e, ST_CORRUPT, "BEGIN: version %" PRIu32, version);
	if (ret->text_length > RSZ_TEXT_MAX || has_payload(header))
		return err_set(e, ST_CORRUPT, "BEGIN: text of %" PRIu32 " bytes, or a payload",
			       ret->text_length);
	ret->text = (const char *)cur_bytes(&c, ret->text_length);
	if (!c.bad && !utf8_valid(ret->text, ret->text_length))
		return err_set(e, ST_CORRUPT, "BEGIN: text that is not UTF-8");
	return check_length(&c, "BEGIN", e);
}

enum status rsz__get_stream(const uint8_t *header, size_t len, struct rsz__stream *ret,
			    struct err *e)
{
	struct cursor c = body_of(header, len);

	ret->stream = cur_le32(&c);
	ret->kind = cur_le32(&c);
	ret->page_size = cur_le32(&c);
	ret->name_length = cur_le32(&c);
	ret->meta_length = cur_le32(&c);
	const uint32_t reserved = cur_le32(&c);
	if (ret->name_length < 1 || ret->name_length > RSZ_NAME_MAX ||
	    ret->meta_length > RSZ_META_MAX)
		return err_set(e, ST_CORRUPT,
			       "STREAM: name of %" PRIu32 " and metadata of %" PRIu32 " bytes",
			       ret->name_length, ret->meta_length);
	if ((ret->page_size != 0 && ret->page_size != PAGE_SIZE) ||
	    (kind_is_known(ret->kind) && rsz_kind_is_paged(ret->kind) != !!ret->page_size))
		return err_set(e, ST_CORRUPT, "STREAM: page size %" PRIu32, ret->page_size);
	if (reserved || has_payload(header))
		return err_set(e, ST_CORRUPT, "STREAM: reserved bits are set, or a payload");
	ret->name = (const char *)cur_bytes(&c, ret->name_length);
	ret->meta = (const char *)cur_bytes(&c, ret->meta_length);
	if (!c.bad &&
	    !(utf8_valid(ret->name, ret->name_length) && utf8_valid(ret->meta, ret->meta_length)))
		return err_set(e, ST_CORRUPT, "STREAM: text that is not UTF-8");
	return check_length(&c, "STREAM", e);
}

struct rsz_extent rsz__get_extent(const uint8_t *at)
{
	struct cursor c = cursor_over(at, RSZ__EXTENT_SIZE);
	struct rsz_extent x;

	x.address = cur_le64(&c);
	x.length = cur_le32(&c);
	x.pass = cur_le16(&c);
	x.reason = cur_le16(&c);
	x.start = cur_le64(&c);
	x.end = cur_le64(&c);
	return x;
}

uint16_t rsz__get_run(const uint8_t *at, struct page_status *ret)
{
	ret->state = at[2];
	ret->detail = get_le32(at + 4);
	return get_le16(at);
}

static enum status check_extent(const struct rsz__chunk *c, const struct rsz_extent *x,
				uint32_t kind, bool paged, struct err *e)
{
	if (!x->length || x->length > c->length)
		return err_set(e, ST_CORRUPT, "extent of %" PRIu32 " bytes", x->length);
	if ((paged && x->address % PAGE_SIZE) || !range_fits(x->address, x->length, 1ull << 63))
		return err_set(e, ST_CORRUPT, "extent at 0x%" PRIx64, x->address);
	if (rsz_kind_is_physical(kind) &&
	    (x->length % PAGE_SIZE || !range_fits(x->address, x->length, PHYS_LIMIT)))
		return err_set(e, ST_CORRUPT, "extent at 0x%" PRIx64, x->address);
	if (x->start < c->start || x->end < x->start || x->end > c->end)
		return err_set(e, ST_CORRUPT, "extent's times are outside those of its chunk");
	if (x->reason > RSZ_TABLE_AGAIN || (x->pass == 0) != (x->reason == RSZ_FIRST))
		return err_set(e, ST_CORRUPT, "extent of pass %d for reason %d", x->pass,
			       x->reason);
	return ST_OK;
}

static enum status check_wire_run(const uint8_t *at, bool first, struct page_status before,
				  struct err *e)
{
	struct page_status s;
	const uint16_t count = rsz__get_run(at, &s);

	if (!count || at[3] || s.state >= PAGE_STATES)
		return err_set(e, ST_CORRUPT, "run of %d pages in state %" PRIu32, count, s.state);
	if (s.detail && s.state != PAGE_UNREADABLE && s.state != PAGE_SKIPPED)
		return err_set(e, ST_CORRUPT, "detail on a page of %s", page_state_name(s.state));
	if (s.state == PAGE_SKIPPED && (!s.detail || s.detail >= SKIP_REASONS))
		return err_set(e, ST_CORRUPT, "skipped for reason %" PRIu32, s.detail);
	if (!first && page_status_same(s, before))
		return err_set(e, ST_CORRUPT, "adjacent runs of the same state");
	return ST_OK;
}

/*
 * Walks runs and extents side by side: every page must have a state, and the data pages must add
 * up to the content.
 */
static enum status check_wire_pages(const struct rsz__chunk *c, uint32_t content, struct err *e)
{
	struct page_status status = { 0 }, before;
	uint64_t data = 0;
	uint32_t run = 0;
	size_t left = 0;

	for (uint32_t i = 0; i < c->extents; i++) {
		const struct rsz_extent x = rsz__get_extent(c->extents_at + i * RSZ__EXTENT_SIZE);
		uint32_t at = 0;

		for (size_t n = rsz_extent_pages(&x); n;) {
			if (!left) {
				const uint8_t *p = c->runs_at + run * RSZ__RUN_SIZE;

				if (run == c->runs)
					return err_set(e, ST_CORRUPT, "pages without a state");
				before = status;
				if (check_wire_run(p, run == 0, before, e))
					return ST_CORRUPT;
				left = rsz__get_run(p, &status);
				run++;
			}
			const size_t step = MIN(n, left);
			const uint64_t bytes = MIN((uint64_t)step * PAGE_SIZE, x.length - at);

			if (status.state == PAGE_DATA)
				data += bytes;
			at += (uint32_t)bytes;
			n -= step;
			left -= step;
		}
	}
	if (left || run != c->runs)
		return err_set(e, ST_CORRUPT, "states without a page");
	if (data != content)
		return err_set(e, ST_CORRUPT,
			       "%" PRIu64 " bytes of data pages, content of %" PRIu32, data,
			       content);
	return ST_OK;
}

uint32_t rsz__get_chunk_stream(const uint8_t *header)
{
	return get_le32(header + RSZ__PREFIX_SIZE);
}

enum status rsz__get_chunk(const uint8_t *header, size_t len, uint32_t kind, bool paged,
			   struct rsz__chunk *ret, struct err *e)
{
	struct cursor c = body_of(header, len);
	const uint32_t content = get_le32(header + 52);
	uint64_t sum = 0;
	enum status st;

	ret->stream = cur_le32(&c);
	ret->extents = cur_le32(&c);
	ret->runs = cur_le32(&c);
	ret->length = cur_le32(&c);
	ret->start = cur_le64(&c);
	ret->end = cur_le64(&c);
	if (!ret->extents || ret->extents > RSZ_EXTENTS_MAX || ret->runs > RSZ_RUNS_MAX)
		return err_set(e, ST_CORRUPT, "CHUNK: %" PRIu32 " extents, %" PRIu32 " runs",
			       ret->extents, ret->runs);
	if (!ret->length || ret->length > RSZ_CONTENT_MAX || ret->end < ret->start)
		return err_set(e, ST_CORRUPT, "CHUNK: length or time");
	ret->extents_at = cur_bytes(&c, RSZ__EXTENT_SIZE * ret->extents);
	ret->runs_at = cur_bytes(&c, RSZ__RUN_SIZE * ret->runs);
	st = check_length(&c, "CHUNK", e);
	for (uint32_t i = 0; !st && i < ret->extents; i++) {
		const struct rsz_extent x = rsz__get_extent(ret->extents_at + i * RSZ__EXTENT_SIZE);

		sum += x.length;
		st = check_extent(ret, &x, kind, paged, e);
	}
	if (st)
		return err_add(e, st, "CHUNK");
	if (sum != ret->length)
		return err_set(e, ST_CORRUPT,
			       "CHUNK: extents of %" PRIu64 " bytes, length %" PRIu32, sum,
			       ret->length);
	if (paged)
		return check_wire_pages(ret, content, e) ? err_add(e, ST_CORRUPT, "CHUNK") : ST_OK;
	if (ret->runs || content != ret->length)
		return err_set(e, ST_CORRUPT, "CHUNK: page states in a stream without pages");
	return ST_OK;
}

enum status rsz__get_index(const uint8_t *header, size_t len, struct rsz__index *ret, struct err *e)
{
	struct cursor c = body_of(header, len);

	ret->entries = cur_le32(&c);
	const uint32_t reserved = cur_le32(&c);
	ret->previous = cur_le64(&c);
	if (!ret->entries || ret->entries > RSZ_INDEX_MAX || reserved ||
	    get_le32(header + 52) != RSZ__ENTRY_SIZE * ret->entries)
		return err_set(e, ST_CORRUPT, "INDEX: %" PRIu32 " entries", ret->entries);
	return check_length(&c, "INDEX", e);
}

struct rsz__entry rsz__get_entry(const uint8_t *at)
{
	struct cursor c = cursor_over(at, RSZ__ENTRY_SIZE);
	struct rsz__entry x;

	x.record = cur_le64(&c);
	x.address = cur_le64(&c);
	x.length = cur_le32(&c);
	x.stream = cur_le32(&c);
	return x;
}

enum status rsz__get_close(const uint8_t *header, size_t len, struct rsz__close *ret, struct err *e)
{
	struct cursor c = body_of(header, len);
	const uint8_t *root;

	ret->records = cur_le64(&c);
	ret->last_index = cur_le64(&c);
	root = cur_bytes(&c, SHA256_SIZE);
	if (root)
		memcpy(ret->root, root, SHA256_SIZE);
	if (has_payload(header))
		return err_set(e, ST_CORRUPT, "CLOSE: has a payload");
	return check_length(&c, "CLOSE", e);
}
