/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/utc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY             86400
#define DAYS_TO_1970    719162                 /* from 0001-01-01, Gregorian */
#define NS              UINT64_C(1000000000)   /* in a second */
#define UTC_LAST_SECOND UINT64_C(253402300799) /* 9999-12-31T23:59:59Z */

static bool is_leap(unsigned year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned days_in(unsigned year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Days from 1970-01-01 to the first of January of that year. */
static uint64_t days_to(unsigned year)
{
	const unsigned y = year - 1;

	return (uint64_t)365 * y + y / 4 - y / 100 + y / 400 - DAYS_TO_1970;
}

bool utc_seconds(const struct utc *t, uint64_t *ret)
{
	uint64_t days;

	if (t->year < 1970 || t->year > 9999 || !t->month || t->month > 12 || !t->day ||
	    t->day > days_in(t->year, t->month) || t->hour > 23 || t->minute > 59 || t->second > 59)
		return false;
	days = days_to(t->year) + t->day - 1;
	for (unsigned m = 1; m < t->month; m++)
		days += days_in(t->year, m);
	*ret = days * DAY + t->hour * 3600 + t->minute * 60 + t->second;
	return true;
}

struct utc utc_of(uint64_t seconds)
{
	const uint64_t at = MIN(seconds, UTC_LAST_SECOND);
	const unsigned second = (unsigned)(at % DAY);
	uint64_t days = at / DAY;
	/* 365.2425 days a year: right, or one too many. */
	struct utc ret = { .year = 1970 + (unsigned)(days * 10000 / 3652425), .month = 1 };

	if (days_to(ret.year) > days)
		ret.year--;
	else if (days_to(ret.year + 1) <= days)
		ret.year++;
	days -= days_to(ret.year);
	for (; days >= days_in(ret.year, ret.month); ret.month++)
		days -= days_in(ret.year, ret.month);
	ret.day = (unsigned)days + 1;
	ret.hour = second / 3600;
	ret.minute = second / 60 % 60;
	ret.second = second % 60;
	return ret;
}

static bool take_digits(const char **p, unsigned n, unsigned *ret)
{
	for (*ret = 0; n; n--, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*ret = *ret * 10 + (unsigned)(**p - '0');
	}
	return true;
}

bool utc_from_digits(const char *p, size_t n, struct utc *ret)
{
	unsigned *const fields[] = { &ret->month, &ret->day, &ret->hour, &ret->minute,
				     &ret->second };

	*ret = (struct utc){ .month = 1, .day = 1 };
	if (!take_digits(&p, 4, &ret->year))
		return false;
	for (size_t i = 0; i + 1 < n && i < ARRAY_SIZE(fields); i++)
		if (!take_digits(&p, 2, fields[i]))
			return false;
	return true;
}

void utc_rfc3339(uint64_t ns, char ret[static UTC_RFC3339_SIZE])
{
	const struct utc t = utc_of(ns / NS);

	/* The remainders tell the compiler how many digits there can be. */
	snprintf(ret, UTC_RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%09uZ", t.year % 10000,
		 t.month % 100, t.day % 100, t.hour % 100, t.minute % 100, t.second % 100,
		 (unsigned)(ns % NS));
}

bool utc_parse_rfc3339(const char *p, size_t len, uint64_t *ret_ns)
{
	static const char form[] = "0000-00-00T00:00:00.000000000Z";
	char digits[sizeof(form)];
	size_t n = 0;
	uint64_t seconds, fraction = 0;
	struct utc t;

	if (len != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		const bool digit = p[i] >= '0' && p[i] <= '9';

		if (form[i] == '0' ? !digit : p[i] != form[i])
			return false;
		if (digit)
			digits[n++] = p[i];
	}
	for (size_t i = n - 9; i < n; i++)
		fraction = fraction * 10 + (uint64_t)(digits[i] - '0');
	if (!utc_from_digits(digits, 6, &t) || !utc_seconds(&t, &seconds) ||
	    seconds > UINT64_MAX / NS - 1)
		return false;
	*ret_ns = seconds * NS + fraction;
	return true;
}
