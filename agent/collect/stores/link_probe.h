/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a link is, found out by sending random bytes that are worth nothing. They go as a
 * container would go: in pieces, each of which is waited for.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_LINK_PROBE_H
#define RAMSEAL_AGENT_COLLECT_STORES_LINK_PROBE_H

#include "agent/collect/stores/network_options.h"

/* No more is sent, and no piece begun after so long. */
#define LINK_PROBE_BYTES ((uint64_t)64 << 20)
#define LINK_PROBE_S     3

struct link_speed {
	uint64_t rate;      /* bytes a second; 0: was not measured */
	uint64_t bytes, ns; /* what it was measured over: the largest pieces */
	uint64_t sent;      /* bytes in all */
	char left[256];     /* what the probe left behind, as text; "": nothing known */
};

/*
 * Begins at the address, sends, and takes back what can be. Begun is as acquire begins, but tried
 * once only: the status and message are those that acquire would end with, or ST_OUTPUT for what
 * it would try again. What breaks later is in `e`, too, with ST_OK and without a rate.
 */
enum status link_probe(struct network *n, struct link_speed *ret, struct err *e);

#endif
