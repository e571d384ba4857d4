/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the memory manager does (manager.c), for what fills the machine before the first read
 * (populate.c).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_MANAGER_H
#define RAMSEAL_AGENT_SIMULATOR_MANAGER_H

#include "agent/simulator/machine.h"
#include "formats/base/bytes.h"

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_ALLOCATE };

static inline uint64_t sim__entry_get(const uint8_t *entry)
{
	return get_le64(entry);
}

static inline uint64_t sim__heap_vpn(const struct machine *m, uint32_t process, uint32_t page)
{
	return sim__page_vpn(&m->processes[process], page);
}

/* The oldest modified page goes to the page file. False: there is none, or no room. */
bool sim__write_out(struct machine *m);

/*
 * A process comes to a page of its heap, or behind them of its regions, which are not written
 * anew. False: the machine has no memory left.
 */
bool sim__access(struct machine *m, uint32_t process, uint32_t page, enum access how);
/* The same for a page of the section that all share. */
void sim__touch_shared(struct machine *m, uint32_t process, uint32_t i);

/* What a page is at first. */
enum populate {
	POPULATE_VALID,
	POPULATE_TRANSITION,
	POPULATE_PAGED,
	POPULATE_ZERO,
	POPULATE_DECOMMITTED,
	POPULATE_EMPTY
};

/* A page of a process's heap or regions that nothing was made of yet. False: no memory left. */
bool sim__populate_page(struct machine *m, uint32_t process, uint32_t page, enum populate kind);

/* SIM_NONE: no memory left. */
uint32_t sim__process_add(struct machine *m, const char *name, uint32_t pages, uint64_t *random);

/* Gives each process its share of what happens. */
void sim__deal(struct machine *m);
/* Keeps what the main process has resident now, for the truth. */
enum status sim__note_resident(struct machine *m);

#endif
