/* SPDX-License-Identifier: Apache-2.0 */
/* Listens, and runs a session on a thread of its own for each sender that proves its key. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_RECEIVER_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_RECEIVER_H

#include "agent/collect/receive/admission.h"
#include "agent/collect/receive/session.h"

struct receiver_options {
	const char *listen; /* as socket_listen() */
	struct store_options store;
	struct admission_options admission;
	unsigned idle_s;
	/* It ends after the first upload that became complete. */
	bool once;

	/*
	 * Who calls: makes a link of the socket, which is owned from now on, also after a failure.
	 * *welcome: false of a key that is not to send. Any thread. tls_link_accept() of tls_link.h
	 * is below it, and a caller who does not begin with TLS never gets there.
	 */
	enum status (*accept)(void *arg, net_socket s, const struct link_options *o,
			      struct link **ret, char ret_pin[static UPLOAD_PEER_SIZE],
			      bool *welcome, struct err *e);
	void *arg;
	/* Called once it listens, with the address that it got. */
	void (*ready)(void *arg, const char *address);
};

/*
 * Until interrupted(), or `once`. Uploads that are under way then stay as they are.
 * ST_INTERRUPTED if some were; ST_OUTPUT, ST_USAGE.
 */
enum status receiver_run(const struct receiver_options *o, struct err *e);

#endif
