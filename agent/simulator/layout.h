/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets of the fields of a build's structures, x64, from public type records:
 * JPCERTCC/Windows-Symbol-Tables 11ad856 (ntkrnlmp of 7601, 17763, 18362, 19041, 22000),
 * volatilityfoundation/volatility 328a178 (vtypes of 7 SP1), ntdiff/headers 5dcfad1 (20H1, 11
 * 22H2) and Rickebo/ntoskrnlib 0a72996 (ntoskrnlib.Types/Generated: EPROCESS and ETHREAD of 24H2).
 * Offsets that have not changed from 7 to 11 are in the code that writes the fields. VADs of 24H2
 * are taken to be those of 22H2 (ufrisk/MemProcFS c3aa810); no record confirms that. For 10240 and
 * 10586 only the fields that name a process were read (ntdiff/headers 34fa37e: 1507 TS1, 1511 TS2).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LAYOUT_H
#define RAMSEAL_AGENT_SIMULATOR_LAYOUT_H

#include "agent/simulator/spec.h"

struct sim_layout {
	unsigned build;
	bool seven;   /* VADs, subsections and threads of 7 SP1 */
	bool moved;   /* a layout of no build, for the key `moved` */
	bool early;   /* entries of 10 1507; the structures for `inside` were not read */
	bool chained; /* the PEB lists only the first heap, a ring has the others (heaps.c) */
	/* EPROCESS */
	uint16_t pid, create_time, parent, section_base, peb, wow64, name, threads, active_threads;
	uint16_t exit_status; /* 0: not read */
	uint16_t vad_root;
	/* MMVAD_FLAGS: first bits */
	uint8_t vad_type, vad_protection, vad_private;
	/* ETHREAD */
	uint16_t cid, start, thread_links;
	/* KTHREAD */
	uint16_t stack_limit, stack_base, kernel_stack, trap_frame, teb, process;
};

/* The layout of spec->build, or of spec->windows if that is 0. NULL: unknown. */
const struct sim_layout *sim__layout(const struct sim_spec *spec);

#endif
