/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/tally.h"

#include "formats/base/array.h"

void tally_deinit(struct tally *t)
{
	free(t->gaps);
	*t = (struct tally){ 0 };
}

static bool grow_tally_gaps(struct tally *t)
{
	struct tally_gap *gaps = array_grow(t->gaps, &t->room, sizeof(*gaps));

	if (gaps)
		t->gaps = gaps;
	return gaps != NULL;
}

/* Bookkeeping must not end an acquisition: what there is no room for is only counted. */
static void add_gap(struct tally *t, struct tally_gap gap)
{
	struct tally_gap *last = t->n_gaps ? &t->gaps[t->n_gaps - 1] : NULL;

	if (last && last->range.last + 1 == gap.range.first &&
	    page_status_same(last->status, gap.status))
		last->range.last = gap.range.last;
	else if (t->n_gaps < t->room || (t->room < TALLY_GAPS_MAX && grow_tally_gaps(t)))
		t->gaps[t->n_gaps++] = gap;
	else
		t->gaps_untold++;
}

void tally_add(struct tally *t, uint64_t address, uint64_t pages, struct page_status status)
{
	t->pages[status.state] += pages;
	if (page_is_gap(status))
		add_gap(t,
			(struct tally_gap){ { address, address + pages * PAGE_SIZE - 1 }, status });
}

/* A page that was captured again has been counted; but a gap is one whenever it shows. */
static bool counts_in_tally(const struct rsz_extent *x, struct page_status status)
{
	return !x->pass || page_is_gap(status);
}

void tally_chunk(struct tally *t, const struct rsz_chunk *c)
{
	size_t page = 0;

	for (size_t i = 0; i < c->n_extents; i++) {
		const size_t pages = rsz_extent_pages(&c->extents[i]);

		for (size_t at = 0, n; at < pages; at += n) {
			const struct page_status status = c->pages[page + at];

			for (n = 1; at + n < pages; n++)
				if (!page_status_same(c->pages[page + at + n], status))
					break;
			if (counts_in_tally(&c->extents[i], status))
				tally_add(t, c->extents[i].address + at * PAGE_SIZE, n, status);
		}
		page += pages;
	}
}

uint64_t tally_pages(const struct tally *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PAGE_STATES; i++)
		sum += t->pages[i];
	return sum;
}

bool tally_has_gaps(const struct tally *t)
{
	return t->pages[PAGE_UNREADABLE] || t->pages[PAGE_SKIPPED];
}

json_t *tally_states_json(const struct tally *t)
{
	json_t *states = json_object();

	for (uint32_t i = 0; states && i < PAGE_STATES; i++)
		json_object_set_new(states, page_state_name(i),
				    json_integer((json_int_t)t->pages[i]));
	return states;
}

static json_t *gap_json(const struct tally_gap *g)
{
	json_t *gap = json_pack("{s:I, s:I, s:I}", "first", (json_int_t)g->range.first, "last",
				(json_int_t)g->range.last, "pages",
				(json_int_t)(range_bytes(g->range) >> PAGE_SHIFT));

	if (gap && g->status.state == PAGE_SKIPPED)
		json_object_set_new(gap, "reason", json_string(skip_reason_name(g->status.detail)));
	else if (gap)
		json_object_set_new(gap, "error", json_integer(g->status.detail));
	return gap;
}

json_t *tally_gaps_json(const struct tally *t, enum page_state state, size_t max)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < t->n_gaps && json_array_size(list) < max; i++)
		if (t->gaps[i].status.state == (uint32_t)state)
			json_array_append_new(list, gap_json(&t->gaps[i]));
	return list;
}
