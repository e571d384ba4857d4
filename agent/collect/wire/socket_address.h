/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by both implementations of socket.h. IPv4 addresses are mapped ones (RFC 4291, 2.5.5.2).
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SOCKET_ADDRESS_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SOCKET_ADDRESS_H

#include <stdbool.h>

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#endif

#include "agent/collect/wire/socket.h"

/* Connections not accepted yet; further ones are dropped and retried a second later. */
#define SOCKET_BACKLOG 1024

union socket_address {
	struct sockaddr any;
	struct sockaddr_in v4; /* if the system has no IPv6 */
	struct sockaddr_in6 v6;
};

/* Parses "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT". *only_v6: it names an IPv6 address. */
enum status socket_parse_address(const char *at, union socket_address *ret, bool *only_v6,
				 struct err *e);

/* The IPv4 form of an address that is not *only_v6. */
void socket_address_to_v4(union socket_address *a);

socklen_t socket_address_size(const union socket_address *a);

void socket_address_text(const union socket_address *a, char ret[static SOCKET_ADDRESS_MAX]);

#endif
