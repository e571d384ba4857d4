/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/heap_blocks.h"

#include <inttypes.h>

#include "agent/program/interrupt.h"

/*
 * Blocks can be said to be as large as the address space. So many pages are looked at for all that
 * is printed: more than 200 GiB.
 */
#define JUDGED_MAX (UINT64_C(1) << 26)

void block_judge(struct block_printer *b, const struct heap_allocation *a, struct block_worth *ret)
{
	const uint64_t end = a->address + MAX(block_bytes(a), 1);
	bool any = false, unknown = false;
	enum trust worst = TRUST_NOT_APPLICABLE;

	*ret = (struct block_worth){ 0 };
	for (uint64_t va = a->address, next; va < end; va = next) {
		const struct peek_page *p;

		if (b->judged == JUDGED_MAX || interrupted()) {
			ret->unread += end - va;
			unknown = true;
			break;
		}
		b->judged++;
		p = peek_page(b->session->peek, va & ~(uint64_t)(PAGE_SIZE - 1));
		next = MIN(end, (va & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE);
		if (!p || !p->bytes) {
			ret->unread += next - va;
			continue;
		}
		unknown |= !p->has_verdict;
		/* Safe, at risk, wrong: the later, the worse. Of an image nobody can say which. */
		if (p->has_verdict && (!any || p->trust > worst))
			worst = p->trust;
		any |= p->has_verdict;
	}
	if (any && !unknown)
		ret->trust = trust_name(worst);
	else
		ret->trust = unknown || any ? "unknown" : "none";
}

static void sized(const struct heap_allocation *a, char ret[static 24])
{
	if (a->has_requested)
		snprintf(ret, 24, "%" PRIu64, a->requested);
	else
		snprintf(ret, 24, "%s", "?");
}

json_t *block_json(const struct block_printer *p, const struct heap_allocation *a,
		   const struct block_worth *w)
{
	struct stack_trace t;
	const bool traced = heap_session_trace(p->session, a, &t);

	return json_fields(JSON_FIELDS(
		FIELD_SCHEMA("heap-block"),
		field_made("heap", heap_hex(heaps_at(p->session->heaps, a->heap)->address)),
		field_made("address", heap_hex(a->address)), field_u64("size", a->size),
		field_json("requested", a->has_requested ? json_u64(a->requested) : NULL),
		field_text("place", heap_place_name(a->place)),
		field_text("state", heap_state_name(a->state)),
		field_made("container", heap_hex(a->container)), field_bool("island", a->island),
		field_u64("unread", w->unread), field_text("trust", w->trust),
		traced ? field_made("trace", heap_trace_json(p->session, &t))
		       : field_json("trace", NULL)));
}

static enum status print_block(struct block_printer *p, const struct heap_allocation *a,
			       struct err *e)
{
	const uint64_t heap = heaps_at(p->session->heaps, a->heap)->address;
	char requested[24];
	struct block_worth w;

	block_judge(p, a, &w);
	if (p->json)
		return json_print(block_json(p, a, &w), JSON_COMPACT, e);
	sized(a, requested);
	if (p->csv)
		printf("0x%" PRIx64 ",0x%" PRIx64 ",%" PRIu64 ",%s,%s,%s,0x%" PRIx64 ",%d,%" PRIu64
		       ",%s\n",
		       heap, a->address, a->size, a->has_requested ? requested : "",
		       heap_place_name(a->place), heap_state_name(a->state), a->container,
		       a->island, w.unread, w.trust);
	else
		printf("0x%012" PRIx64 " 0x%012" PRIx64 " %10" PRIu64 " %10s %-9s %-4s %-14s%s\n",
		       heap, a->address, a->size, requested, heap_place_name(a->place),
		       heap_state_name(a->state), w.trust, w.unread ? " not all can be had" : "");
	return ST_OK;
}

static void print_columns(struct block_printer *p)
{
	if (!p->begun && p->csv)
		printf("heap,address,size,requested,place,state,container,island,unread,trust\n");
	else if (!p->begun && !p->json)
		printf("%-14s %-14s %10s %10s %-9s %-4s %s\n", "heap", "address", "size",
		       "requested", "place", "", "trust");
	p->begun = true;
}

static enum status flush(struct block_printer *p, struct err *e)
{
	enum status st = ST_OK;

	print_columns(p);
	for (size_t i = 0; i < p->count && !st; i++)
		st = print_block(p, &p->at[i], e);
	p->count = 0;
	heaps_forget_page(p->session->heaps);
	if (!st && interrupted())
		st = interrupt_status(e);
	return st;
}

enum status block_printer_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct block_printer *p = context;

	if (a->state == BLOCK_INTERNAL)
		return ST_OK;
	p->at[p->count++] = *a;
	return p->count < BLOCKS_AT_ONCE ? ST_OK : flush(p, e);
}

enum status block_printer_end(struct block_printer *p, struct err *e)
{
	return flush(p, e);
}
