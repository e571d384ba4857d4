/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/sha256.h"

/*
 * The SHA256_*() functions, although OpenSSL 3 calls them deprecated: behind EVP they are the same
 * code at the same speed, but EVP reads the machine's openssl.cnf first and may load modules that
 * it names. On a machine that we do not trust we want neither. Linked statically they also come
 * without the rest of libcrypto (4 MB, and its calls of dlopen() and getaddrinfo()).
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

struct sha256 {
	SHA256_CTX context;
};

enum status sha256_create(struct sha256 **ret, struct err *e)
{
	struct sha256 *h = calloc(1, sizeof(*h));

	if (!h)
		return err_nomem(e);
	*ret = h;
	return ST_OK;
}

void sha256_destroy(struct sha256 *h)
{
	free(h);
}

/*
 * These have no way to fail; if one did, going on would write a container that cannot be verified,
 * so stop.
 */
static void must_hash(int ok)
{
	if (ok != 1)
		abort();
}

void sha256_begin(struct sha256 *h)
{
	must_hash(SHA256_Init(&h->context));
}

void sha256_update(struct sha256 *h, const void *p, size_t len)
{
	must_hash(SHA256_Update(&h->context, p, len));
}

void sha256_end(struct sha256 *h, uint8_t ret[static SHA256_SIZE])
{
	must_hash(SHA256_Final(ret, &h->context));
}
