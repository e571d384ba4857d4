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
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
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
