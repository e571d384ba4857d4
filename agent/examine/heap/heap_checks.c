/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/heap_checks.h"

#include "formats/base/defs.h"

void heap_checks(const struct heap_info *i, const struct heap_stats *s,
		 struct heap_check ret[static HEAP_CHECKS])
{
	const bool counted = i->counted && !s->reserve_unknown;

	ret[0] = (struct heap_check){ "free", i->head && i->kind == HEAP_NT, i->total_free,
				      s->free_chunks };
	ret[1] = (struct heap_check){ "reserved", counted, i->counted_reserved, s->reserved };
	ret[2] = (struct heap_check){ "committed", counted, i->counted_committed,
				      s->reserved - MIN(s->uncommitted, s->reserved) };
}

const char *heap_finding(const struct heaps *h, const struct heap_info *i)
{
	if (i->unnamed)
		return "known only by the headers of its blocks: where it begins is not known, and "
		       "it may be a copy of a heap";
	/* Page heap keeps its own list; the process's has the NT heaps behind it. */
	if (i->listed || i->chained || i->kind == HEAP_PAGE || heaps_list_lost(h))
		return NULL;
	return "no list of the process names it";
}

uint64_t heap_stats_lost(const struct heap_stats *s)
{
	return s->lost + s->unlinked + s->containers_lost_bytes;
}

bool heap_is_had(const struct heap_info *i, const struct heap_stats *s)
{
	/* A segment heap's first page is what leads to its large blocks. */
	return !heap_stats_lost(s) && !s->cut && i->kind != HEAP_UNREAD &&
	       (i->kind != HEAP_SEGMENT || (i->head && s->segments)) &&
	       (i->kind != HEAP_NT || i->key_from != KEY_NONE);
}
