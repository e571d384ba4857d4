/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of the run-time library, and DbgPrint(). */
#include "gate.h"
#include "nt_strings.h"
#include "pool.h"

#define DBG_PRINT_MAX 512 /* what DbgPrint() transmits at most */

struct unicode_string nt_string(wchar *text)
{
	uint16_t len = 0;

	while (text && text[len / 2])
		len += 2;
	return (struct unicode_string){ .length = len,
					.maximum_length = (uint16_t)(text ? len + 2 : 0),
					.buffer = text };
}

void nt_to_ascii(const struct unicode_string *s, char *ret, size_t room)
{
	const size_t len = s ? MIN((size_t)s->length / 2, room - 1) : 0;

	memset(ret, 0, room);
	for (size_t i = 0; i < len; i++)
		ret[i] = s->buffer[i] < 0x80 ? (char)s->buffer[i] : '?';
}

static void NTAPI RtlInitUnicodeString(struct unicode_string *ret, wchar *text)
{
	*ret = nt_string(text);
}

static void NTAPI RtlCopyUnicodeString(struct unicode_string *to, const struct unicode_string *from)
{
	to->length = from ? MIN(from->length, to->maximum_length) : 0;
	if (from)
		memcpy(to->buffer, from->buffer, to->length);
}

static void NTAPI RtlFreeUnicodeString(struct unicode_string *s)
{
	if (s->buffer)
		pool_free(s->buffer, 0);
	*s = (struct unicode_string){ 0 };
}

static uint32_t NTAPI DbgPrint(const char *fmt, ...)
{
	char line[DBG_PRINT_MAX];
	__builtin_ms_va_list args;
	size_t len;

	__builtin_ms_va_start(args, fmt);
	len = format(line, sizeof(line) - 1, fmt, (const uint64_t *)args, LONG_32);
	__builtin_ms_va_end(args);
	log_text("| ", 2);
	if (len && line[len - 1] == '\n')
		len--;
	line[len++] = '\n';
	log_text(line, len);
	return 0;
}

/* If the text does not fit, there is no final 0 and the result is -1. */
static int NTAPI _snwprintf(wchar *to, uint64_t room, const wchar *fmt, ...)
{
	char narrow[256], text[256];
	__builtin_ms_va_list args;
	size_t len = 0;

	while (fmt[len] && len < sizeof(narrow) - 1) {
		narrow[len] = (char)fmt[len];
		len++;
	}
	narrow[len] = '\0';
	__builtin_ms_va_start(args, fmt);
	len = format(text, sizeof(text), narrow, (const uint64_t *)args, LONG_32);
	__builtin_ms_va_end(args);
	for (size_t i = 0; i <= len && i < room; i++)
		to[i] = (uint8_t)text[i];
	return len <= room ? (int)len : -1;
}

static wchar lower(wchar c)
{
	return c >= 'A' && c <= 'Z' ? (wchar)(c | 0x20) : c;
}

static int NTAPI _wcsnicmp(const wchar *a, const wchar *b, uint64_t len)
{
	for (; len; a++, b++, len--)
		if (lower(*a) != lower(*b) || !*a)
			return lower(*a) - lower(*b);
	return 0;
}

static const wchar *NTAPI wcschr(const wchar *s, wchar c)
{
	for (; *s != c; s++)
		if (!*s)
			return NULL;
	return s;
}

const struct export nt_rtl_exports[] = {
	EXPORT(DbgPrint),
	EXPORT(RtlCopyUnicodeString),
	EXPORT(RtlFreeUnicodeString),
	EXPORT(RtlInitUnicodeString),
	EXPORT(_snwprintf),
	EXPORT(_wcsnicmp),
	EXPORT(wcschr),
	{ 0 },
};
