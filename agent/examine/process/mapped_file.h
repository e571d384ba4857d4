/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory says about a mapped file besides its name, so that a file found elsewhere can be told
 * from another one of that name. Each part may be missing, and none is proof.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_MAPPED_FILE_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_MAPPED_FILE_H

#include "agent/examine/virtual/memory_view.h"
#include "agent/shared/kernel/pe.h"

struct mapped_file {
	bool has_serial;
	uint32_t serial; /* of its volume, as Windows has it */
	bool has_size;
	uint64_t size; /* bytes */
	bool has_header;
	struct pe_program header; /* of an image */
};

/* `object`: the address of its FILE_OBJECT; `image`: where its headers are, or 0. */
void mapped_file_read(const struct memory_view *m, uint64_t object, uint64_t image,
		      struct mapped_file *ret);

/* The headers of a program in the first bytes of its file. */
bool mapped_file_header(const uint8_t *bytes, size_t size, struct pe_program *ret);

/*
 * Compares what differs from build to build: time stamp, size of the image, checksum, 32 or 64
 * bits.
 */
bool mapped_file_same_header(const struct pe_program *a, const struct pe_program *b);

#endif
