/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/block_groups.h"

#include <stdlib.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"

static uint64_t first_pointer(const struct block_groups_plan *plan, const struct heap_allocation *a)
{
	const bool wide = heaps_at(plan->heaps, a->heap)->wide;
	uint64_t word;

	if (block_bytes(a) < (wide ? 8 : 4) || !view_pointer(plan->memory, a->address, wide, &word))
		return 0;
	return modules_at(plan->modules, word) ? word : 0;
}

static int compare_u64(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

static int by_group(const void *a, const void *b)
{
	const struct block_member *x = a, *y = b;
	int order = compare_u64(x->block->heap, y->block->heap);

	if (!order)
		order = compare_u64(block_bytes(x->block), block_bytes(y->block));
	if (!order)
		order = compare_u64(x->trace, y->trace);
	return order ? order : compare_u64(x->first, y->first);
}

static int by_group_and_address(const void *a, const void *b)
{
	const struct block_member *x = a, *y = b;
	const int order = by_group(a, b);

	return order ? order : compare_u64(x->block->address, y->block->address);
}

static bool is_block_wanted(const struct block_groups_plan *plan, size_t i)
{
	return !plan->wanted || plan->wanted(plan->context, i);
}

enum status block_groups_make(const struct block_groups_plan *plan, struct block_groups *ret,
			      struct err *e)
{
	const struct block_list *l = plan->blocks;
	size_t n = 0;

	*ret = (struct block_groups){ 0 };
	for (size_t i = 0; i < l->count; i++)
		n += is_block_wanted(plan, i);
	ret->members = calloc(MAX(n, 1), sizeof(*ret->members));
	ret->at = calloc(MAX(n, 1), sizeof(*ret->at));
	if (!ret->members || !ret->at)
		return err_nomem(e);
	n = 0;
	for (size_t i = 0; i < l->count; i++) {
		if (!is_block_wanted(plan, i))
			continue;
		if (interrupted())
			return interrupt_status(e);
		ret->members[n++] = (struct block_member){
			.block = &l->at[i],
			.first = first_pointer(plan, &l->at[i]),
			.trace = trace_pool_of(plan->traces, &l->at[i]),
		};
	}
	array_sort(ret->members, n, sizeof(*ret->members), by_group_and_address);
	for (size_t i = 0; i < n; i++) {
		if (!i || by_group(&ret->members[i - 1], &ret->members[i]))
			ret->at[ret->count++] = (struct block_group){ &ret->members[i], 0 };
		ret->at[ret->count - 1].count++;
	}
	return ST_OK;
}

void block_groups_deinit(struct block_groups *g)
{
	free(g->members);
	free(g->at);
	*g = (struct block_groups){ 0 };
}
