/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/lzo.h"

#include <string.h>

#include "formats/base/bytes.h"

/* A first byte above this is that many literals, and no instruction. */
#define FIRST_LITERALS 17

/* How many literals came before an instruction: so many mean "a string of its own". */
#define STATE_STRING   4u

/* The distance in a 0001HLLL that ends the stream. */
#define END_DISTANCE   16384

struct lzo_copy {
	size_t length, distance;
	unsigned literals; /* 0 to 3, which follow the copy */
};

struct lzo_output {
	uint8_t *bytes;
	size_t at, size;
};

/* `low`: all bits that the instruction has for it. The sum cannot overflow: it needs more input. */
static size_t take_lzo_length(struct cursor *c, uint8_t instruction, uint8_t low)
{
	size_t length = instruction & low;
	uint8_t more = 0;

	if (length)
		return length;
	length = low;
	while (!more && !c->bad) {
		more = cur_u8(c);
		length += more ? more : 255;
	}
	return length;
}

/* 0000DDSS HHHHHHHH: two bytes from near by, or three from further away behind a string. */
static struct lzo_copy take_lzo_short_copy(struct cursor *c, uint8_t i, unsigned state)
{
	const size_t distance = (size_t)cur_u8(c) << 2 | i >> 2;

	if (state == STATE_STRING)
		return (struct lzo_copy){ 3, distance + 2049, i & 3 };
	return (struct lzo_copy){ 2, distance + 1, i & 3 };
}

static struct lzo_copy take_lzo_copy(struct cursor *c, uint8_t i, unsigned state)
{
	struct lzo_copy r = { .literals = i & 3 };
	unsigned word;

	if (i < 16)
		return take_lzo_short_copy(c, i, state);
	if (i >= 64) { /* 1LLDDDSS or 01LDDDSS, HHHHHHHH */
		r.length = (i >> 5) + 1u;
		r.distance = ((size_t)cur_u8(c) << 3 | (i >> 2 & 7)) + 1;
		return r;
	}
	r.length = take_lzo_length(c, i, i < 32 ? 7 : 31) + 2;
	word = cur_le16(c);
	r.literals = word & 3;
	r.distance = word >> 2;
	if (i < 32)
		r.distance += END_DISTANCE + ((size_t)(i >> 3 & 1) << 14);
	else
		r.distance++;
	return r;
}

static bool put_lzo_literals(struct lzo_output *o, struct cursor *c, size_t length)
{
	const uint8_t *from = cur_bytes(c, length);

	if (c->bad || length > o->size - o->at)
		return false;
	if (length)
		memcpy(o->bytes + o->at, from, length);
	o->at += length;
	return true;
}

static bool put_lzo_copy(struct lzo_output *o, const struct lzo_copy *copy)
{
	if (copy->distance > o->at || copy->length > o->size - o->at)
		return false;
	bytes_repeat(o->bytes + o->at, copy->distance, copy->length);
	o->at += copy->length;
	return true;
}

bool lzo_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, size_t *ret_size)
{
	struct lzo_output o = { .bytes = out, .size = out_size };
	struct cursor c = cursor_over(in, in_size);
	unsigned state = 0;

	if (in_size && *in > FIRST_LITERALS) {
		const size_t length = cur_u8(&c) - (size_t)FIRST_LITERALS;

		if (!put_lzo_literals(&o, &c, length))
			return false;
		state = (unsigned)MIN(length, (size_t)STATE_STRING);
	}
	while (!c.bad) {
		const uint8_t i = cur_u8(&c);
		struct lzo_copy copy;

		if (i < 16 && !state) {
			if (!put_lzo_literals(&o, &c, take_lzo_length(&c, i, 15) + 3))
				return false;
			state = STATE_STRING;
			continue;
		}
		copy = take_lzo_copy(&c, i, state);
		if (c.bad)
			return false;
		if (i >= 16 && i < 32 && copy.distance == END_DISTANCE) {
			*ret_size = o.at;
			return !c.left;
		}
		if (!put_lzo_copy(&o, &copy) || !put_lzo_literals(&o, &c, copy.literals))
			return false;
		state = copy.literals;
	}
	return false;
}
