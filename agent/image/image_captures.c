/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_captures.h"

#include "agent/shared/container/captures.h"
#include "agent/shared/container/tally.h"

const char *image_reason_name(uint32_t reason)
{
	static const char *const names[] = {
		[RSZ_FIRST] = "first",
		[RSZ_TABLE_CHANGED] = "table-changed",
		[RSZ_FILE_CHANGED] = "file-changed",
		[RSZ_TABLE_AGAIN] = "table-again",
	};

	return reason < ARRAY_SIZE(names) ? names[reason] : "?";
}

/* A page with older captures, and its newest. */
struct page {
	const struct older_page *older;
	size_t n;
	struct capture newest;
};

static bool find_page(const struct captures *c, uint64_t from, struct page *ret)
{
	ret->older = captures_older_from(c, from, &ret->n);
	return ret->older && captures_from(c, ret->older->address,
					   ret->older->address | (PAGE_SIZE - 1), &ret->newest);
}

/* Captured together each time. */
static bool are_alike(const struct page *a, const struct page *b)
{
	bool alike = a->n == b->n && a->newest.start == b->newest.start &&
		     a->newest.end == b->newest.end && a->newest.state == b->newest.state &&
		     a->newest.reason == b->newest.reason;

	for (size_t i = 0; alike && i < a->n; i++)
		alike = a->older[i].start == b->older[i].start &&
			a->older[i].end == b->older[i].end &&
			a->older[i].reason == b->older[i].reason;
	return alike;
}

static json_t *capture_json(uint64_t start, uint64_t end, uint32_t reason)
{
	return json_pack("{s:I, s:I, s:s}", "start_ns", (json_int_t)start, "end_ns",
			 (json_int_t)end, "reason", image_reason_name(reason));
}

static json_t *range_json(const struct page *p, uint64_t pages)
{
	const uint64_t first = p->older->address;
	json_t *list = json_array();

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(
			list, capture_json(p->older[i].start, p->older[i].end, p->older[i].reason));
	json_array_append_new(list, capture_json(p->newest.start, p->newest.end, p->newest.reason));
	return json_pack("{s:I, s:I, s:I, s:o}", "first", (json_int_t)first, "last",
			 (json_int_t)(first + pages * PAGE_SIZE - 1), "pages", (json_int_t)pages,
			 "captures", list);
}

/* Neighbours that are alike are one range; *at is moved behind it. */
static uint64_t count_pages_alike(const struct captures *c, const struct page *p, uint64_t *at)
{
	struct page next;
	uint64_t pages = 1;

	*at = p->older->address + PAGE_SIZE;
	while (find_page(c, *at, &next) && next.older->address == *at && are_alike(p, &next)) {
		*at += PAGE_SIZE;
		pages++;
	}
	return pages;
}

static enum status collect_ranges(const struct captures *c, struct image_captures *ret,
				  struct err *e)
{
	json_t *ranges = json_array();
	uint64_t at = 0, untold = 0;
	struct page p;

	while (find_page(c, at, &p)) {
		const uint64_t pages = count_pages_alike(c, &p, &at);

		ret->pages += pages;
		ret->tables += p.newest.reason == RSZ_TABLE_AGAIN ? pages : 0;
		if (json_array_size(ranges) < TALLY_GAPS_MAX)
			json_array_append_new(ranges, range_json(&p, pages));
		else
			untold++;
	}
	ret->list = json_pack("{s:I, s:I, s:o, s:I, s:I}", "pages", (json_int_t)ret->pages,
			      "page_tables", (json_int_t)ret->tables, "ranges", ranges,
			      "ranges_not_listed", (json_int_t)untold, "captures_not_listed",
			      (json_int_t)c->older_untold);
	return ret->list ? ST_OK : err_nomem(e);
}

enum status image_captures_load(struct container *c, uint32_t stream, struct image_captures *ret,
				struct err *e)
{
	struct stream_captures all;
	enum status st = stream_captures_load(&all, c->blob, c->reader, e);

	*ret = (struct image_captures){ 0 };
	if (!st)
		st = collect_ranges(&all.streams[stream], ret, e);
	stream_captures_deinit(&all);
	return st;
}

void image_captures_deinit(struct image_captures *x)
{
	json_decref(x->list);
}
