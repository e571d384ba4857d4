/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/bandwidth.h"

#include "agent/shared/program/clock.h"

#define BURST_NS (NS_PER_SECOND / 8)

uint64_t bandwidth_take(struct bandwidth *b, uint64_t now_ns, size_t len)
{
	if (!b->bytes_per_s)
		return 0;
	b->free_at_ns = MAX(b->free_at_ns, now_ns);
	b->free_at_ns += (uint64_t)((double)len * (double)NS_PER_SECOND / (double)b->bytes_per_s);
	return b->free_at_ns > now_ns + BURST_NS ? b->free_at_ns - now_ns - BURST_NS : 0;
}
