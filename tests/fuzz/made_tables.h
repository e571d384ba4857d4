/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables that the input of a fuzzer writes into MADE_PAGES (a power of two) pages of memory
 * from MADE_FIRST on, ten bytes a time: a page, an entry, and what it holds.
 */
#ifndef RAMSEAL_TESTS_FUZZ_MADE_TABLES_H
#define RAMSEAL_TESTS_FUZZ_MADE_TABLES_H

#include <string.h>

#include "agent/shared/paging/walk.h"
#include "formats/base/bytes.h"

#define MADE_FIRST UINT64_C(0x10000)

static uint8_t made_memory[MADE_PAGES][PAGE_SIZE];
static struct physmem_piece made_pieces[MADE_PAGES];

static inline void made_pieces_place(void)
{
	for (size_t i = 0; i < MADE_PAGES; i++)
		made_pieces[i] =
			(struct physmem_piece){ MADE_FIRST + i * PAGE_SIZE, made_memory[i] };
}

/* Most entries name one of the pages, or one behind them; some are taken as they are. */
static inline uint64_t made_entry(uint64_t raw)
{
	if (raw >> 60 == 0xf)
		return raw;
	return (raw & UINT64_C(0x8000000000000fff)) |
	       (MADE_FIRST + (raw >> 12 & (2 * MADE_PAGES - 1)) * PAGE_SIZE);
}

static inline void made_tables_write(struct cursor *c)
{
	memset(made_memory, 0, sizeof(made_memory));
	while (c->left >= 10) {
		const unsigned page = cur_u8(c) % MADE_PAGES;
		const uint8_t at = cur_u8(c);
		const unsigned entry = at < 128 ? at : 512U - 256U + at;

		put_le64(made_memory[page] + (size_t)8 * entry, made_entry(cur_le64(c)));
	}
}

#endif
