/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a read, per request and per page, measured from earlier reads. It decides whether a
 * gap between two wanted places is read along and dropped, or skipped with another request. A
 * request to a driver by a system call costs as much as several pages; one over a slow link costs
 * hardly anything.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_READ_COST_H
#define RAMSEAL_AGENT_COLLECT_ORDER_READ_COST_H

#include <stddef.h>
#include <stdint.h>

/* Sums for a line through (pages, ns), mostly of the last 500 reads. Zero-initialise. */
struct read_cost {
	int64_t reads;
	int64_t pages;
	int64_t pages_squared;
	int64_t ns;
	int64_t pages_ns;
};

/* Reads of more than 256 pages say little about a request and are ignored. */
void read_cost_add(struct read_cost *c, size_t pages, uint64_t ns);

/*
 * How many pages take no longer than a request, at most `most`; `unknown` while there were too few
 * reads, or all of the same length.
 */
size_t read_cost_gap(const struct read_cost *c, size_t most, size_t unknown);

#endif
