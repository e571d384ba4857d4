/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time stamps of an authority (RFC 3161): the request, and the content of the answer. It is checked
 * here which bytes the answer is for, but not that the authority signed it, nor that the authority
 * can be trusted: use `openssl ts -verify` for that.
 *
 * Sources: RFC 3161, sections 2.4.1 and 2.4.2; RFC 5652 (CMS), 5.1 and 5.2; RFC 5754, 2 (hashes).
 */
#ifndef RAMSEAL_FORMATS_TIMESTAMP_H
#define RAMSEAL_FORMATS_TIMESTAMP_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/base/sha256.h"

#define TIMESTAMP_REQUEST_SIZE 59
#define TIMESTAMP_MAX          ((size_t)1 << 20) /* bytes of an answer, certificates and all */
#define TIMESTAMP_IMPRINT_MAX  64

/*
 * The same request as `openssl ts -query -sha256 -no_nonce -cert`: no nonce, because each hash is
 * used once.
 */
void timestamp_request(const uint8_t sha256[static SHA256_SIZE],
		       uint8_t ret[static TIMESTAMP_REQUEST_SIZE]);

struct timestamp {
	uint64_t time; /* ns since 1970-01-01T00:00:00Z, by the authority's clock */
	bool sha512;   /* else SHA-256 */
	uint8_t imprint[TIMESTAMP_IMPRINT_MAX];
};

/*
 * Parses the whole answer (TimeStampResp). ST_INPUT: it is not one, the authority refused, or its
 * hash is neither SHA-256 nor SHA-512.
 */
enum status timestamp_parse(const void *p, size_t len, struct timestamp *ret, struct err *e);

/* The time alone, of a token without the answer around it. False: it is none. */
struct der;
bool timestamp_token_time(const struct der *token, uint64_t *ret);

/* ST_MISMATCH if it is for other bytes. */
enum status timestamp_check(const struct timestamp *t, const void *message, size_t len,
			    struct err *e);

#endif
