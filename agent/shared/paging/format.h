/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of page tables: how many levels, how many bits of an address each decides on, and how
 * an entry is read. All else that reads tables asks here, so that it is the same for x86 and ARM64.
 *
 * ARM64's tables may be larger than PAGE_SIZE, which stays the unit in which memory is read and
 * stored: such a table is read in parts of one page each.
 */
#ifndef RAMSEAL_AGENT_SHARED_PAGING_FORMAT_H
#define RAMSEAL_AGENT_SHARED_PAGING_FORMAT_H

#include <stdbool.h>

#include "formats/base/machine.h"

/*
 * The number of a level is that of its distance from memory: 1 is the table that maps pages, the
 * root is 3 (PAE), 4 or 5. (ARM numbers them the other way round, and calls level 1 its level 3.)
 */
#define WALK_LEVELS 5

/*
 * The first three are x86's, by their number of levels. The others are ARM64's, by granule and bits
 * of a virtual address: those that Linux can be built with (arch/arm64/Kconfig, ARM64_VA_BITS).
 * With 52 bits, 4 and 16 KiB granules have the descriptors of FEAT_LPA2.
 */
enum paging_mode {
	PAGING_PAE = 3,
	PAGING_4_LEVEL = 4,
	PAGING_5_LEVEL = 5,
	PAGING_ARM64_4K_39,
	PAGING_ARM64_4K_48,
	PAGING_ARM64_4K_52,
	PAGING_ARM64_16K_36,
	PAGING_ARM64_16K_47,
	PAGING_ARM64_16K_48,
	PAGING_ARM64_16K_52,
	PAGING_ARM64_64K_42,
	PAGING_ARM64_64K_48,
	PAGING_ARM64_64K_52,
	PAGING_MODES
};

#define PTE_PRESENT   UINT64_C(0x1)
#define PTE_USER      UINT64_C(0x4)                /* x86 */
#define PTE_LARGE     UINT64_C(0x80)               /* x86: in a level 2 or 3 entry */
#define PTE_FRAME     UINT64_C(0x000ffffffffff000) /* Intel SDM vol. 3, 4.5, MAXPHYADDR 52 */

#define TABLE_ENTRIES 512 /* in a page; an ARM64 table may have more pages */

/* The meaning of an entry to the hardware. */
enum entry_kind {
	ENTRY_ZERO,     /* nothing at all */
	ENTRY_ABSENT,   /* not present but not zero: for the operating system */
	ENTRY_LEAF,     /* maps a frame of memory */
	ENTRY_TABLE,    /* refers to the next table */
	ENTRY_RESERVED, /* present, but an impossible large page, or with reserved bits */
};

struct entry {
	enum entry_kind kind;
	uint64_t va;    /* canonical; the start of the entry's part of the address space */
	uint64_t size;  /* of that part */
	uint64_t frame; /* ENTRY_LEAF and ENTRY_TABLE: its physical address */
};

struct paging_format {
	const char *name;
	enum machine_arch arch;
	uint8_t levels;
	uint8_t page_shift; /* of the smallest page */
	uint8_t index_bits; /* that a level decides on; */
	uint8_t root_bits;  /* the root's level may have fewer */
	/* Bits of an address that a root decides on, with those below. */
	uint8_t va_bits;
	/*
	 * An address space is a pair of roots, one for each end of the addresses (TTBR0 and TTBR1),
	 * and the upper one is all the kernel's. Without: one root for both.
	 */
	bool pair;
	uint8_t large; /* levels whose entries may map memory: a bit each, without level 1's */
	/* Bits of an entry, where they are the address's own, and 0 in the others. */
	uint64_t address;
	/* ARM64: which bits of an entry are address bits above those, and their shift. */
	uint64_t high;
	uint8_t high_shift;
	uint64_t zero; /* ARM64: bits that every entry must leave clear */
	/* Sets kind and frame of an entry that is present. */
	void (*read)(const struct paging_format *f, unsigned level, uint64_t raw, struct entry *e);
};

/* NULL if there is no such mode. */
const struct paging_format *paging_format_find(enum paging_mode mode);
/* The caller knows that there is. */
const struct paging_format *paging_format(enum paging_mode mode);

/* ARM64: of a granule of `page_size` bytes and `va_bits`. False: Linux has no such kernel. */
bool paging_mode_of_arm64(uint64_t page_size, unsigned va_bits, enum paging_mode *ret);

static inline unsigned paging_shift(const struct paging_format *f, unsigned level)
{
	return f->page_shift + f->index_bits * (level - 1);
}

/* Entries of a table. */
static inline size_t paging_entries(const struct paging_format *f, unsigned level)
{
	return (size_t)1 << (level == f->levels ? f->root_bits : f->index_bits);
}

/*
 * Decodes entry `i` of a table of `level` whose part of the address space begins at `va`. `ignore`:
 * bits in the frame's place that are not part of the address, such as AMD's C-bit; 0 for none.
 * Guided acquisition uses only this to read a table.
 */
struct entry entry_judge(enum paging_mode mode, unsigned level, uint64_t va, size_t i, uint64_t raw,
			 uint64_t ignore);

/*
 * x86: sign-extends an address to its mode's width. PAE addresses have 32 bits. ARM64: takes the
 * tag and what else is above the width away; bit 55 says which of the two ends it belongs to.
 */
uint64_t paging_canonical(enum paging_mode mode, uint64_t va);
/* The last address that may be a program's. */
uint64_t paging_user_last(enum paging_mode mode);
/* The first one of the kernel's end. */
uint64_t paging_kernel_first(enum paging_mode mode);

/*
 * The physical address of the root table in a CR3 or TTBR value: no PCID or ASID, no flags. With 52
 * bits of physical address, TTBR has the highest four in bits 5:2.
 */
uint64_t paging_root(enum paging_mode mode, uint64_t dtb);

#endif
