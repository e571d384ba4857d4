/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/collect/wire/http_internal.h"
#include "agent/shared/program/clock.h"

/* --- what libcurl asks for and brings ------------------------------------------------------ */

static size_t give_body(char *to, size_t size, size_t n, void *arg)
{
	struct http *h = arg;
	const size_t len = MIN(size * n, h->body_len - h->body_at);

	if (len && h->read && !h->read(h->read_arg, h->body_at, to, len)) {
		h->unreadable = true;
		return CURL_READFUNC_ABORT;
	}
	if (len && !h->read)
		memcpy(to, h->body + h->body_at, len);
	h->body_at += len;
	if (len && h->o.sent)
		h->o.sent(h->o.arg, len); /* which may take its time */
	http__moved(h);
	return len;
}

/* A connection that was kept and has died meanwhile: libcurl sends the same on a new one. */
static int rewind_body(void *arg, curl_off_t to, int origin)
{
	struct http *h = arg;

	if (origin != SEEK_SET || to < 0 || (size_t)to > h->body_len)
		return CURL_SEEKFUNC_FAIL;
	h->body_at = (size_t)to;
	return CURL_SEEKFUNC_OK;
}

static size_t take_header_line(char *p, size_t size, size_t n, void *arg)
{
	struct http *h = arg;

	http__heard(h, size * n);
	return http_answer_line(&h->builder, p, size * n) ? size * n : CURL_WRITEFUNC_ERROR;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
	struct http *h = arg;

	http__heard(h, size * n);
	return http_answer_body(&h->builder, p, size * n) ? size * n : CURL_WRITEFUNC_ERROR;
}

/* --- the request ---------------------------------------------------------------------------- */

/* A token (RFC 9110, 5.6.2), of letters, digits and '-' alone: no header of ours has others. */
static bool is_name(const char *name)
{
	const char *at = name;

	while (isalnum((unsigned char)*at) || *at == '-' || *at == '_')
		at++;
	return at > name && !*at;
}

static bool is_own_header(const char *name)
{
	return !strcasecmp(name, "content-length") || !strcasecmp(name, "transfer-encoding") ||
	       !strcasecmp(name, "expect");
}

static bool push_line(struct curl_slist **list, const char *line)
{
	struct curl_slist *grown = curl_slist_append(*list, line);

	if (grown)
		*list = grown;
	return grown != NULL;
}

static enum status push_header(struct curl_slist **list, const struct http_header *h, struct err *e)
{
	char *line;
	bool good;

	if (!is_name(h->name) || is_own_header(h->name) || strpbrk(h->value, "\r\n"))
		return err_set(e, ST_USAGE, "invalid header");
	/* To libcurl "name:" is a header to leave out, "name;" one without a value. */
	if (asprintf(&line, h->value[0] ? "%s: %s" : "%s;%s", h->name, h->value) < 0)
		return err_nomem(e);
	good = push_line(list, line);
	memory_wipe(line, strlen(line));
	free(line);
	return good ? ST_OK : err_nomem(e);
}

static enum status make_headers(const struct http_request *r, struct curl_slist **ret,
				struct err *e)
{
	enum status st = ST_OK;

	/* libcurl would wait a second for an answer to it. */
	if (!push_line(ret, "Expect:"))
		return err_nomem(e);
	for (size_t i = 0; !st && i < r->n_headers; i++)
		st = push_header(ret, &r->headers[i], e);
	return st;
}

/* Headers may be credentials. */
static void wipe_headers(struct curl_slist *list)
{
	for (struct curl_slist *at = list; at; at = at->next)
		memory_wipe(at->data, strlen(at->data));
	curl_slist_free_all(list);
}

/* What has no body says so with Content-Length: 0 where a body is usual. */
static CURLcode set_method(struct http *h, const struct http_request *r)
{
	const bool body = r->len || !strcmp(r->method, "PUT") || !strcmp(r->method, "POST") ||
			  !strcmp(r->method, "PATCH");
	CURL *c = h->asking.curl;
	CURLcode bad = curl_easy_setopt(c, CURLOPT_HTTPGET, 1L); /* as nothing had been set */

	if (!strcmp(r->method, "HEAD"))
		return bad | curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, NULL) |
		       curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	if (body)
		bad |= curl_easy_setopt(c, CURLOPT_UPLOAD, 1L) |
		       curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->len);
	return bad | curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
}

static enum status set_request(struct http *h, const struct http_request *r,
			       struct curl_slist *headers, struct err *e)
{
	CURL *c = h->asking.curl;
	CURLcode bad = set_method(h, r);

	bad |= curl_easy_setopt(c, CURLOPT_URL, r->url);
	bad |= curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	bad |= curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, r->anew ? 1L : 0L);
	bad |= curl_easy_setopt(c, CURLOPT_READFUNCTION, give_body);
	bad |= curl_easy_setopt(c, CURLOPT_READDATA, h);
	bad |= curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, rewind_body);
	bad |= curl_easy_setopt(c, CURLOPT_SEEKDATA, h);
	bad |= curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header_line);
	bad |= curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
	bad |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	bad |= curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	return bad ? err_nomem(e) : ST_OK;
}

static void begin_request(struct http *h, const struct http_place *place)
{
	h->place = place;
	h->detail[0] = '\0';
	h->moved = 0;
	h->heard = h->heard_ns = 0;
	h->answer_s = 0;
	h->stalled = h->stopped = h->unreadable = false;
	http__moved(h);
}

/* In the clear nobody would look at the pin, and without one or a CA TLS would prove nothing. */
static enum status check_trust(const struct http *h, const struct http_place *p, struct err *e)
{
	if (p->tls && !h->o.pin && !h->o.ca)
		return err_set(e, ST_USAGE, "%s: give the server's pin, or a CA", p->shown);
	if (!p->tls && (h->o.pin || h->o.ca))
		return err_set(e, ST_USAGE, "%s: does not use TLS, so a pin or CA does not apply",
			       p->shown);
	return ST_OK;
}

static enum status finish_answer(struct http *h, struct http_answer *ret, bool *again,
				 struct err *e)
{
	const enum status st =
		http_answer_finish(&h->builder, clock__wall_ns() / NS_PER_SECOND, ret, e);

	*again = st == ST_OUTPUT || (st == ST_CORRUPT && h->answered);
	return st ? err_add(e, st, "%s", h->place->shown) : ST_OK;
}

static enum status perform_request(struct http *h, const struct http_request *r,
				   const struct http_place *place, struct http_answer *ret,
				   bool *again, struct err *e)
{
	struct curl_slist *headers = NULL;
	enum status st = make_headers(r, &headers, e);
	CURLcode code;

	if (!st)
		st = set_request(h, r, headers, e);
	if (!st)
		st = http__resolve(h, &h->asking, place, again, e);
	if (!st) {
		h->body = r->body;
		h->read = r->read;
		h->read_arg = r->arg;
		h->body_len = r->len;
		h->body_at = 0;
		begin_request(h, place);
		h->answer_s = r->answer_s;
		h->builder.body_max = r->answer_max;
		code = curl_easy_perform(h->asking.curl);
		if (code)
			st = http__failed(h, &h->asking, code, again, e);
		else
			st = finish_answer(h, ret, again, e);
		h->answered |= !st;
	}
	http_answer_builder_deinit(&h->builder);
	/* The handle keeps pointers to what goes now. */
	curl_easy_setopt(h->asking.curl, CURLOPT_HTTPHEADER, NULL);
	wipe_headers(headers);
	return st;
}

enum status http_ask(struct http *h, const struct http_request *r, struct http_answer *ret,
		     bool *again, struct err *e)
{
	struct http_place place;
	enum status st = http__place(r->url, &place, e);

	*again = false;
	*ret = (struct http_answer){ .retry_after_s = -1 };
	if (!st)
		st = check_trust(h, &place, e);
	return st ? st : perform_request(h, r, &place, ret, again, e);
}

/* --- what is not HTTP ----------------------------------------------------------------------- */

void http_disconnect(struct http *h)
{
	http__route_deinit(&h->tunnel);
}

static enum status set_tunnel(struct http *h, const char *url, struct err *e)
{
	CURL *c = h->tunnel.curl;
	CURLcode bad = curl_easy_setopt(c, CURLOPT_URL, url);

	bad |= curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_HTTPPROXYTUNNEL, 1L);
	return bad ? err_nomem(e) : ST_OK;
}

static enum status connect_to(struct http *h, const char *url, intptr_t *ret, bool *again,
			      struct err *e)
{
	struct http_place place;
	curl_socket_t s = CURL_SOCKET_BAD;
	CURLcode code;
	enum status st = http__place(url, &place, e);

	if (st)
		return err_set(e, ST_USAGE, "not a valid host name");
	memmove(place.shown, place.shown + strlen("http://"),
		strlen(place.shown) + 1 - strlen("http://"));
	st = http__route_init(h, &h->tunnel, e);
	if (!st)
		st = set_tunnel(h, url, e);
	if (!st)
		st = http__resolve(h, &h->tunnel, &place, again, e);
	if (st)
		return st;
	begin_request(h, &place);
	code = curl_easy_perform(h->tunnel.curl);
	if (!code)
		code = curl_easy_getinfo(h->tunnel.curl, CURLINFO_ACTIVESOCKET, &s);
	if (code)
		return http__failed(h, &h->tunnel, code, again, e);
	*ret = (intptr_t)s;
	return ST_OK;
}

enum status http_connect(struct http *h, const char *host, unsigned port, intptr_t *ret,
			 bool *again, struct err *e)
{
	const bool v6 = strchr(host, ':') && host[0] != '[';
	enum status st;
	char *url;

	*again = false;
	http_disconnect(h);
	if (asprintf(&url, "http://%s%s%s:%u/", v6 ? "[" : "", host, v6 ? "]" : "", port) < 0)
		return err_nomem(e);
	st = connect_to(h, url, ret, again, e);
	free(url);
	if (st)
		http_disconnect(h);
	return st;
}
