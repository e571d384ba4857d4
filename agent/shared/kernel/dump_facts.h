/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a crash dump of a Windows machine's memory one that debuggers open: the facts of its
 * header, and the few bytes that they need otherwise than a running kernel has them. All of it is
 * found in memory, without symbols.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_DUMP_FACTS_H
#define RAMSEAL_AGENT_SHARED_KERNEL_DUMP_FACTS_H

#include "agent/shared/kernel/discover.h"
#include "formats/image/dmp.h"

/* Not to be moved: kernel.context and kernel.patches point into it. */
struct dump_facts {
	struct dmp_kernel kernel; /* its `present` is the caller's */
	enum discover_os os;
	struct windows_version version;
	/*
	 * The block was found, and names the list that System is in: kernel.kdbg is set. `seen`
	 * without that: there is one that looks like it, but the list could not confirm it.
	 */
	bool kdbg_seen;
	bool kdbg_encoded;
	bool kdbg_whole;   /* all of it can be read; else it is neither decoded nor patched */
	bool kdbg_decoded; /* there are patches that put it in place decoded */
	bool flag_found;   /* and one that says so to the kernel's own code */
	unsigned counted;  /* processor blocks */
	uint8_t context[DMP_CONTEXT_SIZE];
	struct dmp_patch patches[DMP_PATCHES_MAX];
};

/*
 * ST_OK if little or nothing was found, and also of another system; ST_NOMEM. `m` is the memory
 * that the dump is of. `patch`: prepare patches; what is decoded is then in kernel.patches alone.
 */
enum status dump_facts_init(struct dump_facts *ret, struct physmem *m,
			    const struct discover_hints *hints, bool patch,
			    struct walk_budget *budget, struct err *e);

#endif
