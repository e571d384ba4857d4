/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/clock.h"

#include <stdio.h>

static struct {
	uint64_t (*now)(void *arg); /* NULL: time is real */
	void *arg;
} other;

void clock_use(uint64_t (*now)(void *arg), void *arg)
{
	other.now = now;
	other.arg = arg;
}

uint64_t clock_mono_ns(void)
{
	return other.now ? other.now(other.arg) : clock__mono_ns();
}

uint64_t clock_wall_ns(void)
{
	return other.now ? CLOCK_VIRTUAL_WALL + other.now(other.arg) : clock__wall_ns();
}

uint64_t (*clock__asleep)(void) = clock__slept_ns;

uint64_t clock_asleep_ns(void)
{
	return other.now ? 0 : clock__asleep();
}

void clock_rfc3339(uint64_t wall_ns, char ret[static CLOCK_RFC3339_SIZE])
{
	utc_rfc3339(wall_ns, ret);
}

void clock_file_name(uint64_t wall_ns, char ret[static CLOCK_FILE_NAME_SIZE])
{
	const struct utc t = utc_of(wall_ns / NS_PER_SECOND);

	snprintf(ret, CLOCK_FILE_NAME_SIZE, "%04u%02u%02uT%02u%02u%02uZ", t.year % 10000,
		 t.month % 100, t.day % 100, t.hour % 100, t.minute % 100, t.second % 100);
}
