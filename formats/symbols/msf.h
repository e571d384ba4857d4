/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MSF 7.00, the file of streams that a PDB is. Numbers are little-endian.
 *
 *	superblock  0 magic (32), 32 u32 block size, 40 u32 blocks, 44 u32 bytes of the
 *	            directory, 52 u32 the block where the list of the directory's blocks begins
 *	directory   u32 streams; u32 size of each (2^32-1: none); the blocks of each
 *
 * Sources: as in pdb.c.
 */
#ifndef RAMSEAL_FORMATS_SYMBOLS_MSF_H
#define RAMSEAL_FORMATS_SYMBOLS_MSF_H

#include "formats/base/io.h"

#define MSF_NO_STREAM UINT32_MAX

struct msf {
	struct blob *in;
	uint32_t block_size;
	uint32_t blocks;
	uint8_t *directory;
	uint32_t directory_size;
	uint32_t streams;
};

struct msf_stream {
	uint8_t *at; /* for free() */
	uint32_t size;
};

/* ST_NOT_MINE: it is not one. msf__close() in any case; `in` is borrowed. */
enum status msf__open(struct blob *in, struct msf *ret, struct err *e);
void msf__close(struct msf *m);

/* A whole stream; a missing one is empty. */
enum status msf__read(const struct msf *m, uint32_t number, struct msf_stream *ret, struct err *e);

#endif
