/* SPDX-License-Identifier: Apache-2.0 */
/* The compression store's compressors. They share no code with the decompressors. */
#ifndef RAMSEAL_AGENT_SIMULATOR_STORE_PACK_H
#define RAMSEAL_AGENT_SIMULATOR_STORE_PACK_H

#include "formats/base/defs.h"

/*
 * Write the compressed page and return its size; 0: it would take a page or more, and nothing
 * useful was written. _xpress: [MS-XCA] 2.3; _lz4: a block of LZ4 (lz4/lz4 6c850832,
 * doc/lz4_Block_format.md).
 */
size_t sim__pack_xpress(const uint8_t page[static PAGE_SIZE], uint8_t to[static 2 * PAGE_SIZE]);
size_t sim__pack_lz4(const uint8_t page[static PAGE_SIZE], uint8_t to[static 2 * PAGE_SIZE]);

#endif
