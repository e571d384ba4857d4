/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by discover.c and its two halves. */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_DISCOVER_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_KERNEL_DISCOVER_INTERNAL_H

#include "agent/shared/kernel/discover.h"

struct discovery_search {
	struct physmem *mem;
	const struct discover_hints *hints;
	struct walk_budget *budget;
	struct discovery *d;
};

/* The kernel's address space, once kernel_dtb is known. */
struct virt paging__kernel_space(const struct discovery_search *s);

/* True if the page holds this machine's VMCOREINFO: kernel_dtb, mode and the rest are set. */
bool paging__take_vmcoreinfo(const struct discovery_search *s, const struct vmcoreinfo *v);
enum status paging__discover_linux(const struct discovery_search *s, struct err *e);
/*
 * Linux records the owner of each root: struct page's pt_mm (arch/x86/mm/pgtable.c, pgd_set_mm()).
 * True if it can be read here and leads to an mm_struct that refers back to this root and has
 * users: without users it is being destroyed (kernel/fork.c, mmput()) after its process has
 * released it.
 */
bool paging__knows_owners(const struct discovery_search *s);
bool paging__has_owner(const struct discovery_search *s, uint64_t root);

/* True if `pa` is the root of a Windows address space; kernel_dtb and self_index are set. */
bool paging__take_windows_root(const struct discovery_search *s, uint64_t pa,
			       enum dtb_origin origin);
/* Does the chosen root map an ntoskrnl? */
enum status paging__check_windows(const struct discovery_search *s, bool *ret, struct err *e);
bool paging__search_low_stub(const struct discovery_search *s);
enum status paging__discover_windows(const struct discovery_search *s, struct err *e);

/* Marks address spaces from `first` on whose root is only a copy. */
enum status paging__mark_copies(const struct discovery_search *s, size_t first, struct err *e);

#endif
