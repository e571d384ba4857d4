/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/block_list.h"

#include <stdlib.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"
#include "formats/base/defs.h"

enum status block_list_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct block_list *l = context;

	if (interrupted())
		return interrupt_status(e);
	if (a->state != BLOCK_BUSY && !(l->with_free && a->state == BLOCK_FREE))
		return ST_OK;
	if (l->count == l->room) {
		struct heap_allocation *grown = array_grow(l->at, &l->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		l->at = grown;
	}
	l->at[l->count++] = *a;
	return ST_OK;
}

static int allocation_by_address(const void *a, const void *b)
{
	const struct heap_allocation *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

void block_list_sort(struct block_list *l)
{
	array_sort(l->at, l->count, sizeof(*l->at), allocation_by_address);
}

void block_list_deinit(struct block_list *l)
{
	free(l->at);
	*l = (struct block_list){ 0 };
}

const struct heap_allocation *block_list_before(const struct block_list *l, uint64_t va)
{
	const size_t behind = FIRST_WHERE(i, l->count, l->at[i].address > va);

	return behind ? &l->at[behind - 1] : NULL;
}

const struct heap_allocation *block_list_find(const struct block_list *l, uint64_t va)
{
	const struct heap_allocation *a = block_list_before(l, va);

	return a && va - a->address < MAX(block_bytes(a), 1) ? a : NULL;
}
