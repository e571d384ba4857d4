/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/tls_key.h"

#include <mbedtls/asn1write.h>
#include <mbedtls/base64.h>
#include <mbedtls/ecp.h>
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/psa_util.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "agent/collect/wire/network.h"
#include "agent/shared/program/random.h"
#include "formats/base/sha256.h"

/* An RSA key of 8192 bits has less than 5 KiB, its certificate less than 3. */
#define DER_MAX 8192

#define PREFIX  "sha256//"

struct tls_key {
	uint8_t key[DER_MAX], certificate[DER_MAX];
	size_t key_len, certificate_len;
	char pin[PIN_SIZE];
};

static enum status tls_key_failed(int code, const char *what, struct err *e)
{
	char text[128];

	mbedtls_strerror(code, text, sizeof(text));
	return err_set(e, ST_SYSTEM, "%s: %s", what, text);
}

/* mbedTLS writes DER at the end of a buffer. */
static size_t to_front(uint8_t *buf, int len)
{
	memmove(buf, buf + DER_MAX - len, (size_t)len);
	return (size_t)len;
}

enum status tls_pin_of(const void *spki, size_t len, char ret[static PIN_SIZE], struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 *h = NULL;
	size_t written;
	const enum status st = sha256_create(&h, e);

	if (st)
		return st;
	sha256_of(h, spki, len, digest);
	sha256_destroy(h);
	memcpy(ret, PREFIX, strlen(PREFIX));
	/* It has room for the digits and the NUL, and so cannot fail. */
	mbedtls_base64_encode((uint8_t *)ret + strlen(PREFIX), PIN_SIZE - strlen(PREFIX), &written,
			      digest, sizeof(digest));
	return ST_OK;
}

enum status tls_pin_check(const char *pin, struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	size_t len = 0;

	if (strlen(pin) == PIN_SIZE - 1 && !strncmp(pin, PREFIX, strlen(PREFIX)) &&
	    !mbedtls_base64_decode(digest, sizeof(digest), &len,
				   (const uint8_t *)pin + strlen(PREFIX),
				   PIN_SIZE - 1 - strlen(PREFIX)) &&
	    len == sizeof(digest))
		return ST_OK;
	return err_set(e, ST_USAGE, "takes sha256// and the 44 digits of a key's hash in base64");
}

bool tls_pin_is_among(const char *pin, const char *pins)
{
	const size_t len = strlen(pin);

	while (pins) {
		if (!strncmp(pins, pin, len) && (!pins[len] || pins[len] == ';'))
			return true;
		pins = strchr(pins, ';');
		pins = pins ? pins + 1 : NULL;
	}
	return false;
}

/*
 * Names and dates mean nothing here, but X.509 wants some: these are the same for everybody, and
 * tell nothing.
 */
static int write_certificate(struct tls_key *k, mbedtls_pk_context *pk)
{
	mbedtls_x509write_cert w;
	uint8_t serial[16];
	int n;

	if (random_bytes(serial, sizeof(serial), NULL))
		return MBEDTLS_ERR_PK_ALLOC_FAILED;
	serial[0] &= 0x7f; /* positive (RFC 5280, 4.1.2.2) */
	serial[0] |= 0x40;
	mbedtls_x509write_crt_init(&w);
	mbedtls_x509write_crt_set_version(&w, MBEDTLS_X509_CRT_VERSION_3);
	mbedtls_x509write_crt_set_md_alg(&w, MBEDTLS_MD_SHA256);
	mbedtls_x509write_crt_set_subject_key(&w, pk);
	mbedtls_x509write_crt_set_issuer_key(&w, pk);
	n = mbedtls_x509write_crt_set_serial_raw(&w, serial, sizeof(serial));
	if (!n)
		n = mbedtls_x509write_crt_set_subject_name(&w, "CN=ramseal");
	if (!n)
		n = mbedtls_x509write_crt_set_issuer_name(&w, "CN=ramseal");
	if (!n)
		n = mbedtls_x509write_crt_set_validity(&w, "20200101000000", "20991231235959");
	if (!n)
		n = mbedtls_x509write_crt_der(&w, k->certificate, DER_MAX, mbedtls_psa_get_random,
					      MBEDTLS_PSA_RANDOM_STATE);
	mbedtls_x509write_crt_free(&w);
	if (n <= 0)
		return n;
	k->certificate_len = to_front(k->certificate, n);
	return 0;
}

/* All that is known of a key. */
static enum status describe_tls_key(struct tls_key *k, mbedtls_pk_context *pk, struct err *e)
{
	uint8_t spki[DER_MAX];
	int n = mbedtls_pk_write_pubkey_der(pk, spki, sizeof(spki));
	enum status st;

	if (n <= 0)
		return tls_key_failed(n, "public key", e);
	st = tls_pin_of(spki + sizeof(spki) - n, (size_t)n, k->pin, e);
	if (st)
		return st;
	n = mbedtls_pk_write_key_der(pk, k->key, DER_MAX);
	if (n <= 0)
		return tls_key_failed(n, "private key", e);
	k->key_len = to_front(k->key, n);
	n = write_certificate(k, pk);
	return n ? tls_key_failed(n, "certificate", e) : ST_OK;
}

static enum status finish_tls_key(mbedtls_pk_context *pk, struct tls_key **ret, struct err *e)
{
	struct tls_key *k = calloc(1, sizeof(*k));
	const enum status st = k ? describe_tls_key(k, pk, e) : err_nomem(e);

	if (st)
		tls_key_destroy(k);
	else
		*ret = k;
	return st;
}

enum status tls_key_make(struct tls_key **ret, struct err *e)
{
	mbedtls_pk_context pk;
	enum status st = network_begin(e);
	int code;

	if (st)
		return st;
	mbedtls_pk_init(&pk);
	code = mbedtls_pk_setup(&pk, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
	if (!code)
		code = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(pk),
					   mbedtls_psa_get_random, MBEDTLS_PSA_RANDOM_STATE);
	st = code ? tls_key_failed(code, "a new key", e) : finish_tls_key(&pk, ret, e);
	mbedtls_pk_free(&pk);
	return st;
}

/* What the library says of a file that is wrong helps nobody who is not its author. */
static enum status judge_pem(int code, struct err *e)
{
	if (code == MBEDTLS_ERR_PK_PASSWORD_REQUIRED || code == MBEDTLS_ERR_PK_PASSWORD_MISMATCH)
		return err_set(e, ST_USAGE, "the key has a password; use one without");
	return err_set(e, ST_USAGE, "is not a private key in PEM (EC or RSA)");
}

enum status tls_key_parse(const struct secret *pem, struct tls_key **ret, struct err *e)
{
	mbedtls_pk_context pk;
	enum status st = network_begin(e);
	int code;

	if (st)
		return st;
	mbedtls_pk_init(&pk);
	code = mbedtls_pk_parse_key(&pk, (const uint8_t *)pem->text, pem->len + 1, NULL, 0,
				    mbedtls_psa_get_random, MBEDTLS_PSA_RANDOM_STATE);
	if (!code && !mbedtls_pk_can_do(&pk, MBEDTLS_PK_ECDSA) &&
	    !mbedtls_pk_can_do(&pk, MBEDTLS_PK_RSA))
		code = MBEDTLS_ERR_PK_KEY_INVALID_FORMAT;
	st = code ? judge_pem(code, e) : finish_tls_key(&pk, ret, e);
	mbedtls_pk_free(&pk);
	return st;
}

void tls_key_destroy(struct tls_key *k)
{
	if (k)
		mbedtls_platform_zeroize(k, sizeof(*k));
	free(k);
}

const char *tls_key_pin(const struct tls_key *k)
{
	return k->pin;
}

const uint8_t *tls_key_private(const struct tls_key *k, size_t *ret_len)
{
	*ret_len = k->key_len;
	return k->key;
}

const uint8_t *tls_key_certificate(const struct tls_key *k, size_t *ret_len)
{
	*ret_len = k->certificate_len;
	return k->certificate;
}

enum status tls_key_pem(const struct tls_key *k, struct secret *ret, struct err *e)
{
	char text[2 * DER_MAX];
	mbedtls_pk_context pk;
	enum status st;
	int code;

	mbedtls_pk_init(&pk);
	code = mbedtls_pk_parse_key(&pk, k->key, k->key_len, NULL, 0, mbedtls_psa_get_random,
				    MBEDTLS_PSA_RANDOM_STATE);
	if (!code)
		code = mbedtls_pk_write_key_pem(&pk, (uint8_t *)text, sizeof(text));
	st = code ? tls_key_failed(code, "private key", e) : secret_set(ret, text, strlen(text), e);
	mbedtls_pk_free(&pk);
	mbedtls_platform_zeroize(text, sizeof(text));
	return st;
}
