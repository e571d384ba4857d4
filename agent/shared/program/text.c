/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/text.h"

#include "formats/base/utf8.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/defs.h"

void text_size(uint64_t bytes, char ret[static TEXT_SIZE_MAX])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double amount = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(ret, TEXT_SIZE_MAX, "%u B", (unsigned)bytes);
		return;
	}
	/* 1023.95 would be printed as 1024.0. */
	for (; amount >= 1023.95 && unit + 1 < ARRAY_SIZE(units); unit++)
		amount /= 1024;
	snprintf(ret, TEXT_SIZE_MAX, "%.1f %s", amount, units[unit]);
}

void text_duration(uint64_t seconds, char ret[static TEXT_DURATION_MAX])
{
	const unsigned s = (unsigned)(seconds % 60), m = (unsigned)(seconds / 60 % 60);
	const uint64_t h = seconds / 3600;

	if (seconds == UINT64_MAX)
		snprintf(ret, TEXT_DURATION_MAX, "-:--");
	else if (h > 99)
		snprintf(ret, TEXT_DURATION_MAX, ">99 h");
	else if (h)
		snprintf(ret, TEXT_DURATION_MAX, "%u:%02u:%02u", (unsigned)h, m, s);
	else
		snprintf(ret, TEXT_DURATION_MAX, "%u:%02u", m, s);
}

size_t text_plain_length(const void *p, size_t left)
{
	const size_t length = utf8_length(p, left);

	return length && !utf8_is_hidden(utf8_code_point(p, length)) ? length : 0;
}

void text_printable(const char *text, char *ret, size_t size)
{
	const uint8_t *at = (const uint8_t *)text;
	size_t left = strlen(text);

	while (left) {
		/* No character begins within one: of a hidden one every byte is escaped. */
		const size_t plain = text_plain_length(at, left);
		const size_t taken = plain ? plain : 1, shown = plain ? plain : 4;

		if (size <= shown)
			break;
		if (plain)
			memcpy(ret, at, plain);
		else
			snprintf(ret, size, "\\x%02x", at[0]);
		ret += shown;
		size -= shown;
		at += taken;
		left -= taken;
	}
	*ret = '\0';
}

size_t text_columns_of(const char *text, size_t n)
{
	size_t ret = 0;

	/* The bytes that go on with a character are 10xxxxxx. */
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			ret += (unsigned char)text[i] < 0x80 ? 1 : 2;
	return ret;
}

size_t text_columns(const char *text)
{
	return text_columns_of(text, strlen(text));
}

void text_tail(const char *text, size_t columns, char *ret, size_t size)
{
	size_t all = text_columns(text);

	if (all <= columns) {
		snprintf(ret, size, "%s", text);
		return;
	}
	while (all + 3 > columns && *text) {
		all -= (unsigned char)*text < 0x80 ? 1 : 2;
		do {
			text++;
		} while (((unsigned char)*text & 0xc0) == 0x80);
	}
	snprintf(ret, size, "...%s", text);
}

static int hex_digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool text_from_hex(const char *text, size_t digits, uint8_t *ret)
{
	for (size_t i = 0; i < digits; i += 2) {
		const int high = hex_digit_value(text[i]), low = hex_digit_value(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		*ret++ = (uint8_t)(high << 4 | low);
	}
	return true;
}

char *text_copy(const char *text, size_t len)
{
	const size_t n = strnlen(text, len);
	char *ret = malloc(n + 1);

	if (!ret)
		return NULL;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return ret;
}
