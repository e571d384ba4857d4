/* SPDX-License-Identifier: Apache-2.0 */
#include "iconv.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum encoding { LATIN1, UTF8, UTF16LE, ENCODINGS };

struct shim_iconv {
	enum encoding to, from;
};

static enum encoding encoding_of(const char *name)
{
	static const char *const names[] = {
		[LATIN1] = "LATIN1", [UTF8] = "UTF-8", [UTF16LE] = "UTF-16LE"
	};
	int i = 0;

	while (i < ENCODINGS && strcmp(names[i], name) != 0)
		i++;
	return i;
}

iconv_t iconv_open(const char *to, const char *from)
{
	const struct shim_iconv c = { .to = encoding_of(to), .from = encoding_of(from) };
	struct shim_iconv *ret;

	if (c.to == ENCODINGS || c.from == ENCODINGS) {
		errno = EINVAL;
		return (iconv_t)-1;
	}
	ret = malloc(sizeof(*ret));
	if (!ret)
		return (iconv_t)-1;
	*ret = c;
	return ret;
}

int iconv_close(iconv_t c)
{
	free(c);
	return 0;
}

/* Length of the character at `at`; 0: there is none (EILSEQ), or it is cut short (EINVAL). */
static size_t decode_utf8(const uint8_t *at, size_t left, uint32_t *ret, int *error)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const size_t len = at[0] < 0x80   ? 1
			   : at[0] < 0xc2 ? 0
			   : at[0] < 0xe0 ? 2
			   : at[0] < 0xf0 ? 3
			   : at[0] < 0xf5 ? 4
					  : 0;
	uint32_t c = len == 1 ? at[0] : at[0] & (0x7fu >> len);

	*error = EILSEQ;
	for (size_t i = 1; i < len; i++) {
		if (i == left) {
			*error = EINVAL;
			return 0;
		}
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[i] & 0x3f);
	}
	if (!len || c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return len;
}

static size_t decode_utf16(const uint8_t *at, size_t left, uint32_t *ret, int *error)
{
	const uint32_t high = left < 2 ? 0 : at[0] | (uint32_t)at[1] << 8;
	const uint32_t low = left < 4 ? 0 : at[2] | (uint32_t)at[3] << 8;

	*error = EINVAL;
	if (left < 2)
		return 0;
	if (high < 0xd800 || high >= 0xe000) {
		*ret = high;
		return 2;
	}
	if (high < 0xdc00 && left < 4)
		return 0;
	*error = EILSEQ;
	if (high >= 0xdc00 || low < 0xdc00 || low >= 0xe000)
		return 0;
	*ret = 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
	return 4;
}

static size_t decode(enum encoding from, const uint8_t *at, size_t left, uint32_t *ret, int *error)
{
	switch (from) {
	case UTF8:
		return decode_utf8(at, left, ret, error);
	case UTF16LE:
		return decode_utf16(at, left, ret, error);
	default:
		*ret = at[0];
		return 1;
	}
}

/* Bytes of `c`, at most 4; 0 if the encoding has no such character. */
static size_t encode(enum encoding to, uint32_t c, uint8_t ret[static 4])
{
	size_t n = 0;

	if (to == LATIN1) {
		ret[0] = (uint8_t)c;
		return c < 0x100;
	}
	if (to == UTF16LE) {
		const uint32_t low = c < 0x10000 ? c : 0xdc00 | ((c - 0x10000) & 0x3ff);
		const uint32_t high = 0xd800 | ((c - 0x10000) >> 10);

		if (c >= 0x10000) {
			ret[n++] = (uint8_t)high;
			ret[n++] = (uint8_t)(high >> 8);
		}
		ret[n++] = (uint8_t)low;
		ret[n++] = (uint8_t)(low >> 8);
		return n;
	}
	if (c < 0x80) {
		ret[n++] = (uint8_t)c;
		return n;
	}
	if (c >= 0x10000)
		ret[n++] = (uint8_t)(0xf0 | c >> 18);
	if (c >= 0x800)
		ret[n++] = (uint8_t)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3f) : 0xe0 | c >> 12);
	ret[n++] = (uint8_t)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6);
	ret[n++] = (uint8_t)(0x80 | (c & 0x3f));
	return n;
}

static size_t fail(int error)
{
	errno = error;
	return (size_t)-1;
}

size_t iconv(iconv_t opened, char **in, size_t *in_left, char **out, size_t *out_left)
{
	const struct shim_iconv *c = opened;

	while (in && *in && *in_left) {
		uint8_t bytes[4];
		uint32_t character = 0;
		int error = 0;
		const size_t took =
			decode(c->from, (const uint8_t *)*in, *in_left, &character, &error);
		const size_t gives = took ? encode(c->to, character, bytes) : 0;

		if (!took)
			return fail(error);
		if (!gives)
			return fail(EILSEQ);
		if (gives > *out_left)
			return fail(E2BIG);
		memcpy(*out, bytes, gives);
		*in += took;
		*in_left -= took;
		*out += gives;
		*out_left -= gives;
	}
	return 0;
}
