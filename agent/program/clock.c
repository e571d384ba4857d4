/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/program/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* The C library's gmtime_r() is not on Windows, and 64 bits of nanoseconds end in 2554. */
static void utc(uint64_t wall_ns, struct tm *ret)
{
	const time_t seconds = (time_t)(wall_ns / NS_PER_SECOND);

#ifdef _WIN32
	gmtime_s(ret, &seconds);
#else
	gmtime_r(&seconds, ret);
#endif
}

void clock_rfc3339(uint64_t wall_ns, char ret[static CLOCK_RFC3339_SIZE])
{
	char fraction[16];
	struct tm tm;

	utc(wall_ns, &tm);
	strftime(ret, CLOCK_RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(fraction, sizeof(fraction), ".%09uZ", (unsigned)(wall_ns % NS_PER_SECOND));
	strncat(ret, fraction, CLOCK_RFC3339_SIZE - 1 - strlen(ret));
}

void clock_file_name(uint64_t wall_ns, char ret[static CLOCK_FILE_NAME_SIZE])
{
	struct tm tm;

	utc(wall_ns, &tm);
	strftime(ret, CLOCK_FILE_NAME_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}
