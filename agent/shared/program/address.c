/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/address.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "azblob:" stands before a whole URL; http:// to an emulator on this machine. */
static const char azblob[] = "azblob:https://", azblob_plain[] = "azblob:http://";

/* One letter is a drive. */
size_t address_scheme_length(const char *path)
{
	size_t n = 0;

	if (!strncmp(path, azblob, sizeof(azblob) - 1) ||
	    !strncmp(path, azblob_plain, sizeof(azblob_plain) - 1))
		return strlen("azblob");
	while (isalnum((unsigned char)path[n]) || (n && path[n] && strchr("+-.", path[n])))
		n++;
	return n > 1 && !strncmp(path + n, "://", 3) ? n : 0;
}

bool is_address(const char *path)
{
	return address_scheme_length(path) != 0;
}

/* The parts of an address: "scheme://" "user:password@" "host/path" "?query#fragment" */
struct address_parts {
	size_t scheme, user, shown, rest; /* their lengths */
};

static struct address_parts split_address(const char *address)
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

bool address_is_secret(const char *address)
{
	const struct address_parts a = split_address(address);

	return a.user || a.rest;
}

char *address_shown(const char *address)
{
	const struct address_parts a = split_address(address);
	char *ret;

	if (asprintf(&ret, "%.*s%.*s", (int)a.scheme, address, (int)a.shown,
		     address + a.scheme + a.user) < 0)
		return NULL;
	return ret;
}
