/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fleet.c and the other sections of the fleet page. */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_FLEET_FLEET_INTERNAL_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_FLEET_FLEET_INTERNAL_H

#include "agent/examine/report/fleet/fleet.h"
#include "agent/examine/report/kit/html.h"
#include "agent/examine/report/kit/page.h"

/* Some of the hosts, in an order. */
struct ranked {
	const struct fleet_host **at; /* for free(); NULL: out of memory, or none */
	size_t count;
};

typedef bool host_filter(const struct fleet_host *h);
typedef int host_compare(const void *a, const void *b);

/* `compare` gets pointers to pointers to hosts; NULL: in the fleet's order. */
struct ranked fleet_ranked(struct doc *d, const struct fleet *f, host_filter *takes,
			   host_compare *compare);

static inline const struct fleet_host *fleet_host_at(const void *p)
{
	return *(const struct fleet_host *const *)p;
}

/* For a host_compare: larger values first; equal ones in the fleet's order. */
int fleet_falling(uint64_t x, uint64_t y, const void *a, const void *b);
bool fleet_any(const struct fleet_host *h);

const char *fleet_name(const struct fleet_host *h);

/* Cells */
void fleet_put_host(struct html_table *t, const struct fleet_host *h);
void fleet_put_number(struct html_table *t, uint64_t n, void (*put)(struct doc *d, uint64_t n));

/* Sections */
bool fleet_has_dots(const struct fleet *f);
void fleet_put_dots(struct doc *d, const struct fleet *f); /* fleet_dots.c */
void fleet_put_smear(struct doc *d, const struct fleet *f);
void fleet_put_kernels(struct doc *d, const struct fleet *f);
void fleet_put_tools(struct doc *d, const struct fleet *f);
bool fleet_has_twice(const struct fleet *f);
void fleet_put_twice(struct doc *d, const struct fleet *f);

#endif
