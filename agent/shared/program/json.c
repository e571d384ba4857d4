/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/range.h"
#include "formats/base/utf8.h"

/* Whether there are bytes that JSON cannot carry. */
static bool needs_escape(const uint8_t *at, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_length(at + i, len - i);
		if (!n || !at[i])
			return true;
	}
	return false;
}

json_t *json_bytes(const void *p, size_t len)
{
	_cleanup_free_ char *escaped = NULL;
	const uint8_t *at = p;
	char *to;

	if (!needs_escape(at, len))
		return json_stringn_nocheck(len ? p : "", len);
	to = escaped = len < SIZE_MAX / 4 ? malloc(4 * len + 1) : NULL;
	if (!escaped)
		return NULL;
	for (size_t i = 0; i < len;) {
		const size_t n = utf8_length(at + i, len - i);

		if (!n || !at[i]) {
			to += sprintf(to, "\\x%02x", at[i++]);
			continue;
		}
		if (at[i] == '\\')
			*to++ = '\\';
		memcpy(to, at + i, n);
		to += n;
		i += n;
	}
	return json_stringn_nocheck(escaped, (size_t)(to - escaped));
}

json_t *json_text(const char *text)
{
	return text ? json_bytes(text, strlen(text)) : json_null();
}

/*
 * jansson hands over whole characters, and escapes C0 itself; what it leaves as it is and a
 * terminal or an editor would obey becomes \uNNNN, which has the same value. Above U+FFFF that is
 * two of them (RFC 8259, 7).
 */
#define ESCAPED_MAX 12

static size_t escape_hidden(uint32_t c, char ret[static ESCAPED_MAX + 1])
{
	if (c < 0x10000)
		return (size_t)sprintf(ret, "\\u%04" PRIx32, c);
	c -= 0x10000;
	return (size_t)sprintf(ret, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (c >> 10 & 0x3ff),
			       0xdc00 + (c & 0x3ff));
}

/* So many bytes from `p` on are shown as they are; then comes a hidden character, or the end. */
static size_t shown_length(const char *p, size_t len, size_t *ret_hidden)
{
	const uint8_t *at = (const uint8_t *)p;
	size_t i = 0;

	*ret_hidden = 0;
	while (i < len) {
		const size_t n = at[i] < 0x7f ? 1 : utf8_length(at + i, len - i);

		if (n && at[i] >= 0x7f && utf8_is_hidden(utf8_code_point(at + i, n))) {
			*ret_hidden = n;
			break;
		}
		i += MAX(n, (size_t)1);
	}
	return i;
}

struct escaping {
	json_dump_callback_t put;
	void *to;
};

static int put_escaped_text(const char *p, size_t len, void *arg)
{
	const struct escaping *x = arg;
	char escaped[ESCAPED_MAX + 1];
	int failed = 0;

	while (len && !failed) {
		size_t hidden;
		const size_t shown = shown_length(p, len, &hidden);

		if (shown)
			failed = x->put(p, shown, x->to);
		if (hidden && !failed)
			failed = x->put(escaped,
					escape_hidden(utf8_code_point(p + shown, hidden), escaped),
					x->to);
		p += shown + hidden;
		len -= shown + hidden;
	}
	return failed;
}

/* As json_dump_callback(). */
static int dump(const json_t *doc, json_dump_callback_t put, void *to, size_t flags)
{
	struct escaping x = { .put = put, .to = to };

	return json_dump_callback(doc, put_escaped_text, &x, flags);
}

struct dumped {
	char *at;
	size_t len, room;
};

static int add_dumped(const char *p, size_t len, void *to)
{
	struct dumped *d = to;

	if (d->room - d->len <= len) {
		const size_t room = 2 * d->room + len + 1024;
		char *longer = realloc(d->at, room);

		if (!longer)
			return -1;
		d->at = longer;
		d->room = room;
	}
	memcpy(d->at + d->len, p, len);
	d->len += len;
	d->at[d->len] = '\0';
	return 0;
}

char *json_dumped(const json_t *doc, size_t flags)
{
	struct dumped d = { 0 };

	if (doc && !dump(doc, add_dumped, &d, flags))
		return d.at;
	free(d.at);
	return NULL;
}

/* jansson tells of each word and comma, and stdio locks its stream each time. */
struct gathered {
	char at[4096];
	size_t count;
};

static int gather_json_text(const char *p, size_t len, void *to)
{
	struct gathered *g = to;

	while (len) {
		const size_t part = MIN(len, sizeof(g->at) - g->count);

		memcpy(g->at + g->count, p, part);
		g->count += part;
		p += part;
		len -= part;
		if (g->count == sizeof(g->at)) {
			fwrite(g->at, 1, g->count, stdout);
			g->count = 0;
		}
	}
	return 0;
}

enum status json_print(json_t *doc, size_t flags, struct err *e)
{
	struct gathered g;

	if (!doc)
		return err_nomem(e);
	g.count = 0;
	dump(doc, gather_json_text, &g, flags);
	gather_json_text("\n", 1, &g);
	fwrite(g.at, 1, g.count, stdout); /* what it refused, main() finds when it closes it */
	json_decref(doc);
	return ST_OK;
}

/* Behind each line's end: what a text has of them is escaped. */
static int put_indented(const char *p, size_t len, void *out)
{
	for (const char *end = p + len; p < end; p++) {
		putc(*p, out);
		if (*p == '\n')
			fputs("  ", out);
	}
	return 0;
}

static enum status put_items(FILE *out, size_t count, json_item_fn *item, const void *arg,
			     struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		json_t *o = item(arg, i);

		if (!o)
			return err_nomem(e);
		fputs(i ? ",\n  " : "\n  ", out);
		dump(o, put_indented, out, JSON_INDENT(1));
		json_decref(o);
	}
	return ST_OK;
}

enum status json_print_list(FILE *out, json_t *doc, const char *key, size_t count,
			    json_item_fn *item, const void *arg, struct err *e)
{
	_cleanup_free_ char *text = json_dumped(doc, JSON_INDENT(1));
	enum status st;

	json_decref(doc);
	if (!text)
		return err_nomem(e);
	fprintf(out, "%.*s,\n \"%s\": [", (int)(strlen(text) - strlen("\n}")), text, key);
	st = put_items(out, count, item, arg, e);
	fputs(count ? "\n ]\n}\n" : "]\n}\n", out);
	return st;
}

json_t *json_u64(uint64_t v)
{
	char decimal[24];

	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	snprintf(decimal, sizeof(decimal), "%llu", (unsigned long long)v);
	return json_string(decimal);
}

json_t *json_ranges(const struct range_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->count; i++)
		json_array_append_new(list,
				      json_pack("{s:o, s:o}", "first", json_u64(l->at[i].first),
						"last", json_u64(l->at[i].last)));
	return list;
}

static json_t *field_value(const struct json_field *f)
{
	switch (f->kind) {
	case FIELD_TEXT:
		return json_text(f->text);
	case FIELD_U64:
		return json_u64(f->u64);
	case FIELD_I64:
		return json_integer(f->i64);
	case FIELD_BOOL:
		return json_boolean(f->boolean);
	case FIELD_REAL: {
		json_t *v = json_real(f->real);
		return v ? v : json_null(); /* JSON has no NaN */
	}
	case FIELD_JSON:
		return f->json ? f->json : json_null();
	case FIELD_MADE:
	case FIELD_MEMBERS:
		return f->json;
	}
	return json_null();
}

bool json_add_fields(json_t *object, const struct json_field *fields)
{
	bool ok = object != NULL;

	for (const struct json_field *f = fields; f && f->key; f++) {
		json_t *value = field_value(f);

		if (value && ok && f->kind == FIELD_MEMBERS) {
			ok = !json_object_update_missing(object, value);
			json_decref(value);
		} else if (!value || !ok || json_object_get(object, f->key))
			json_decref(value);
		else if (json_object_set_new(object, f->key, value))
			ok = false;
		ok = ok && value;
	}
	return ok;
}

json_t *json_fields(const struct json_field *fields)
{
	json_t *object = json_object();

	if (json_add_fields(object, fields))
		return object;
	json_decref(object);
	return NULL;
}
