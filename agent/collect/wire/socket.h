/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP on both systems: socket_linux.c and socket_windows.c. Every socket here is non-blocking and
 * not inherited by child processes. Failures are ST_OUTPUT.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SOCKET_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

typedef intptr_t net_socket;

#define NO_SOCKET ((net_socket) - 1)

enum socket_event { SOCKET_READABLE, SOCKET_WRITABLE };

/* Makes an open socket one of ours; it stays the caller's even after a failure. */
enum status socket_adopt(net_socket s, struct err *e);
void socket_close(net_socket s); /* NO_SOCKET is fine */

/*
 * Waits for several: *ret says for each whether it is readable or broken. ST_END: none within `ms`.
 */
enum status socket_wait_any(const net_socket *s, size_t n, unsigned ms, bool *ret, struct err *e);

/* ST_OK: ready, or broken, which the next call reports. ST_END: not within `ms`. */
enum status socket_wait(net_socket s, enum socket_event what, unsigned ms, struct err *e);

/*
 * Transfers a part: ST_OK with *done of 0 if nothing can be done now. Reading: ST_END at the end.
 */
enum status socket_read(net_socket s, void *p, size_t room, size_t *done, struct err *e);
enum status socket_write(net_socket s, const void *p, size_t len, size_t *done, struct err *e);
void socket_end(net_socket s); /* nothing more will be written */
/*
 * The next byte, without consuming it. ST_OK with *there false: none has come yet. ST_END: at the
 * end.
 */
enum status socket_peek(net_socket s, uint8_t *ret, bool *there, struct err *e);

/* "[2001:db8::1]:65535", with room for a scope. */
#define SOCKET_ADDRESS_MAX 80

/*
 * "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT", only numbers, no names. Without an address: all
 * addresses of this machine, IPv4 and, if available, IPv6. Port 0: any free one. ST_USAGE.
 */
enum status socket_listen(const char *at, net_socket *ret, struct err *e);

/* Checks such an address. ST_USAGE: "takes ...". */
enum status socket_check_address(const char *at, struct err *e);

/*
 * The source of a connection: an IPv4 address, or the first 64 bits of an IPv6 address, because a
 * host can have all addresses with the same 64 bits (RFC 4291, 2.5.4).
 */
#define SOCKET_SOURCE_SIZE 16

/* From an address with its port, as from socket_accept(). */
void socket_source(const char *address, uint8_t ret[static SOCKET_SOURCE_SIZE]);

/* Addresses with a common prefix. */
struct socket_range {
	uint8_t address[SOCKET_SOURCE_SIZE];
	unsigned bits;
};

/* "192.0.2.7", "192.0.2.0/24", "2001:db8::/48". ST_USAGE: "takes ...". */
enum status socket_parse_range(const char *text, struct socket_range *ret, struct err *e);
bool socket_range_has(const struct socket_range *r,
		      const uint8_t address[static SOCKET_SOURCE_SIZE]);

/* Its own address, as text. */
void socket_local(net_socket s, char ret[static SOCKET_ADDRESS_MAX]);

/* The next connection and its source. ST_END: none now. */
enum status socket_accept(net_socket s, net_socket *ret, char ret_from[static SOCKET_ADDRESS_MAX],
			  struct err *e);

#endif
