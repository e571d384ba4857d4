/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of tls://: an identity is the SHA-256 of a public key (PROTOCOL.md, section 1), written
 * as for curl's --pinnedpubkey.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_TLS_KEY_H
#define RAMSEAL_AGENT_COLLECT_WIRE_TLS_KEY_H

#include "agent/collect/wire/secret.h"

/* "sha256//" and the base64 of 32 bytes. */
#define PIN_SIZE sizeof("sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")

/* A private key and its certificate. Constant: any number of threads. */
struct tls_key;

/* ECDSA, P-256. */
enum status tls_key_make(struct tls_key **ret, struct err *e);

/* PEM, without a password: PKCS #8 or SEC 1, EC or RSA. ST_USAGE with what is wrong. */
enum status tls_key_parse(const struct secret *pem, struct tls_key **ret, struct err *e);

void tls_key_destroy(struct tls_key *k); /* wipes it; NULL is fine */

const char *tls_key_pin(const struct tls_key *k);
enum status tls_key_pem(const struct tls_key *k, struct secret *ret, struct err *e);

/* DER, for tls_link.c. */
const uint8_t *tls_key_private(const struct tls_key *k, size_t *ret_len);
const uint8_t *tls_key_certificate(const struct tls_key *k, size_t *ret_len);

/* The pin of a SubjectPublicKeyInfo (DER). */
enum status tls_pin_of(const void *spki, size_t len, char ret[static PIN_SIZE], struct err *e);

/* ST_USAGE: "takes ...". */
enum status tls_pin_check(const char *pin, struct err *e);

/* Is it one of these, separated by ';'? */
bool tls_pin_is_among(const char *pin, const char *pins);

#endif
