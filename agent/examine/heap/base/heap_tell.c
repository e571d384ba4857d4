/* SPDX-License-Identifier: Apache-2.0 */
/* What the walks tell of each block. */
#include "agent/examine/heap/base/heap_internal.h"

enum status heap__tell(struct heap_walk *w, struct heap_allocation *a)
{
	struct heap_tally *t;

	heap__see_light(w, a);
	t = &w->stats->blocks[a->place][a->state];
	a->heap = w->index;
	t->blocks++;
	t->bytes += a->has_requested ? a->requested : a->size;
	w->stats->islands += a->island;
	return w->v->block(w->v->context, a, w->e);
}
