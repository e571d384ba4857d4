/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/states.h"

#include <stdlib.h>

#include "agent/shared/program/interrupt.h"

const char *pages_state_name(enum pages_state s)
{
	return NAME_IN(PLACE_STATE_MAP, s, "?");
}

enum pages_state pages_state_of(const struct virtual_page *p)
{
	const bool there = p->given != GIVEN_NOTHING;

	if (virtual_page_is_absent(p))
		return PAGES_RESERVED;
	if (virtual_table_is_lost(p))
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
	default:
		return PAGES_UNKNOWN;
	}
}

void pages_counts_add(struct pages_counts *to, const struct pages_counts *c)
{
	for (size_t i = 0; i < PAGES_STATES; i++) {
		to->state[i] += c->state[i];
		for (size_t k = 0; k < TRUST_KINDS; k++)
			to->judged[i][k] += c->judged[i][k];
	}
	for (size_t i = 0; i < TRUST_KINDS; i++)
		to->trust[i] += c->trust[i];
	for (size_t i = 0; i < VERDICTS; i++)
		to->verdict[i] += c->verdict[i];
	to->prototype += c->prototype;
}

void pages_counts_data_trust(const struct pages_counts *c, uint64_t ret[static TRUST_KINDS])
{
	for (size_t k = 0; k < TRUST_KINDS; k++)
		ret[k] = c->judged[PAGES_VALID][k] + c->judged[PAGES_TRANSITION][k] +
			 c->judged[PAGES_PAGE_FILE][k];
}

uint64_t pages_counts_sum(const struct pages_counts *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PAGES_STATES; i++)
		sum += c->state[i];
	return sum;
}

static enum status count_page(void *context, const struct virtual_page *p, struct err *e)
{
	const enum pages_state state = pages_state_of(p);
	struct pages_counts *c = context;

	(void)e;
	c->state[state] += p->pages;
	c->prototype += p->row.followed ? p->pages : 0;
	if (p->given == GIVEN_NOTHING || !p->has_verdict)
		return ST_OK;
	c->trust[verdict_trust(p->row.verdict)] += p->pages;
	c->verdict[p->row.verdict] += p->pages;
	c->judged[state][verdict_trust(p->row.verdict)] += p->pages;
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

static enum status count_outside(struct opened_process *p, struct process_pages *ret, struct err *e)
{
	enum status st = process_mapped_outside(p, &ret->outside, e);

	for (size_t i = 0; i < ret->outside.count && !st; i++) {
		const struct range *x = &ret->outside.at[i];

		st = process_count_pages(p, x->first, x->last, &ret->total, e);
	}
	return st;
}

enum status process_count_all(struct opened_process *p, struct process_pages *ret, struct err *e)
{
	const struct vad_list *l = process_vads(p);
	enum status st = ST_OK;

	ret->each = calloc(MAX(l->count, 1), sizeof(*ret->each));
	if (!ret->each)
		return err_nomem(e);
	for (size_t i = 0; i < l->count && !st; i++) {
		st = process_count_pages(p, l->at[i].start, l->at[i].end, &ret->each[i], e);
		pages_counts_add(&ret->total, &ret->each[i]);
		if (!st && interrupted())
			st = interrupt_status(e);
	}
	return st ? st : count_outside(p, ret, e);
}

void process_pages_deinit(struct process_pages *p)
{
	free(p->each);
	range_list_deinit(&p->outside);
	*p = (struct process_pages){ 0 };
}
