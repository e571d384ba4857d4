/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by http*.c. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_HTTP_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_WIRE_HTTP_INTERNAL_H

#include <curl/curl.h>

#include "agent/collect/wire/http_answer.h"
#include "agent/collect/wire/names.h"
#include "agent/collect/wire/secret.h"

/* "[" address "]" or a name, which has 255 bytes at most (RFC 1035, 2.3.4). */
#define HTTP_HOST_MAX 256

struct http_place {
	char host[HTTP_HOST_MAX]; /* as in the URL, an IPv6 address in brackets */
	unsigned port;
	bool tls;
	char shown[HTTP_HOST_MAX + 32]; /* "https://HOST:PORT", the port if the URL has one */
};

/* A libcurl handle, and what it was told about the addresses of its connections. */
struct http_route {
	CURL *curl;
	struct http_place resolved;
	struct curl_slist *addresses;
};

struct http {
	struct http_route asking, tunnel; /* for http_ask(), for http_connect() */
	struct http_options o;            /* its texts point to those below, or are NULL */
	struct secret pin, ca, client_cert, client_key, proxy;
	struct http_place proxy_at;

	/* For the current request. */
	const struct http_place *place;
	const uint8_t *body;
	bool (*read)(void *arg, uint64_t at, void *p, size_t len); /* NULL: it is at `body` */
	void *read_arg;
	size_t body_len, body_at;
	unsigned answer_s; /* as in the request */
	struct http_answer_builder builder;
	char detail[CURL_ERROR_SIZE];
	uint64_t moved_ns; /* when a byte was last sent or received */
	curl_off_t moved;  /* how many had been sent by then */
	uint64_t heard_ns; /* when the answer to a completely sent request began; 0: not yet */
	uint64_t heard;    /* bytes of it */
	bool stalled, stopped, unreadable;

	bool answered; /* it has had an answer that was HTTP */
};

/* A handle with everything that does not depend on the request. ST_NOMEM. */
enum status http__route_init(struct http *h, struct http_route *r, struct err *e);
void http__route_deinit(struct http_route *r);

/* Scheme, host and port of a URL. ST_USAGE, with nothing of the URL in the message. */
enum status http__place(const char *url, struct http_place *ret, struct err *e);

/*
 * Resolves the name of the next connection for libcurl. Not again for the same name, unless a
 * request has failed meanwhile.
 */
enum status http__resolve(struct http *h, struct http_route *r, const struct http_place *to,
			  bool *again, struct err *e);

/* A request begins or ends as far as stalls are concerned. */
void http__moved(struct http *h);

/* Bytes were received. They count as progress only if nothing is left to send. */
void http__heard(struct http *h, size_t len);

/* The current limit for a lack of progress. */
unsigned http__stall_s(const struct http *h);

/* The meaning of libcurl's result. */
enum status http__failed(struct http *h, struct http_route *r, CURLcode code, bool *again,
			 struct err *e);

#endif
