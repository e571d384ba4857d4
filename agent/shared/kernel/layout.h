/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the layout of a machine's entries from what all of them look like, with reasons. Absent
 * entries are PTE_UNKNOWN if nothing supports any layout.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_LAYOUT_H
#define RAMSEAL_AGENT_SHARED_KERNEL_LAYOUT_H

#include "agent/shared/kernel/entry_reader.h"

/* For one machine; layout_evidence_init() copies `facts` and borrows what they point to. */
struct layout_evidence {
	enum discover_os os;
	struct win_pte_evidence windows;
	struct linux_pte_evidence linux_;
};

void layout_evidence_init(struct layout_evidence *ev, enum discover_os os,
			  const struct pte_facts *facts);
/* One entry, which is neither present nor zero, of a table of `level`. */
void layout_evidence_add_entry(struct layout_evidence *ev, unsigned level, uint64_t va,
			       uint64_t raw);

struct layout_choice {
	const char *name; /* "none": nothing supports any */
	bool found;
	bool by_version;                /* chosen without evidence from entries */
	enum pte_option device_private; /* Linux */
	char reason[PTE_REASON_MAX];
	char doubt[PTE_REASON_MAX]; /* what contradicts the known facts of the system; or "" */
	/* The files in Linux's entries by this layout: one bit each. 0 on Windows. */
	uint32_t files;
};

/* Sets the layout in `reader` and leaves its other members. */
void layout_choose(const struct layout_evidence *ev, struct entry_reader *reader,
		   struct layout_choice *ret);

#endif
