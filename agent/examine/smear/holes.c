/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux's direct map, as the tables in a container have it. Many sources read memory through it,
 * and some give zeros where it has a hole, and no error: /proc/kcore, and whatever is made of it
 * (driver-interface/direct_map.h). Since this is known such pages are recorded as unreadable; in
 * older containers, and in images, they are zeros like any others.
 */
#include <string.h>

#include "agent/examine/smear/smear_internal.h"
#include "agent/shared/container/manifest_read.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/kernel/linux_dump.h"

static struct virt space_of(struct analysis *m, enum copy copy)
{
	return (struct virt){
		.mem = &m->copy[copy].tables.mem,
		.mode = m->ret->spaces.mode,
		.dtb = m->direct.root,
		.ignore = m->ret->spaces.ignore,
	};
}

/* A copy of the map is believed where it maps the kernel's root a second time. */
static bool proves_itself(struct analysis *m, enum copy copy)
{
	const struct virt space = space_of(m, copy);
	uint64_t pa;

	return m->copy[copy].cursor &&
	       virt_translate(&space, m->direct.base + m->direct.root, &pa) && pa == m->direct.root;
}

static uint64_t told_base(const json_t *manifest)
{
	const json_t *line;
	uint64_t base = 0;
	size_t i;

	json_array_foreach(manifest, i, line) if (!base) base = manifest_direct_map(line);
	return base;
}

/* Of memory that is not to be decoded, the tables are none. */
static bool has_image(const struct analysis *m)
{
	return !m->plan->tables_only && !m->plan->outline;
}

enum status smear__find_direct_map(struct analysis *m, struct err *e)
{
	const json_t *tables = origin_tables(m->plan->manifest);
	struct direct_copies *d = &m->direct;
	enum status st = ST_OK;

	if (m->entries.os != OS_LINUX || m->ret->spaces.mode == PAGING_PAE)
		return ST_OK;
	d->root = (uint64_t)json_integer_value(json_object_get(tables, "kernel_dtb"));
	d->base = told_base(m->plan->manifest);
	if (d->root && !d->base && has_image(m)) {
		struct walk_budget budget = { .pages = SMEAR__BUDGET_LEAST,
					      .deadline = UINT64_MAX };
		struct virt space = space_of(m, COPY_IMAGE);

		space.budget = &budget;
		st = linux_find_direct_map(&space, &d->base, e);
	}
	for (size_t c = 0; d->root && d->base && c < COPIES && !st; c++)
		d->has[c] = (c != COPY_IMAGE || has_image(m)) && proves_itself(m, (enum copy)c);
	return st;
}

/* True if an entry on the way is not present, or names another frame. */
static bool lacks_direct_map(struct analysis *m, enum copy copy, uint64_t frame,
			     uint64_t *ret_bytes)
{
	const struct virt space = space_of(m, copy);
	const uint64_t va = m->direct.base + frame;
	struct virt_end end;

	virt_find(&space, va, &end);
	if (!end.level || end.entry.kind == ENTRY_TABLE)
		return false; /* nobody knows */
	*ret_bytes = MIN(*ret_bytes, end.entry.size - (va - end.entry.va));
	return end.entry.kind != ENTRY_LEAF || end.entry.frame + (va - end.entry.va) != frame;
}

bool smear__is_hole(struct analysis *m, uint64_t frame, uint64_t *last)
{
	uint64_t bytes = *last - frame + 1;
	bool hole = false;

	for (size_t c = 0; c < COPIES && !hole; c++)
		hole = m->direct.has[c] && lacks_direct_map(m, (enum copy)c, frame, &bytes);
	*last = frame + bytes - 1;
	return hole;
}
