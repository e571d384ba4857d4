/* SPDX-License-Identifier: Apache-2.0 */
/* Linux, ARM64: entries that are not present. What a type means is as on x86 (pte.h). */
#ifndef RAMSEAL_AGENT_SHARED_PAGING_ARM64_PTE_H
#define RAMSEAL_AGENT_SHARED_PAGING_ARM64_PTE_H

#include "agent/shared/paging/format.h"
#include "agent/shared/paging/pte.h"

struct arm64_pte_layout {
	const char *name;
	const char *source;
	uint32_t since; /* 519 for 5.19 */
	uint32_t until; /* the last version that has it for certain */
	uint8_t type_shift;
	uint8_t type_bits;
	uint8_t offset_shift;  /* 50 bits, never inverted */
	uint64_t kept;         /* the frame is in place if any of these is set, */
	uint64_t kept_large;   /* or, above the last level, of these */
	uint8_t exclusive_bit; /* 0: there is none */
	uint8_t uffd_bit;
	uint64_t unused; /* bits that a swap entry leaves clear */
};

/* NULL: which layout such a kernel has is not known. */
const struct arm64_pte_layout *arm64_pte_layout_find(uint32_t version);

struct arm64_pte_context {
	const struct arm64_pte_layout *layout;
	const struct linux_pte_layout *kinds; /* of the same version: only what its types are */
	bool device_private;
	enum paging_mode mode;
	/*
	 * VMCOREINFO's NUMBER(MAX_PHYSMEM_BITS): special entries may have flags right above a frame
	 * of that length. 0: not known, and their frames are not, either.
	 */
	unsigned physical_bits;
};

/* `level` is the table's. A swap entry that this kernel cannot have written is PTE_UNKNOWN. */
struct pte arm64_pte_decode(const struct arm64_pte_context *c, unsigned level, uint64_t raw);

#endif
