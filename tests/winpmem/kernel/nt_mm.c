/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the memory manager offers drivers: MDLs, device memory, ranges of RAM, addresses. Each
 * function is documented in the WDK under its name.
 */
#include "gate.h"
#include "memory.h"
#include "nt_strings.h"
#include "nt_variables.h"
#include "paging.h"
#include "pool.h"
#include "seh.h"

#define SYSTEM_PTES    0x4000
#define PTES_ROUND     0x40
#define REFUSED_MAX    64
#define TAG_MDL        0x206c644du /* "Mdl " */
#define TAG_RANGES     0x68506d4du /* "MmPh" */

#define NOT_LOCKED     0x1233 /* bug check 0x1A: MmMapIoSpace() of a page that is not locked */

#define IO_READ_ACCESS 0 /* LOCK_OPERATION */
#define MM_CACHED      1 /* MEMORY_CACHING_TYPE */

static uint8_t ptes_used[SYSTEM_PTES];
static struct region system_ptes = {
	.base = SYSTEM_PTES_VA, .pages = SYSTEM_PTES, .round = PTES_ROUND, .used = ptes_used
};

/* --- system page table entries --- */

static uint64_t take_ptes(uint32_t pages)
{
	const uint64_t va = allocation_fails() ? 0 : region_take(&system_ptes, pages);

	if (va)
		mailbox.counters.system_ptes += pages;
	return va;
}

static void free_ptes(uint64_t va, uint32_t pages)
{
	region_free(&system_ptes, va, pages);
	mailbox.counters.system_ptes -= pages;
}

/* --- MDLs --- */

static uint32_t pages_of(const struct mdl *m)
{
	return (uint32_t)(ROUND_UP((uint64_t)m->byte_offset + m->byte_count, PAGE_SIZE) /
			  PAGE_SIZE);
}

static struct mdl *NTAPI IoAllocateMdl(void *address, uint32_t length, bool secondary,
				       bool charge_quota, struct irp *irp)
{
	const uint64_t va = (uint64_t)address;
	const uint64_t pages = ROUND_UP(PAGE_OFFSET(va) + length, PAGE_SIZE) / PAGE_SIZE;
	const uint64_t size = sizeof(struct mdl) + 8 * pages;
	struct mdl *const m = pool_allocate(size, TAG_MDL);

	(void)charge_quota;
	if (secondary || irp)
		complain("IoAllocateMdl() for an IRP, which is not played here");
	if (m)
		*m = (struct mdl){ .size = (int16_t)size,
				   .flags = MDL_ALLOCATED_FIXED_SIZE,
				   .start_va = (void *)PAGE_OF(va),
				   .byte_count = length,
				   .byte_offset = (uint32_t)PAGE_OFFSET(va) };
	return m;
}

static bool may_lock(uint64_t page, enum processor_mode mode, bool write)
{
	return mode == USER_MODE ? is_user_memory(page, 1, write) : is_mapped(page);
}

static bool lock_pages(struct mdl *m, enum processor_mode mode, bool write)
{
	const uint32_t pages = pages_of(m);

	if (m->flags & MDL_PAGES_LOCKED)
		complain("an MDL is locked twice");
	for (uint32_t i = 0; i < pages; i++) {
		const uint64_t page = (uint64_t)m->start_va + i * PAGE_SIZE;

		if (!may_lock(page, mode, write))
			return false;
		m->pfn[i] = physical(page) / PAGE_SIZE;
	}
	m->flags |= MDL_PAGES_LOCKED | (write ? MDL_WRITE_OPERATION : 0);
	mailbox.counters.pages_locked += pages;
	return true;
}

static void NTAPI MmProbeAndLockPages(struct mdl *m, uint8_t mode, uint32_t operation)
{
	if (!lock_pages(m, mode, operation != IO_READ_ACCESS))
		seh_raise_from_export(STATUS_ACCESS_VIOLATION);
}

/* In PTE mode a driver maps other frames here, and must have put this one back. */
static void unmap_mdl(struct mdl *m)
{
	const uint64_t va = PAGE_OF(m->mapped_system_va);
	const uint32_t pages = pages_of(m);

	for (uint32_t i = 0; i < pages; i++) {
		const uint64_t now = unmap(va + i * PAGE_SIZE) / PAGE_SIZE;

		if (now != m->pfn[i])
			complain("an MDL's page %lx is unmapped as %lx", m->pfn[i], now);
	}
	free_ptes(va, pages);
	m->flags &= (int16_t)~MDL_MAPPED_TO_SYSTEM_VA;
}

static void NTAPI MmUnlockPages(struct mdl *m)
{
	if (!(m->flags & MDL_PAGES_LOCKED))
		complain("an MDL is unlocked that is not locked");
	if (m->flags & MDL_MAPPED_TO_SYSTEM_VA)
		unmap_mdl(m);
	m->flags &= (int16_t)~MDL_PAGES_LOCKED;
	mailbox.counters.pages_locked -= pages_of(m);
}

static void *NTAPI MmMapLockedPagesSpecifyCache(struct mdl *m, uint8_t mode, uint32_t caching,
						void *wanted, uint32_t bug_check_on_failure,
						uint32_t priority)
{
	const uint32_t pages = pages_of(m);
	uint64_t va;

	(void)caching;
	(void)wanted;
	(void)priority;
	if (mode != KERNEL_MODE || !(m->flags & MDL_PAGES_LOCKED))
		complain("MmMapLockedPagesSpecifyCache(): mode %u, flags %x", mode, m->flags);
	va = take_ptes(pages);
	if (!va && bug_check_on_failure)
		bug_check(NULL, MEMORY_MANAGEMENT, 0, 0, 0, 0);
	if (!va)
		return NULL;
	for (uint32_t i = 0; i < pages; i++)
		map(va + i * PAGE_SIZE, m->pfn[i] * PAGE_SIZE, MAP_WRITE | MAP_ALIAS);
	m->mapped_system_va = (void *)(va + m->byte_offset);
	m->flags |= MDL_MAPPED_TO_SYSTEM_VA;
	return m->mapped_system_va;
}

static void NTAPI IoFreeMdl(struct mdl *m)
{
	if (m->flags & MDL_PAGES_LOCKED)
		complain("an MDL is freed that is locked");
	pool_free(m, TAG_MDL);
}

struct mdl *mdl_make(uint64_t va, uint32_t len, enum processor_mode mode)
{
	struct mdl *const m = IoAllocateMdl((void *)va, len, false, true, NULL);

	if (m && !lock_pages(m, mode, true)) {
		IoFreeMdl(m);
		return NULL;
	}
	return m;
}

void mdl_free(struct mdl *m)
{
	MmUnlockPages(m);
	IoFreeMdl(m);
}

/* --- device memory --- */

static uint64_t iospace = IOSPACE_MAPS;

static struct {
	uint64_t pfn, count;
} refused[REFUSED_MAX];

void memory_set_iospace(uint64_t policy)
{
	iospace = policy;
}

bool memory_is_refused(uint64_t pfn)
{
	for (size_t i = 0; i < REFUSED_MAX; i++)
		if (pfn >= refused[i].pfn && pfn - refused[i].pfn < refused[i].count)
			return true;
	return false;
}

ntstatus memory_refuse(uint64_t pfn, uint64_t count, bool on)
{
	for (size_t i = 0; i < REFUSED_MAX; i++) {
		if (on ? refused[i].count != 0 : refused[i].pfn != pfn || !refused[i].count)
			continue;
		refused[i].pfn = pfn;
		refused[i].count = on ? count : 0;
		return STATUS_SUCCESS;
	}
	return STATUS_INSUFFICIENT_RESOURCES;
}

static void *NTAPI MmMapIoSpace(uint64_t phys, uint64_t bytes, uint32_t caching)
{
	const uint32_t pages =
		(uint32_t)(ROUND_UP(PAGE_OFFSET(phys) + bytes, PAGE_SIZE) / PAGE_SIZE);
	uint64_t va;

	if (is_ram(phys) && iospace == IOSPACE_STOPS)
		bug_check(NULL, MEMORY_MANAGEMENT, NOT_LOCKED, phys / PAGE_SIZE, 0, 0);
	if ((is_ram(phys) && iospace == IOSPACE_NULL) || memory_is_refused(phys / PAGE_SIZE))
		return NULL;
	va = take_ptes(pages);
	if (!va)
		return NULL;
	for (uint32_t i = 0; i < pages; i++)
		map(va + i * PAGE_SIZE, PAGE_OF(phys) + i * PAGE_SIZE,
		    MAP_WRITE | MAP_ALIAS | (caching == MM_CACHED ? 0 : MAP_UNCACHED));
	return (void *)(va + PAGE_OFFSET(phys));
}

static void NTAPI MmUnmapIoSpace(void *address, uint64_t bytes)
{
	const uint64_t va = PAGE_OF(address);
	const uint32_t pages =
		(uint32_t)(ROUND_UP(PAGE_OFFSET(address) + bytes, PAGE_SIZE) / PAGE_SIZE);

	for (uint32_t i = 0; i < pages; i++)
		unmap(va + i * PAGE_SIZE);
	free_ptes(va, pages);
}

/* --- what is where --- */

/* By default, what the firmware reports without page 0, which Windows never lists. */
static const struct physical_range *ranges;
static uint64_t range_count;

ntstatus memory_set_ranges(uint64_t va, uint64_t count)
{
	static struct physical_range *own;

	if (own)
		pool_free(own, 0);
	own = NULL;
	ranges = NULL;
	if (!count)
		return STATUS_SUCCESS;
	if (!is_user_memory(va, count * sizeof(*own), false))
		return STATUS_ACCESS_VIOLATION;
	own = pool_allocate_own(count * sizeof(*own));
	if (!own)
		return STATUS_INSUFFICIENT_RESOURCES;
	memcpy(own, (void *)va, count * sizeof(*own));
	ranges = own;
	range_count = count;
	return STATUS_SUCCESS;
}

/* Of one range of the firmware's. */
static struct physical_range told_range(const struct machine_range *r)
{
	struct physical_range p = { r->base, r->bytes };

	if (!p.base) {
		p.base += PAGE_SIZE;
		p.bytes -= PAGE_SIZE;
	}
	return p;
}

static struct physical_range *NTAPI MmGetPhysicalMemoryRanges(void)
{
	const uint64_t count = ranges ? range_count : mailbox.ram_count;
	struct physical_range *const ret = pool_allocate((count + 1) * sizeof(*ret), TAG_RANGES);

	if (!ret)
		return NULL;
	for (uint64_t i = 0; i < count; i++)
		ret[i] = ranges ? ranges[i] : told_range(&mailbox.ram[i]);
	ret[count] = (struct physical_range){ 0 };
	return ret;
}

/*
 * Where the frame's page table entry maps it, according to the database. Like Windows, this does
 * not check anything; it faults for what is not RAM.
 */
static uint64_t NTAPI MmGetVirtualForPhysical(uint64_t phys)
{
	return address_of_pte(pfn_pte_address(phys / PAGE_SIZE)) | PAGE_OFFSET(phys);
}

static bool NTAPI MmIsAddressValid(const void *address)
{
	return is_mapped((uint64_t)address);
}

/* ntoskrnl.exe and hal.dll only. */
static const void *NTAPI MmGetSystemRoutineAddress(const struct unicode_string *name)
{
	char text[64];

	nt_to_ascii(name, text, sizeof(text));
	if (!nt_has_secure_device && !strcmp(text, "IoCreateDeviceSecure"))
		return NULL;
	return memcmp(text, "Wdf", 3) ? export_address(text) : NULL;
}

const struct export nt_mm_exports[] = {
	EXPORT(IoAllocateMdl),
	EXPORT(IoFreeMdl),
	EXPORT(MmGetPhysicalMemoryRanges),
	EXPORT(MmGetSystemRoutineAddress),
	EXPORT(MmGetVirtualForPhysical),
	EXPORT(MmIsAddressValid),
	EXPORT(MmMapIoSpace),
	EXPORT(MmMapLockedPagesSpecifyCache),
	EXPORT(MmProbeAndLockPages),
	EXPORT(MmUnlockPages),
	EXPORT(MmUnmapIoSpace),
	{ 0 },
};
