/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/read_cost.h"

#include "formats/base/bytes.h"

/*
 * Integers, so that the same reads say the same on every machine. With so many reads, of so many
 * pages and of so long a time, no product of two sums is above 2^62: 2^9 * 2^16 * 2^9 * 2^28.
 */
#define READS_MAX ((int64_t)1 << 9)
#define PAGES_MAX ((size_t)1 << 8)
#define NS_MAX    ((uint64_t)1 << 28)

/* Fewer are by chance what they are. */
#define READS_MIN 64

/* What was long ago counts half, and later nothing: a machine gets busy, or a link slow. */
static void halve_counts(struct read_cost *c)
{
	c->reads /= 2;
	c->pages /= 2;
	c->pages_squared /= 2;
	c->ns /= 2;
	c->pages_ns /= 2;
}

void read_cost_add(struct read_cost *c, size_t pages, uint64_t ns)
{
	const int64_t n = (int64_t)pages, t = (int64_t)MIN(ns, NS_MAX);

	if (pages > PAGES_MAX)
		return;
	if (c->reads == READS_MAX)
		halve_counts(c);
	c->reads++;
	c->pages += n;
	c->pages_squared += n * n;
	c->ns += t;
	c->pages_ns += n * t;
}

/* Least squares. Both costs come out as multiples of the same determinant, which cancels. */
size_t read_cost_gap(const struct read_cost *c, size_t most, size_t unknown)
{
	const int64_t spread = c->reads * c->pages_squared - c->pages * c->pages;
	const int64_t request = c->ns * c->pages_squared - c->pages * c->pages_ns;
	const int64_t page = c->reads * c->pages_ns - c->pages * c->ns;

	if (c->reads < READS_MIN || spread <= 0)
		return unknown;
	if (request <= 0)
		return 0;
	if (page <= 0)
		return most;
	return (size_t)MIN((uint64_t)(request / page), (uint64_t)most);
}
