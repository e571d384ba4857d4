/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds holes in Linux's direct map. RAM that is not mapped there cannot be read through it, and
 * /proc/kcore returns zeros and no error for it (fs/proc/kcore.c, read_kcore_iter():
 * copy_from_kernel_nofault(), then a page of zeros; 6.12). Not mapped are the pages of
 * memfd_secret(2) (mm/secretmem.c, since 5.14), what a guest has not accepted from its hypervisor,
 * free pages of a kernel with debug_pagealloc, and whatever future versions add: neither
 * /proc/kpageflags nor anything else lists them. So we ask the kernel's own page tables.
 *
 * They may change while they are read, and a hostile kernel can write anything into them. So they
 * only decide what a page of zeros means: a page with any other content was mapped.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_DIRECT_MAP_H
#define RAMSEAL_DRIVER_INTERFACE_DIRECT_MAP_H

#include "driver-interface/drv.h"

#define DIRECT_LEVELS_MAX 5

/* How tables are laid out. */
struct direct_format {
	enum machine_arch arch;
	unsigned page_shift; /* of the smallest page; a table is as large */
	unsigned va_bits;    /* of addresses, by which the root table is indexed */
};

enum direct_state {
	DIRECT_MAPPED,
	DIRECT_HOLE,      /* an entry on its path is not present */
	DIRECT_ELSEWHERE, /* its entry names another frame */
	DIRECT_UNKNOWN,   /* a table on its path cannot be read */
};

struct direct_table {
	uint64_t pa; /* of the page of it that was read; UINT64_MAX: none */
	uint8_t bytes[PAGE_SIZE];
};

struct direct_map {
	uint64_t root; /* physical address of the kernel's root table */
	uint64_t base; /* virtual address of physical address 0 */
	struct direct_format format;
	unsigned levels;
	uint64_t top; /* a power of two, not below the end of RAM */
	/* As drv_ops.read(): through the direct map, with zeros for its holes. */
	struct drv_result (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
	struct direct_table tables[DIRECT_LEVELS_MAX]; /* the last one of each level */
	unsigned reads;                                /* since they were read */
};

/*
 * Sets the members above `tables`; `ram_end` is the end of RAM. True if the tables prove
 * themselves: the root table is mapped where they say. Otherwise nothing can be asked.
 */
bool direct_map_init(struct direct_map *m, uint64_t root, uint64_t base,
		     const struct direct_format *format, uint64_t ram_end,
		     struct drv_result (*read)(void *arg, uint64_t addr, void *buf, size_t len),
		     void *arg);

/* Tables are read again when next needed. */
void direct_map_forget(struct direct_map *m);

/* For the page at `addr`; *ret_pages: how many of the next `pages` have the same answer. */
enum direct_state direct_map_look(struct direct_map *m, uint64_t addr, size_t pages,
				  size_t *ret_pages);

/*
 * As drv_ops.read(), by m->read. Zeros from a page that was not mapped before or after the read,
 * and any bytes from a page that was another frame both times, are the error DRV_UNMAPPED.
 */
struct drv_result direct_map_read(struct direct_map *m, uint64_t addr, void *buf, size_t len);

#endif
