/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What debuggers need to open a crash dump of a Windows machine: the facts in its header, and a few
 * bytes that must differ from a running kernel's. All of it is found in memory, without symbols.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_DUMP_FACTS_H
#define RAMSEAL_AGENT_SHARED_KERNEL_DUMP_FACTS_H

#include "agent/shared/kernel/discover.h"
#include "formats/image/dmp.h"

/* Must not be moved: kernel.context and kernel.patches point into it. */
struct dump_facts {
	struct dmp_kernel kernel; /* its `present` is the caller's */
	enum discover_os os;
	struct windows_version version;
	/*
	 * The block was found and leads to the list with System: kernel.kdbg is set. `seen` alone:
	 * a block looks like it, but the list could not confirm it.
	 */
	bool kdbg_seen;
	bool kdbg_encoded;
	bool kdbg_whole;   /* it is completely readable; else it is neither decoded nor patched */
	bool kdbg_decoded; /* there are patches that decode it in place */
	bool flag_found;   /* and one that tells the kernel's own code so */
	unsigned counted;  /* processor blocks */
	uint8_t context[DMP_CONTEXT_SIZE];
	struct dmp_patch patches[DMP_PATCHES_MAX];
};

/*
 * ST_OK even if little or nothing was found, or for another system; ST_NOMEM. `m` is the dump's
 * memory. `patch`: prepare patches; decoded bytes are only in kernel.patches.
 */
enum status dump_facts_init(struct dump_facts *ret, struct physmem *m,
			    const struct discover_hints *hints, bool patch,
			    struct walk_budget *budget, struct err *e);

#endif
