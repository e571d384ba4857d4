/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of one sender, from HELLO to its end (agent/network/PROTOCOL.md, section 3), over
 * any link.
 */
#ifndef RAMSEAL_AGENT_RECEIVE_SESSION_H
#define RAMSEAL_AGENT_RECEIVE_SESSION_H

#include "agent/network/link.h"
#include "agent/receive/store.h"

struct session_options {
	struct store *store;
	struct store_peer peer;
	bool unwelcome; /* it is told so, nothing that it says is read, and nothing is logged */
	unsigned idle_s;
};

/*
 * Runs until the sender is done, gone, refused or told to go. The link is owned from now on;
 * its options.stop is asked, too. *evicted may be set from another thread; the link's stop() is to
 * be true then.
 */
void session_run(struct link *l, const struct session_options *o, atomic_bool *evicted);

#endif
