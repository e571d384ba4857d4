/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DER, written from its end to its beginning: what is inside is there when its length is wanted.
 */
#ifndef RAMSEAL_TESTS_UNIT_DER_BUILD_H
#define RAMSEAL_TESTS_UNIT_DER_BUILD_H

#include <string.h>

#include "tests/unit/test.h"

struct out {
	uint8_t bytes[16384];
	size_t len; /* from the end */
};

static inline void put(struct out *o, const void *p, size_t len)
{
	assert_true(o->len + len <= sizeof(o->bytes));
	o->len += len;
	memcpy(o->bytes + sizeof(o->bytes) - o->len, p, len);
}

/* Tag and length for all that was put since the output was `before` long. */
static inline void wrap(struct out *o, uint8_t tag, size_t before)
{
	const size_t len = o->len - before;
	const uint8_t lengths[] = { 0x82, (uint8_t)(len >> 8), (uint8_t)len };

	if (len < 0x80)
		put(o, lengths + 2, 1);
	else
		put(o, lengths, 3);
	put(o, &tag, 1);
}

static inline void put_as(struct out *o, uint8_t tag, const void *p, size_t len)
{
	const size_t before = o->len;

	put(o, p, len);
	wrap(o, tag, before);
}

#define PUT_OID(o, text) put_as(o, 0x06, text, sizeof(text) - 1)

#endif
