/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --bwlimit: a token bucket over everything sent, on all connections. It holds an eighth of a
 * second, so that a link is not filled in bursts.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_BANDWIDTH_H
#define RAMSEAL_AGENT_COLLECT_WIRE_BANDWIDTH_H

#include <stdbool.h>

#include "formats/base/defs.h"

struct bandwidth {
	uint64_t bytes_per_s; /* 0: no limit */
	uint64_t free_at_ns;  /* when everything sent will have been paid for */
};

/*
 * `len` bytes were sent at `now_ns`: returns how long to wait before sending more. The caller does
 * the waiting.
 */
uint64_t bandwidth_take(struct bandwidth *b, uint64_t now_ns, size_t len);

#endif
