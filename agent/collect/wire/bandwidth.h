/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --bwlimit: a token bucket over all that goes out, whatever connection it takes. It holds an
 * eighth of a second, so that a link is not filled in bursts.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_BANDWIDTH_H
#define RAMSEAL_AGENT_COLLECT_WIRE_BANDWIDTH_H

#include <stdbool.h>

#include "formats/base/defs.h"

struct bandwidth {
	uint64_t bytes_per_s; /* 0: no limit */
	uint64_t free_at_ns;  /* by when all that went out will have been paid for */
};

/*
 * `len` bytes went out at `now_ns`: so long is to be waited before more does. Whoever waits, and
 * how, is not its business.
 */
uint64_t bandwidth_take(struct bandwidth *b, uint64_t now_ns, size_t len);

#endif
