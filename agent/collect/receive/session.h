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
	bool unwelcome; /* the sender is told so; nothing it sends is read, and nothing is logged */
	unsigned idle_s;
	/* Called when it gets an upload and when it no longer has one; or NULL. */
	void (*seated)(void *arg, bool is);
	void *arg;
	/* True: it makes way, even while a refusal is being sent; NULL: never. */
	atomic_bool *dropped;
};

/*
 * Runs until the sender is done, gone, refused or told to go. Owns the link from now on, and also
 * checks its options.stop. Another thread may set *evicted; the link's stop() must then be true.
 * ST_END: HELLO did not come in time.
 */
enum status session_run(struct link *l, const struct session_options *o, atomic_bool *evicted);

#endif
