/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/network/remote.h"

#include <ctype.h>
#include <string.h>

#include "formats/base/words.h"

/* "azblob:" stands before a whole URL; http:// to an emulator on this machine. */
static const char azblob[] = "azblob:https://", azblob_plain[] = "azblob:http://";

/* Bytes of the scheme; 0: there is none. One letter is a drive. */
static size_t scheme_length(const char *path)
{
	size_t n = 0;

	if (!strncmp(path, azblob, sizeof(azblob) - 1) ||
	    !strncmp(path, azblob_plain, sizeof(azblob_plain) - 1))
		return strlen("azblob");
	while (isalnum((unsigned char)path[n]) || (n && path[n] && strchr("+-.", path[n])))
		n++;
	return n > 1 && !strncmp(path + n, "://", 3) ? n : 0;
}

bool remote_is_address(const char *path)
{
	return scheme_length(path) != 0;
}

/* The parts of an address: "scheme://" "user:password@" "host/path" "?query#fragment" */
struct address_parts {
	size_t scheme, user, shown, rest; /* their lengths */
};

static struct address_parts take_apart(const char *address)
{
	const char *from = strstr(address, "://"), *host = from ? from + 3 : address;
	/* A key of S3 may have a '?' in its name, and what s3 must not show is no part of it. */
	const bool is_key = !strncmp(address, "s3:", 3) || !strncmp(address, "gs:", 3);
	const char *ends = is_key ? "" : "?#";
	const size_t authority = strcspn(host, "/?#");
	struct address_parts ret = { .scheme = (size_t)(host - address) };

	for (size_t i = 0; from && i < authority; i++)
		if (host[i] == '@')
			ret.user = i + 1;
	ret.shown = strcspn(host + ret.user, ends);
	ret.rest = strlen(host + ret.user + ret.shown);
	return ret;
}

bool remote_is_secret(const char *address)
{
	const struct address_parts a = take_apart(address);

	return a.user || a.rest;
}

static enum status open_kind(const struct remote_ops *ops, const struct remote_options *o,
			     struct remote **ret, struct err *e)
{
	enum status st;

	if (o->lock.mode && !ops->lock)
		return err_set(e, ST_USAGE, "--object-lock: '%s:' cannot lock what it keeps",
			       ops->scheme);
	st = ops->open(o, ret, e);
	if (!st)
		(*ret)->lock = o->lock;
	return st;
}

static const char *scheme_at(const void *of, size_t i)
{
	return remote_kinds[i] ? remote_kinds[i]->scheme : NULL;
}

enum status remote_open(const struct remote_options *o, struct remote **ret, struct err *e)
{
	const size_t n = scheme_length(o->address);
	char hint[WORDS_HINT_MAX];

	for (size_t i = 0; remote_kinds[i]; i++)
		if (strlen(remote_kinds[i]->scheme) == n &&
		    !strncmp(o->address, remote_kinds[i]->scheme, n))
			return open_kind(remote_kinds[i], o, ret, e);
	if (!remote_schemes()[0])
		return err_set(e, ST_USAGE, "this ramseal was built without the network");
	words_hint(scheme_at, NULL, "", o->address, n, hint);
	return err_set(e, ST_USAGE, "'%.*s:' is none of %s%s", (int)MIN(n, 100), o->address,
		       remote_schemes(), hint);
}

enum status remote_check_url(const char *url, const struct http_options *o, struct err *e)
{
	static const char *const here[] = { "127.0.0.1", "[::1]", "localhost" };
	static const char scheme[] = "http://";
	const size_t n = strlen(scheme);

	if (strncmp(url, scheme, n) != 0) {
		if (o->pin || o->ca)
			return ST_OK;
		return err_set(e, ST_USAGE,
			       "name the server's key with --pin, or those who sign it with --ca: "
			       "this machine's own certificates are not trusted");
	}
	for (size_t i = 0; i < ARRAY_SIZE(here); i++) {
		const size_t end = n + strlen(here[i]);

		if (!strncmp(url + n, here[i], end - n) && (!url[end] || strchr(":/?", url[end])))
			return ST_OK;
	}
	return err_set(e, ST_USAGE, "http:// would send memory in the clear; use https://");
}

void remote_destroy(struct remote *r)
{
	if (r)
		r->ops->destroy(r);
}

const char *remote_schemes(void)
{
	static char list[80]; /* the same whoever writes it */
	size_t n = 0;

	for (size_t i = 0; remote_kinds[i]; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      remote_kinds[i]->scheme);
	return list;
}

char *address_shown(const char *address)
{
	const struct address_parts a = take_apart(address);
	char *ret;

	if (asprintf(&ret, "%.*s%.*s", (int)a.scheme, address, (int)a.shown,
		     address + a.scheme + a.user) < 0)
		return NULL;
	return ret;
}
