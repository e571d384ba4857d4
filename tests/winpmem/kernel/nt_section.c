/* SPDX-License-Identifier: Apache-2.0 */
/* \Device\PhysicalMemory: the section, and views of it in the current process. */
#include "cpu.h"
#include "gate.h"
#include "handles.h"
#include "memory.h"
#include "nt_strings.h"
#include "paging.h"

#define VIEW_PAGES     0x1000 /* virtual memory for views */
#define GRANULARITY    16     /* pages */

#define PAGE_READWRITE 4

static uint8_t views[VIEW_PAGES / GRANULARITY]; /* 0, or pages of the view there */
static unsigned next_view;

static ntstatus NTAPI ZwOpenSection(uint64_t *ret, uint32_t access,
				    const struct object_attributes *a)
{
	char name[64];

	(void)access;
	nt_to_ascii(a->name, name, sizeof(name));
	if (strcmp(name, "\\Device\\PhysicalMemory"))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	*ret = allocation_fails() ? 0 : handle_make(HANDLE_SECTION, 0);
	return *ret ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

/* Puts next_view where nothing is. */
static bool find_room(void)
{
	for (unsigned tried = 0; tried < ARRAY_SIZE(views); tried++) {
		next_view = (next_view + 1) % ARRAY_SIZE(views);
		if (!views[next_view])
			return true;
	}
	return false;
}

static uint64_t map_view(uint64_t phys, uint64_t pages, unsigned flags)
{
	const uint64_t va = VIEWS_VA + (uint64_t)next_view * GRANULARITY * PAGE_SIZE;

	for (uint64_t i = 0; i < pages; i++)
		map(va + i * PAGE_SIZE, phys + i * PAGE_SIZE, MAP_USER | MAP_ALIAS | flags);
	views[next_view] = (uint8_t)pages;
	mailbox.counters.views++;
	return va;
}

/*
 * The offset is rounded down to a page; only other sections want multiples of 64 KiB. There may be
 * anything at that address, or nothing.
 */
static ntstatus NTAPI ZwMapViewOfSection(uint64_t section, uint64_t process, uint64_t *base,
					 uint64_t zero_bits, uint64_t commit, uint64_t *offset,
					 uint64_t *size, uint32_t inherit, uint32_t type,
					 uint32_t protect)
{
	const uint64_t phys = PAGE_OF(*offset);
	uint64_t ignored;

	(void)zero_bits;
	(void)commit;
	(void)inherit;
	(void)type;
	if (irql() != PASSIVE_LEVEL)
		mailbox.counters.mapped_above_passive++;
	if (!handle_get(section, HANDLE_SECTION, &ignored))
		return STATUS_INVALID_HANDLE;
	if (process != UINT64_MAX || *base || *size > GRANULARITY * PAGE_SIZE)
		complain("ZwMapViewOfSection(): process %lx, base %lx, size %lx", process, *base,
			 *size);
	if (memory_is_refused(phys / PAGE_SIZE))
		return STATUS_INVALID_PARAMETER;
	if (allocation_fails() || !find_room())
		return STATUS_INSUFFICIENT_RESOURCES;
	*size = ROUND_UP(PAGE_OFFSET(*offset) + *size, PAGE_SIZE);
	*base = map_view(phys, *size / PAGE_SIZE, protect == PAGE_READWRITE ? MAP_WRITE : 0);
	*offset = phys;
	return STATUS_SUCCESS;
}

static ntstatus NTAPI ZwUnmapViewOfSection(uint64_t process, uint64_t base)
{
	const uint64_t n = (base - VIEWS_VA) / PAGE_SIZE / GRANULARITY;

	(void)process;
	if (base < VIEWS_VA || n >= ARRAY_SIZE(views) || !views[n])
		return STATUS_INVALID_PARAMETER;
	for (unsigned i = 0; i < views[n]; i++)
		unmap(PAGE_OF(base) + i * PAGE_SIZE);
	views[n] = 0;
	mailbox.counters.views--;
	return STATUS_SUCCESS;
}

const struct export nt_section_exports[] = {
	EXPORT(ZwMapViewOfSection),
	EXPORT(ZwOpenSection),
	EXPORT(ZwUnmapViewOfSection),
	{ 0 },
};
