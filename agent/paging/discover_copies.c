/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root that no list knows may be a copy of one in somebody's memory: whoever reads page tables, as
 * we do, has such copies in his buffers. A copy that names itself no longer does (Windows); one of
 * Linux's looks like the real thing, but it is a page that a process has mapped, which a root never
 * is.
 */
#include "agent/paging/discover_internal.h"

/* The end of the user's half. */
static uint64_t user_last(enum paging_mode mode)
{
	return mode == PAGING_5_LEVEL ? UINT64_C(0x00ffffffffffffff) : UINT64_C(0x00007fffffffffff);
}

/* Spaces from `first` on are in the order of their roots: those within [frame, frame + size). */
static void mark_within(struct discovery *d, size_t first, const struct entry *leaf, uint32_t pid)
{
	size_t low = first;
	size_t high = d->n_spaces;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (d->spaces[middle].process.dtb < leaf->frame)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < d->n_spaces && d->spaces[low].process.dtb - leaf->frame < leaf->size; low++) {
		if (d->spaces[low].copy || d->spaces[low].kernel)
			continue;
		d->spaces[low].copy = true;
		d->spaces[low].copy_of = pid;
		d->copies++;
	}
}

enum status paging__mark_copies(const struct search *s, size_t first, struct err *e)
{
	const struct walk_options options = {
		.mode = s->d->mode,
		.last = user_last(s->d->mode),
		.ignore = s->d->ignore,
		.budget = s->budget,
	};
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));
	struct walk_set set;
	enum walk_event event;
	enum status st;

	if (!w)
		return err_nomem(e);
	st = walk_set_init(&set, s->mem->ranges, e);
	if (st)
		return st;
	for (size_t i = 0; i < first; i++) {
		const struct process *p = &s->d->spaces[i].process;

		if (!s->d->spaces[i].listed || !p->has_dtb)
			continue;
		walk_begin(w, s->mem, &set, &options, p->dtb);
		while ((event = walk_next(w)) != WALK_END)
			if (event == WALK_LEAF && w->leaf.entry.kind == ENTRY_LEAF)
				mark_within(s->d, first, &w->leaf.entry, p->pid);
	}
	walk_set_deinit(&set);
	return ST_OK;
}
