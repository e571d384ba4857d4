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
	/* End after the first completed upload. */
	bool once;

	/*
	 * Identifies the caller: makes a link from the socket, which it owns from now on, even
	 * after a failure. *welcome: false for a key that may not send. Any thread. It is called
	 * only for callers that begin with TLS (see tls_link_accept() of tls_link.h).
	 */
	enum status (*accept)(void *arg, net_socket s, const struct link_options *o,
			      struct link **ret, char ret_pin[static UPLOAD_PEER_SIZE],
			      bool *welcome, struct err *e);
	void *arg;
	/* Called once it listens, with its address. */
	void (*ready)(void *arg, const char *address);
};

/*
 * Runs until interrupted(), or for `once`. Running uploads then stay as they are. ST_INTERRUPTED if
 * there were any; ST_OUTPUT, ST_USAGE.
 */
enum status receiver_run(const struct receiver_options *o, struct err *e);

#endif
