/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/der.h"

/* X.690, 8.1.3: up to 127 in one byte, else how many bytes of length follow. */
static size_t der_length(struct cursor *c)
{
	const uint8_t first = cur_u8(c);
	size_t len = 0;

	if (first < 0x80)
		return first;
	if (first == 0x80 || first > 0x84)
		c->bad = true;
	for (unsigned i = first & 0x7f; i && !c->bad; i--)
		len = len << 8 | cur_u8(c);
	return len;
}

bool der_next(struct cursor *c, struct der *ret)
{
	const uint8_t *start = c->at;

	if (!c->left)
		return false;
	ret->tag = cur_u8(c);
	ret->len = der_length(c);
	ret->at = cur_bytes(c, c->bad ? SIZE_MAX : ret->len);
	ret->whole = start;
	ret->whole_len = (size_t)(c->at - start);
	return !c->bad;
}

bool der_want(struct cursor *c, uint8_t tag, struct der *ret)
{
	if (der_next(c, ret) && ret->tag == tag)
		return true;
	c->bad = true;
	return false;
}

bool der_optional(struct cursor *c, uint8_t tag, struct der *ret)
{
	return c->left && c->at[0] == tag && der_next(c, ret);
}
