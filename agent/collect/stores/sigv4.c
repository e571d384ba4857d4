/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/sigv4.h"

#include <string.h>

#include "agent/shared/program/clock.h"

#define BLOCK 64 /* of SHA-256 (FIPS 180-4) */

/* HMAC (RFC 2104) with SHA-256; the key is a digest, or a secret of any length. */
struct hmac {
	struct sha256 *h;
	uint8_t outer[BLOCK];
};

static void hmac_begin(struct hmac *m, struct sha256 *h, const void *key, size_t len)
{
	uint8_t inner[BLOCK] = { 0 };

	m->h = h;
	if (len > BLOCK)
		sha256_of(h, key, len, inner);
	else
		memcpy(inner, key, len);
	for (size_t i = 0; i < BLOCK; i++) {
		m->outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	sha256_begin(h);
	sha256_update(h, inner, BLOCK);
	memory_wipe(inner, sizeof(inner));
}

static void hmac_end(struct hmac *m, uint8_t ret[static SHA256_SIZE])
{
	sha256_end(m->h, ret);
	sha256_begin(m->h);
	sha256_update(m->h, m->outer, BLOCK);
	sha256_update(m->h, ret, SHA256_SIZE);
	sha256_end(m->h, ret);
	memory_wipe(m, sizeof(*m));
}

static void hash_signed_text(struct sha256 *h, const char *text)
{
	sha256_update(h, text, strlen(text));
}

/* The key becomes HMAC(key, text). */
static void chain_hmac(struct sha256 *h, uint8_t key[static SHA256_SIZE], const char *text,
		       size_t len)
{
	struct hmac m;

	hmac_begin(&m, h, key, SHA256_SIZE);
	sha256_update(h, text, len);
	hmac_end(&m, key);
}

static void put_names(struct sha256 *h, const struct sigv4_request *r)
{
	for (size_t i = 0; i < r->n_headers; i++) {
		if (i)
			hash_signed_text(h, ";");
		hash_signed_text(h, r->headers[i].name);
	}
}

static void hash_request(const struct sigv4_request *r, struct sha256 *h,
			 char ret[static SHA256_HEX_SIZE])
{
	const char *const first[] = { r->method, "\n", r->path, "\n", r->query, "\n" };
	uint8_t digest[SHA256_SIZE];

	sha256_begin(h);
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		hash_signed_text(h, first[i]);
	for (size_t i = 0; i < r->n_headers; i++) {
		hash_signed_text(h, r->headers[i].name);
		hash_signed_text(h, ":");
		hash_signed_text(h, r->headers[i].value);
		hash_signed_text(h, "\n");
	}
	hash_signed_text(h, "\n");
	put_names(h, r);
	hash_signed_text(h, "\n");
	hash_signed_text(h, r->payload);
	sha256_end(h, digest);
	sha256_hex(digest, ret);
}

/* HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), "s3"), "aws4_request") */
static enum status make_signing_key(const struct secret *secret, const char *time,
				    const char *region, struct sha256 *h,
				    uint8_t ret[static SHA256_SIZE], struct err *e)
{
	struct hmac m;
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "AWS4%s", secret->text) < 0)
		return err_nomem(e);
	hmac_begin(&m, h, text, strlen(text));
	sha256_update(h, time, 8);
	hmac_end(&m, ret);
	memory_wipe(text, strlen(text));
	chain_hmac(h, ret, region, strlen(region));
	chain_hmac(h, ret, "s3", 2);
	chain_hmac(h, ret, "aws4_request", strlen("aws4_request"));
	return ST_OK;
}

static const char *time_of(const struct sigv4_request *r)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (!strcmp(r->headers[i].name, "x-amz-date"))
			return r->headers[i].value;
	return "";
}

static char *join_names(const struct sigv4_request *r)
{
	size_t len = 1;
	char *ret, *at;

	for (size_t i = 0; i < r->n_headers; i++)
		len += strlen(r->headers[i].name) + 1;
	ret = malloc(len);
	at = ret;
	for (size_t i = 0; ret && i < r->n_headers; i++)
		at += sprintf(at, "%s%s", i ? ";" : "", r->headers[i].name);
	return ret;
}

static void sign(const char *time, const char *scope, const char *request,
		 uint8_t key[static SHA256_SIZE], struct sha256 *h,
		 char ret[static SHA256_HEX_SIZE])
{
	const char *const text[] = { "AWS4-HMAC-SHA256\n", time, "\n", scope, "\n", request };
	struct hmac m;

	hmac_begin(&m, h, key, SHA256_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		hash_signed_text(h, text[i]);
	hmac_end(&m, key);
	sha256_hex(key, ret);
}

enum status sigv4_authorization(const struct sigv4_request *r, const struct secret *id,
				const struct secret *key, const char *region, struct sha256 *h,
				char **ret, struct err *e)
{
	const char *time = time_of(r);
	char request[SHA256_HEX_SIZE], signature[SHA256_HEX_SIZE];
	_cleanup_free_ char *scope = NULL, *names = join_names(r);
	uint8_t signing[SHA256_SIZE];
	enum status st;

	if (!names || asprintf(&scope, "%.8s/%s/s3/aws4_request", time, region) < 0) {
		scope = NULL;
		return err_nomem(e);
	}
	hash_request(r, h, request);
	st = make_signing_key(key, time, region, h, signing, e);
	if (st)
		return st;
	sign(time, scope, request, signing, h, signature);
	memory_wipe(signing, sizeof(signing));
	if (asprintf(ret, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
		     id->text, scope, names, signature) < 0)
		return err_nomem(e);
	return ST_OK;
}

void sigv4_time(uint64_t unix_s, char ret[static SIGV4_TIME_SIZE])
{
	clock_file_name(unix_s * NS_PER_SECOND, ret);
}

char *uri_encode(const char *text, bool keep_slash)
{
	static const char kept[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789-._~";
	char *ret = malloc(3 * strlen(text) + 1), *at = ret;

	for (; ret && *text; text++) {
		if (strchr(kept, *text) || (keep_slash && *text == '/'))
			*at++ = *text;
		else
			at += sprintf(at, "%%%02X", (unsigned char)*text);
	}
	if (ret)
		*at = '\0';
	return ret;
}
