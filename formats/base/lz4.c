/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/lz4.h"

#include <string.h>

#include "formats/base/bytes.h"

/* A match has at least so many bytes, */
#define MATCH_MIN    4
/* behind the last one come so many, */
#define END_LITERALS 5
/* and so far before the end it begins. */
#define END_MATCH    12

/* "More follows", in the half byte and in the bytes. */
#define HALF_MORE    15
#define BYTE_MORE    255

/* No sum of bytes overflows: there are not so many. */
static size_t take_lz4_length(struct cursor *in, unsigned half)
{
	size_t length = half;
	uint8_t more = half == HALF_MORE ? BYTE_MORE : 0;

	while (more == BYTE_MORE && !in->bad) {
		more = cur_u8(in);
		length += more;
	}
	return length;
}

bool lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, size_t *ret_size)
{
	struct cursor c = cursor_over(in, in_size);
	size_t at = 0, match = 0, end = 0; /* the last match, and its end */

	for (;;) {
		const uint8_t token = cur_u8(&c);
		size_t length = take_lz4_length(&c, token >> 4), distance;
		const uint8_t *literals = cur_bytes(&c, length);

		if (c.bad || length > out_size - at)
			return false;
		memcpy(out + at, literals, length);
		at += length;
		if (!c.left)
			break;
		distance = cur_le16(&c);
		length = take_lz4_length(&c, token & 15) + MATCH_MIN;
		if (c.bad || !distance || distance > at || length > out_size - at)
			return false;
		bytes_repeat(out + at, distance, length);
		match = at;
		at += length;
		end = at;
	}
	*ret_size = at;
	return !end || (at - end >= END_LITERALS && at - match >= END_MATCH);
}
