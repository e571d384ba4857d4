/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers made from a fuzzer's bytes. A header carries its own SHA-256, so that bytes changed at
 * random never get past it; here the bytes are a recipe instead, of which digests, sums, places and
 * the root are made to fit, and everything else is the fuzzer's. A recipe is
 *
 *	u8 kind        0: what follows is a recipe; else it is the container's bytes as they are
 *	and any number of records:
 *	u8 type        of the record
 *	u8 flags       enum recipe_flag
 *	u16 body       bytes of the header's body that follow, little-endian
 *	u16 content    bytes of content that follow the body
 *
 * The last record may be cut short: what is there is used.
 */
#ifndef RAMSEAL_TESTS_GEN_RSZ_RECIPE_H
#define RAMSEAL_TESTS_GEN_RSZ_RECIPE_H

#include "formats/base/io.h"

enum recipe_flag {
	RECIPE_HONEST = 1,   /* INDEX and CLOSE say what came before them; their body is ignored */
	RECIPE_BY_ZSTD = 2,  /* compressed, instead of stored in raw blocks */
	RECIPE_REPEATED = 4, /* the content 64 times over */
	RECIPE_OTHER_ID = 8, /* these break one field of the prefix each */
	RECIPE_SEQUENCE = 16,
	RECIPE_OFFSET = 32,
	RECIPE_CONTENT = 64,
	RECIPE_SUMS = 128,
};

/* Appends the container to `out`. */
void recipe_cook(const uint8_t *data, size_t size, struct mem_sink *out);

#endif
