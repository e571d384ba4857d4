/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time stamps of an authority (RFC 3161): the request, and what the answer says. That the answer
 * is over certain bytes is checked here; that the authority has signed it is not, nor whether it is
 * one to be trusted: `openssl ts -verify` judges that.
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

/* As `openssl ts -query -sha256 -no_nonce -cert` has it: no nonce, for the hash is of one use. */
void timestamp_request(const uint8_t sha256[static SHA256_SIZE],
		       uint8_t ret[static TIMESTAMP_REQUEST_SIZE]);

struct timestamp {
	uint64_t time; /* ns since 1970-01-01T00:00:00Z, by the authority's clock */
	bool sha512;   /* else SHA-256 */
	uint8_t imprint[TIMESTAMP_IMPRINT_MAX];
};

/*
 * Of the whole answer (TimeStampResp). ST_INPUT: it is none, or the authority refused, or it is
 * over a hash that is neither SHA-256 nor SHA-512.
 */
enum status timestamp_parse(const void *p, size_t len, struct timestamp *ret, struct err *e);

/* ST_MISMATCH if it is over other bytes. */
enum status timestamp_check(const struct timestamp *t, const void *message, size_t len,
			    struct err *e);

#endif
