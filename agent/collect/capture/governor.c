/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/governor.h"

#include "formats/base/defs.h"

/*
 * Levels worth having, from fast to small: below -5 zstd gets hardly faster, above 6 a chunk takes
 * more than ten times as long as at 1.
 */
static const int ladder[] = { -5, -3, -1, 1, 2, 3, 4, 5, 6 };

/* A stage at work for this share of the time sets the pace. */
#define BUSY 0.85
/* One step up costs up to half as much time again; below this there is room for it. */
#define ROOM 0.55

static size_t ladder_step_of(int level)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(ladder) && ladder[i + 1] <= level)
		i++;
	return i;
}

int governor_next(int level, struct governor_load load)
{
	const size_t i = ladder_step_of(level);

	if (load.write > BUSY && load.compress < ROOM && i + 1 < ARRAY_SIZE(ladder))
		return ladder[i + 1];
	if (load.compress > BUSY && load.write < BUSY && i > 0)
		return ladder[i - 1];
	return ladder[i];
}

void governor_init(struct governor *g, int level, bool fixed, unsigned workers, uint64_t now)
{
	*g = (struct governor){ .workers = workers, .fixed = fixed, .begin_ns = now };
	atomic_init(&g->level, level);
	atomic_init(&g->compress_ns, 0);
}

void governor_compressed(struct governor *g, uint64_t ns)
{
	atomic_fetch_add_explicit(&g->compress_ns, ns, memory_order_relaxed);
}

void governor_wrote(struct governor *g, uint64_t ns, double backlog, uint64_t now)
{
	const uint64_t length = now - g->begin_ns;
	struct governor_load load;
	int level, next;

	g->write_ns += ns;
	if (g->fixed || length < GOVERNOR_WINDOW_NS)
		return;
	load.compress = (double)atomic_exchange(&g->compress_ns, 0) / (double)length / g->workers;
	load.write = MAX((double)g->write_ns / (double)length, backlog);
	level = governor_level(g);
	next = governor_next(level, load);
	if (next != level) {
		atomic_store_explicit(&g->level, next, memory_order_relaxed);
		g->changes++;
	}
	g->write_ns = 0;
	g->begin_ns = now;
}
