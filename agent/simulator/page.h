/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of the simulated machine. Each is a pure function of the seed and its identity:
 * process, virtual address, and how often it was written. So pages need not be stored, and a page
 * in an image shows whose it is and whether it is whole.
 *
 *	offset  bytes
 *	0       8      "SIMPAGE1"
 *	8       4      PID; 0: a section, which all processes share
 *	12      4      generation: counts writes of the whole machine, from 1
 *	16      8      virtual address
 *	24      8      derived from the seed
 *	32      8      checksum of all other words
 *	40      24     zeros
 *	64      4032   64 random bytes (text, pointers, numbers), repeated
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_PAGE_H
#define RAMSEAL_AGENT_SIMULATOR_PAGE_H

#include <stdbool.h>

#include "formats/base/defs.h"

struct sim_mark {
	uint32_t pid;
	uint32_t generation;
	uint64_t va;
};

void sim_page_fill(uint8_t page[static PAGE_SIZE], uint64_t seed, const struct sim_mark *m);

/* False if it is not such a page, not of this seed, or not whole. */
bool sim_page_read(const uint8_t page[static PAGE_SIZE], uint64_t seed, struct sim_mark *ret);

/* The next number of splitmix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t sim_draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0 to n-1; the bias towards small numbers is below n / 2^64. */
static inline uint64_t sim_below(uint64_t *state, uint64_t n)
{
	return sim_draw(state) % n;
}

#endif
