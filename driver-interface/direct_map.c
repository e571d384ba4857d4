/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/direct_map.h"

#include "formats/base/bytes.h"

/* Entries of page tables: Intel SDM, vol. 3, 4.5. */
#define PRESENT      UINT64_C(0x1)
#define LARGE        UINT64_C(0x80)
#define FRAME        UINT64_C(0x000ffffffffff000)

/* Of ARM64: Arm ARM (DDI 0487), D8.3, "Translation table descriptor formats". */
#define KIND         UINT64_C(3)
#define KIND_BLOCK   UINT64_C(1)
#define KIND_TABLE   UINT64_C(3) /* in the last level a page */

/* Of x86-64 these are 2 MiB and 1 GiB. */
#define LARGE_LEVELS 3

#define MARK_LEAST   (UINT64_C(1) << 45)

#define NOT_READ     UINT64_MAX

/*
 * An order that follows page tables reads one page at a time, and to read four tables for each
 * would take longer than to read the page. So what is looked at before may be as old as so many
 * reads. Where it says anything but "mapped", and where zeros came, tables are read anew. What that
 * can miss is a hole that is younger than the tables and ends within the read; but then its owner
 * has given the page back, and no entry that stood through the read names it.
 */
#define READS_MAX    64

void direct_map_forget(struct direct_map *m)
{
	for (size_t i = 0; i < DIRECT_LEVELS_MAX; i++)
		m->tables[i].pa = NOT_READ;
	m->reads = 0;
}

/*
 * An address in an entry. One of the highest bits, if it stands alone above all RAM, is no part of
 * it: AMD's C-bit, of what is encrypted (sme_me_mask), or TDX's shared bit, of what is not
 * (cc_mkdec(), arch/x86/coco/core.c). Both are 47 or 51 on processors that there are.
 */
static uint64_t address_in(const struct direct_map *m, uint64_t entry)
{
	const uint64_t beyond = entry & FRAME & ~(m->top - 1);
	const bool is_mark = beyond >= MARK_LEAST && !(beyond & (beyond - 1));

	return entry & FRAME & ~(is_mark ? beyond : 0);
}

/*
 * With LPA2, which addresses of 52 bits have in small pages, bits 9:8 are the address's highest;
 * with pages of 64 KiB bits 15:12 are.
 */
static uint64_t arm64_address(const struct direct_format *f, uint64_t entry)
{
	const uint64_t page = (UINT64_C(1) << f->page_shift) - 1;

	if (f->page_shift == 16)
		return (entry & 0x0000ffffffff0000) | (entry & 0xf000) << 36;
	if (f->va_bits > 48)
		return (entry & 0x0003fffffffff000 & ~page) | (entry & 0x300) << 42;
	return entry & 0x0000fffffffff000 & ~page;
}

struct direct_entry {
	bool present, leaf;
	uint64_t address;
};

static struct direct_entry x86_entry(const struct direct_map *m, unsigned level, uint64_t entry)
{
	return (struct direct_entry){
		.present = entry & PRESENT,
		.leaf = level == 1 || (level <= LARGE_LEVELS && entry & LARGE),
		.address = address_in(m, entry),
	};
}

static struct direct_entry arm64_entry(const struct direct_map *m, unsigned level, uint64_t entry)
{
	const uint64_t kind = entry & KIND;

	return (struct direct_entry){
		.present = kind == KIND_TABLE ||
			   (kind == KIND_BLOCK && level > 1 && level <= LARGE_LEVELS),
		.leaf = level == 1 || kind == KIND_BLOCK,
		.address = arm64_address(&m->format, entry),
	};
}

/* The entry at that address; false: it cannot be read. A table may have several pages of ours. */
static bool read_entry(struct direct_map *m, unsigned level, uint64_t at, struct direct_entry *ret)
{
	struct direct_table *t = &m->tables[level - 1];
	const uint64_t page = at & ~(uint64_t)(PAGE_SIZE - 1);
	uint64_t entry;

	if (t->pa != page)
		t->pa = m->read(m->arg, page, t->bytes, PAGE_SIZE).good == PAGE_SIZE ? page
										     : NOT_READ;
	if (t->pa != page)
		return false;
	entry = get_le64(t->bytes + at % PAGE_SIZE);
	*ret = m->format.arch == ARCH_ARM64 ? arm64_entry(m, level, entry)
					    : x86_entry(m, level, entry);
	return true;
}

static unsigned index_bits(const struct direct_format *f)
{
	return f->page_shift - 3;
}

/* *ret_bytes: what is left of the part of the map that the answer is for. */
static enum direct_state look_up_in_tables(struct direct_map *m, uint64_t addr, uint64_t *ret_bytes)
{
	const unsigned bits = index_bits(&m->format);
	const uint64_t va = m->base + addr;
	uint64_t table = m->root, within = UINT64_MAX >> (64 - m->format.va_bits);

	for (unsigned level = m->levels;; level--) {
		const unsigned shift = m->format.page_shift + bits * (level - 1);
		const uint64_t size = UINT64_C(1) << shift;
		struct direct_entry e;

		*ret_bytes = size - (va & (size - 1));
		if (!read_entry(m, level, table + ((va & within) >> shift) * sizeof(uint64_t), &e))
			return DIRECT_UNKNOWN;
		if (!e.present)
			return DIRECT_HOLE;
		if (e.leaf)
			return (e.address & ~(size - 1)) + (va & (size - 1)) == addr
				       ? DIRECT_MAPPED
				       : DIRECT_ELSEWHERE;
		table = e.address;
		within = size - 1;
	}
}

enum direct_state direct_map_look(struct direct_map *m, uint64_t addr, size_t pages,
				  size_t *ret_pages)
{
	uint64_t bytes;
	const enum direct_state first = look_up_in_tables(m, addr, &bytes);
	uint64_t same = bytes;

	while (same / PAGE_SIZE < pages && look_up_in_tables(m, addr + same, &bytes) == first)
		same += bytes;
	*ret_pages = (size_t)MIN(same / PAGE_SIZE, pages);
	return first;
}

/* 0: there is no such format. */
static unsigned levels_of(const struct direct_format *f)
{
	const unsigned bits = index_bits(f);
	const unsigned levels = (f->va_bits - f->page_shift + bits - 1) / bits;

	return levels <= DIRECT_LEVELS_MAX ? levels : 0;
}

bool direct_map_init(struct direct_map *m, uint64_t root, uint64_t base,
		     const struct direct_format *format, uint64_t ram_end,
		     struct drv_result (*read)(void *arg, uint64_t addr, void *buf, size_t len),
		     void *arg)
{
	size_t one;

	*m = (struct direct_map){ .root = root,
				  .base = base,
				  .format = *format,
				  .levels = levels_of(format),
				  .top = PAGE_SIZE,
				  .read = read,
				  .arg = arg };
	while (m->top < ram_end && m->top < PHYS_LIMIT)
		m->top *= 2;
	direct_map_forget(m);
	return m->levels && root < ram_end && root % PAGE_SIZE == 0 && base % PAGE_SIZE == 0 &&
	       direct_map_look(m, root, 1, &one) == DIRECT_MAPPED;
}

/* What tables say of a page after it was read; *fresh: whether they were read behind it. */
static enum direct_state look_after(struct direct_map *m, uint64_t addr, bool *fresh)
{
	size_t one;

	if (!*fresh)
		direct_map_forget(m);
	*fresh = true;
	return direct_map_look(m, addr, 1, &one);
}

/* Whether what was read of one page is not what lies there. */
static bool is_doubtful(struct direct_map *m, enum direct_state before, uint64_t addr,
			const uint8_t *page, bool *fresh)
{
	if (bytes_are_zero(page, PAGE_SIZE))
		return before != DIRECT_MAPPED || look_after(m, addr, fresh) != DIRECT_MAPPED;
	return before == DIRECT_ELSEWHERE && look_after(m, addr, fresh) == DIRECT_ELSEWHERE;
}

/* Keeps of `r`, which is of pages of one state, what goes before the first doubtful one. */
static void drop_doubtful(struct direct_map *m, enum direct_state before, uint64_t addr,
			  const uint8_t *buf, struct drv_result *r)
{
	const size_t pages = r->good / PAGE_SIZE;
	size_t first = 0, end;
	bool fresh = false;

	while (first < pages &&
	       !is_doubtful(m, before, addr + first * PAGE_SIZE, buf + first * PAGE_SIZE, &fresh))
		first++;
	for (end = first; end < pages && is_doubtful(m, before, addr + end * PAGE_SIZE,
						     buf + end * PAGE_SIZE, &fresh);)
		end++;
	if (end > first)
		*r = (struct drv_result){ .good = first * PAGE_SIZE,
					  .error = DRV_UNMAPPED,
					  .exact = true,
					  .bad = end - first };
}

/* What tables say before: those that were read lately, unless they say something new. */
static enum direct_state look_before(struct direct_map *m, uint64_t addr, size_t pages,
				     size_t *ret_pages)
{
	if (pages >= READS_MAX || m->reads++ >= READS_MAX)
		direct_map_forget(m);
	if (direct_map_look(m, addr, pages, ret_pages) == DIRECT_MAPPED)
		return DIRECT_MAPPED;
	direct_map_forget(m);
	return direct_map_look(m, addr, pages, ret_pages);
}

struct drv_result direct_map_read(struct direct_map *m, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint8_t *to = (uint8_t *)buf + done;
		size_t pages;
		const enum direct_state state =
			look_before(m, addr + done, (len - done) / PAGE_SIZE, &pages);
		struct drv_result r = m->read(m->arg, addr + done, to, pages * PAGE_SIZE);

		drop_doubtful(m, state, addr + done, to, &r);
		done += r.good;
		if (r.good < pages * PAGE_SIZE) {
			r.good = done;
			return r;
		}
	}
	return (struct drv_result){ .good = done };
}
