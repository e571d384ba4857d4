/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter as of two processors that are 3 s apart, and whose machine is moved to another one, an
 * hour behind, in the middle: main.c's program with this in it sees no other.
 */
#include <stdatomic.h>

#include "agent/shared/program/clock.h"

#define APART_NS (3 * NS_PER_SECOND)
#define MOVED_NS (3600 * NS_PER_SECOND)
#define STAYS    50 /* on one processor, so often it is asked there */
#define MOVES_AT 400

static uint64_t unsteady(void)
{
	static _Atomic uint64_t asked;
	const uint64_t n = asked++, ahead = n / STAYS % 2 ? APART_NS : 0;

	return clock__counter_ns() + (n < MOVES_AT ? MOVED_NS : 0) + ahead;
}

__attribute__((constructor)) static void be_unsteady(void)
{
	clock__counter = unsteady;
}
