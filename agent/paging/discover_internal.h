/* SPDX-License-Identifier: Apache-2.0 */
/* What discover.c shares with its two halves. */
#ifndef RAMSEAL_AGENT_PAGING_DISCOVER_INTERNAL_H
#define RAMSEAL_AGENT_PAGING_DISCOVER_INTERNAL_H

#include "agent/paging/discover.h"

struct search {
	struct physmem *mem;
	const struct discover_hints *hints;
	struct walk_budget *budget;
	struct discovery *d;
};

/* The kernel's address space, once kernel_dtb is known. */
struct virt paging__kernel_space(const struct search *s);

/* True if the page holds this machine's VMCOREINFO: kernel_dtb, mode and the rest are set. */
bool paging__take_vmcoreinfo(const struct search *s, const struct vmcoreinfo *v);
enum status paging__discover_linux(const struct search *s, struct err *e);

/* True if `pa` is the root of a Windows address space; kernel_dtb and self_index are set. */
bool paging__take_windows_root(const struct search *s, uint64_t pa, enum dtb_origin origin);
/* Whether the root that was taken maps an ntoskrnl. */
enum status paging__check_windows(const struct search *s, bool *ret, struct err *e);
bool paging__look_in_low_stub(const struct search *s);
enum status paging__discover_windows(const struct search *s, struct err *e);

/* Of the address spaces from `first` on, marks those whose root is a user page of a listed process. */
enum status paging__mark_copies(const struct search *s, size_t first, struct err *e);

#endif
