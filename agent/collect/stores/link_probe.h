/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the speed of a link by sending random bytes. They are sent like a container: in pieces,
 * waiting for each.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_LINK_PROBE_H
#define RAMSEAL_AGENT_COLLECT_STORES_LINK_PROBE_H

#include "agent/collect/stores/network_options.h"

/* The most bytes to send, and the time after which no piece is begun. */
#define LINK_PROBE_BYTES ((uint64_t)64 << 20)
#define LINK_PROBE_S     3

struct link_speed {
	uint64_t rate;      /* bytes a second; 0: was not measured */
	uint64_t bytes, ns; /* the pieces used for the measurement: the largest */
	uint64_t sent;      /* bytes in all */
	char left[256];     /* what the probe left behind, as text; "": nothing known */
};

/*
 * Begins an upload, sends, and removes what it can. Beginning is as in acquire, but without
 * retries: the status and message are those with which acquire would end, or ST_OUTPUT where it
 * would retry. A later failure is ST_OK with a message in `e` and without a rate.
 */
enum status link_probe(struct network *n, struct link_speed *ret, struct err *e);

#endif
