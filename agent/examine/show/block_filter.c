/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/block_filter.h"

#include <inttypes.h>
#include <string.h>

/* A smaller number is a heap's place in the process's list: no heap begins so low. */
#define HEAP_NUMBERS 0x10000

/* "A-B", "A-" and "A", which is A-A. *ret_single: there is no dash. False: it is none of these. */
static bool parse_span(const char *text, uint64_t *first, uint64_t *last, bool *ret_single)
{
	const char *dash = strchr(text, '-');
	char begin[32];
	struct err ignored;

	*ret_single = !dash;
	if (!dash) {
		*last = 0;
		return !cli_parse_size(text, first, &ignored) && (*last = *first, true);
	}
	if ((size_t)(dash - text) >= sizeof(begin))
		return false;
	memcpy(begin, text, (size_t)(dash - text));
	begin[dash - text] = '\0';
	*last = UINT64_MAX;
	return !cli_parse_size(begin, first, &ignored) &&
	       (!dash[1] || !cli_parse_size(dash + 1, last, &ignored)) && *first <= *last;
}

static enum status parse_sizes(const char *text, void *at, struct err *e)
{
	struct block_sizes s;
	bool single;

	if (!parse_span(text, &s.min, &s.max, &single))
		return err_set(e, ST_USAGE, "takes a size, or sizes such as 64-128, 1K- or 0-4K");
	*(struct block_sizes *)at = s;
	return ST_OK;
}

static enum status parse_place(const char *text, void *at, struct err *e)
{
	struct block_place p;

	if (!parse_span(text, &p.first, &p.last, &p.is_heap))
		return err_set(e, ST_USAGE,
			       "takes a heap's number or address, or addresses such as "
			       "0x5100000-0x510ffff");
	*(struct block_place *)at = p;
	return ST_OK;
}

static const struct option_def filter_defs[] = {
	CLI_PARSED(struct block_filter, in, 0, "in", "HEAP|FIRST-LAST", parse_place,
		   "only blocks of this heap, by its number or address, or only blocks that begin "
		   "between these addresses"),
	CLI_PARSED(struct block_filter, sizes, 0, "size", "MIN-MAX", parse_sizes,
		   "only blocks of so many bytes; one number is an exact size"),
	CLI_FLAG(struct block_filter, has_text, 0, "text",
		 "only blocks with a text, as ASCII or UTF-16, in their first 4 KiB"),
};

const struct option_group block_filter_group = { filter_defs, ARRAY_SIZE(filter_defs) };

static bool is_in_heap(const struct block_place *p, const struct heap_info *i)
{
	return p->first == i->address ||
	       (p->first && p->first < HEAP_NUMBERS && p->first == i->index);
}

enum status block_filter_begin(struct block_filter *f, const struct cli *cli,
			       const struct heap_session *s, struct err *e)
{
	f->by_place = cli_given(cli, "in");
	f->by_size = cli_given(cli, "size");
	if (!f->by_place || !f->in.is_heap)
		return ST_OK;
	for (size_t i = 0; i < heaps_count(s->heaps); i++)
		if (is_in_heap(&f->in, heaps_at(s->heaps, i)))
			return ST_OK;
	if (f->in.first < HEAP_NUMBERS)
		return err_set(e, ST_INPUT, "%s: the process's list has no heap %" PRIu64,
			       s->process->path, f->in.first);
	return err_set(e, ST_INPUT, "%s: no heap of the process is at 0x%" PRIx64, s->process->path,
		       f->in.first);
}

bool block_filter_takes(const struct block_filter *f, const struct heap_session *s,
			const struct heap_allocation *a)
{
	const uint64_t size = block_bytes(a);

	if (f->by_size && (size < f->sizes.min || size > f->sizes.max))
		return false;
	if (!f->by_place)
		return true;
	if (f->in.is_heap)
		return is_in_heap(&f->in, heaps_at(s->heaps, a->heap));
	return a->address >= f->in.first && a->address <= f->in.last;
}
