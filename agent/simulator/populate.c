/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the machine at first: processes with their heaps, caches, standby pages, free ones. */
#include "agent/simulator/inside.h"
#include "agent/simulator/manager.h"

/* Pages of a heap, by what they are; in runs, as programs use memory. */
struct makeup {
	uint32_t valid, transition, paged, zero, decommitted, empty;
};

#define RUN_MAX 32

bool sim__populate_page(struct machine *m, uint32_t process, uint32_t page, enum populate kind)
{
	struct frame f = { .owner = process, .where = sim__heap_vpn(m, process, page) };
	uint8_t *entry;
	uint32_t slot;

	if (kind == POPULATE_EMPTY)
		return true;
	entry = sim__heap_entry(m, process, page, true);
	if (!entry)
		return false;
	/* A region has pages that nobody can come to (sim__access()); this is not one of them. */
	if (page >= m->processes[process].pages)
		put_le64(entry, sim__entry_zero(MM_READWRITE));
	if (kind == POPULATE_VALID)
		return sim__access(m, process, page, ACCESS_WRITE);
	if (kind == POPULATE_TRANSITION) {
		if (!sim__access(m, process, page, ACCESS_WRITE))
			return false;
		m->processes[process].valid--;
		slot = sim__entry_frame(m, sim__entry_get(entry));
		put_le64(entry, sim__entry_transition(m, slot));
		sim__frame_move(m, slot, FRAME_MODIFIED);
		return sim__write_out(m);
	}
	if (kind == POPULATE_PAGED) {
		f.generation = ++m->generation;
		slot = sim__slot_take(m, &f);
		if (slot)
			put_le64(entry, sim__entry_soft(m, slot));
		return slot != 0;
	}
	put_le64(entry, sim__entry_zero(kind == POPULATE_ZERO ? MM_READWRITE : MM_DECOMMIT));
	return true;
}

static bool populate(struct machine *m, uint32_t process, const struct makeup *of, uint64_t *random)
{
	uint32_t left[] = { of->valid, of->transition,  of->paged,
			    of->zero,  of->decommitted, of->empty };
	const uint32_t pages = m->processes[process].pages;

	for (uint32_t page = 0; page < pages;) {
		uint64_t at = sim_below(random, pages - page);
		unsigned kind = 0;
		uint32_t n;

		while (at >= left[kind])
			at -= left[kind++];
		n = 1 + (uint32_t)sim_below(random, RUN_MAX);
		n = MIN(n, left[kind]);
		left[kind] -= n;
		for (; n; n--)
			if (!sim__populate_page(m, process, page++, (enum populate)kind))
				return false;
	}
	/* Of the section, a part was never used, and a part was and has been trimmed since. */
	for (uint32_t i = 0; i < SIM_SHARED_PAGES; i++) {
		const uint64_t used = sim_below(random, 4);

		for (uint64_t n = used; n > 1; n--)
			sim__touch_shared(m, process, i);
	}
	return true;
}

static bool add_main(struct machine *m, uint64_t *random)
{
	const uint32_t pages = (uint32_t)(m->spec.allocated >> PAGE_SHIFT);
	struct makeup of = { .valid = (uint32_t)(m->spec.resident >> PAGE_SHIFT) };
	uint32_t rest = pages - of.valid;

	/*
	 * Of what is not resident: some a moment ago, hardly anything was never written or freed.
	 */
	of.transition = rest / 12;
	of.zero = of.decommitted = of.empty = rest / 100;
	of.paged = rest - of.transition - of.zero - of.decommitted - of.empty;
	m->main = sim__process_add(m, m->spec.process, pages, random);
	if (m->main == SIM_NONE || !populate(m, m->main, &of, random))
		return false;
	m->processes[m->main].floor = (uint32_t)(m->spec.trimmed >> PAGE_SHIFT);
	return true;
}

static bool add_other(struct machine *m, uint32_t i, uint32_t valid, uint64_t *random)
{
	static const char *const names[] = { "smss.exe",    "csrss.exe",    "wininit.exe",
					     "lsass.exe",   "services.exe", "svchost.exe",
					     "svchost.exe", "explorer.exe" };
	const bool transient = i >= ARRAY_SIZE(names) && i % 2;
	const char *name = i < ARRAY_SIZE(names) ? names[i]
			   : transient           ? "worker.exe"
						 : "svchost.exe";
	const struct makeup of = {
		valid, valid / 10, valid / 4, valid / 10, valid / 20, valid / 10
	};
	const uint32_t pages =
		of.valid + of.transition + of.paged + of.zero + of.decommitted + of.empty;
	const uint32_t process = sim__process_add(m, name, pages, random);

	if (process == SIM_NONE)
		return false;
	m->processes[process].transient = transient;
	m->processes[process].floor = valid / 5 * 3;
	return populate(m, process, &of, random);
}

/* Sizes differ by a factor of eight. */
static bool add_others(struct machine *m, uint64_t *random)
{
	const uint64_t pages = m->spec.others >> PAGE_SHIFT;

	for (uint32_t i = 0; i < m->spec.processes; i++) {
		const uint64_t parts = 1 + sim_below(random, 8);
		const uint64_t valid = pages * 2 * parts / 9 / m->spec.processes;

		if (i == m->spec.before_main && !add_main(m, random))
			return false;
		if (!add_other(m, i, (uint32_t)MAX(valid, 16), random))
			return false;
	}
	return m->main || add_main(m, random);
}

/*
 * What nobody has is the cache's, files that were read once (standby), freed, or never used. Old
 * standby pages are processes' and files' alike.
 */
static void fill_rest(struct machine *m, uint64_t *random)
{
	const uint32_t left = m->lists[FRAME_FREE].count;
	const uint64_t cache = MIN(m->spec.cache / 4 >> PAGE_SHIFT, left / 4);

	for (uint32_t i = 0; i < left / 4 * 3; i++) {
		const uint32_t frame = sim__manager_take(m);

		sim__frame_put(m, frame, 0, SIM_VPN(SIM_CACHE) + 16 + m->cache_next++,
			       ++m->generation);
		if (i < cache)
			sim__frame_move(m, frame, FRAME_CACHE);
		else
			sim__frame_move(m, frame, i % 3 ? FRAME_STANDBY : FRAME_FREE);
		if (i >= cache && sim_below(random, 2) && m->lists[FRAME_STANDBY].count > 1)
			sim__frame_move(m, m->lists[FRAME_STANDBY].head, FRAME_STANDBY);
	}
}

/* What tables did not need of the low part, or are not to have. */
static void give_low(struct machine *m)
{
	while (!m->spec.low_tables && m->low_next < m->low_end)
		sim__frame_move(m, m->low_next++, FRAME_FREE);
}

enum status sim__manager_init(struct machine *m, uint64_t *random, struct err *e)
{
	enum status st;

	give_low(m);
	if (sim__process_add(m, "System", 0, random) == SIM_NONE || !add_others(m, random))
		return err_set(e, ST_USAGE,
			       "ram or page files are too small for what the processes have");
	st = sim__store_init(m, random, e);
	if (st)
		return st;
	if (m->spec.inside) {
		st = sim__inside_init(m, e);
		if (st)
			return st;
	}
	fill_rest(m, random);
	for (uint32_t i = 0; i < m->n_processes; i++)
		m->processes[i].begin = 0;
	m->counts = (__typeof__(m->counts)){ 0 };
	sim__deal(m);
	sim__note_resident(m);
	return ST_OK;
}
