/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's table of base relocations ("PE Format", Microsoft, section "The .reloc Section"):
 * which addresses in its pages Windows adds to, where the image lies elsewhere than it is linked
 * for. Of x64 and x86. A table that has anything else than linkers write for these is not used at
 * all: a page of which some addresses are right and others are not is worse than one that is as in
 * its file. Zeros, above all, are what a sector that could not be read looks like.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_RELOCATIONS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_RELOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/page.h"

/* Bytes of a table. A browser's, of 200 MiB of code, has some 2 MiB. */
#define RELOCATIONS_MAX   (UINT32_C(16) << 20)

/* How far an address can reach beyond its page. */
#define RELOCATIONS_REACH 7

struct relocations;

/*
 * `table` is taken, and freed here if it is not kept. ST_OK with *ret NULL: it is empty or cut, not
 * in order of addresses, leaves the image of `image_size` bytes, has more empty words than fill up
 * a block, or another kind of relocation than the one of addresses of this width (`narrow`: of 32
 * bits). ST_NOMEM.
 */
enum status relocations_open(uint8_t *table, size_t size, uint32_t image_size, bool narrow,
			     struct relocations **ret, struct err *e);
void relocations_close(struct relocations *r); /* NULL is fine */

/* Whether an address reaches into the page at `rva` from the one before. */
bool relocations_reach_in(const struct relocations *r, uint32_t rva);

/*
 * Adds `delta` to each address of the page at `rva`, whose first byte is bytes[RELOCATIONS_REACH].
 * What lies before it has to be there if relocations_reach_in() says so; what lies behind it does
 * not matter, because an address begins with its lowest byte.
 */
void relocations_apply(const struct relocations *r, uint32_t rva, uint64_t delta,
		       uint8_t bytes[static PAGE_SIZE + 2 * RELOCATIONS_REACH]);

#endif
