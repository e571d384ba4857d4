/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 requests over libcurl with Mbed TLS and c-ares. Nothing on the host is used or trusted:
 * no CA store, proxy variable, .netrc, nsswitch.conf or openssl.cnf; of its resolver, only the name
 * servers (names.h). Only `pin` and `ca` say whom TLS trusts: https without either is refused, and
 * so is http with one of them. Redirects are not followed: the caller can ask again.
 *
 * A `struct http` belongs to one thread at a time. It keeps its connection between requests.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_HTTP_H
#define RAMSEAL_AGENT_COLLECT_WIRE_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct http;

struct http_options {
	/*
	 * "sha256//BASE64" of the server's SubjectPublicKeyInfo, several with ';' between them.
	 * Without `ca`, only the pin is checked, and neither name nor expiry of the certificate.
	 */
	const char *pin;
	/*
	 * PEM of certificates to trust, for a server with the URL's name. With `pin`, both are
	 * checked.
	 */
	const char *ca;
	const char *proxy; /* "http://[USER:PASSWORD@]HOST:PORT", "socks5h://..."; NULL: none */
	const char *client_cert, *client_key; /* PEM, for servers that require one; NULL: none */
	unsigned stall_s; /* a request fails after this long without progress; 0: 30 s */
	/* Called with the bytes sent: for --bwlimit, which may sleep here. NULL: not counted. */
	void (*sent)(void *arg, size_t len);
	bool (*stop)(void *arg); /* true: give up at once, with ST_INTERRUPTED; NULL: never */
	void *arg;
};

/* Copies the texts it needs. ST_USAGE for an invalid pin, certificate, key or proxy. */
enum status http_create(const struct http_options *o, struct http **ret, struct err *e);
void http_destroy(struct http *h); /* NULL is fine */

struct http_header {
	/*
	 * ST_USAGE for CR or LF in either, for an invalid name (RFC 9110, 5.1), and for headers
	 * that are set here: Content-Length, Transfer-Encoding, Expect.
	 */
	const char *name, *value;
};

struct http_request {
	const char *method;
	const char *url; /* percent-encoded as sent; without user, password or fragment */
	const struct http_header *headers;
	size_t n_headers;
	const void *body; /* Content-Length is always `len`: chunked is never sent */
	/*
	 * Used instead of `body` if not NULL: reads these bytes of it. False: they cannot be read.
	 */
	bool (*read)(void *arg, uint64_t at, void *p, size_t len);
	void *arg;
	size_t len;
	/*
	 * Replaces stall_s once the whole body was sent: for what the server commits, copies or
	 * checks before it answers. 0: stall_s.
	 */
	unsigned answer_s;
	/*
	 * Use a new connection. If a kept one has died meanwhile, libcurl repeats the request by
	 * itself, and nobody learns that the first one may have been carried out.
	 */
	bool anew;
	size_t answer_max; /* bytes of the answer's body; 0: HTTP_BODY_MAX */
};

/*
 * For requests whose retry would send the whole body again, or meet the first request while that
 * still runs. Azure gives Put Block List 60 s; moving 100 GB into place may take minutes. Not for
 * parts, which cost little: bytes in the system's own buffer count as sent too, so a link that dies
 * then is noticed only that late.
 */
#define HTTP_COMMIT_S          600

/* Bytes of an answer, unless the request sets another limit; more is ST_CORRUPT. */
#define HTTP_BODY_MAX          ((size_t)1 << 20)
#define HTTP_HEADERS_MAX       ((size_t)64 << 10) /* of its headers, as stored; likewise */

/* A day: longer than anybody waits, and in milliseconds it fits into an unsigned. */
#define HTTP_RETRY_AFTER_MAX_S 86400

struct http_answer {
	unsigned status; /* of the answer, 100 to 599 */
	char *body;      /* NUL-terminated after `len` bytes */
	size_t len;
	char *headers;     /* "name: value\n" each, names in lower case; NULL: none */
	uint64_t date;     /* of the answer's Date: seconds since 1970; 0: none */
	int retry_after_s; /* -1: none; HTTP_RETRY_AFTER_MAX_S at most */
};

void http_answer_deinit(struct http_answer *a);

/* The first header of that name (given in lower case), up to its '\n'; NULL: there is none. */
const char *http_answer_header(const struct http_answer *a, const char *name, size_t *ret_len);

/*
 * ST_OK when an answer came, whatever it says. Otherwise *again says whether the same request may
 * succeed later: after a broken connection or a silent name server, but not after a wrong pin, an
 * unknown name or an answer that is not HTTP, unless an answer came before. Messages show only
 * scheme, host and port of a URL.
 *
 * ST_OUTPUT: no answer. ST_CORRUPT: not HTTP, or too large. ST_USAGE: a request that cannot be
 * sent. ST_INTERRUPTED: by `stop`.
 */
enum status http_ask(struct http *h, const struct http_request *r, struct http_answer *ret,
		     bool *again, struct err *e);

/*
 * Makes a TCP connection to another server, through the proxy if there is one, for other protocols
 * than HTTP: *ret is a non-blocking socket (SOCKET on Windows) on which nothing was sent.
 * http_disconnect(), the next connect or http_destroy() closes it, never the caller. Fails as
 * http_ask() does.
 */
enum status http_connect(struct http *h, const char *host, unsigned port, intptr_t *ret,
			 bool *again, struct err *e);
void http_disconnect(struct http *h);

/* 408, 425, 429, and 500 to 599 except 501 and 505: worth retrying. */
bool http_status_is_passing(unsigned status);

#endif
