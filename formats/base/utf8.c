/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/utf8.h"

/*
 * The well-formed sequences of the Unicode Standard, table 3-7: the first byte decides the length
 * and what the second may be, so that overlong forms, surrogates and what lies above U+10FFFF do
 * not pass.
 */
size_t utf8_length(const void *p, size_t left)
{
	const uint8_t *at = p;
	uint8_t low = 0x80, high = 0xbf;
	size_t length;

	if (!left)
		return 0;
	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		length = 2;
	else if ((at[0] & 0xf0) == 0xe0)
		length = 3;
	else if (at[0] >= 0xf0 && at[0] <= 0xf4)
		length = 4;
	else
		return 0;

	if (at[0] == 0xe0)
		low = 0xa0;
	else if (at[0] == 0xed)
		high = 0x9f;
	else if (at[0] == 0xf0)
		low = 0x90;
	else if (at[0] == 0xf4)
		high = 0x8f;

	if (left < length || at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

bool utf8_valid(const void *p, size_t len)
{
	const uint8_t *at = p;

	while (len) {
		const size_t n = utf8_length(at, len);

		if (!n)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

uint32_t utf8_code_point(const void *p, size_t length)
{
	const uint8_t *at = p;
	uint32_t c = length == 1 ? at[0] : at[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		c = c << 6 | (at[i] & 0x3f);
	return c;
}

bool utf8_is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x0000, 0x001f }, { 0x007f, 0x009f },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f },
		{ 0x061c, 0x061c }, { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
		{ 0xfffe, 0xffff }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}
