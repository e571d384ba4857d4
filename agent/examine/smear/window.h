/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distribution of mapping windows: a histogram whose buckets are 1/32 of their octave wide, so
 * that its size does not depend on how much is counted. Every bucket keeps its largest member; a
 * quantile is therefore a window that occurred, and at most 1/32 above the true one. The maximum is
 * exact.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_WINDOW_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_FINE    32
#define WINDOW_BUCKETS ((64 - 5 + 1) * WINDOW_FINE)
#define WINDOW_OCTAVES 64

/* Zero-initialise. */
struct windows {
	uint64_t count[WINDOW_BUCKETS]; /* pages */
	uint64_t most[WINDOW_BUCKETS];  /* ns */
	uint64_t total;
	uint64_t max;
};

struct window_summary {
	uint64_t pages;
	uint64_t median; /* ns */
	uint64_t p95;
	uint64_t max;
	uint64_t octave[WINDOW_OCTAVES]; /* pages with 2^i <= ns < 2^(i+1); 0 ns is in the first */
};

void windows_add(struct windows *w, uint64_t ns, uint64_t pages);
void windows_merge(struct windows *to, const struct windows *from);
/* The smallest member that at least `percent` of all pages do not exceed; 0 if there are none. */
uint64_t windows_quantile(const struct windows *w, unsigned percent);
void windows_summary(const struct windows *w, struct window_summary *ret);

#endif
