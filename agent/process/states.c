/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/states.h"

const char *pages_state_name(enum pages_state s)
{
	static const char *const names[PAGES_STATES] = {
#define X(name, text) [name] = text,
		PLACE_STATE_MAP(X)
#undef X
	};

	return (unsigned)s < PAGES_STATES ? names[s] : "?";
}

/* No entry, nor a prototype entry that says anything. */
static enum pages_state state_of_empty(const struct virtual_page *p)
{
	/* A section may be reserved, too. */
	if (p->row.followed || p->vad == VAD_SAYS_RESERVED || p->vad == VAD_SAYS_UNMAPPED)
		return PAGES_RESERVED;
	return PAGES_UNKNOWN;
}

enum pages_state pages_state_of(const struct virtual_page *p)
{
	const bool there = p->given != GIVEN_NOTHING;

	/* An entry above the page table that is not present is of a table that is paged out. */
	if (p->level != 1 && !p->has_verdict && p->row.raw)
		return PAGES_UNKNOWN;
	switch (p->row.pte.state) {
	case PTE_VALID:
		return there ? PAGES_VALID : PAGES_MISSING;
	case PTE_TRANSITION:
		return there ? PAGES_TRANSITION : PAGES_MISSING;
	case PTE_PAGE_FILE:
		return there ? PAGES_PAGE_FILE : PAGES_MISSING;
	case PTE_COMPRESSED:
		return PAGES_COMPRESSED;
	case PTE_DEMAND_ZERO:
		return PAGES_ZEROS;
	case PTE_SUBSECTION:
	case PTE_FILE_BACKED:
		return PAGES_FILE;
	case PTE_DECOMMITTED:
		return PAGES_RESERVED;
	case PTE_EMPTY:
		return state_of_empty(p);
	default:
		return PAGES_UNKNOWN;
	}
}

static enum status count_page(void *context, const struct virtual_page *p, struct err *e)
{
	struct pages_counts *c = context;

	(void)e;
	c->state[pages_state_of(p)] += p->pages;
	c->prototype += p->row.followed ? p->pages : 0;
	if (p->given == GIVEN_NOTHING || !p->has_verdict)
		return ST_OK;
	c->trust[verdict_trust(p->row.verdict)] += p->pages;
	c->verdict[p->row.verdict] += p->pages;
	return ST_OK;
}

enum status process_count_pages(struct opened_process *p, uint64_t start, uint64_t end,
				struct pages_counts *ret, struct err *e)
{
	const struct virtual_reader reader = { .page = count_page, .context = ret, .unread = true };
	struct virtual_counts unused = { 0 };

	return virtual_read(process_memory(p), start, end - start + 1, &reader, &unused, e);
}

enum status process_mapped_outside(struct opened_process *p, struct range_list *ret, struct err *e)
{
	const struct vad_list *l = process_vads(p);
	struct range_list all = { 0 };
	size_t next = 0;
	bool cut;
	enum status st = virtual_mapped(process_memory(p), &all, &cut, e);

	for (size_t i = 0; i < all.count && !st; i++) {
		uint64_t at = all.at[i].first;
		const uint64_t last = all.at[i].last;

		while (next < l->count && l->at[next].end < at)
			next++;
		for (size_t k = next; !st && at <= last; k++) {
			const struct vad *v = k < l->count ? &l->at[k] : NULL;

			if (!v || v->start > last) {
				st = range_list_add(ret, at, last, e);
				break;
			}
			if (v->start > at)
				st = range_list_add(ret, at, v->start - 1, e);
			at = v->end + 1;
		}
	}
	range_list_deinit(&all);
	return st;
}
