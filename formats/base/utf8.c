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
