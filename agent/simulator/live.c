/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/live.h"

#include <inttypes.h>
#include <string.h>

#include "agent/simulator/heap_build.h"
#include "agent/simulator/manager.h"

#define SECOND    UINT64_C(1000000000)
#define HEAPS_MAX 16 /* as in spec.h */

struct sim_live {
	struct live_heap {
		struct sim_heap_builder *b;
		uint32_t index;
		bool stopped;
	} at[HEAPS_MAX];
	size_t count;
	uint64_t random;
	uint64_t due; /* steps, times SECOND */
	uint8_t **kept[SIM_FILES];
};

static struct sim_live *begin_live(struct machine *m)
{
	struct sim_live *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->random = m->spec.seed ^ UINT64_C(0x6c697665);
	m->live = x;
	for (unsigned i = 0; i < SIM_FILES; i++) {
		x->kept[i] = calloc(MAX(m->files[i].count, 1), sizeof(*x->kept[i]));
		if (!x->kept[i])
			return NULL;
	}
	return x;
}

bool sim__live_add(struct machine *m, uint32_t index, struct sim_heap_builder *b)
{
	struct sim_live *x = m->live ? m->live : begin_live(m);

	if (!x || x->count == HEAPS_MAX) {
		sim__heap_destroy(b);
		return false;
	}
	x->at[x->count++] = (struct live_heap){ .b = b, .index = index };
	return true;
}

void sim__live_deinit(struct machine *m)
{
	struct sim_live *x = m->live;

	if (!x)
		return;
	for (size_t i = 0; i < x->count; i++)
		sim__heap_destroy(x->at[i].b);
	for (unsigned i = 0; i < SIM_FILES; i++) {
		for (uint32_t k = 0; x->kept[i] && k < m->files[i].count; k++)
			free(x->kept[i][k]);
		free(x->kept[i]);
	}
	free(x);
	m->live = NULL;
}

/*
 * Slots
 */

void sim__live_keep(struct machine *m, uint32_t slot, const struct frame *content)
{
	const uint8_t *page;
	uint8_t **at;

	if (!m->live) /* there may be no processes yet, either */
		return;
	at = &m->live->kept[SLOT_FILE(slot)][SLOT_INDEX(slot)];
	page = content->owner == m->main
		       ? sim__regions_page(&m->processes[m->main].regions, frame_vpn(content))
		       : NULL;
	if (!page) {
		free(*at);
		*at = NULL;
		return;
	}
	if (!*at)
		*at = malloc(PAGE_SIZE);
	if (*at)
		memcpy(*at, page, PAGE_SIZE);
	else
		m->counts.failed++;
}

const uint8_t *sim__live_kept(const struct machine *m, unsigned file, uint32_t index)
{
	return m->live && file < SIM_FILES ? m->live->kept[file][index] : NULL;
}

/*
 * Steps
 */

static void log_step(const struct machine *m, const struct live_heap *h, const char *what,
		     const struct sim_heap_event *of)
{
	static const char *const kinds[] = { "back-end", "lfh", "virtual", "own" };

	if (m->heap_log)
		fprintf(m->heap_log,
			"%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%s,0x%" PRIx64 ",%" PRIu64 ",%s\n",
			m->now - SIM_BOOT, m->processes[m->main].pid, h->index, what, of->address,
			of->requested, of->address ? kinds[of->kind] : "");
}

/* The page is there, and to be written, as after the fault that the write makes. */
static void come_to(struct machine *m, uint64_t vpn)
{
	const struct sim_process *p = &m->processes[m->main];
	const uint32_t page = sim__page_number(p, vpn);
	uint8_t *entry = sim__heap_entry(m, m->main, page, true);
	enum entry_is is;

	if (!entry) {
		m->counts.failed++;
		return;
	}
	is = sim__entry_kind(m, sim__entry_get(entry));
	if (is == IS_EMPTY || is == IS_DECOMMITTED)
		put_le64(entry, sim__entry_zero(MM_READWRITE));
	m->counts.failed += !sim__access(m, m->main, page, ACCESS_WRITE);
}

/* All pages that a step changed are brought in before the first of them changes. */
static void publish_regions(struct machine *m, const struct sim_heap_builder *b, bool write)
{
	const struct sim_regions *of = &m->processes[m->main].regions;

	for (size_t i = 0; i < b->region_count; i++) {
		const struct sim_heap_region *r = &b->regions[i];
		const uint64_t vpn = SIM_VPN(r->va);
		const struct sim_region *to = sim__regions_find(of, vpn);

		for (uint32_t k = 0; to && k < r->pages; k++) {
			const size_t at = (size_t)k * PAGE_SIZE;

			if (!r->committed[k] || !memcmp(to->bytes + at, r->bytes + at, PAGE_SIZE))
				continue;
			if (!write) {
				come_to(m, vpn + k);
				continue;
			}
			memcpy(to->bytes + at, r->bytes + at, PAGE_SIZE);
			if (to->committed)
				to->committed[k] = 1;
		}
	}
}

static void step_live_heap(struct machine *m, struct live_heap *h)
{
	const size_t regions = h->b->region_count;
	struct sim_heap_event event = { 0 };

	if (h->stopped)
		return;
	if (!sim__heap_step(h->b, &event) || h->b->region_count != regions) {
		h->stopped = true;
		log_step(m, h, "stopped", &(struct sim_heap_event){ 0 });
		return;
	}
	publish_regions(m, h->b, false);
	publish_regions(m, h->b, true);
	m->counts.heap_steps++;
	log_step(m, h, event.freed ? "free" : "alloc", &event);
}

void sim__live_run(struct machine *m)
{
	struct sim_live *x = m->live;

	if (!x)
		return;
	x->due += m->spec.heap_writes * m->spec.activity / 100 * SIM_TICK;
	for (; x->due >= SECOND; x->due -= SECOND)
		step_live_heap(m, &x->at[sim_below(&x->random, x->count)]);
}
