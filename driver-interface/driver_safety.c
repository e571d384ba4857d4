/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/driver_safety.h"

#include <inttypes.h>
#include <string.h>

#define BANNER "WinPMEM - "
#define DIGITS 4 /* of one number */

/* A number and the dot behind it; false where there is no digit. */
static bool take_number(const uint8_t **at, const uint8_t *end, unsigned *ret)
{
	const uint8_t *p = *at;

	*ret = 0;
	while (p < end && p - *at < DIGITS && *p >= '0' && *p <= '9')
		*ret = 10 * *ret + (unsigned)(*p++ - '0');
	if (p == *at)
		return false;
	*at = p < end && *p == '.' ? p + 1 : p;
	return true;
}

struct driver_version driver_version_of(const void *file, size_t len)
{
	const size_t banner = strlen(BANNER);
	const uint8_t *p = file, *const end = p + len;
	struct driver_version v = { 0 };

	for (; (size_t)(end - p) > banner; p++) {
		if (*p != BANNER[0] || memcmp(p, BANNER, banner) != 0)
			continue;
		p += banner;
		p += p < end && *p == 'v';
		if (take_number(&p, end, &v.major) && take_number(&p, end, &v.minor))
			take_number(&p, end, &v.patch);
		break;
	}
	return v;
}

int driver_version_compare(struct driver_version v, unsigned major, unsigned minor, unsigned patch)
{
	if (v.major != major)
		return v.major < major ? -1 : 1;
	if (v.minor != minor)
		return v.minor < minor ? -1 : 1;
	return v.patch < patch ? -1 : v.patch > patch;
}

/*
 * Before 4.0.1, DriverEntry() walks the page tables as if they had four levels, and frees what it
 * never set where that fails: Windows stops, or a number of its kernel is changed.
 */
static bool breaks_at_five_levels(struct driver_version v)
{
	return driver_version_compare(v, 4, 0, 1) < 0;
}

/* 1.6.3 is the first that knows of it (github.com/Velocidex/c-aff4, issue 33). */
static bool breaks_at_secure_kernel(struct driver_version v)
{
	return v.major == 1 && driver_version_compare(v, 1, 6, 3) < 0;
}

enum status driver_may_be_loaded(struct driver_version v, const char *name, struct nt *nt,
				 bool risk, struct err *e)
{
	const enum nt_tells five = nt_five_levels(nt);
	enum status st = ST_OK;

	if (five != NT_NO && breaks_at_five_levels(v))
		st = err_set(e, ST_NO_SOURCE,
			     "%s: page tables %s five levels here, and loading a WinPmem before "
			     "4.0.1 may stop Windows or change its memory; use a later one, or "
			     "take the memory from the hypervisor",
			     name, five == NT_YES ? "have" : "may have");
	else if (breaks_at_secure_kernel(v) && nt_secure_kernel(nt) != NT_NO)
		st = err_set(e, ST_NO_SOURCE,
			     "%s: a WinPmem before 1.6.3 stops Windows where virtualization-based "
			     "security runs, as it does here; use a later one",
			     name);
	return risk ? ST_OK : st;
}

#define LOAD_UNSUCCESSFUL 31 /* STATUS_UNSUCCESSFUL of DriverEntry() */

bool driver_left_device(uint32_t error, bool device_answers)
{
	return error == LOAD_UNSUCCESSFUL && device_answers;
}
