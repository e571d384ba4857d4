/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel behind the address spaces of a container, and its own list of processes. */
#include <stdlib.h>

#include "agent/examine/virtual/virtual_internal.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/program/interrupt.h"

static uint64_t discover_interrupted(void)
{
	return interrupted();
}

/* An address as the manifest has it, "0xfffff80000000000"; 0: none. */
static uint64_t address_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? strtoull(text, NULL, 16) : 0;
}

/*
 * The acquisition wrote down where kernel and root are; where it did not, any process's root has
 * the kernel's half, and the image is found from there.
 */
enum status virtual_discover(struct virtual_memory *v, struct discovery *ret, struct err *e)
{
	struct physmem *mem = &v->m->copy[COPY_IMAGE].mem.mem;
	const json_t *line = origin_tables(v->plan.manifest);
	const uint64_t base = address_of(json_object_get(line, "ntoskrnl"), "base");
	struct discover_hints hints = {
		.has_cr3 = true,
		.cr3 = v->info.dtb,
		.has_kernel_base = base != 0,
		.kernel_base = base,
		.notes = v->request.notes,
		.notes_size = v->request.notes_size,
		.skip_scan = true,
	};
	struct walk_budget budget = {
		.pages = 4 * v->m->copy[COPY_IMAGE].set.pages + SMEAR__BUDGET_LEAST,
		.deadline = 1,
		.now = discover_interrupted,
	};
	enum status st;

	*ret = (struct discovery){ .self_index = NO_INDEX };
	st = discover(mem, &hints, &budget, ret, e);
	if (!st && interrupted())
		st = interrupt_status(e);
	if (st)
		discovery_deinit(ret);
	return st;
}
