/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link inside TLS 1.3 (Mbed TLS). Both ends are identified only by their keys, as the handshake
 * checks (PROTOCOL.md, section 1).
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_TLS_LINK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_TLS_LINK_H

#include "agent/collect/wire/link.h"
#include "agent/collect/wire/tls_key.h"

struct tls_options {
	struct link_options link;
	const struct tls_key *key; /* ours */
	const char *pins;          /* of the other end, separated by ';'; NULL: any key */
	unsigned handshake_ms;     /* the limit for the handshake */
	/* Connecting: set to true if the other end has no place for us now (LINK_BUSY); or NULL. */
	bool *ret_busy;
};

/*
 * Accepting: owns the socket from now on, even after a failure. Connecting: it stays the caller's,
 * as from http_connect(), and must outlive the link. ST_NO_PRIVILEGE: the other end has another
 * key, and the message has its pin. ST_OUTPUT: it is not TLS 1.3, or the connection broke.
 *
 * The accepting side should accept any key and check `ret_pin` itself: the alert that Mbed TLS 3.6
 * sends after a server's Finished is encrypted with the handshake keys, so no client can read it
 * any more (RFC 8446, 4.4.4; seen with OpenSSL 3.0 and with itself), and the client would retry.
 */
enum status tls_link_connect(net_socket s, const struct tls_options *o, struct link **ret,
			     struct err *e);
enum status tls_link_accept(net_socket s, const struct tls_options *o, struct link **ret,
			    char ret_pin[static PIN_SIZE], struct err *e);

#endif
