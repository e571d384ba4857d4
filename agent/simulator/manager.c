/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What moves while somebody reads: processes touch, write, allocate, free, exit and start; their
 * pages are trimmed (valid to transition), written to the page file, and their frames taken for
 * something else (transition to page file); what is touched comes back. The reader's output goes
 * through the file cache, which takes memory, and under such pressure the trimmer goes on until
 * every process is down to its floor.
 *
 * All of it in ticks of virtual time, drawn from one sequence: the same reads, the same history.
 */
#include <string.h>

#include "agent/simulator/live.h"
#include "agent/simulator/manager.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

#define SECOND        UINT64_C(1000000000)

/*
 * Trimming begins when 1/32 of memory is available, and under I/O already when 1/4 is; then it goes
 * on until the I/O ends, or half of memory is available.
 */
#define LOW_SHARE     32
#define IO_SHARE      4
#define EASY_SHARE    2
/* The cache is busy if it took so many pages in the last tenth of a second or so. */
#define IO_BUSY       16
#define IO_FADES      1024 /* of it, each tick */

/* Entries that one step of the trimmer looks at. */
#define TRIM_LOOKS    256

/* One access in so many goes to the section. */
#define SHARED_ONE_IN 16
/* And one of the others, outside the hot part. */
#define COLD_ONE_IN   10
/* After so many accesses the hot part moves on. */
#define HOT_MOVES     4096

/*
 * Frames
 */

/* The oldest standby page: its entry has to say now where the copy is. */
static uint32_t repurpose(struct machine *m)
{
	const uint32_t n = m->lists[FRAME_STANDBY].head;
	struct frame *f = &m->frame[n];
	const uint32_t slot = frame_slot(f);

	if (slot) {
		const uint32_t page = sim__page_number(&m->processes[f->owner], frame_vpn(f));

		put_le64(sim__heap_entry(m, f->owner, page, false), sim__entry_soft(m, slot));
		m->counts.repurposed++;
	}
	sim__frame_set_slot(f, 0);
	return n;
}

/* The oldest modified page goes to the page file. False: there is none, or the files are full. */
bool sim__write_out(struct machine *m)
{
	const uint32_t n = m->lists[FRAME_MODIFIED].head;
	uint32_t slot;

	if (n == SIM_NONE)
		return false;
	slot = sim__slot_take(m, &m->frame[n]);
	if (!slot)
		return false;
	sim__frame_set_slot(&m->frame[n], slot);
	sim__frame_move(m, n, FRAME_STANDBY);
	m->counts.paged_out++;
	return true;
}

/* One step of the clock's hand over a process: what was not accessed since it last came by. */
static bool trim_process(struct machine *m, uint32_t process)
{
	struct sim_process *p = &m->processes[process];
	const uint32_t pages = sim__process_pages(p);

	for (unsigned looks = 0; looks < TRIM_LOOKS; looks++) {
		uint8_t *entry;
		uint64_t raw;
		uint32_t frame;

		p->hand = (p->hand + 1) % pages;
		entry = sim__heap_entry(m, process, p->hand, false);
		if (!entry) {
			if (p->hand < p->pages)
				p->hand |= SIM_TABLE - 1;
			continue;
		}
		raw = sim__entry_get(entry);
		if (!(raw & ENTRY_VALID_BIT))
			continue;
		if (raw & ENTRY_ACCESSED) {
			put_le64(entry, raw & ~ENTRY_ACCESSED);
			continue;
		}
		frame = sim__entry_frame(m, raw);
		put_le64(entry, sim__entry_transition(m, frame));
		sim__frame_move(m, frame, FRAME_MODIFIED);
		p->valid--;
		m->counts.trims++;
		return true;
	}
	return false;
}

/* Nothing is free: the cache gives, or else whoever has something. */
static bool squeeze(struct machine *m)
{
	if (m->lists[FRAME_CACHE].head != SIM_NONE) {
		sim__frame_move(m, m->lists[FRAME_CACHE].head, FRAME_STANDBY);
		return true;
	}
	for (uint32_t i = 0; i < 2 * m->n_processes; i++) {
		const uint32_t process = m->trim_turn++ % m->n_processes;

		if (m->processes[process].alive && m->processes[process].valid &&
		    trim_process(m, process))
			break;
	}
	return sim__write_out(m);
}

uint32_t sim__manager_take(struct machine *m)
{
	uint32_t n = m->lists[FRAME_FREE].head;

	if (n == SIM_NONE) {
		if (m->lists[FRAME_STANDBY].head == SIM_NONE && !squeeze(m))
			return SIM_NONE;
		n = repurpose(m);
	}
	sim__frame_move(m, n, FRAME_PINNED);
	return n;
}

/*
 * Accesses
 */

/* There is no copy elsewhere any more, so that the page counts as written. */
static void map_page(struct machine *m, uint32_t process, uint8_t *entry, uint32_t frame)
{
	sim__frame_move(m, frame, FRAME_VALID);
	put_le64(entry, (process ? sim__entry_user(m, frame, true) : sim__entry_kernel(m, frame)) |
				ENTRY_ACCESSED | ENTRY_DIRTY);
	m->processes[process].valid++;
}

static void recall_page(struct machine *m, uint32_t process, uint8_t *entry)
{
	const uint32_t frame = sim__entry_frame(m, sim__entry_get(entry));

	sim__slot_free(m, frame_slot(&m->frame[frame]));
	sim__frame_set_slot(&m->frame[frame], 0);
	map_page(m, process, entry, frame);
	m->counts.soft_faults++;
}

/* From the page file, or new. */
static bool bring_page_in(struct machine *m, uint32_t process, uint32_t page, uint8_t *entry)
{
	const uint32_t frame = sim__manager_take(m);
	const uint32_t slot = sim__entry_kind(m, sim__entry_get(entry)) == IS_SOFT
				      ? sim__entry_slot(m, sim__entry_get(entry))
				      : 0;

	if (frame == SIM_NONE)
		return false;
	sim__frame_put(m, frame, process, sim__heap_vpn(m, process, page),
		       slot ? sim__slot_at(m, slot)->generation : ++m->generation);
	sim__slot_free(m, slot);
	map_page(m, process, entry, frame);
	if (slot)
		m->counts.hard_faults++;
	else
		m->counts.demand_zero++;
	return true;
}

bool sim__access(struct machine *m, uint32_t process, uint32_t page, enum access how)
{
	const bool drawn = page < m->processes[process].pages;
	uint8_t *entry = sim__heap_entry(m, process, page, true);
	uint64_t raw;

	if (!entry)
		return false;
	switch (sim__entry_kind(m, sim__entry_get(entry))) {
	case IS_EMPTY:
		/* Of a region, it is not there. */
		if (!drawn)
			return true;
		if (!bring_page_in(m, process, page, entry))
			return false;
		break;
	case IS_VALID:
		break;
	case IS_TRANSITION:
		recall_page(m, process, entry);
		break;
	case IS_DECOMMITTED:
		if (how != ACCESS_ALLOCATE || !drawn)
			return true;
		if (!bring_page_in(m, process, page, entry))
			return false;
		break;
	default:
		if (!bring_page_in(m, process, page, entry))
			return false;
	}
	raw = sim__entry_get(entry) | ENTRY_ACCESSED;
	if (how != ACCESS_READ && drawn) {
		m->frame[sim__entry_frame(m, raw)].generation = ++m->generation;
		m->counts.written++;
	}
	put_le64(entry, raw);
	return true;
}

/* The frame, and what is in the page file, is of no use any more. */
static void release_page(struct machine *m, uint32_t process, uint8_t *entry)
{
	const uint64_t raw = sim__entry_get(entry);
	uint32_t frame;

	switch (sim__entry_kind(m, raw)) {
	case IS_VALID:
		m->processes[process].valid--;
		sim__frame_free(m, sim__entry_frame(m, raw));
		break;
	case IS_TRANSITION:
		frame = sim__entry_frame(m, raw);
		sim__slot_free(m, frame_slot(&m->frame[frame]));
		sim__frame_free(m, frame);
		break;
	case IS_SOFT:
		sim__slot_free(m, sim__entry_slot(m, raw));
		break;
	default:
		return;
	}
	m->counts.freed++;
}

/* A process maps a page of the section, or the trimmer takes it from it. */
void sim__touch_shared(struct machine *m, uint32_t process, uint32_t i)
{
	const uint64_t va = SIM_SHARED + ((uint64_t)i << PAGE_SHIFT);
	uint8_t *entry = sim__table_entry(m, m->processes[process].root, va, 1, true);

	if (!entry) {
		m->counts.failed++;
	} else if (sim__entry_get(entry) & ENTRY_VALID_BIT) {
		put_le64(entry, sim__entry_prototype(m, SIM_PAGED_POOL + 8 * i));
	} else if (m->section[i] != SIM_NONE) {
		put_le64(entry, sim__entry_user(m, m->section[i], false) | ENTRY_ACCESSED);
	} else {
		put_le64(entry,
			 i % 2 ? ENTRY_VAD : sim__entry_prototype(m, SIM_PAGED_POOL + 8 * i));
	}
}

/*
 * Processes
 */

/* Who is asked next: each process by its size, all of them sometimes. */
void sim__deal(struct machine *m)
{
	uint64_t sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 1; i < m->n_processes; i++)
		sum += m->processes[i].alive ? m->processes[i].weight : 0;
	for (uint32_t i = 1; i < m->n_processes && n < SIM_TICKETS; i++) {
		const struct sim_process *p = &m->processes[i];
		const uint64_t share = p->alive ? 1 + p->weight * UINT64_C(900) / MAX(sum, 1) : 0;

		for (uint64_t k = 0; k < share && n < SIM_TICKETS; k++)
			m->tickets[n++] = i;
	}
	for (uint32_t i = n; i < SIM_TICKETS; i++)
		m->tickets[i] = n ? m->tickets[i % n] : 0;
}

/* SIM_NONE: there is no memory for it. */
uint32_t sim__process_add(struct machine *m, const char *name, uint32_t pages, uint64_t *random)
{
	const uint32_t n = m->n_processes;
	const uint32_t tables = (pages + SIM_TABLE - 1) / SIM_TABLE;
	struct sim_process *p;

	if (n == m->process_room) {
		size_t room = m->process_room;

		p = array_grow(m->processes, &room, sizeof(*p));
		if (!p)
			return SIM_NONE;
		m->processes = p;
		m->process_room = (uint32_t)room;
	}
	p = &m->processes[n];
	*p = (struct sim_process){ .pages = pages, .begin = m->now, .alive = true };
	p->tables = malloc(MAX(tables, 1) * sizeof(*p->tables));
	if (!p->tables)
		return SIM_NONE;
	memset(p->tables, 0xff, tables * sizeof(*p->tables)); /* SIM_NONE each */
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->first = SIM_VPN(0x10000000) + sim_below(random, 0x800) * SIM_TABLE;
	p->weight = pages;
	p->n_hot = MAX((uint32_t)(pages * m->spec.hot / 100), 1);
	m->n_processes++;
	if (sim__windows_add(m, n))
		return n;
	free(p->tables);
	m->n_processes--;
	return SIM_NONE;
}

static void free_tables(struct machine *m, uint32_t table, unsigned level)
{
	const size_t end = level == 4 ? SIM_TABLE / 2 : SIM_TABLE;

	for (size_t i = 0; level > 1 && i < end; i++) {
		const uint64_t raw = sim__entry_get(sim__frame_bytes(m, table) + 8 * i);

		if (raw & ENTRY_VALID_BIT)
			free_tables(m, sim__frame_at(m, raw & ENTRY_ADDRESS), level - 1);
	}
	sim__frame_free(m, table);
}

static void end_process(struct machine *m, uint32_t process)
{
	struct sim_process *p = &m->processes[process];

	sim__windows_remove(m, process);
	for (uint32_t i = 0; i < p->pages; i++) {
		uint8_t *entry = sim__heap_entry(m, process, i, false);

		if (!entry) {
			i |= SIM_TABLE - 1;
			continue;
		}
		release_page(m, process, entry);
		put_le64(entry, 0);
	}
	free_tables(m, p->root, 4);
	free(p->tables);
	p->tables = NULL;
	p->alive = false;
	p->end = m->now;
	m->counts.exited++;
	sim__deal(m);
}

/*
 * What happens
 */

static uint32_t pick_page(struct machine *m, struct sim_process *p)
{
	const uint32_t pages = sim__process_pages(p);

	if (!sim_below(&m->random, HOT_MOVES))
		p->hot = (p->hot + p->n_hot / 8 + 1) % pages;
	if (!sim_below(&m->random, COLD_ONE_IN))
		return (uint32_t)sim_below(&m->random, pages);
	return (uint32_t)((p->hot + sim_below(&m->random, p->n_hot)) % pages);
}

static uint32_t pick_process(struct machine *m)
{
	return m->tickets[sim_below(&m->random, SIM_TICKETS)];
}

static void op_access(struct machine *m, enum access how)
{
	const uint32_t process = pick_process(m);

	if (!process)
		return;
	m->counts.failed += !sim__access(m, process, pick_page(m, &m->processes[process]), how);
}

static void op_touch(struct machine *m)
{
	const uint32_t process = pick_process(m);

	if (process && !sim_below(&m->random, SHARED_ONE_IN))
		sim__touch_shared(m, process, (uint32_t)sim_below(&m->random, SIM_SHARED_PAGES));
	else
		op_access(m, ACCESS_READ);
}

static void op_write(struct machine *m)
{
	op_access(m, ACCESS_WRITE);
}

static void op_allocate(struct machine *m)
{
	op_access(m, ACCESS_ALLOCATE);
}

static void op_free(struct machine *m)
{
	const uint32_t process = pick_process(m);
	struct sim_process *p = &m->processes[process];
	uint8_t *entry;

	if (!process)
		return;
	entry = sim__heap_entry(m, process, (uint32_t)sim_below(&m->random, p->pages), false);
	if (!entry)
		return;
	release_page(m, process, entry);
	put_le64(entry, sim__entry_zero(MM_DECOMMIT));
}

static void op_start(struct machine *m)
{
	const uint32_t pages = 256 + (uint32_t)sim_below(&m->random, 4096);
	const uint32_t process = sim__process_add(m, "worker.exe", pages, &m->random);

	if (process == SIM_NONE) {
		m->counts.failed++;
		return;
	}
	m->processes[process].transient = true;
	m->processes[process].floor = pages / 4;
	for (uint32_t i = 0; i < pages / 4; i++)
		m->counts.failed += !sim__access(m, process, i, ACCESS_WRITE);
	for (uint32_t i = 0; i < 64; i++)
		sim__touch_shared(m, process, i);
	m->counts.started++;
	sim__deal(m);
}

static void op_exit(struct machine *m)
{
	const uint32_t first = (uint32_t)sim_below(&m->random, m->n_processes);

	for (uint32_t i = 0; i < m->n_processes; i++) {
		const uint32_t process = (first + i) % m->n_processes;

		if (!m->processes[process].transient || !m->processes[process].alive)
			continue;
		end_process(m, process);
		return;
	}
}

/* A page of the reader's output. */
static void cache_page(struct machine *m)
{
	const uint32_t frame = sim__manager_take(m);
	const uint64_t limit = m->spec.cache >> PAGE_SHIFT;

	if (frame == SIM_NONE)
		return;
	sim__frame_put(m, frame, 0, SIM_VPN(SIM_CACHE) + 16 + m->cache_next++ % (1 << 26),
		       ++m->generation);
	sim__frame_move(m, frame, FRAME_CACHE);
	if (m->lists[FRAME_CACHE].count > limit)
		sim__frame_move(m, m->lists[FRAME_CACHE].head, FRAME_STANDBY);
	m->counts.cached++;
	m->io += IO_FADES;
}

static void op_trim(struct machine *m)
{
	for (unsigned tries = 0; tries < 8; tries++) {
		const uint32_t process = pick_process(m);
		const struct sim_process *p = &m->processes[process];

		if (process && p->valid > p->floor && trim_process(m, process))
			return;
	}
}

static bool is_pressed(struct machine *m)
{
	const uint32_t available = m->lists[FRAME_FREE].count + m->lists[FRAME_STANDBY].count;

	if (m->io <= IO_BUSY * IO_FADES || available > m->frames / EASY_SHARE)
		m->trimming = false;
	else if (available < m->frames / IO_SHARE)
		m->trimming = true;
	return m->trimming || available < m->frames / LOW_SHARE;
}

/* How often something at `rate` an `in` is due now. */
static uint64_t ticks_due(uint64_t *sum, uint64_t rate, uint64_t in)
{
	const uint64_t whole = (*sum += rate * SIM_TICK) / in;

	*sum -= whole * in;
	return whole;
}

static void run_rates(struct machine *m)
{
	const struct sim_spec *s = &m->spec;
	const struct {
		void (*op)(struct machine *m);
		uint64_t rate, in;
	} rates[SIM_RATES] = {
		{ op_touch, s->touch, SECOND },      { op_write, s->write, SECOND },
		{ op_allocate, s->alloc, SECOND },   { op_free, s->free, SECOND },
		{ op_start, s->start, 60 * SECOND }, { op_exit, s->exit, 60 * SECOND },
	};

	for (size_t i = 0; i < SIM_RATES; i++)
		for (uint64_t n =
			     ticks_due(&m->due[i], rates[i].rate * s->activity / 100, rates[i].in);
		     n; n--)
			rates[i].op(m);
}

enum status sim__note_resident(struct machine *m)
{
	if (!ARRAY_ROOM(m->resident, m->n_resident, m->resident_room))
		return ST_NOMEM;
	m->resident[m->n_resident++] = m->processes[m->main].valid;
	return ST_OK;
}

static void run_tick(struct machine *m)
{
	const uint64_t pages = m->spec.trim >> PAGE_SHIFT;

	run_rates(m);
	sim__live_run(m);
	for (; m->cache_due >= PAGE_SIZE; m->cache_due -= PAGE_SIZE)
		cache_page(m);
	/* What the writer may do is what the trimmer gives it, and a little more. */
	for (uint64_t n = ticks_due(&m->writer_due, pages + pages / 4, SECOND);
	     n && sim__write_out(m); n--)
		;
	for (uint64_t n = ticks_due(&m->trim_due, pages, SECOND); n && is_pressed(m); n--)
		op_trim(m);
	m->io -= m->io / IO_FADES;
	if ((m->now - SIM_BOOT) % (SECOND / 10) == 0)
		sim__note_resident(m);
}

void sim__manager_run(struct machine *m, uint64_t now, uint64_t read)
{
	if (m->spec.activity) {
		m->cache_due += read * m->spec.pressure / 100;
		for (; m->next_tick <= now; m->next_tick += SIM_TICK) {
			m->now = m->next_tick;
			run_tick(m);
		}
	}
	m->now = now;
}
