/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/remote.h"

#include <string.h>

#include "agent/shared/program/address.h"
#include "formats/base/words.h"

static enum status open_remote_kind(const struct remote_ops *ops, const struct remote_options *o,
				    struct remote **ret, struct err *e)
{
	enum status st;

	if (o->lock.mode && !ops->lock)
		return err_set(e, ST_USAGE, "--object-lock: '%s:' does not support locks",
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
	const size_t n = address_scheme_length(o->address);
	char hint[WORDS_HINT_MAX];

	for (size_t i = 0; remote_kinds[i]; i++)
		if (strlen(remote_kinds[i]->scheme) == n &&
		    !strncmp(o->address, remote_kinds[i]->scheme, n))
			return open_remote_kind(remote_kinds[i], o, ret, e);
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
			       "give the server's key with --pin, or its CA with --ca: this "
			       "machine's own certificates are not trusted");
	}
	for (size_t i = 0; i < ARRAY_SIZE(here); i++) {
		const size_t end = n + strlen(here[i]);

		if (!strncmp(url + n, here[i], end - n) && (!url[end] || strchr(":/?", url[end])))
			return ST_OK;
	}
	return err_set(e, ST_USAGE, "http:// would send memory unencrypted; use https://");
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
