/* SPDX-License-Identifier: Apache-2.0 */
/* What the http*.c share. */
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

/* A handle of libcurl, and what it was told of where its connections go. */
struct http_route {
	CURL *curl;
	struct http_place resolved;
	struct curl_slist *addresses;
};

struct http {
	struct http_route asking, tunnel; /* of http_ask(), of http_connect() */
	struct http_options o;            /* its texts are those below, or NULL */
	struct secret pin, ca, client_cert, client_key, proxy;
	struct http_place proxy_at;

	/* Of the request that runs. */
	const struct http_place *place;
	const uint8_t *body;
	bool (*read)(void *arg, uint64_t at, void *p, size_t len); /* NULL: it is at `body` */
	void *read_arg;
	size_t body_len, body_at;
	unsigned answer_s; /* as in the request */
	struct http_answer_builder builder;
	char detail[CURL_ERROR_SIZE];
	uint64_t moved_ns; /* when a byte went or came last */
	curl_off_t moved;  /* how many had gone by then */
	uint64_t heard_ns; /* when the answer began, to what has gone out whole; 0: not yet */
	uint64_t heard;    /* bytes of it */
	bool stalled, stopped, unreadable;

	bool answered; /* it has had an answer that was HTTP */
};

/* A handle with all that does not depend on the request. ST_NOMEM. */
enum status http__route_init(struct http *h, struct http_route *r, struct err *e);
void http__route_deinit(struct http_route *r);

/* Scheme, host and port of a URL. ST_USAGE, with nothing of the URL in the message. */
enum status http__place(const char *url, struct http_place *ret, struct err *e);

/*
 * Looks the name up of where the next connection goes, and tells libcurl. Not again for the same
 * name, unless a request has failed meanwhile.
 */
enum status http__resolve(struct http *h, struct http_route *r, const struct http_place *to,
			  bool *again, struct err *e);

/* A request begins or ends as far as stalls are concerned. */
void http__moved(struct http *h);

/* Some bytes came. They are a sign of life only where nothing has to go out any more. */
void http__heard(struct http *h, size_t len);

/* So long nothing may move now. */
unsigned http__stall_s(const struct http *h);

/* What libcurl's last word means. */
enum status http__failed(struct http *h, struct http_route *r, CURLcode code, bool *again,
			 struct err *e);

#endif
