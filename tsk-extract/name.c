/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/name.h"

#include <ctype.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

static bool is_continuation(char c)
{
	return ((uint8_t)c & 0xc0) == 0x80;
}

/*
 * One character of (generalised) UTF-8 at `p`; its length, or 0 if there is none. Overlong forms
 * are refused, because two spellings of one name would be two names.
 */
static size_t decode_utf8(const char *p, size_t left, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t lead = (uint8_t)p[0];
	const size_t len = lead < 0x80   ? 1
			   : lead < 0xc0 ? 0
			   : lead < 0xe0 ? 2
			   : lead < 0xf0 ? 3
					 : 4;

	if (!len || len > left || lead > 0xf4)
		return 0;
	*ret = len == 1 ? lead : lead & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (!is_continuation(p[i]))
			return 0;
		*ret = *ret << 6 | ((uint8_t)p[i] & 0x3f);
	}
	return len > 1 && (*ret < least[len] || *ret > 0x10ffff) ? 0 : len;
}

bool name_from_utf8(const char *text, size_t len, struct name *ret)
{
	ret->count = 0;
	while (len) {
		uint32_t c = 0;
		const size_t n = decode_utf8(text, len, &c);

		if (!n || ret->count + (c > 0xffff ? 2 : 1) > NAME_MAX_UNITS)
			return false;
		if (c > 0xffff) {
			ret->unit[ret->count++] = (uint16_t)(0xd800 + ((c - 0x10000) >> 10));
			c = 0xdc00 + ((c - 0x10000) & 0x3ff);
		}
		ret->unit[ret->count++] = (uint16_t)c;
		text += n;
		len -= n;
	}
	return true;
}

void name_from_disk(const uint8_t *p, size_t count, struct name *ret)
{
	ret->count = MIN(count, (size_t)NAME_MAX_UNITS);
	for (size_t i = 0; i < ret->count; i++)
		ret->unit[i] = get_le16(p + 2 * i);
}

/* The character at *i, which moves behind it. */
static uint32_t next_name_character(const struct name *n, size_t *i)
{
	const uint32_t c = n->unit[(*i)++];

	if (c < 0xd800 || c > 0xdbff || *i == n->count || n->unit[*i] < 0xdc00 ||
	    n->unit[*i] > 0xdfff)
		return c;
	return 0x10000 + ((c - 0xd800) << 10) + (n->unit[(*i)++] - 0xdc00u);
}

static size_t encode_utf8(uint32_t c, char ret[static 4])
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	const size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = len; i-- > 1; c >>= 6)
		ret[i] = (char)(0x80 | (c & 0x3f));
	ret[0] = (char)(lead[len] | c);
	return len;
}

void name_to_utf8(const struct name *n, char *ret, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n->count;) {
		char c[4];
		const size_t len = encode_utf8(next_name_character(n, &i), c);

		if (used + len >= size)
			break;
		memcpy(ret + used, c, len);
		used += len;
	}
	ret[used] = '\0';
}

bool name_same(const struct name *a, const struct name *b)
{
	return a->count == b->count && memcmp(a->unit, b->unit, a->count * sizeof(a->unit[0])) == 0;
}

static uint16_t fold_case(uint16_t c, const uint8_t *upcase)
{
	if (upcase)
		return get_le16(upcase + (size_t)2 * c);
	return (uint16_t)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

bool name_same_but_case(const struct name *a, const struct name *b, const uint8_t *upcase)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (fold_case(a->unit[i], upcase) != fold_case(b->unit[i], upcase))
			return false;
	return true;
}

static bool is_separator(char c)
{
	return c == '/' || c == '\\';
}

static enum status refuse_other_roots(const char *text, struct err *e)
{
	const bool two = is_separator(text[0]) && is_separator(text[1]);

	if (isalpha((unsigned char)text[0]) && text[1] == ':' &&
	    (is_separator(text[2]) || !text[2]))
		return err_set(e, ST_USAGE,
			       "%s: name the path within the volume, without a drive letter", text);
	if ((two && (text[2] == '.' || text[2] == '?') && is_separator(text[3])) ||
	    (is_separator(text[0]) && text[1] == '?' && text[2] == '?' && is_separator(text[3])))
		return err_set(e, ST_USAGE, "%s: is the path of a device, not of a file", text);
	return ST_OK;
}

/* "stream" or "stream:$DATA", behind the first colon. */
static enum status parse_stream(const char *text, size_t len, struct ntfs_path *p, struct err *e)
{
	const char *colon = memchr(text, ':', len);
	const size_t name_len = colon ? (size_t)(colon - text) : len;

	if (colon && (len - name_len != 6 || strncasecmp(colon, ":$DATA", 6) != 0))
		return err_set(e, ST_USAGE, "%.*s: only streams of type $DATA can be read",
			       (int)len, text);
	if (!colon && !len)
		return err_set(e, ST_USAGE, "a stream without a name");
	if (!name_from_utf8(text, name_len, &p->stream))
		return err_set(e, ST_USAGE, "%.*s: is too long or not UTF-8", (int)len, text);
	return ST_OK;
}

static enum status parse_part(const char *text, size_t len, struct ntfs_path *p, struct err *e)
{
	if (p->depth == PATH_DEPTH_MAX)
		return err_set(e, ST_USAGE, "the path has more than %d parts", PATH_DEPTH_MAX);
	if (!ARRAY_ROOM(p->part, p->depth, p->room))
		return err_nomem(e);
	if (len <= 2 && memcmp(text, "..", len) == 0) /* len 0: a stream of nothing */
		return err_set(e, ST_USAGE, "the path has a part that is empty, \".\" or \"..\"");
	if (!name_from_utf8(text, len, &p->part[p->depth]))
		return err_set(e, ST_USAGE, "%.*s: is too long or not UTF-8", (int)len, text);
	p->depth++;
	return ST_OK;
}

enum status ntfs_path_parse(const char *text, struct ntfs_path *ret, struct err *e)
{
	enum status st = refuse_other_roots(text, e);
	const char *at = text;

	ret->depth = 0;
	ret->stream.count = 0;
	while (!st && *(at += strspn(at, "/\\"))) {
		const size_t len = strcspn(at, "/\\");
		const char *colon = memchr(at, ':', len);

		if (colon && at[len])
			return err_set(e, ST_USAGE, "%s: a stream can only be named at the end",
				       text);
		st = parse_part(at, colon ? (size_t)(colon - at) : len, ret, e);
		if (!st && colon)
			st = parse_stream(colon + 1, len - (size_t)(colon + 1 - at), ret, e);
		at += len;
	}
	if (!st && !ret->depth)
		st = err_set(e, ST_USAGE, "\"%s\" names no file", text);
	return st;
}

enum status ntfs_path_parse_stream(const char *text, struct ntfs_path *ret, struct err *e)
{
	ret->depth = 0;
	if (text[0] != ':' || strpbrk(text, "/\\"))
		return err_set(e, ST_USAGE, "%s: names no stream, which is written :NAME", text);
	return parse_stream(text + 1, strlen(text + 1), ret, e);
}

void ntfs_path_deinit(struct ntfs_path *p)
{
	free(p->part);
	*p = (struct ntfs_path){ 0 };
}
