/* SPDX-License-Identifier: Apache-2.0 */
/* What the compression store packs pages with. It shares nothing with what unpacks them. */
#ifndef RAMSEAL_AGENT_SIMULATOR_STORE_PACK_H
#define RAMSEAL_AGENT_SIMULATOR_STORE_PACK_H

#include "formats/base/defs.h"

/*
 * Both write what a page has become, and return its size; 0: that would be a page or more, and what
 * was written is nothing. The first is [MS-XCA] 2.3, the second a block of LZ4 (lz4/lz4 6c850832,
 * doc/lz4_Block_format.md).
 */
size_t sim__pack_xpress(const uint8_t page[static PAGE_SIZE], uint8_t to[static 2 * PAGE_SIZE]);
size_t sim__pack_lz4(const uint8_t page[static PAGE_SIZE], uint8_t to[static 2 * PAGE_SIZE]);

#endif
