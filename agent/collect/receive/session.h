/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of one sender, from HELLO to its end (agent/collect/stores/PROTOCOL.md, section
 * 3), over any link.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_SESSION_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_SESSION_H

#include "agent/collect/receive/store.h"
#include "agent/collect/wire/link.h"

struct session_options {
	struct store *store;
	struct store_peer peer;
	bool unwelcome; /* it is told so, nothing that it says is read, and nothing is logged */
	unsigned idle_s;
	/* Called once it has an upload, and once it has none any more; NULL. */
	void (*seated)(void *arg, bool is);
	void *arg;
	/* True: it makes way, also while a refusal is on its way to the sender; NULL: never. */
	atomic_bool *dropped;
};

/*
 * Runs until the sender is done, gone, refused or told to go. The link is owned from now on;
 * its options.stop is asked, too. *evicted may be set from another thread; the link's stop() is to
 * be true then. ST_END: it never said HELLO in time.
 */
enum status session_run(struct link *l, const struct session_options *o, atomic_bool *evicted);

#endif
