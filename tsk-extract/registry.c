/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/registry.h"

#include <string.h>

#include "formats/base/bytes.h"

/* 1601 to 1970 in units of 100 ns. */
#define FILETIME_1970 UINT64_C(116444736000000000)

void registry_value_deinit(struct registry_value *v)
{
	free(v->at);
	*v = (struct registry_value){ 0 };
}

enum status registry_open(struct registry *r, registry_key parent, const char *path,
			  registry_key *ret, struct err *e)
{
	_cleanup_free_ char *names = strdup(path);
	registry_key at = parent;
	enum status st = ST_OK;
	char *rest = NULL;

	if (!names)
		return err_nomem(e);
	for (char *name = strtok_r(names, "\\", &rest); name && !st;
	     name = strtok_r(NULL, "\\", &rest)) {
		registry_key next = 0;

		st = r->ops->open(r, at, name, &next, e);
		if (at != parent)
			registry_close(r, at);
		at = next;
	}
	if (st)
		return err_add(e, st, "%s: %s", r->name, path);
	*ret = at;
	return ST_OK;
}

void registry_close(struct registry *r, registry_key key)
{
	if (key && key != r->root)
		r->ops->close(r, key);
}

enum status registry_value(struct registry *r, registry_key key, const char *name,
			   struct registry_value *ret, struct err *e)
{
	registry_value_deinit(ret);
	return r->ops->value(r, key, name, ret, e);
}

static bool is_text(const struct registry_value *v)
{
	return v->type == REGISTRY_SZ || v->type == REGISTRY_EXPAND_SZ ||
	       v->type == REGISTRY_MULTI_SZ;
}

/* As RtlUnicodeStringToInteger() does, by which Windows reads such text. */
static const char *skip_leading_blanks(const char *at)
{
	while (*at && (unsigned char)*at <= ' ')
		at++;
	return at;
}

bool registry_number(const struct registry_value *v, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	const char *at;
	char *end;

	if (v->size == 4 && (v->type == REGISTRY_DWORD || v->type == REGISTRY_BINARY)) {
		*ret = get_le32(v->at);
		return true;
	}
	if (v->size == 8 && (v->type == REGISTRY_QWORD || v->type == REGISTRY_BINARY)) {
		*ret = get_le64(v->at);
		return true;
	}
	text = registry_text(v);
	if (!text)
		return false;
	at = skip_leading_blanks(text);
	if (*at < '0' || *at > '9')
		return false;
	*ret = strtoull(at, &end, at[0] == '0' && (at[1] | 0x20) == 'x' ? 16 : 10);
	return !*skip_leading_blanks(end);
}

/* The character at *i, which moves behind it. */
static uint32_t next_utf16_character(const uint8_t *units, size_t count, size_t *i)
{
	const uint32_t c = get_le16(units + 2 * (*i)++);
	uint32_t low;

	if (c < 0xd800 || c > 0xdbff || *i == count)
		return c;
	low = get_le16(units + 2 * *i);
	if (low < 0xdc00 || low > 0xdfff)
		return c;
	++*i;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static char *put_utf8_character(char *at, uint32_t c)
{
	if (c < 0x80) {
		*at++ = (char)c;
		return at;
	}
	if (c < 0x800) {
		*at++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*at++ = (char)(0xe0 | c >> 12);
		} else {
			*at++ = (char)(0xf0 | c >> 18);
			*at++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*at++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*at++ = (char)(0x80 | (c & 0x3f));
	return at;
}

char *registry_utf8(const uint8_t *units, size_t count)
{
	/* A unit is at most 3 bytes, a pair 4. */
	char *text = malloc(3 * count + 1), *at = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < count;)
		at = put_utf8_character(at, next_utf16_character(units, count, &i));
	*at = '\0';
	return text;
}

/* Units before the first NUL; all of them if there is none. */
static size_t string_units(const uint8_t *at, size_t units)
{
	size_t n = 0;

	while (n < units && get_le16(at + 2 * n))
		n++;
	return n;
}

char *registry_text(const struct registry_value *v)
{
	return is_text(v) && v->at ? registry_utf8(v->at, string_units(v->at, v->size / 2)) : NULL;
}

char *registry_string(const struct registry_value *v, size_t i)
{
	const uint8_t *at = v->at;
	size_t left = v->size / 2, n;

	if (!is_text(v) || (i && v->type != REGISTRY_MULTI_SZ))
		return NULL;
	for (;; i--) {
		n = string_units(at, left);
		if (!n)
			return NULL;
		if (!i)
			return registry_utf8(at, n);
		at += 2 * MIN(n + 1, left);
		left -= MIN(n + 1, left);
	}
}

bool registry_time(uint64_t filetime, uint64_t *ret_ns)
{
	if (filetime < FILETIME_1970 || filetime - FILETIME_1970 > INT64_MAX / 100)
		return false;
	*ret_ns = (filetime - FILETIME_1970) * 100;
	return true;
}

unsigned registry_current_set(struct registry *system)
{
	struct registry_value v = { 0 };
	registry_key select = 0;
	uint64_t number = 1;

	if (registry_open(system, system->root, "Select", &select, NULL))
		return 1;
	if (registry_value(system, select, "Current", &v, NULL) || !registry_number(&v, &number) ||
	    number < 1 || number > 999)
		number = 1;
	registry_value_deinit(&v);
	registry_close(system, select);
	return (unsigned)number;
}
