/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/frames.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"

static const char magic[8] = { 'r', 'a', 'm', 's', 'e', 'a', 'l', '\n' };

#define HELLO_SIZE   48 /* without the name */
#define REFUSED_SIZE 8  /* without the text */

/* What a body can be long; PROTOCOL.md, section 2. */
static const struct {
	size_t least, most;
} lengths[] = {
	[FRAME_HELLO] = { HELLO_SIZE, HELLO_SIZE + FRAME_NAME_MAX },
	[FRAME_WELCOME] = { 24, 24 },
	[FRAME_DATA] = { 9, 8 + FRAME_DATA_MAX },
	[FRAME_ACK] = { 8, 8 },
	[FRAME_PING] = { 0, 0 },
	[FRAME_END] = { 48, 48 },
	[FRAME_DONE] = { 96, 96 },
	[FRAME_REFUSED] = { REFUSED_SIZE + 1, REFUSED_SIZE + FRAME_TEXT_MAX },
};

const char *refusal_name(unsigned r)
{
	switch (r) {
#define X(name, number, passing, text)                                                             \
	case number:                                                                               \
		return text;
		REFUSAL_MAP(X)
#undef X
	default:
		return "unknown";
	}
}

bool refusal_is_passing(unsigned r)
{
	switch (r) {
#define X(name, number, passing, text)                                                             \
	case number:                                                                               \
		return passing;
		REFUSAL_MAP(X)
#undef X
	default:
		return false;
	}
}

enum status frame_refuse(struct frame_refused *ret, enum refusal reason, const char *fmt, ...)
{
	va_list args;

	*ret = (struct frame_refused){ .reason = (uint16_t)reason };
	va_start(args, fmt);
	vsnprintf(ret->text, sizeof(ret->text), fmt, args);
	va_end(args);
	return ST_OUTPUT;
}

const char *finding_name(enum finding v)
{
	switch (v) {
	case FOUND_NO_CONTAINER:
		return "no container";
	case FOUND_SEALED:
		return "sealed";
	case FOUND_UNSEALED:
		return "unsealed";
	case FOUND_CUT:
		return "cut off";
	case FOUND_DAMAGED:
		return "damaged";
	case FOUND_ENCRYPTED:
		return "encrypted";
	}
	return "unknown";
}

static void put_zeros(struct appender *a, size_t len)
{
	memset(a->at, 0, len);
	a->at += len;
}

static void put_hello(struct appender *a, const struct frame_hello *h)
{
	const size_t len = strnlen(h->name, FRAME_NAME_MAX);

	app_bytes(a, magic, sizeof(magic));
	app_le16(a, h->version);
	app_le16(a, (uint16_t)len);
	app_le32(a, 0);
	app_bytes(a, h->id, sizeof(h->id));
	app_le64(a, h->expected);
	app_le64(a, h->acknowledged);
	app_bytes(a, h->name, len);
}

static void put_welcome(struct appender *a, const struct frame_welcome *w)
{
	app_le16(a, w->version);
	app_le16(a, 0);
	app_le32(a, w->idle_s);
	app_le64(a, w->durable);
	app_le64(a, w->most);
}

static void put_end(struct appender *a, const struct frame_end *end)
{
	app_le64(a, end->total);
	app_u8(a, end->sealed);
	put_zeros(a, 7);
	app_bytes(a, end->sha256, sizeof(end->sha256));
}

static void put_done(struct appender *a, const struct frame_done *d)
{
	app_le64(a, d->total);
	app_le64(a, d->whole);
	app_le64(a, d->records);
	app_u8(a, (uint8_t)d->finding);
	put_zeros(a, 7);
	app_bytes(a, d->sha256, sizeof(d->sha256));
	app_bytes(a, d->root, sizeof(d->root));
}

static bool is_printable_ascii(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

static void put_refused(struct appender *a, const struct frame_refused *r)
{
	const char *text = *r->text ? r->text : refusal_name(r->reason);

	app_le16(a, r->reason);
	app_le16(a, 0);
	app_le32(a, r->wait_ms);
	for (size_t i = 0; i < FRAME_TEXT_MAX && text[i]; i++)
		app_u8(a, is_printable_ascii((uint8_t)text[i]) ? (uint8_t)text[i] : '?');
}

static void put_body(struct appender *a, const struct frame *f)
{
	switch (f->type) {
	case FRAME_HELLO:
		put_hello(a, &f->hello);
		break;
	case FRAME_WELCOME:
		put_welcome(a, &f->welcome);
		break;
	case FRAME_DATA:
		app_le64(a, f->data.offset);
		app_bytes(a, f->data.at, f->data.len);
		break;
	case FRAME_ACK:
		app_le64(a, f->durable);
		break;
	case FRAME_PING:
		break;
	case FRAME_END:
		put_end(a, &f->end);
		break;
	case FRAME_DONE:
		put_done(a, &f->done);
		break;
	case FRAME_REFUSED:
		put_refused(a, &f->refused);
		break;
	}
}

size_t frame_put(const struct frame *f, uint8_t ret[static FRAME_MAX])
{
	struct appender a = { .at = ret + FRAME_HEADER };

	put_body(&a, f);
	put_le32(ret, (uint32_t)f->type);
	put_le32(ret + 4, (uint32_t)(a.at - ret - FRAME_HEADER));
	return (size_t)(a.at - ret);
}

enum status frame_get_header(const uint8_t header[static FRAME_HEADER], enum frame_type *ret_type,
			     size_t *ret_len, struct err *e)
{
	const uint32_t type = get_le32(header), len = get_le32(header + 4);

	if (type < FRAME_HELLO || type > FRAME_REFUSED)
		return err_set(e, ST_CORRUPT, "not a ramseal frame");
	if (len < lengths[type].least || len > lengths[type].most)
		return err_set(e, ST_CORRUPT, "invalid frame: type %u with %u bytes",
			       (unsigned)type, (unsigned)len);
	*ret_type = (enum frame_type)type;
	*ret_len = len;
	return ST_OK;
}

static bool are_zeros(struct cursor *c, size_t len)
{
	const uint8_t *p = cur_bytes(c, len);

	while (p && len && !*p)
		p++, len--;
	return !len;
}

static enum status get_hello(struct cursor *c, struct frame_hello *ret, struct err *e)
{
	const uint8_t *p = cur_bytes(c, sizeof(magic));
	size_t len;
	bool zeros;

	*ret = (struct frame_hello){ 0 };
	if (!p || memcmp(p, magic, sizeof(magic)))
		return err_set(e, ST_CORRUPT, "HELLO: not from ramseal");
	ret->version = cur_le16(c);
	if (ret->version != FRAME_VERSION)
		return ST_OK;
	len = cur_le16(c);
	zeros = are_zeros(c, 4);
	p = cur_bytes(c, sizeof(ret->id));
	if (p)
		memcpy(ret->id, p, sizeof(ret->id));
	ret->expected = cur_le64(c);
	ret->acknowledged = cur_le64(c);
	if (c->bad || !zeros || len != c->left || memchr(c->at, '\0', len))
		return err_set(e, ST_CORRUPT, "HELLO: malformed");
	memcpy(ret->name, c->at, len);
	return ST_OK;
}

static enum status get_welcome(struct cursor *c, struct frame_welcome *ret, struct err *e)
{
	bool zeros;

	ret->version = cur_le16(c);
	zeros = are_zeros(c, 2);
	ret->idle_s = cur_le32(c);
	ret->durable = cur_le64(c);
	ret->most = cur_le64(c);
	return zeros ? ST_OK : err_set(e, ST_CORRUPT, "WELCOME: malformed");
}

static enum status get_data(struct cursor *c, struct frame_data *ret, struct err *e)
{
	ret->offset = cur_le64(c);
	ret->at = c->at;
	ret->len = c->left;
	return ret->len <= UINT64_MAX - ret->offset
		       ? ST_OK
		       : err_set(e, ST_CORRUPT, "DATA: offset too large");
}

static enum status get_end(struct cursor *c, struct frame_end *ret, struct err *e)
{
	const uint8_t *sha256;
	uint8_t sealed;
	bool zeros;

	ret->total = cur_le64(c);
	sealed = cur_u8(c);
	zeros = are_zeros(c, 7);
	sha256 = cur_bytes(c, sizeof(ret->sha256));
	if (!sha256 || !zeros || sealed > 1)
		return err_set(e, ST_CORRUPT, "END: malformed");
	ret->sealed = sealed;
	memcpy(ret->sha256, sha256, sizeof(ret->sha256));
	return ST_OK;
}

static enum status get_done(struct cursor *c, struct frame_done *ret, struct err *e)
{
	const uint8_t *sha256, *root;
	uint8_t finding;
	bool zeros;

	ret->total = cur_le64(c);
	ret->whole = cur_le64(c);
	ret->records = cur_le64(c);
	finding = cur_u8(c);
	zeros = are_zeros(c, 7);
	sha256 = cur_bytes(c, sizeof(ret->sha256));
	root = cur_bytes(c, sizeof(ret->root));
	if (!root || !zeros || finding > FOUND_ENCRYPTED || ret->whole > ret->total)
		return err_set(e, ST_CORRUPT, "DONE: malformed");
	ret->finding = (enum finding)finding;
	memcpy(ret->sha256, sha256, sizeof(ret->sha256));
	memcpy(ret->root, root, sizeof(ret->root));
	return ST_OK;
}

static enum status get_refused(struct cursor *c, struct frame_refused *ret, struct err *e)
{
	bool good;

	ret->reason = cur_le16(c);
	good = are_zeros(c, 2);
	ret->wait_ms = cur_le32(c);
	for (size_t i = 0; i < c->left; i++)
		good &= is_printable_ascii(c->at[i]);
	if (!good)
		return err_set(e, ST_CORRUPT, "REFUSED: malformed");
	memcpy(ret->text, c->at, c->left);
	ret->text[c->left] = '\0';
	return ST_OK;
}

enum status frame_get(enum frame_type type, const uint8_t *body, size_t len, struct frame *ret,
		      struct err *e)
{
	struct cursor c = cursor_over(body, len);

	ret->type = type;
	switch (type) {
	case FRAME_HELLO:
		return get_hello(&c, &ret->hello, e);
	case FRAME_WELCOME:
		return get_welcome(&c, &ret->welcome, e);
	case FRAME_DATA:
		return get_data(&c, &ret->data, e);
	case FRAME_ACK:
		ret->durable = cur_le64(&c);
		return ST_OK;
	case FRAME_PING:
		return ST_OK;
	case FRAME_END:
		return get_end(&c, &ret->end, e);
	case FRAME_DONE:
		return get_done(&c, &ret->done, e);
	case FRAME_REFUSED:
		return get_refused(&c, &ret->refused, e);
	}
	return err_set(e, ST_CORRUPT, "not a ramseal frame");
}

enum status frame_reader_init(struct frame_reader *r, struct err *e)
{
	*r = (struct frame_reader){ .bytes = malloc(FRAME_MAX) };
	return r->bytes ? ST_OK : err_nomem(e);
}

void frame_reader_deinit(struct frame_reader *r)
{
	free(r->bytes);
	*r = (struct frame_reader){ 0 };
}

/* The frame that was given last is not needed any more. */
static void drop_taken(struct frame_reader *r)
{
	r->from += r->taken;
	r->taken = 0;
}

uint8_t *frame_reader_room(struct frame_reader *r, size_t *ret_len)
{
	drop_taken(r);
	r->have -= r->from;
	memmove(r->bytes, r->bytes + r->from, r->have);
	r->from = 0;
	*ret_len = FRAME_MAX - r->have;
	return r->bytes + r->have;
}

void frame_reader_added(struct frame_reader *r, size_t len)
{
	r->have += len;
}

enum status frame_reader_next(struct frame_reader *r, struct frame *ret, struct err *e)
{
	const uint8_t *at;
	enum frame_type type;
	enum status st;
	size_t len;

	drop_taken(r);
	at = r->bytes + r->from;
	if (r->have - r->from < FRAME_HEADER)
		return ST_END;
	st = frame_get_header(at, &type, &len, e);
	if (st)
		return st;
	if (r->have - r->from - FRAME_HEADER < len)
		return ST_END;
	st = frame_get(type, at + FRAME_HEADER, len, ret, e);
	r->taken = FRAME_HEADER + len;
	return st;
}

bool frame_reader_is_inside(const struct frame_reader *r)
{
	return r->from + r->taken < r->have;
}
