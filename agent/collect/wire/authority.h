/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to time-stamping authorities over HTTP (RFC 3161, 3.4). The request is not secret, and
 * the answer is signed, so http:// is good enough.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_AUTHORITY_H
#define RAMSEAL_AGENT_COLLECT_WIRE_AUTHORITY_H

#include "formats/base/sha256.h"

struct authority {
	const char *url;
	const char *ca; /* PEM; NULL: none, so https:// is not possible */
};

#define AUTHORITY_LIMIT_S 60 /* for the whole exchange; a signal ends it sooner */

/* ST_USAGE for a URL that cannot be asked. Nothing is sent. */
enum status authority_check(const struct authority *a, struct err *e);

/*
 * A time stamp for bytes with this hash, as the authority sent it, for free();
 * formats/proof/timestamp.h reads it. Asks at most twice. ST_OUTPUT, or as http_ask(); messages
 * name the server.
 */
enum status authority_ask(const struct authority *a, const uint8_t sha256[static SHA256_SIZE],
			  char **ret, size_t *ret_len, struct err *e);

#endif
