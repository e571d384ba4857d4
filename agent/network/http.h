/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 requests over libcurl with mbedTLS and c-ares. Nothing of the host is asked or trusted:
 * no CA store, proxy variable, .netrc, nsswitch.conf or openssl.cnf. Whom TLS believes is said by
 * `pin` or `ca` alone. Redirects are not followed: whoever wants that asks again.
 *
 * A `struct http` belongs to one thread at a time. It keeps its connection between requests.
 */
#ifndef RAMSEAL_AGENT_NETWORK_HTTP_H
#define RAMSEAL_AGENT_NETWORK_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct http;

struct http_options {
	/* "sha256//BASE64" of the server's SubjectPublicKeyInfo, several with ';' between them. */
	const char *pin;
	const char *ca;    /* PEM of certificates to trust; NULL: only the pin counts */
	const char *proxy; /* "http://HOST:PORT", "socks5h://HOST:PORT"; NULL: none */
	const char *client_cert, *client_key; /* PEM, for servers that ask; NULL: none */
	unsigned stall_s; /* a request fails when nothing moved for so long; 0: 30 s */
	/* Bytes that went out: for --bwlimit, which may sleep in here. NULL: nobody counts. */
	void (*sent)(void *arg, size_t len);
	bool (*stop)(void *arg); /* true: give up at once, with ST_INTERRUPTED; NULL: never */
	void *arg;
};

enum status http_create(const struct http_options *o, struct http **ret, struct err *e);
void http_destroy(struct http *h); /* NULL is fine */

struct http_header {
	const char *name, *value; /* no CR, LF or NUL in either: ST_USAGE */
};

struct http_request {
	const char *method;
	const char *url; /* percent-encoded as it is to go out */
	const struct http_header *headers;
	size_t n_headers;
	const void *body; /* Content-Length is always `len`: chunked is never sent */
	size_t len;
};

#define HTTP_BODY_MAX ((size_t)1 << 20) /* bytes of an answer that are kept; more is ST_CORRUPT */

struct http_answer {
	unsigned status; /* of the answer, 100 to 599 */
	char *body;      /* NUL-terminated behind `len` bytes */
	size_t len;
	char *headers;     /* "name: value\n" each, names in lower case */
	uint64_t date;     /* of the answer's Date: seconds since 1970; 0: none */
	int retry_after_s; /* -1: none */
};

void http_answer_deinit(struct http_answer *a);

/* The first header of that name (given in lower case), up to its '\n'; NULL: there is none. */
const char *http_answer_header(const struct http_answer *a, const char *name, size_t *ret_len);

/*
 * ST_OK when an answer came, whatever it says. Else *again says whether the same request may do
 * better later: a connection that broke, a name server that is silent. It may not with a wrong
 * pin, a name that does not exist. Messages show no more of a URL than scheme and host.
 */
enum status http_ask(struct http *h, const struct http_request *r, struct http_answer *ret,
		     bool *again, struct err *e);

/* 408, 425, 429, and 500 to 599 but for 501 and 505: worth trying again. */
bool http_status_is_passing(unsigned status);

#endif
