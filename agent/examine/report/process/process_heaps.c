/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of a process: what is in them, and where their pages are.
 */
#include <inttypes.h>

#include "agent/examine/heap/heap_checks.h"
#include "agent/examine/report/kit/rating.h"
#include "agent/examine/report/process/process_sections.h"
#include "formats/base/bytes.h"

static struct heap_tally busy_of(const struct heap_stats *s)
{
	struct heap_tally t = { 0 };

	for (size_t i = 0; i < HEAP_PLACES; i++) {
		t.blocks += s->blocks[i][BLOCK_BUSY].blocks;
		t.bytes += s->blocks[i][BLOCK_BUSY].bytes;
	}
	return t;
}

static uint64_t free_of(const struct heap_stats *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < HEAP_PLACES; i++)
		bytes += s->blocks[i][BLOCK_FREE].bytes;
	return bytes;
}

static void put_heap_name(struct html_table *t, const struct report_process *r,
			  const struct heap_info *i)
{
	const char *finding = heap_finding(r->heaps, i);

	html_cell(t, "wrap");
	doc_printf(t->d,
		   "<span class=\"mono\">0x%" PRIx64 "</span><br><span class=\"soft\">%s, "
		   "%d-bit%s%s</span>",
		   i->address, heap_kind_name(i->kind), i->wide ? 64 : 32,
		   i->front_end ? ", LFH" : "", i->head ? "" : ", first page missing");
	if (i->experimental)
		doc_put(t->d,
			"<br><span class=\"soft\">experimental: this layout has not been tried "
			"on a genuine heap</span>");
	if (i->refused) {
		doc_put(t->d, "<br>not walked: ");
		doc_put(t->d, heap_refusal_text(i->refused));
	}
	if (finding) {
		doc_put(t->d, "<br>");
		rating_put(t->d, RATING_FAIR, finding);
	}
	html_cell_end(t);
}

static void put_key(struct html_table *t, const struct heap_info *i)
{
	char hex[2 * HEAP_KEY_SIZE + 1];

	html_cell(t, "wrap");
	doc_put(t->d, heap_key_name(i->key_from));
	if (i->key_from == KEY_READ || i->key_from == KEY_RECOVERED) {
		bytes_to_hex(i->key, sizeof(i->key), hex);
		doc_printf(t->d, " <span class=\"mono\">%s</span>", hex);
	}
	html_cell_end(t);
}

static void put_checks(struct html_table *t, const struct heap_info *i, const struct heap_stats *s)
{
	struct heap_check checks[HEAP_CHECKS];
	size_t asked = 0, differ = 0;

	heap_checks(i, s, checks);
	html_cell(t, "wrap");
	for (size_t k = 0; k < HEAP_CHECKS; k++) {
		if (!checks[k].has)
			continue;
		asked++;
		if (checks[k].counted == checks[k].walked)
			continue;
		doc_printf(t->d, "%s%s: the heap counts ", differ++ ? "; " : "", checks[k].name);
		doc_count(t->d, checks[k].counted);
		doc_put(t->d, " bytes, its blocks ");
		doc_count(t->d, checks[k].walked);
	}
	if (asked && !differ)
		doc_printf(t->d, "%zu of %zu agree", asked, asked);
	if (s->contradictions) {
		doc_put(t->d, asked ? "; " : "");
		doc_count(t->d, s->contradictions);
		doc_put(t->d, s->contradictions == 1 ? " contradiction" : " contradictions");
	}
	if (s->cut)
		doc_put(t->d, "; too large: not all of it was walked");
	html_cell_end(t);
}

static void put_walk(struct html_table *t, const struct report_process *r, size_t n)
{
	const struct heap_info *i = heaps_at(r->heaps, n);
	const struct heap_stats *s = &r->stats[n];
	const struct heap_tally busy = busy_of(s);

	html_row(t);
	put_heap_name(t, r, i);
	if (i->kind == HEAP_NT || s->segments || busy.blocks) {
		put_key(t, i);
		html_number(t, s->segments);
		html_number(t, busy.blocks);
		html_size(t, busy.bytes);
		html_size(t, free_of(s));
		html_size(t, heap_stats_lost(s));
		put_checks(t, i, s);
	} else {
		html_cells_empty(t, 6);
		html_text(t, "its blocks are not walked");
	}
	html_row_end(t);
}

static void put_more(struct doc *d, const struct report_process *r)
{
	if (r->n_heaps <= PROCESS_HEAPS)
		return;
	doc_put(d, "<p>");
	doc_count(d, r->n_heaps - PROCESS_HEAPS);
	doc_put(d, " more heaps: <code>ramseal heap</code> lists them all.</p>\n");
}

static void put_walks(struct doc *d, const struct report_process *r)
{
	struct html_table t;

	html_table(&t, d, "What is in each heap");
	html_column(&t, TERM_HEAP, "heap");
	html_column(&t, TERM_KEY, "key");
	html_column_of_numbers(&t, TERM_HEAP, "segments");
	html_column_of_numbers(&t, TERM_BLOCKS, "busy blocks");
	html_column_of_numbers(&t, TERM_BLOCKS, "bytes in them");
	html_column_of_numbers(&t, TERM_BLOCKS, "free");
	html_column_of_numbers(&t, TERM_LOST, "lost");
	html_column(&t, TERM_CHECKS, "cross-checks");
	html_table_body(&t);
	for (size_t i = 0; i < MIN(r->n_heaps, (size_t)PROCESS_HEAPS); i++)
		put_walk(&t, r, i);
	html_table_end(&t);
}

static void put_heap_pages_table(struct doc *d, const struct report_process *r)
{
	const struct report_sum *all = &r->by_region[REGION_HEAP];
	struct counts_table t;

	counts_table(&t, d, r, &all->pages, "Where the pages of each heap are", TERM_HEAP, "heap");
	for (size_t i = 0; i < MIN(r->n_heaps, (size_t)PROCESS_HEAPS); i++) {
		html_row(&t.t);
		html_cell(&t.t, "");
		doc_printf(d,
			   "<span class=\"mono\">0x%" PRIx64 "</span> <span class=\"soft kind\">"
			   "%" PRIu64 " range%s</span>",
			   heaps_at(r->heaps, i)->address, r->heap_sums[i].vads,
			   r->heap_sums[i].vads == 1 ? "" : "s");
		html_cell_end(&t.t);
		counts_row(&t, &r->heap_sums[i].pages);
	}
	html_row_of_rest(&t.t);
	html_text(&t.t, "all heaps");
	counts_row(&t, &all->pages);
	counts_table_end(&t);
}

void section_heaps(struct doc *d, const struct report_process *r)
{
	if (heaps_list_lost(r->heaps))
		doc_put(d, "<p>The process's list of heaps cannot be read to its end: there may be "
			   "more heaps than those found by their contents.</p>\n");
	if (!r->n_heaps) {
		doc_put(d, "<p>No heap was found.</p>\n");
		return;
	}
	put_heap_pages_table(d, r);
	put_walks(d, r);
	put_more(d, r);
}
