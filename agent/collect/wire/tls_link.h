/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link inside TLS 1.3 (Mbed TLS), both ends known by their keys alone: PROTOCOL.md, section 1,
 * which is what the handshake checks.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_TLS_LINK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_TLS_LINK_H

#include "agent/collect/wire/link.h"
#include "agent/collect/wire/tls_key.h"

struct tls_options {
	struct link_options link;
	const struct tls_key *key; /* ours */
	const char *pins;          /* of the other end, ';' between them; NULL: any key will do */
	unsigned handshake_ms;     /* it must be through by then */
	/* Connecting: becomes true if the other end has no place for us now (LINK_BUSY); NULL. */
	bool *ret_busy;
};

/*
 * Accepting: the socket is owned from now on, also after a failure. Connecting: it stays the
 * caller's, as http_connect() has it, and longer than the link. ST_NO_PRIVILEGE: the other end has
 * another key, and the message has its pin. ST_OUTPUT: it is no TLS 1.3, or the connection broke.
 *
 * Who accepts better takes any key, and judges `ret_pin` himself: the alert that Mbed TLS 3.6 sends
 * after a server's Finished is encrypted with the keys of the handshake, which no client can read
 * any more (RFC 8446, 4.4.4; seen with OpenSSL 3.0 and with itself), and so would try again.
 */
enum status tls_link_connect(net_socket s, const struct tls_options *o, struct link **ret,
			     struct err *e);
enum status tls_link_accept(net_socket s, const struct tls_options *o, struct link **ret,
			    char ret_pin[static PIN_SIZE], struct err *e);

#endif
