/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/md5_sha1.h"

#define OPENSSL_SUPPRESS_DEPRECATED /* why these and not EVP: sha256.c */
#include <openssl/md5.h>
#include <openssl/sha.h>

struct md5_sha1 {
	MD5_CTX md5;
	SHA_CTX sha1;
};

/* These have no way to fail; if one did, the image would state a wrong hash, so stop. */
static void must_digest(int ok)
{
	if (ok != 1)
		abort();
}

enum status md5_sha1_create(struct md5_sha1 **ret, struct err *e)
{
	struct md5_sha1 *h = calloc(1, sizeof(*h));

	if (!h)
		return err_nomem(e);
	must_digest(MD5_Init(&h->md5));
	must_digest(SHA1_Init(&h->sha1));
	*ret = h;
	return ST_OK;
}

void md5_sha1_destroy(struct md5_sha1 *h)
{
	free(h);
}

void md5_sha1_update(struct md5_sha1 *h, const void *p, size_t len)
{
	must_digest(MD5_Update(&h->md5, p, len));
	must_digest(SHA1_Update(&h->sha1, p, len));
}

void md5_sha1_end(struct md5_sha1 *h, uint8_t ret_md5[static MD5_SIZE],
		  uint8_t ret_sha1[static SHA1_SIZE])
{
	must_digest(MD5_Final(ret_md5, &h->md5));
	must_digest(SHA1_Final(ret_sha1, &h->sha1));
}
