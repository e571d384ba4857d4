/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), from the platform's library: libcrypto here, bcrypt on Windows. No
 * allocation after sha256_create(), so that one object per thread serves a whole acquisition.
 */
#ifndef RAMSEAL_BASE_SHA256_H
#define RAMSEAL_BASE_SHA256_H

#include "formats/base/err.h"

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE (2 * SHA256_SIZE + 1)

struct sha256;

enum status sha256_create(struct sha256 **ret, struct err *e);
void sha256_destroy(struct sha256 *h); /* NULL is fine */

/* begin, any number of updates, end; then begin again. Not thread-safe per object. */
void sha256_begin(struct sha256 *h);
void sha256_update(struct sha256 *h, const void *p, size_t len);
void sha256_end(struct sha256 *h, uint8_t ret[static SHA256_SIZE]);

/* The three in one. */
void sha256_of(struct sha256 *h, const void *p, size_t len, uint8_t ret[static SHA256_SIZE]);

/* 64 lower-case digits and a NUL. */
void sha256_hex(const uint8_t digest[static SHA256_SIZE], char ret[static SHA256_HEX_SIZE]);
/* The same without an object. Fails as sha256_create(). */
enum status sha256_hex_of(const void *p, size_t len, char ret[static SHA256_HEX_SIZE],
			  struct err *e);

#endif
