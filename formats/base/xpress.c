/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/xpress.h"

#include "formats/base/bytes.h"

/* A match has at least so many bytes; [MS-XCA] 2.4.4. */
#define MATCH_MIN     3

/* The values that say "more follows", in the 3 bits, the half byte, and the byte. */
#define LENGTH_MORE   7
#define HALF_MORE     15
#define BYTE_MORE     255

#define FLAGS_IN_WORD 32

struct xpress {
	struct cursor in;
	const uint8_t *half; /* the byte whose upper half is the next half byte; or NULL */
	uint32_t flags;
	unsigned flags_left;
};

/* One bit for each literal (0) and match (1), from the top of little-endian words. */
static bool next_is_match(struct xpress *x)
{
	if (!x->flags_left) {
		x->flags = cur_le32(&x->in);
		x->flags_left = FLAGS_IN_WORD;
	}
	return x->flags >> --x->flags_left & 1;
}

/* Two lengths share a byte: the first takes the lower half, the next one the upper half. */
static unsigned next_half(struct xpress *x)
{
	unsigned ret;

	if (x->half) {
		ret = *x->half >> 4;
		x->half = NULL;
		return ret;
	}
	x->half = cur_bytes(&x->in, 1);
	return x->half ? *x->half & 15 : 0;
}

/* Without MATCH_MIN. Words hold the whole length: one that a byte could have said is refused. */
static uint64_t long_length(struct xpress *x)
{
	uint64_t length = next_half(x);

	if (length < HALF_MORE)
		return LENGTH_MORE + length;
	length = cur_u8(&x->in);
	if (length < BYTE_MORE)
		return LENGTH_MORE + HALF_MORE + length;
	length = cur_le16(&x->in);
	if (!length)
		length = cur_le32(&x->in);
	if (length < LENGTH_MORE + HALF_MORE)
		x->in.bad = true;
	return length;
}

bool xpress_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
		   size_t *ret_size)
{
	struct xpress x = { .in = cursor_over(in, in_size) };
	size_t at = 0;

	while (at < out_size) {
		const bool match = next_is_match(&x);
		uint64_t length;
		size_t distance;
		uint16_t word;

		if (x.in.bad)
			return false;
		if (!match) {
			out[at++] = cur_u8(&x.in);
		} else if (!x.in.left) {
			break;
		} else {
			word = cur_le16(&x.in);
			distance = (size_t)(word >> 3) + 1;
			length = word & 7;
			if (length == LENGTH_MORE)
				length = long_length(&x);
			length += MATCH_MIN;
			if (x.in.bad || distance > at || length > out_size - at)
				return false;
			bytes_repeat(out + at, distance, (size_t)length);
			at += (size_t)length;
		}
	}
	*ret_size = at;
	return !x.in.bad;
}
