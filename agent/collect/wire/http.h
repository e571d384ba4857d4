/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 requests over libcurl with Mbed TLS and c-ares. Nothing of the host is asked or trusted:
 * no CA store, proxy variable, .netrc, nsswitch.conf or openssl.cnf; of its resolver only the name
 * servers count (names.h). Whom TLS believes is said by `pin` and `ca` alone: https without either
 * is refused, and so is http with one of them. Redirects are not followed: whoever wants that asks
 * again.
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
	 * Without `ca` it is all that counts: neither name nor expiry of the certificate do.
	 */
	const char *pin;
	/*
	 * PEM of certificates to trust, for a server that has the URL's name. With `pin` both
	 * count.
	 */
	const char *ca;
	const char *proxy; /* "http://[USER:PASSWORD@]HOST:PORT", "socks5h://..."; NULL: none */
	const char *client_cert, *client_key; /* PEM, for servers that ask; NULL: none */
	unsigned stall_s; /* a request fails when nothing moved for so long; 0: 30 s */
	/* Bytes that went out: for --bwlimit, which may sleep in here. NULL: not counted. */
	void (*sent)(void *arg, size_t len);
	bool (*stop)(void *arg); /* true: give up at once, with ST_INTERRUPTED; NULL: never */
	void *arg;
};

/* Copies what it needs of the texts. ST_USAGE for a pin, certificate, key or proxy that is none. */
enum status http_create(const struct http_options *o, struct http **ret, struct err *e);
void http_destroy(struct http *h); /* NULL is fine */

struct http_header {
	/*
	 * ST_USAGE with CR or LF in either, with a name that is none (RFC 9110, 5.1), and for what
	 * is set here: Content-Length, Transfer-Encoding, Expect.
	 */
	const char *name, *value;
};

struct http_request {
	const char *method;
	const char *url; /* percent-encoded as it is to go out; no user, password or fragment */
	const struct http_header *headers;
	size_t n_headers;
	const void *body; /* Content-Length is always `len`: chunked is never sent */
	/* In place of `body`, if it is not NULL: those bytes of it. False: they cannot be read. */
	bool (*read)(void *arg, uint64_t at, void *p, size_t len);
	void *arg;
	size_t len;
	/*
	 * How long nothing may move once all of the body went out, in place of stall_s: for what
	 * the server commits, copies or checks before it answers. 0: stall_s.
	 */
	unsigned answer_s;
	/*
	 * On a connection of its own. On one that was kept and has died meanwhile libcurl sends
	 * the same again by itself, and nobody learns that the first may have been carried out.
	 */
	bool anew;
	size_t answer_max; /* bytes of the answer's body; 0: HTTP_BODY_MAX */
};

/*
 * For these: asked again, the server would get the whole body once more, or meet the first request
 * while that still runs. Azure gives Put Block List 60 s; that 100 GB are moved to their place may
 * take some minutes. Not for parts, which cost little: what is still in the system's own buffer
 * "went out" too, so that a link that dies then is noticed as late.
 */
#define HTTP_COMMIT_S          600

/* Bytes of an answer, unless the request has another limit; more is ST_CORRUPT. */
#define HTTP_BODY_MAX          ((size_t)1 << 20)
#define HTTP_HEADERS_MAX       ((size_t)64 << 10) /* of its headers, as they are kept; the same */

/* A day: longer than anybody waits, and its milliseconds fit into an unsigned. */
#define HTTP_RETRY_AFTER_MAX_S 86400

struct http_answer {
	unsigned status; /* of the answer, 100 to 599 */
	char *body;      /* NUL-terminated behind `len` bytes */
	size_t len;
	char *headers;     /* "name: value\n" each, names in lower case; NULL: none */
	uint64_t date;     /* of the answer's Date: seconds since 1970; 0: none */
	int retry_after_s; /* -1: none; HTTP_RETRY_AFTER_MAX_S at most */
};

void http_answer_deinit(struct http_answer *a);

/* The first header of that name (given in lower case), up to its '\n'; NULL: there is none. */
const char *http_answer_header(const struct http_answer *a, const char *name, size_t *ret_len);

/*
 * ST_OK when an answer came, whatever it says. Else *again says whether the same request may do
 * better later: a connection that broke, a name server that is silent. It may not with a wrong
 * pin, a name that does not exist, an answer that is no HTTP; but some of these it may where an
 * answer came before. Messages show no more of a URL than scheme, host and port.
 *
 * ST_OUTPUT: no answer. ST_CORRUPT: one that is no HTTP, or too large. ST_USAGE: a request that
 * cannot be sent. ST_INTERRUPTED: `stop` wanted it.
 */
enum status http_ask(struct http *h, const struct http_request *r, struct http_answer *ret,
		     bool *again, struct err *e);

/*
 * A TCP connection to another server, through the proxy if there is one, for what is not HTTP:
 * *ret is a socket that does not block, on which nothing was said yet (SOCKET on Windows). It is
 * closed by http_disconnect(), the next connect or http_destroy(), never by the caller. Fails as
 * http_ask() does.
 */
enum status http_connect(struct http *h, const char *host, unsigned port, intptr_t *ret,
			 bool *again, struct err *e);
void http_disconnect(struct http *h);

/* 408, 425, 429, and 500 to 599 but for 501 and 505: worth trying again. */
bool http_status_is_passing(unsigned status);

#endif
