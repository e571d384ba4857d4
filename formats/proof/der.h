/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DER (X.690), read element by element: an element's bounds are those of the element around it,
 * nothing recurses, nothing is allocated. Lengths that are not minimal are accepted; tags of
 * several bytes are not.
 */
#ifndef RAMSEAL_FORMATS_DER_H
#define RAMSEAL_FORMATS_DER_H

#include "formats/base/bytes.h"

#define DER_INTEGER    0x02
#define DER_BITS       0x03
#define DER_OCTETS     0x04
#define DER_OID        0x06
#define DER_UTF8       0x0c
#define DER_PRINTABLE  0x13
#define DER_T61        0x14
#define DER_IA5        0x16
#define DER_UTC_TIME   0x17
#define DER_TIME       0x18 /* GeneralizedTime */
#define DER_BMP        0x1e
#define DER_SEQUENCE   0x30
#define DER_SET        0x31
#define DER_CONTEXT(n) (0xa0 + (n))

/* One element: its tag, its content, and the whole of it. */
struct der {
	uint8_t tag;
	const uint8_t *at;
	size_t len;
	const uint8_t *whole;
	size_t whole_len;
};

/* An object identifier, encoded, without tag and length. */
struct der_oid {
	const char *bytes;
	size_t len;
};

#define DER_OID_OF(text) ((struct der_oid){ text, sizeof(text) - 1 })

/* The next element; false at the end, and at an incomplete one: then `c` is bad. */
bool der_next(struct cursor *c, struct der *ret);

/* The same, but it must have this tag; otherwise the cursor is bad. */
bool der_want(struct cursor *c, uint8_t tag, struct der *ret);

/* The next one only if it has that tag. */
bool der_optional(struct cursor *c, uint8_t tag, struct der *ret);

static inline struct cursor der_inside(const struct der *d)
{
	return cursor_over(d->at, d->len);
}

static inline bool der_same(const struct der *a, const struct der *b)
{
	return a->whole_len == b->whole_len && !memcmp(a->whole, b->whole, a->whole_len);
}

static inline bool der_is_oid(const struct der *d, struct der_oid o)
{
	return d->tag == DER_OID && d->len == o.len && !memcmp(d->at, o.bytes, o.len);
}

#endif
