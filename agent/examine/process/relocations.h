/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's table of base relocations ("PE Format", Microsoft, section "The .reloc Section"): the
 * addresses in its pages that Windows adjusts if the image is loaded at another address than it was
 * linked for. For x64 and x86. A table with anything that linkers do not write for these is not
 * used at all, because a page with some right and some wrong addresses is worse than one that is as
 * in its file. Zeros above all are suspicious: a sector that could not be read looks like that.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_RELOCATIONS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_RELOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/page.h"

/* Bytes of a table. That of a browser with 200 MiB of code has about 2 MiB. */
#define RELOCATIONS_MAX   (UINT32_C(16) << 20)

/* How far an address can reach beyond its page. */
#define RELOCATIONS_REACH 7

struct relocations;

/*
 * Takes ownership of `table`. ST_OK with *ret NULL: the table is empty or cut, is not in order of
 * addresses, leaves the image of `image_size` bytes, has more empty words than needed to fill up a
 * block, or has another kind of relocation than that of addresses of this width (`narrow`: 32
 * bits). ST_NOMEM.
 */
enum status relocations_open(uint8_t *table, size_t size, uint32_t image_size, bool narrow,
			     struct relocations **ret, struct err *e);
void relocations_close(struct relocations *r); /* NULL is fine */

/* True if an address reaches into the page at `rva` from the one before. */
bool relocations_reach_in(const struct relocations *r, uint32_t rva);

/*
 * Adds `delta` to each address of the page at `rva`, whose first byte is bytes[RELOCATIONS_REACH].
 * The bytes before it must be filled in if relocations_reach_in() says so. The bytes after it do
 * not matter, because an address begins with its lowest byte.
 */
void relocations_apply(const struct relocations *r, uint32_t rva, uint64_t delta,
		       uint8_t bytes[static PAGE_SIZE + 2 * RELOCATIONS_REACH]);

#endif
