/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTC as people write it, and as seconds since 1970-01-01T00:00:00Z. POSIX time: no leap seconds.
 * The C library's timegm() and gmtime_r() are not on Windows.
 */
#ifndef RAMSEAL_BASE_UTC_H
#define RAMSEAL_BASE_UTC_H

#include <stdbool.h>

#include "formats/base/defs.h"

struct utc {
	unsigned year;       /* 1970 to 9999 */
	unsigned month, day; /* from 1 */
	unsigned hour, minute, second;
};

/* False if there is no such time. */
bool utc_seconds(const struct utc *t, uint64_t *ret);

/* Times after the year 9999 become its last second. */
struct utc utc_of(uint64_t seconds);

/*
 * "20261122134347": four digits of the year, then two each of the next fields; `n` counts them all
 * (3: a day, 6: to the second). False if it has other bytes.
 */
bool utc_from_digits(const char *p, size_t n, struct utc *ret);

/* "2026-11-20T05:30:12.000000042Z": RFC 3339, with nanoseconds since 1970. */
#define UTC_RFC3339_SIZE sizeof("2026-11-20T05:30:12.000000042Z")
void utc_rfc3339(uint64_t ns, char ret[static UTC_RFC3339_SIZE]);

/* Accepts exactly such a text of UTC_RFC3339_SIZE - 1 bytes; false for any other, or after 2554. */
bool utc_parse_rfc3339(const char *p, size_t len, uint64_t *ret_ns);

#endif
