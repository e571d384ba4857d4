/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root that no list knows may be a copy of one: whoever reads page tables, as we do, has such
 * copies in his buffers, and leaves them behind in free memory. A copy that names itself no longer
 * does
 * (Windows); one of Linux's looks like the real thing, but
 *
 * - it is a page that a process has mapped, which a root never is; or
 * - the kernel does not know it for the root of anything that is in use; or, where the kernel
 * cannot be asked,
 * - it names a table that belongs to a process of the list, and no two roots of Linux share one; or
 * - what it named has been given back, which empties the tables (mm/memory.c, free_pgd_range()): no
 *   user page is left in it.
 */
#include "agent/shared/kernel/discover_internal.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* Spaces from `first` on are in the order of their roots: those within [frame, frame + size). */
static void mark_within(struct discovery *d, size_t first, const struct entry *leaf, uint32_t pid)
{
	struct address_space *s = d->spaces + first, *const end = d->spaces + d->n_spaces;

	s += FIRST_WHERE(i, d->n_spaces - first, s[i].process.dtb >= leaf->frame);
	for (; s < end && s->process.dtb - leaf->frame < leaf->size; s++) {
		if (s->copy || s->kernel)
			continue;
		s->copy = true;
		s->mapped_by = pid;
		d->copies++;
	}
}

static struct walk_options user_half(const struct discovery_search *s)
{
	return (struct walk_options){
		.mode = s->d->mode,
		.last = paging_user_last(s->d->mode),
		.ignore = s->d->ignore,
		.budget = s->budget,
	};
}

/* The listed processes' tables go into `set`; roots among their pages are marked. */
static void go_through_listed(const struct discovery_search *s, struct walk *w,
			      struct walk_set *set, size_t first)
{
	const struct walk_options options = user_half(s);
	enum walk_event event;

	for (size_t i = 0; i < first; i++) {
		const struct process *p = &s->d->spaces[i].process;

		if (!s->d->spaces[i].listed || !p->has_dtb)
			continue;
		walk_begin(w, s->mem, set, &options, p->dtb);
		while ((event = walk_next(w)) != WALK_END)
			if (event == WALK_LEAF && w->leaf.entry.kind == ENTRY_LEAF)
				mark_within(s->d, first, &w->leaf.entry, p->pid);
	}
}

/* True if one of the tables that the root names is in `set`. */
static bool shares_a_table(const struct discovery_search *s, const struct walk_set *set,
			   uint64_t dtb)
{
	uint8_t page[PAGE_SIZE];

	if (!walk_budget_take(s->budget) || !physmem_read_page(s->mem, dtb, page, NULL))
		return false;
	for (size_t i = 0; i < ROOT_HALF; i++) {
		const uint64_t raw = get_le64(page + 8 * i);
		const uint64_t table = raw & PTE_FRAME & ~s->d->ignore;

		if (raw & PTE_PRESENT && range_list_find(set->ranges, table) &&
		    walk_set_has(set, table))
			return true;
	}
	return false;
}

/* True unless the tables could be gone through and name no page of memory. */
static bool names_any_page(const struct discovery_search *s, struct walk *w, struct walk_set *set,
			   uint64_t dtb)
{
	const struct walk_options options = user_half(s);
	enum walk_event event;

	walk_begin(w, s->mem, set, &options, dtb);
	while ((event = walk_next(w)) != WALK_END)
		if (event == WALK_LEAF && w->leaf.entry.kind == ENTRY_LEAF &&
		    range_list_find(s->mem->ranges, w->leaf.entry.frame))
			return true;
	return w->stop != WALK_COMPLETE;
}

static void check_rest(const struct discovery_search *s, struct walk *w, struct walk_set *set,
		       size_t first)
{
	struct discovery *d = s->d;

	for (size_t i = first; i < d->n_spaces; i++) {
		struct address_space *a = &d->spaces[i];

		if (a->copy || a->kernel)
			continue;
		if (paging__knows_owners(s))
			a->copy = !paging__has_owner(s, a->process.dtb);
		else
			a->copy = shares_a_table(s, set, a->process.dtb) ||
				  !names_any_page(s, w, set, a->process.dtb);
		d->copies += a->copy;
	}
}

enum status paging__mark_copies(const struct discovery_search *s, size_t first, struct err *e)
{
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));
	struct walk_set set;
	enum status st;

	if (!w)
		return err_nomem(e);
	st = walk_set_init(&set, s->mem->ranges, e);
	if (st)
		return st;
	go_through_listed(s, w, &set, first);
	check_rest(s, w, &set, first);
	walk_set_deinit(&set);
	return ST_OK;
}
