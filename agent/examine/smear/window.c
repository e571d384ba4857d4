/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/window.h"

#include "formats/base/defs.h"

static unsigned octave_of(uint64_t ns)
{
	unsigned bit = 0;

	while (ns >>= 1)
		bit++;
	return bit;
}

/* Below 32 every number has a bucket; above, the five bits behind the highest choose. */
static size_t window_bucket_of(uint64_t ns)
{
	const unsigned octave = octave_of(ns);

	if (ns < WINDOW_FINE)
		return (size_t)ns;
	return (size_t)(octave - 4) * WINDOW_FINE +
	       (size_t)(ns >> (octave - 5) & (WINDOW_FINE - 1));
}

void windows_add(struct windows *w, uint64_t ns, uint64_t pages)
{
	const size_t b = window_bucket_of(ns);

	w->count[b] += pages;
	w->most[b] = MAX(w->most[b], ns);
	w->total += pages;
	w->max = MAX(w->max, ns);
}

void windows_merge(struct windows *to, const struct windows *from)
{
	for (size_t b = 0; b < WINDOW_BUCKETS; b++) {
		to->count[b] += from->count[b];
		to->most[b] = MAX(to->most[b], from->most[b]);
	}
	to->total += from->total;
	to->max = MAX(to->max, from->max);
}

uint64_t windows_quantile(const struct windows *w, unsigned percent)
{
	/* Rounded up, without a product that could overflow. */
	const uint64_t rest = w->total % 100 * percent;
	const uint64_t want = w->total / 100 * percent + (rest + 99) / 100;
	uint64_t seen = 0;

	for (size_t b = 0; b < WINDOW_BUCKETS; b++) {
		seen += w->count[b];
		if (w->count[b] && seen >= want)
			return w->most[b];
	}
	return 0;
}

void windows_summary(const struct windows *w, struct window_summary *ret)
{
	*ret = (struct window_summary){
		.pages = w->total,
		.median = windows_quantile(w, 50),
		.p95 = windows_quantile(w, 95),
		.max = w->max,
	};
	for (size_t b = 0; b < WINDOW_BUCKETS; b++)
		if (w->count[b])
			ret->octave[octave_of(w->most[b])] += w->count[b];
}
