/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/socket_address.h"

#include <string.h>

static bool parse_port(const char *text, struct sockaddr_in6 *ret)
{
	const size_t digits = strspn(text, "0123456789");
	unsigned long port;

	if (!digits || digits > 5 || text[digits])
		return false;
	port = strtoul(text, NULL, 10);
	ret->sin6_port = htons((uint16_t)port);
	return port <= 0xffff;
}

static bool parse_host(const char *host, struct sockaddr_in6 *ret)
{
	uint8_t *const v4 = ret->sin6_addr.s6_addr + 12;

	if (inet_pton(AF_INET6, host, &ret->sin6_addr) == 1)
		return true;
	memset(ret->sin6_addr.s6_addr, 0, 16);
	memset(ret->sin6_addr.s6_addr + 10, 0xff, 2);
	return inet_pton(AF_INET, host, v4) == 1;
}

enum status socket_parse_address(const char *at, union socket_address *ret, bool *only_v6,
				 struct err *e)
{
	const char *colon = strrchr(at, ':');
	size_t len = colon ? (size_t)(colon - at) : 0;
	char host[INET6_ADDRSTRLEN];
	bool good;

	*ret = (union socket_address){ .v6 = { .sin6_family = AF_INET6 } };
	*only_v6 = false;
	good = parse_port(colon ? colon + 1 : at, &ret->v6);
	if (good && colon) {
		const bool bracket = len > 2 && at[0] == '[' && at[len - 1] == ']';

		at += bracket;
		len -= bracket ? 2 : 0;
		snprintf(host, sizeof(host), "%.*s", (int)MIN(len, sizeof(host) - 1), at);
		*only_v6 = bracket;
		good = len < sizeof(host) && parse_host(host, &ret->v6) &&
		       bracket == (strchr(host, ':') != NULL);
	}
	return good ? ST_OK
		    : err_set(e, ST_USAGE,
			      "takes PORT, ADDRESS:PORT or [ADDRESS]:PORT, in numbers");
}

enum status socket_check_address(const char *at, struct err *e)
{
	union socket_address address;
	bool only_v6;

	return socket_parse_address(at, &address, &only_v6, e);
}

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

void socket_source(const char *address, uint8_t ret[static SOCKET_SOURCE_SIZE])
{
	union socket_address a;
	bool only_v6;

	memset(ret, 0, SOCKET_SOURCE_SIZE);
	if (socket_parse_address(address, &a, &only_v6, NULL))
		return;
	memcpy(ret, a.v6.sin6_addr.s6_addr, SOCKET_SOURCE_SIZE);
	if (memcmp(ret, mapped, sizeof(mapped)) != 0)
		memset(ret + 8, 0, 8);
}

/* Behind the slash, if there is one. */
static bool parse_bits(const char *text, unsigned most, unsigned *ret)
{
	unsigned long bits = most;

	if (*text == '/') {
		const size_t digits = strspn(++text, "0123456789");

		if (!digits || digits > 3 || text[digits])
			return false;
		bits = strtoul(text, NULL, 10);
	}
	*ret = (unsigned)bits;
	return bits <= most;
}

/* Of an IPv6 source there are 64 bits. */
enum status socket_parse_range(const char *text, struct socket_range *ret, struct err *e)
{
	const size_t len = strcspn(text, "/");
	char host[INET6_ADDRSTRLEN];
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
	bool v4, good;

	snprintf(host, sizeof(host), "%.*s", (int)MIN(len, sizeof(host) - 1), text);
	v4 = !strchr(host, ':');
	good = len < sizeof(host) && parse_host(host, &a) &&
	       parse_bits(text + len, v4 ? 32 : 128, &ret->bits);
	if (!good)
		return err_set(e, ST_USAGE, "takes ADDRESS or ADDRESS/BITS, in numbers");
	memcpy(ret->address, a.sin6_addr.s6_addr, sizeof(ret->address));
	ret->bits = v4 ? ret->bits + 96 : MIN(ret->bits, 64U);
	return ST_OK;
}

bool socket_range_has(const struct socket_range *r,
		      const uint8_t address[static SOCKET_SOURCE_SIZE])
{
	const unsigned whole = r->bits / 8, rest = r->bits % 8;

	return !memcmp(r->address, address, whole) &&
	       (!rest || !((r->address[whole] ^ address[whole]) >> (8 - rest)));
}

void socket_address_to_v4(union socket_address *a)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = a->v6.sin6_port };

	/* The end of a mapped one, and of "any". */
	memcpy(&v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
	a->v4 = v4;
}

socklen_t socket_address_size(const union socket_address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

void socket_address_text(const union socket_address *a, char ret[static SOCKET_ADDRESS_MAX])
{
	union socket_address v4 = *a;
	char host[INET6_ADDRSTRLEN] = "?";

	if (a->any.sa_family != AF_INET) {
		if (memcmp(a->v6.sin6_addr.s6_addr, mapped, sizeof(mapped)) != 0) {
			inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof(host));
			snprintf(ret, SOCKET_ADDRESS_MAX, "[%s]:%u", host, ntohs(a->v6.sin6_port));
			return;
		}
		socket_address_to_v4(&v4);
	}
	inet_ntop(AF_INET, &v4.v4.sin_addr, host, sizeof(host));
	snprintf(ret, SOCKET_ADDRESS_MAX, "%s:%u", host, ntohs(v4.v4.sin_port));
}
