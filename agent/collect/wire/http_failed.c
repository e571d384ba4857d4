/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's errors as ours. */
#include <errno.h>
#include <string.h>

#include "agent/collect/wire/http_internal.h"

enum again {
	NEVER,
	IF_ANSWERED, /* the server has answered before, so that it may be the way to it */
	ALWAYS,
};

enum detail { BARE, WITH_TLS, WITH_ERRNO };

/* CURLE_ABORTED_BY_CALLBACK and CURLE_WRITE_ERROR are what we say ourselves. */
static const struct {
	CURLcode code;
	enum status st;
	enum again again;
	enum detail detail;
	const char *text;
} meanings[] = {
	{ CURLE_COULDNT_CONNECT, ST_OUTPUT, ALWAYS, WITH_ERRNO, "cannot connect" },
	{ CURLE_OPERATION_TIMEDOUT, ST_OUTPUT, ALWAYS, BARE, "connection timed out" },
	{ CURLE_SSL_CONNECT_ERROR, ST_OUTPUT, IF_ANSWERED, WITH_TLS, "TLS failed" },
	{ CURLE_PEER_FAILED_VERIFICATION, ST_OUTPUT, NEVER, WITH_TLS,
	  "the server's certificate is not trusted" },
	{ CURLE_SSL_PINNEDPUBKEYNOTMATCH, ST_OUTPUT, NEVER, BARE,
	  "the server's key is not the pinned one" },
	{ CURLE_SSL_CERTPROBLEM, ST_USAGE, NEVER, WITH_TLS, "certificate or key" },
	{ CURLE_PROXY, ST_OUTPUT, ALWAYS, BARE, "the proxy cannot connect" },
	{ CURLE_SEND_ERROR, ST_OUTPUT, ALWAYS, WITH_ERRNO, "the connection broke" },
	{ CURLE_RECV_ERROR, ST_OUTPUT, ALWAYS, WITH_ERRNO, "the connection broke" },
	{ CURLE_GOT_NOTHING, ST_OUTPUT, ALWAYS, BARE,
	  "the connection was closed without an answer" },
	{ CURLE_PARTIAL_FILE, ST_OUTPUT, ALWAYS, BARE, "the answer is cut short" },
	{ CURLE_UNSUPPORTED_PROTOCOL, ST_CORRUPT, IF_ANSWERED, BARE, "the answer is not HTTP" },
	{ CURLE_WEIRD_SERVER_REPLY, ST_CORRUPT, IF_ANSWERED, BARE, "the answer is not HTTP" },
	{ CURLE_TOO_LARGE, ST_CORRUPT, NEVER, BARE, "the answer's headers are too long" },
	{ CURLE_URL_MALFORMAT, ST_USAGE, NEVER, BARE, "not a URL" },
	{ CURLE_OUT_OF_MEMORY, ST_NOMEM, NEVER, BARE, "out of memory" },
};

/*
 * A handshake that the other end broke off without a word, rather than one that failed: Mbed TLS's
 * MBEDTLS_ERR_SSL_CONN_EOF, or an error of reading or writing, which libcurl hands it as -1 and
 * names first ("Recv failure: Connection reset by peer": lib/cf-socket.c of 8.14).
 */
static bool is_broken_off(const char *detail)
{
	static const char *const broken[] = { "(-0x7280)", "(-0x0001)", "Recv failure",
					      "Send failure" };

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		if (strstr(detail, broken[i]))
			return true;
	return false;
}

static enum status say_meaning(const struct http *h, CURL *c, size_t i, struct err *e)
{
	const char *shown = h->place->shown, *text = meanings[i].text;
	const enum status st = meanings[i].st;
	long number = 0;

	if (meanings[i].detail == WITH_ERRNO)
		curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &number);
	if (number)
		return err_from_errno(e, st, (int)number, "%s: %s", shown, text);
	if (meanings[i].detail == WITH_TLS && h->detail[0])
		return err_set(e, st, "%s: %s: %s", shown, text, h->detail);
	return err_set(e, st, "%s: %s", shown, text);
}

static enum status request_aborted(const struct http *h, bool *again, struct err *e)
{
	if (h->stopped)
		return err_set(e, ST_INTERRUPTED, "%s: interrupted", h->place->shown);
	if (h->unreadable)
		return err_set(e, ST_INPUT, "%s: the data to send cannot be read", h->place->shown);
	*again = true;
	return err_set(e, ST_OUTPUT, "%s: no data in either direction for %u s%s", h->place->shown,
		       http__stall_s(h), h->heard ? ", or hardly anything" : "");
}

/* The proxy's status, where that is the reason. */
static bool refused_by_proxy(CURL *c, long *ret)
{
	*ret = 0;
	curl_easy_getinfo(c, CURLINFO_HTTP_CONNECTCODE, ret);
	return *ret >= 100 && (*ret < 200 || *ret > 299);
}

enum status http__failed(struct http *h, struct http_route *r, CURLcode code, bool *again,
			 struct err *e)
{
	long number;

	r->resolved = (struct http_place){ .port = 0 };
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return request_aborted(h, again, e);
	if (refused_by_proxy(r->curl, &number)) {
		*again = http_status_is_passing((unsigned)number);
		return err_set(e, ST_OUTPUT, "%s: the proxy answered with status %ld",
			       h->place->shown, number);
	}
	if (code == CURLE_WRITE_ERROR && h->builder.st)
		return err_set(e, h->builder.st, "%s: %s", h->place->shown, h->builder.why);
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
		if (meanings[i].code != code)
			continue;
		*again = meanings[i].again == ALWAYS || (meanings[i].again == IF_ANSWERED &&
							 (h->answered || is_broken_off(h->detail)));
		return say_meaning(h, r->curl, i, e);
	}
	*again = h->answered;
	return err_set(e, ST_OUTPUT, "%s: libcurl's error %d", h->place->shown, code);
}
