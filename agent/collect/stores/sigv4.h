/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4 of a request, in its Authorization header: "Authenticating Requests:
 * Using the Authorization Header" of the Amazon S3 API Reference.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_SIGV4_H
#define RAMSEAL_AGENT_COLLECT_STORES_SIGV4_H

#include "agent/collect/wire/http.h"
#include "agent/collect/wire/secret.h"
#include "agent/shared/program/clock.h"
#include "formats/base/sha256.h"

/* "20130524T000000Z" */
#define SIGV4_TIME_SIZE CLOCK_FILE_NAME_SIZE

struct sigv4_request {
	const char *method;
	const char *path;  /* each segment percent-encoded once: uri_encode() */
	const char *query; /* sorted by name, encoded, each with its '=': "uploads="; "" */
	/* All signed headers: names in lower case, sorted; including "host" and "x-amz-date". */
	const struct http_header *headers;
	size_t n_headers;
	const char *payload; /* SHA-256 of the body, hexadecimal */
};

/*
 * For free(); hardly a secret, because it is valid for one request and a few minutes. Uses `h`.
 * ST_NOMEM.
 */
enum status sigv4_authorization(const struct sigv4_request *r, const struct secret *id,
				const struct secret *key, const char *region, struct sha256 *h,
				char **ret, struct err *e);

void sigv4_time(uint64_t unix_s, char ret[static SIGV4_TIME_SIZE]);

/*
 * Percent-encodes everything except RFC 3986's unreserved characters and, if `keep_slash`, '/'; for
 * free().
 */
char *uri_encode(const char *text, bool keep_slash);

#endif
