/* SPDX-License-Identifier: Apache-2.0 */
/* What both halves of socket.h share. IPv4 addresses are mapped ones (RFC 4291, 2.5.5.2). */
#ifndef RAMSEAL_AGENT_NETWORK_SOCKET_ADDRESS_H
#define RAMSEAL_AGENT_NETWORK_SOCKET_ADDRESS_H

#include <stdbool.h>

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#endif

#include "agent/network/socket.h"

/* Of "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT". *only_v6: an IPv6 address was named. */
enum status socket_parse_address(const char *at, struct sockaddr_in6 *ret, bool *only_v6,
				 struct err *e);

void socket_address_text(const struct sockaddr_in6 *a, char ret[static SOCKET_ADDRESS_MAX]);

#endif
