/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD5 (RFC 1321) and SHA-1 (FIPS 180-4) of the same bytes, the hashes of the E01 format. Both are
 * broken; ramseal's own container uses neither.
 */
#ifndef RAMSEAL_BASE_MD5_SHA1_H
#define RAMSEAL_BASE_MD5_SHA1_H

#include "formats/base/err.h"

#define MD5_SIZE  16
#define SHA1_SIZE 20

struct md5_sha1;

enum status md5_sha1_create(struct md5_sha1 **ret, struct err *e); /* ready for updates */
void md5_sha1_destroy(struct md5_sha1 *h);                         /* NULL is fine */
void md5_sha1_update(struct md5_sha1 *h, const void *p, size_t len);
/* Nothing can be added after it. */
void md5_sha1_end(struct md5_sha1 *h, uint8_t ret_md5[static MD5_SIZE],
		  uint8_t ret_sha1[static SHA1_SIZE]);

#endif
