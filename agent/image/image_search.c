/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_search.h"

#include "agent/program/clock.h"
#include "agent/program/interrupt.h"

/* For walks: as many pages as any kernel has tables for its own half. */
#define WALK_PAGES  (UINT64_C(1) << 20)
/* A live machine does not wait for longer than for its page tables (acquire/tables.c). */
#define LIVE_NS_MAX (60 * NS_PER_SECOND)

enum status image_streams_init(struct image_streams *s, struct container *in, uint32_t memory,
			       struct err *e)
{
	uint32_t streams[2];
	size_t n = 0;
	enum status st;

	*s = (struct image_streams){ 0 };
	st = rsz_cursor_create(in->reader, 1, &s->cursor, e);
	if (st)
		return st;
	if (!container_find_kind(in, RSZ_KIND_TABLES_BEFORE, &streams[n], NULL))
		n++;
	streams[n++] = memory;
	return physmem_rsz_init(&s->mem, in->reader, s->cursor, streams, n, e);
}

void image_streams_deinit(struct image_streams *s)
{
	physmem_rsz_deinit(&s->mem);
	rsz_cursor_destroy(s->cursor);
	*s = (struct image_streams){ 0 };
}

/* A search has no other way to learn that it shall end. */
static uint64_t now(void)
{
	return interrupted() ? UINT64_MAX : clock_mono_ns();
}

struct walk_budget image_search_budget(const struct range_list *ranges, unsigned passes, bool live)
{
	return (struct walk_budget){
		.pages = passes * (range_list_bytes(ranges) >> PAGE_SHIFT) + WALK_PAGES,
		/* Not UINT64_MAX: then nobody would ask now(). */
		.deadline = live ? clock_mono_ns() + LIVE_NS_MAX : UINT64_MAX - 1,
		.now = now,
	};
}
