/* SPDX-License-Identifier: Apache-2.0 */
/* Crash dumps of Windows as a source: formats/image/windows_dump.h. */
#include <inttypes.h>

#include "driver-interface/file_internal.h"
#include "formats/base/utc.h"
#include "formats/image/windows_dump.h"

/* 1601 to 1970 in the 100 ns of a FILETIME; 2554, where 64 bits of nanoseconds end. */
#define FILETIME_1970 UINT64_C(116444736000000000)
#define FILETIME_MAX  (FILETIME_1970 + UINT64_MAX / 100)

static void tell_of_dump(struct file_drv *f, const struct windows_dump *d)
{
	struct drv *drv = &f->drv;
	char time[UTC_RFC3339_SIZE];

	drv->info.has_machine = true; /* an x86-64, or it would not be read */
	drv->info.cr3 = d->dtb & ~(uint64_t)(PAGE_SIZE - 1);
	drv->info.has_cr3 = drv->info.cr3;
	drv__fact(drv, "dump_type", "%" PRIu32 " (%s)", d->type, windows_dump_type_name(d->type));
	drv__fact(drv, "build", "%" PRIu32, d->build);
	drv__fact(drv, "processors", "%" PRIu32, d->processors);
	drv__fact(drv, "bug_check", "0x%" PRIx32, d->bug_check);
	if (d->system_time >= FILETIME_1970 && d->system_time < FILETIME_MAX) {
		utc_rfc3339((d->system_time - FILETIME_1970) * 100, time);
		drv__fact(drv, "system_time", "%s", time);
	}
	if (d->cut)
		file__note(f, "the file is cut short; what is missing is unreadable");
}

static enum status add_parts(struct file_drv *f, const struct windows_dump *d, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < d->count && !st; i++)
		st = extents_add(&f->extents, d->at[i].range.first, range_bytes(d->at[i].range),
				 d->at[i].offset, e);
	return st;
}

/*
 * Of a bitmap RAM is what the runs say, and what has a bit: neither is left out. The runs of a
 * complete dump are what it has, in the order of the file.
 */
static enum status add_dump_map(struct range_list *map, struct windows_dump *d, struct err *e)
{
	enum status st = ST_OK;

	if (d->type != WINDOWS_DUMP_FULL)
		range_list_tidy(&d->ram, NULL);
	st = range_list_copy(map, &d->ram, e);
	for (size_t i = 0; i < d->count && !st && d->type != WINDOWS_DUMP_FULL; i++) {
		const struct range r = d->at[i].range;
		const struct range *in = range_list_find(&d->ram, r.first);

		if (!in || in->last < r.last)
			st = range_list_add(map, r.first, r.last, e);
	}
	return st;
}

enum status file__add_windows_dump(struct file_drv *f, struct range_list *map, struct err *e)
{
	struct windows_dump d;
	enum status st = windows_dump_init(&d, &f->whole.blob, e);

	if (!st)
		st = add_parts(f, &d, e);
	if (!st)
		st = add_dump_map(map, &d, e);
	if (!st)
		tell_of_dump(f, &d);
	windows_dump_deinit(&d);
	f->origin = "Windows crash dump";
	return st;
}
