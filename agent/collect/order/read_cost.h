/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a read costs: so much for the request, and so much for each page of it, by the reads that
 * there have been. So it is known whether what lies between two places that are wanted is better
 * read with them, and dropped, than left out by a request more. A driver that is asked by system
 * calls takes some pages' time for each request; a slow link to a machine hardly any.
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

/* Reads of more than 256 pages say little of a request, and are left out. */
void read_cost_add(struct read_cost *c, size_t pages, uint64_t ns);

/*
 * How many pages take no longer than a request does, at most `most`; `unknown` as long as there
 * were too few reads, or all of one length.
 */
size_t read_cost_gap(const struct read_cost *c, size_t most, size_t unknown);

#endif
