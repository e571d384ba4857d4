/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory manager (manager.c), as populate.c uses it to fill the machine before the first read.
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

/* Writes the oldest modified page to the page file. False: there is none, or no room. */
bool sim__write_out(struct machine *m);

/*
 * A process accesses a page of its heap or, numbered after those, of its regions, whose content
 * never changes. False: the machine has no memory left.
 */
bool sim__access(struct machine *m, uint32_t process, uint32_t page, enum access how);
/* The same for a page of the section that all processes share. */
void sim__touch_shared(struct machine *m, uint32_t process, uint32_t i);

/* The initial state of a page. */
enum populate {
	POPULATE_VALID,
	POPULATE_TRANSITION,
	POPULATE_PAGED,
	POPULATE_ZERO,
	POPULATE_DECOMMITTED,
	POPULATE_EMPTY
};

/* Gives a fresh page of a process's heap or regions its state. False: no memory left. */
bool sim__populate_page(struct machine *m, uint32_t process, uint32_t page, enum populate kind);

/* SIM_NONE: no memory left. */
uint32_t sim__process_add(struct machine *m, const char *name, uint32_t pages, uint64_t *random);

/* Gives each process its share of the activity. */
void sim__deal(struct machine *m);
/* Records the main process's resident pages for the truth. */
enum status sim__note_resident(struct machine *m);

#endif
