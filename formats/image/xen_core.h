/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of a Xen guest, as `xl dump-core` and libvirt write it: an ELF core without program
 * headers, whose sections hold the pages and, in the same order, the number of each one's frame.
 * Layout: Xen's docs/misc/dump-core-format.txt (0cb97f4d8bff); section headers as in gABI 4.1.
 */
#ifndef RAMSEAL_FORMATS_XEN_CORE_H
#define RAMSEAL_FORMATS_XEN_CORE_H

#include "formats/image/elf_core.h"

/* The section headers of an ELF file. */
struct elf_sections {
	uint64_t offset;
	uint16_t count, names; /* e_shnum, e_shstrndx */
};

/*
 * Adds what the core has to c->loads, one for each run of frames. ST_NOT_MINE if it is no Xen core.
 * ST_INPUT for a paravirtualized guest: its page tables have the machine's frames, all else its
 * own. ST_CORRUPT.
 */
enum status xen_core_add(struct elf_core *c, struct blob *b, const struct elf_sections *s,
			 struct err *e);

#endif
