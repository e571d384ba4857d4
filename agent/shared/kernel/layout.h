/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout by which a machine's entries are read: chosen from what all of them look like, and
 * told with its reasons. What is not present is PTE_UNKNOWN where nothing spoke for any layout.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_LAYOUT_H
#define RAMSEAL_AGENT_SHARED_KERNEL_LAYOUT_H

#include "agent/shared/kernel/entry_reader.h"

/* Of one machine; `facts` of layout_evidence_init() are copied, and what they name is borrowed. */
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
	const char *name; /* "none": nothing spoke for any */
	bool found;
	bool by_version;                /* no entry spoke for or against any */
	enum pte_option device_private; /* Linux */
	char reason[PTE_REASON_MAX];
	char doubt[PTE_REASON_MAX]; /* what contradicts what was told of the system; or "" */
	/* The files that Linux' entries name by this layout: one bit each. 0 on Windows. */
	uint32_t files;
};

/* Puts the layout into `reader`, whose other members stay. */
void layout_choose(const struct layout_evidence *ev, struct entry_reader *reader,
		   struct layout_choice *ret);

#endif
