/* SPDX-License-Identifier: Apache-2.0 */
/* Where a URL leads: host and port, and the addresses of the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/collect/wire/http_internal.h"

/* Space, control characters and bytes beyond ASCII have to be percent-encoded (RFC 3986, 2). */
static bool is_plain_url(const char *url)
{
	const size_t scheme = !strncasecmp(url, "https://", 8)  ? 8
			      : !strncasecmp(url, "http://", 7) ? 7
								: 0;

	/* libcurl would take one slash or three for two. */
	if (!scheme || url[scheme] == '/')
		return false;
	for (; *url; url++)
		if ((unsigned char)*url <= ' ' || (unsigned char)*url >= 0x7f)
			return false;
	return true;
}

/* A part of it, for curl_free(); NULL: there is none. */
static char *url_part(const CURLU *u, CURLUPart what, unsigned flags)
{
	char *ret = NULL;

	return curl_url_get(u, what, &ret, flags) == CURLUE_OK ? ret : NULL;
}

static bool fill_place(const CURLU *u, struct http_place *ret)
{
	char *scheme = url_part(u, CURLUPART_SCHEME, 0), *host = url_part(u, CURLUPART_HOST, 0);
	char *port = url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	char *named = url_part(u, CURLUPART_PORT, 0);
	const bool good = scheme && host && port && strlen(host) < sizeof(ret->host) &&
			  (!strcmp(scheme, "http") || !strcmp(scheme, "https"));

	if (good) {
		snprintf(ret->host, sizeof(ret->host), "%s", host);
		snprintf(ret->shown, sizeof(ret->shown), "%s://%s%s%s", scheme, ret->host,
			 named ? ":" : "", named ? named : "");
		ret->port = (unsigned)strtoul(port, NULL, 10);
		ret->tls = !strcmp(scheme, "https");
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(named);
	return good;
}

static bool has_url_part(const CURLU *u, CURLUPart what)
{
	char *text = url_part(u, what, 0);

	curl_free(text);
	return text != NULL;
}

enum status http__place(const char *url, struct http_place *ret, struct err *e)
{
	CURLU *u = curl_url();
	enum status st = ST_OK;

	*ret = (struct http_place){ .port = 0 };
	if (!u)
		return err_nomem(e);
	if (!is_plain_url(url) || curl_url_set(u, CURLUPART_URL, url, CURLU_PATH_AS_IS) ||
	    !fill_place(u, ret))
		st = err_set(e, ST_USAGE, "not a URL that begins with http:// or https://");
	else if (has_url_part(u, CURLUPART_USER) || has_url_part(u, CURLUPART_PASSWORD))
		st = err_set(e, ST_USAGE, "%s: a user or password does not belong in a URL",
			     ret->shown);
	else if (has_url_part(u, CURLUPART_FRAGMENT))
		st = err_set(e, ST_USAGE, "%s: the URL has a fragment (#)", ret->shown);
	curl_url_cleanup(u);
	return st;
}

/* "HOST:PORT:ADDRESS,ADDRESS", as CURLOPT_RESOLVE wants it. */
static enum status tell_libcurl(struct http_route *r, const struct http_place *at,
				const struct names *n, struct err *e)
{
	char line[HTTP_HOST_MAX + 16 + NAMES_MAX * (NAMES_ADDRESS_MAX + 3)];
	int len = snprintf(line, sizeof(line), "%s:%u:", at->host, at->port);
	struct curl_slist *list;

	for (size_t i = 0; i < n->n; i++) {
		const bool v6 = strchr(n->at[i], ':') != NULL;

		len += snprintf(line + len, sizeof(line) - (size_t)len, "%s%s%s%s", i ? "," : "",
				v6 ? "[" : "", n->at[i], v6 ? "]" : "");
	}
	list = curl_slist_append(NULL, line);
	if (!list || curl_easy_setopt(r->curl, CURLOPT_RESOLVE, list)) {
		curl_slist_free_all(list);
		return err_nomem(e);
	}
	curl_slist_free_all(r->addresses);
	r->addresses = list;
	r->resolved = *at;
	return ST_OK;
}

enum status http__resolve(struct http *h, struct http_route *r, const struct http_place *to,
			  bool *again, struct err *e)
{
	const struct http_place *at = h->o.proxy ? &h->proxy_at : to;
	const struct names_options o = {
		.timeout_s = h->o.stall_s,
		.stop = h->o.stop,
		.arg = h->o.arg,
	};
	struct names names;
	enum status st;

	if (at->host[0] == '[' ||
	    (at->port == r->resolved.port && !strcmp(at->host, r->resolved.host)))
		return ST_OK;
	st = names_resolve(at->host, &o, &names, again, e);
	if (st)
		*again = *again || h->answered;
	return st ? st : tell_libcurl(r, at, &names, e);
}
