/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On disk there are bytes; integers appear when you ask. Little-endian: every format that ramseal
 * reads or writes is (ELF64 LSB, LiME, zstd, our own), but for the records of a flattened kdump.
 */
#ifndef RAMSEAL_BASE_BYTES_H
#define RAMSEAL_BASE_BYTES_H

#include <stdbool.h>
#include <string.h>

#include "formats/base/defs.h"

static inline uint16_t get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)get_le16(p) | (uint32_t)get_le16(p + 2) << 16;
}

static inline uint64_t get_le64(const uint8_t *p)
{
	return (uint64_t)get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

static inline void put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline uint64_t get_be64(const uint8_t *p)
{
	return __builtin_bswap64(get_le64(p));
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	put_le64(p, __builtin_bswap64(v));
}

/* True if [off, off + len) lies within [0, size); never computes off + len, which could wrap. */
static inline bool range_fits(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

/* 2 * len lower-case digits and a NUL. */
static inline void bytes_to_hex(const void *p, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *at = (const uint8_t *)p;

	for (size_t i = 0; i < len; i++) {
		*ret++ = digits[at[i] >> 4];
		*ret++ = digits[at[i] & 15];
	}
	*ret = '\0';
}

/*
 * A cursor over a buffer. Reading past the end yields zeros and sets `bad`, so that a field list
 * reads like its specification and is judged once, at its end.
 */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static inline struct cursor cursor_over(const void *p, size_t len)
{
	return (struct cursor){ .at = p, .left = len };
}

/* The next `len` bytes, or NULL (and `bad`) if there are fewer. */
static inline const uint8_t *cur_bytes(struct cursor *c, size_t len)
{
	const uint8_t *p = c->at;

	if (len > c->left) {
		c->bad = true;
		c->left = 0;
		return NULL;
	}
	if (len) /* an empty buffer may have no address to add to */
		c->at += len;
	c->left -= len;
	return p;
}

static inline uint8_t cur_u8(struct cursor *c)
{
	const uint8_t *p = cur_bytes(c, 1);
	return p ? *p : 0;
}

static inline uint16_t cur_le16(struct cursor *c)
{
	const uint8_t *p = cur_bytes(c, 2);
	return p ? get_le16(p) : 0;
}

static inline uint32_t cur_le32(struct cursor *c)
{
	const uint8_t *p = cur_bytes(c, 4);
	return p ? get_le32(p) : 0;
}

static inline uint64_t cur_le64(struct cursor *c)
{
	const uint8_t *p = cur_bytes(c, 8);
	return p ? get_le64(p) : 0;
}

/* White space between words that people wrote. */
static inline bool byte_is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies an LZ77 match byte by byte, because it may overlap its own output. */
static inline void bytes_repeat(uint8_t *to, size_t distance, size_t length)
{
	for (size_t i = 0; i < length; i++)
		to[i] = (to - distance)[i];
}

/* The writer's twin: the caller has made sure that there is room. */
struct appender {
	uint8_t *at;
};

static inline void app_bytes(struct appender *a, const void *p, size_t len)
{
	if (len)
		memcpy(a->at, p, len);
	a->at += len;
}

static inline void app_u8(struct appender *a, uint8_t v)
{
	*a->at++ = v;
}

static inline void app_le16(struct appender *a, uint16_t v)
{
	put_le16(a->at, v);
	a->at += 2;
}

static inline void app_le32(struct appender *a, uint32_t v)
{
	put_le32(a->at, v);
	a->at += 4;
}

static inline void app_le64(struct appender *a, uint64_t v)
{
	put_le64(a->at, v);
	a->at += 8;
}

#endif
