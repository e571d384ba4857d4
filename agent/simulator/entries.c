/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-table entries and tables: _MMPTE_HARDWARE, _MMPTE_TRANSITION, _MMPTE_SOFTWARE,
 * _MMPTE_PROTOTYPE, _MMPTE_SUBSECTION, _MMPTE_LIST of Windows 7 SP1, of 10 1507, and of 10 1809 to
 * 11 22H2.
 */
#include "agent/simulator/machine.h"

#include "formats/base/bytes.h"

#define SWIZZLE    UINT64_C(0x10)
#define PROTOTYPE  UINT64_C(0x400)
#define TRANSITION UINT64_C(0x800)
#define GLOBAL     UINT64_C(0x100)
#define WRITABLE   UINT64_C(0x800) /* of a valid entry */

/*
 * Since L1TF an entry that is not present names memory that does not exist: the mask is set, and
 * where it was set before, SwizzleBit says so.
 */
static uint64_t swizzle(const struct machine *m, uint64_t raw)
{
	if (!m->mask)
		return raw;
	return raw & m->mask ? raw | SWIZZLE : raw | m->mask;
}

static uint64_t unswizzle_sim_entry(const struct machine *m, uint64_t raw)
{
	return raw & SWIZZLE ? raw : raw & ~m->mask;
}

/* Valid, writable, accessed, dirty; what is below it in the kernel's half is not for user mode. */
uint64_t sim__entry_table(const struct machine *m, uint32_t frame, bool user)
{
	return sim__frame_address(m, frame) | WRITABLE | (user ? 0x67 : 0x63);
}

uint64_t sim__entry_kernel(const struct machine *m, uint32_t frame)
{
	return sim__frame_address(m, frame) | WRITABLE | GLOBAL | 0x63;
}

uint64_t sim__entry_user(const struct machine *m, uint32_t frame, bool writable)
{
	return sim__frame_address(m, frame) | ENTRY_NO_EXECUTE | 0x5 | (writable ? WRITABLE : 0);
}

uint64_t sim__entry_transition(const struct machine *m, uint32_t frame)
{
	return swizzle(m, sim__frame_address(m, frame) | TRANSITION | MM_READWRITE << 5);
}

uint64_t sim__entry_soft(const struct machine *m, uint32_t slot)
{
	const uint64_t raw = (uint64_t)SLOT_INDEX(slot) << 32 | MM_READWRITE << 5;

	return swizzle(m, raw | (uint64_t)SLOT_FILE(slot) << m->file_shift | m->allocated);
}

uint64_t sim__entry_zero(unsigned protection)
{
	return (uint64_t)protection << 5;
}

uint64_t sim__entry_prototype(const struct machine *m, uint64_t address)
{
	return swizzle(m, address << 16 | PROTOTYPE | (uint64_t)MM_READONLY << m->proto_shift);
}

uint64_t sim__entry_subsection(const struct machine *m, uint64_t address)
{
	return swizzle(m, address << 16 | PROTOTYPE | MM_READONLY << 5);
}

uint64_t sim__entry_list(const struct machine *m, uint32_t next)
{
	return swizzle(m, (uint64_t)next << 32);
}

enum entry_is sim__entry_kind(const struct machine *m, uint64_t raw)
{
	if (!raw)
		return IS_EMPTY;
	if (raw & ENTRY_VALID_BIT)
		return IS_VALID;
	if (raw & PROTOTYPE)
		return IS_PROTOTYPE;
	if (raw & TRANSITION)
		return IS_TRANSITION;
	if (sim__entry_slot(m, raw))
		return IS_SOFT;
	return raw == sim__entry_zero(MM_DECOMMIT) ? IS_DECOMMITTED : IS_ZERO;
}

uint32_t sim__entry_frame(const struct machine *m, uint64_t raw)
{
	if (!(raw & ENTRY_VALID_BIT))
		raw = unswizzle_sim_entry(m, raw);
	return sim__frame_at(m, raw & ENTRY_ADDRESS);
}

uint32_t sim__entry_slot(const struct machine *m, uint64_t raw)
{
	const uint32_t index = (uint32_t)(unswizzle_sim_entry(m, raw) >> 32);
	const uint32_t file = (uint32_t)(raw >> m->file_shift & 0xf);

	return index ? file << 22 | index : 0;
}

/*
 * Tables
 */

uint32_t sim__table_take(struct machine *m)
{
	if (m->low_next < m->low_end)
		return m->low_next++;
	return sim__manager_take(m);
}

/* The table that an entry names, made if there is none. SIM_NONE: there is none. */
static uint32_t go_down(struct machine *m, uint8_t *entry, bool make, bool user)
{
	const uint64_t raw = get_le64(entry);
	uint32_t table;

	if (raw & ENTRY_VALID_BIT)
		return sim__frame_at(m, raw & ENTRY_ADDRESS);
	if (!make)
		return SIM_NONE;
	table = sim__table_take(m);
	if (table == SIM_NONE)
		return SIM_NONE;
	if (!sim__frame_make_bytes(m, table)) {
		sim__frame_free(m, table);
		return SIM_NONE;
	}
	put_le64(entry, sim__entry_table(m, table, user));
	return table;
}

uint8_t *sim__table_entry(struct machine *m, uint32_t root, uint64_t va, unsigned level, bool make)
{
	uint32_t table = root;

	for (unsigned l = 4;; l--) {
		const size_t i = va >> (PAGE_SHIFT + 9 * (l - 1)) & (SIM_TABLE - 1);
		uint8_t *entry = sim__frame_bytes(m, table) + 8 * i;

		if (l == level)
			return entry;
		table = go_down(m, entry, make, !(va >> 63));
		if (table == SIM_NONE)
			return NULL;
	}
}

uint8_t *sim__heap_entry(struct machine *m, uint32_t process, uint32_t page, bool make)
{
	struct sim_process *p = &m->processes[process];
	uint32_t *table;

	if (page >= p->pages)
		return sim__table_entry(m, p->root, sim__vpn_address(sim__page_vpn(p, page)), 1,
					make);
	table = &p->tables[page / SIM_TABLE];
	if (*table == SIM_NONE) {
		const uint64_t va = (p->first + page) << PAGE_SHIFT;
		const uint8_t *upper = make ? sim__table_entry(m, p->root, va, 1, true) : NULL;

		if (!upper)
			return NULL;
		upper = sim__table_entry(m, p->root, va, 2, false);
		*table = m->frame[sim__frame_at(m, get_le64(upper) & ENTRY_ADDRESS)].generation;
	}
	return sim__bytes_at(m, *table) + (size_t)8 * (page % SIM_TABLE);
}
