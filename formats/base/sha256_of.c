/* SPDX-License-Identifier: Apache-2.0 */
/* What is the same whoever computes the hash. */
#include "formats/base/sha256.h"

#include "formats/base/bytes.h"

void sha256_of(struct sha256 *h, const void *p, size_t len, uint8_t ret[static SHA256_SIZE])
{
	sha256_begin(h);
	sha256_update(h, p, len);
	sha256_end(h, ret);
}

void sha256_hex(const uint8_t digest[static SHA256_SIZE], char ret[static SHA256_HEX_SIZE])
{
	bytes_to_hex(digest, SHA256_SIZE, ret);
}

enum status sha256_hex_of(const void *p, size_t len, char ret[static SHA256_HEX_SIZE],
			  struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 *h;
	enum status st = sha256_create(&h, e);

	if (st)
		return st;
	sha256_of(h, p, len, digest);
	sha256_hex(digest, ret);
	sha256_destroy(h);
	return ST_OK;
}
