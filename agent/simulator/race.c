/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races that whoever reads memory by its page tables has to survive: soon after a page table was
 * read, a page that it names goes to the page file, and its frame to another page of a table that
 * was read, so that the change lies among the readings of tables and frames rather than anywhere.
 * As in any system the entry changes before the frame does.
 */
#include "agent/simulator/machine.h"
#include "formats/base/bytes.h"

/* Entries that are looked at for one that will do. */
#define LOOKS      32
/* How soon: with each page that is read, one in so many of those that are due. */
#define SOON       16
/* Not more at a time than a reader can get away from. */
#define DUE_TABLES 64

static bool find_table_of_bytes(const struct machine *m, uint32_t bytes, struct sim_recent *ret)
{
	for (uint32_t i = 1; i < m->n_processes; i++) {
		const struct sim_process *p = &m->processes[i];

		for (uint32_t k = 0; p->alive && k * SIM_TABLE < p->pages; k++) {
			if (p->tables[k] == bytes) {
				*ret = (struct sim_recent){ i, k };
				return true;
			}
		}
	}
	return false;
}

void sim__race_note(struct machine *m, uint32_t frame)
{
	const struct frame *f = frame == SIM_NONE ? NULL : &m->frame[frame];
	struct sim_recent table;

	if (!m->spec.race || !m->spec.activity || !f || frame_content(f) != CONTENT_BYTES ||
	    !find_table_of_bytes(m, f->generation, &table))
		return;
	m->recent[m->n_recent++ % SIM_RECENT] = table;
	m->race_due = MIN(m->race_due + m->spec.race, DUE_TABLES * m->spec.race);
}

/* A page of a table that was read, of which `wanted` holds; SIM_NONE: none was found. */
static uint32_t pick_recent_page(struct machine *m, bool (*wanted)(enum entry_is is),
				 uint32_t *process)
{
	const uint32_t n = MIN(m->n_recent, SIM_RECENT);

	for (unsigned i = 0; i < LOOKS; i++) {
		const struct sim_recent *t = &m->recent[sim_below(&m->random, n)];
		const struct sim_process *p = &m->processes[t->process];
		const uint32_t page =
			t->table * SIM_TABLE + (uint32_t)sim_below(&m->random, SIM_TABLE);
		const uint8_t *entry;

		if (!p->alive || page >= p->pages)
			continue;
		entry = sim__heap_entry(m, t->process, page, false);
		if (!entry || !wanted(sim__entry_kind(m, get_le64(entry))))
			continue;
		*process = t->process;
		return page;
	}
	return SIM_NONE;
}

static bool is_valid(enum entry_is is)
{
	return is == IS_VALID;
}

static bool is_entry_away(enum entry_is is)
{
	return is == IS_SOFT || is == IS_ZERO;
}

/* The page is written, and its frame is nobody's. SIM_NONE: the page files are full. */
static uint32_t race_take_frame(struct machine *m, uint32_t process, uint32_t page)
{
	uint8_t *entry = sim__heap_entry(m, process, page, false);
	const uint32_t frame = sim__entry_frame(m, get_le64(entry));
	const uint32_t slot = sim__slot_take(m, &m->frame[frame]);

	if (!slot)
		return SIM_NONE;
	put_le64(entry, sim__entry_soft(m, slot));
	sim__frame_move(m, frame, FRAME_PINNED);
	m->processes[process].valid--;
	m->counts.paged_out++;
	m->counts.repurposed++;
	return frame;
}

static void race_give_frame(struct machine *m, uint32_t process, uint32_t page, uint32_t frame)
{
	uint8_t *entry = sim__heap_entry(m, process, page, false);
	const uint64_t raw = get_le64(entry);
	const uint32_t slot = sim__entry_kind(m, raw) == IS_SOFT ? sim__entry_slot(m, raw) : 0;

	sim__frame_put(m, frame, process, m->processes[process].first + page,
		       slot ? sim__slot_at(m, slot)->generation : ++m->generation);
	sim__slot_free(m, slot);
	sim__frame_move(m, frame, FRAME_VALID);
	put_le64(entry, sim__entry_user(m, frame, true) | ENTRY_ACCESSED | ENTRY_DIRTY);
	m->processes[process].valid++;
	m->counts.hard_faults++;
}

static void run_race(struct machine *m)
{
	uint32_t loser, winner, frame;
	const uint32_t from = pick_recent_page(m, is_valid, &loser);
	const uint32_t to = pick_recent_page(m, is_entry_away, &winner);

	if (from == SIM_NONE || to == SIM_NONE)
		return;
	frame = race_take_frame(m, loser, from);
	if (frame != SIM_NONE)
		race_give_frame(m, winner, to, frame);
}

void sim__race_run(struct machine *m)
{
	if (!m->race_due)
		return;
	for (uint64_t n = m->race_due; n-- > 0;) {
		if (sim_below(&m->random, SOON))
			continue;
		m->race_due--;
		run_race(m);
	}
}
