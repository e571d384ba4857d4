/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/heap/block_list.h"
#include "agent/examine/heap/dns/cache.h"
#include "agent/examine/report/process/process_sections.h"
#include "agent/shared/program/interrupt.h"

/*
 * Finding
 */

/* More pages of one block are not asked for one by one. */
#define BLOCK_PAGES_MAX 65536

static void keep_largest(struct report_blocks *b, const struct heap_allocation *a)
{
	size_t at = b->n_largest;

	if (a->state != BLOCK_BUSY)
		return;
	while (at && block_bytes(&b->largest[at - 1].of) < block_bytes(a))
		at--;
	if (at == REPORT_LARGEST)
		return;
	b->n_largest = MIN(b->n_largest + 1, REPORT_LARGEST);
	memmove(&b->largest[at + 1], &b->largest[at],
		(b->n_largest - 1 - at) * sizeof(b->largest[0]));
	b->largest[at] = (struct report_block){ .of = *a };
}

static enum status count_block_pages(struct peek *peek, struct report_block *b, struct err *e)
{
	const uint64_t first = b->of.address & ~(uint64_t)(PAGE_SIZE - 1);
	const uint64_t bytes = MAX(block_bytes(&b->of), 1) + (b->of.address - first);

	b->pages = (bytes + PAGE_SIZE - 1) / PAGE_SIZE;
	for (uint64_t i = 0; i < MIN(b->pages, BLOCK_PAGES_MAX); i++) {
		const struct peek_page *p = peek_page(peek, first + i * PAGE_SIZE);

		if (interrupted())
			return interrupt_status(e);
		b->kept += p && p->bytes;
	}
	return ST_OK;
}

static const char *trust_at(struct peek *peek, uint64_t va)
{
	const struct peek_page *p = peek_page(peek, va);

	return p && p->has_verdict && p->trust < TRUSTS ? trust_name(p->trust) : NULL;
}

static void take_names(struct report_process *r, const struct dns_cache_sources *s,
		       const struct dns_cache *c)
{
	struct report_blocks *b = &r->blocks;
	struct peek *peek = process_peek(r->of);

	b->records = c->count;
	b->unanswered = c->unanswered_count;
	b->has_table = c->table != NULL;
	for (size_t i = 0; i < c->count && b->n_names < REPORT_NAMES; i++) {
		const struct dns_found *f = &c->records[i];
		struct report_name *n = &b->names[b->n_names];

		*n = (struct report_name){ .address = f->block->address,
					   .has_record = true,
					   .in_table = f->in_table,
					   .freed = f->block->state != BLOCK_BUSY };
		if (!dns_cache_record(s, f, &n->record))
			continue;
		n->trust = r->still ? NULL : trust_at(peek, n->address);
		b->n_names++;
	}
	for (size_t i = 0; i < c->unanswered_count && b->n_names < REPORT_NAMES; i++) {
		struct report_name *n = &b->names[b->n_names];

		*n = (struct report_name){ .address = c->unanswered[i]->address, .in_table = true };
		if (!dns_cache_unanswered(s, c, i, n->record.name))
			continue;
		n->trust = r->still ? NULL : trust_at(peek, n->address);
		b->n_names++;
	}
}

static bool is_reported_heap_wide(const void *heaps, size_t heap)
{
	return heaps_at(heaps, heap)->wide;
}

static enum status find_names(struct report_process *r, const struct block_list *l, struct err *e)
{
	const struct dns_cache_sources s = {
		.memory = &r->memory,
		.list = l,
		.wide = is_reported_heap_wide,
		.context = r->heaps,
	};
	struct dns_cache c = { 0 };
	enum status st = dns_cache_find(&s, &c, e);

	r->blocks.names = st ? NULL : calloc(REPORT_NAMES, sizeof(*r->blocks.names));
	if (!st && !r->blocks.names)
		st = err_nomem(e);
	if (!st)
		take_names(r, &s, &c);
	dns_cache_deinit(&c);
	return st;
}

enum status report_process_blocks(struct report_process *r, struct err *e)
{
	struct block_list l = { .with_free = true };
	const struct heap_visitor collect = { block_list_take, &l };
	struct peek *peek = process_peek(r->of);
	struct heap_stats stats;
	enum status st = ST_OK;

	for (size_t i = 0; i < r->n_heaps && !st; i++)
		st = heaps_walk(r->heaps, i, &collect, &stats, e);
	block_list_sort(&l);
	for (size_t i = 0; i < l.count && !st; i++)
		keep_largest(&r->blocks, &l.at[i]);
	for (size_t i = 0; i < r->blocks.n_largest && !st; i++)
		st = count_block_pages(peek, &r->blocks.largest[i], e);
	if (!st)
		st = find_names(r, &l, e);
	block_list_deinit(&l);
	return st ? st : peek_failed(peek, e);
}

/*
 * Sections
 */

static void put_address_cell(struct html_table *t, uint64_t va)
{
	html_cell(t, "mono address");
	doc_printf(t->d, "0x%" PRIx64, va);
	html_cell_end(t);
}

bool has_largest(const struct report_process *r)
{
	return r->blocks.n_largest;
}

void section_largest(struct doc *d, const struct report_process *r)
{
	struct html_table t;

	doc_put(d, "<div class=\"brief\">");
	html_table(&t, d, NULL);
	html_column(&t, TERM_BLOCKS, "address");
	html_column_of_numbers(&t, TERM_BLOCKS, "size");
	html_column_of_numbers(&t, TERMS, "bytes");
	html_column(&t, TERM_HEAP, "heap");
	html_column(&t, TERMS, "place");
	html_column_of_numbers(&t, TERMS, "pages here");
	html_column_of_numbers(&t, TERM_WHERE, "pages");
	html_table_body(&t);
	for (size_t i = 0; i < r->blocks.n_largest; i++) {
		const struct report_block *b = &r->blocks.largest[i];

		html_row(&t);
		put_address_cell(&t, b->of.address);
		html_size(&t, block_bytes(&b->of));
		html_number(&t, block_bytes(&b->of));
		put_address_cell(&t, heaps_at(r->heaps, b->of.heap)->address);
		html_text(&t, heap_place_name(b->of.place));
		if (b->pages > BLOCK_PAGES_MAX) {
			html_cell(&t, "n");
			doc_put(d, "not counted");
			html_cell_end(&t);
		} else {
			html_number(&t, b->kept);
		}
		html_number(&t, b->pages);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</div>\n");
	doc_put(d, "<p class=\"soft\">Busy blocks, as far as heaps could be walked. <code>ramseal "
		   "heap --show ADDRESS</code> prints one.</p>\n");
}

bool has_names(const struct report_process *r)
{
	return r->blocks.records || r->blocks.unanswered;
}

#define NAME_WHOLE 36 /* characters of a name that does not break */

static void put_name_row(struct html_table *t, const struct report_name *n)
{
	html_row(t);
	html_cell(t, strlen(n->record.name) <= NAME_WHOLE ? "whole" : "wrap");
	html_strange(t->d, n->record.name);
	html_cell_end(t);
	html_text(t, n->has_record ? dns_type_name(n->record.type) : "no record");
	html_text(t, n->has_record && *n->record.data ? n->record.data : "-");
	html_cell(t, "n");
	if (n->has_record)
		doc_printf(t->d, "%" PRIu32 " s", n->record.ttl);
	else
		doc_put(t->d, "-");
	html_cell_end(t);
	html_text(t, n->in_table ? "in the table" : n->freed ? "freed" : "not known");
	html_text(t, n->trust ? n->trust : "not judged");
	put_address_cell(t, n->address);
	html_row_end(t);
}

void section_names(struct doc *d, const struct report_process *r)
{
	const struct report_blocks *b = &r->blocks;
	struct html_table t;

	doc_put(d, "<div class=\"brief\">");
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "name");
	html_column(&t, TERMS, "type");
	html_column(&t, TERMS, "data");
	html_column_of_numbers(&t, TERMS, "TTL");
	html_column(&t, TERMS, "cache");
	html_column(&t, TERM_TRUST, "reliable");
	html_column(&t, TERMS, "address");
	html_table_body(&t);
	for (size_t i = 0; i < b->n_names; i++)
		put_name_row(&t, &b->names[i]);
	html_table_end(&t);
	doc_put(d, "</div>\n");
	doc_put(d, "<p class=\"soft\">Records of the DNS resolver's cache, recognised by their "
		   "shape");
	doc_put(d, b->has_table ? ", and names that its table has without a record. A name that "
				  "is not here may still have been asked for"
				: "; the cache's table was not found");
	doc_put(d, ".");
	if (b->records + b->unanswered > b->n_names) {
		doc_put(d, " ");
		doc_count(d, b->records + b->unanswered - b->n_names);
		doc_put(d, " more: <code>ramseal heap --dns</code> lists them all.");
	}
	doc_put(d, "</p>\n");
}

bool has_leaks(const struct report_process *r)
{
	return r->n_heaps;
}

static void put_leaks_sentence(struct doc *d, const struct report_leaks *l)
{
	doc_put(d, "<p>");
	doc_count(d, l->blocks);
	doc_put(d, " of ");
	doc_count(d, l->busy);
	doc_put(d, l->busy == 1 ? " busy block (" : " busy blocks (");
	doc_size(d, l->bytes);
	doc_put(d, l->blocks == 1 ? ") is referenced by nothing" : ") are referenced by nothing");
	doc_put(d, l->whole ? ", as far as plain pointers go." : " that could be read.");
	if (!l->whole && l->blocks)
		doc_put(d, " Not everything could be read that may refer to these blocks, so none "
			   "is certain to be leaked.");
	doc_put(d, "</p>\n");
}

void section_leaks(struct doc *d, const struct report_process *r)
{
	const struct report_leaks *l = &r->blocks.leaks;
	struct html_table t;

	if (!l->searched) {
		doc_put(d, "<p>Not searched: the heaps have more blocks than the search can "
			   "take.</p>\n");
		return;
	}
	put_leaks_sentence(d, l);
	if (!l->count)
		return;
	doc_put(d, "<div class=\"brief\">");
	html_table(&t, d, "Blocks of one heap, size and origin; those that hold most first");
	html_column(&t, TERM_HEAP, "heap");
	html_column_of_numbers(&t, TERM_BLOCKS, "bytes each");
	html_column_of_numbers(&t, TERM_BLOCKS, "blocks");
	html_column(&t, TERMS, "first at");
	html_column(&t, TERMS, "points to, or allocated at");
	html_table_body(&t);
	for (size_t i = 0; i < l->count; i++) {
		html_row(&t);
		put_address_cell(&t, l->at[i].heap);
		html_number(&t, l->at[i].size);
		html_number(&t, l->at[i].blocks);
		put_address_cell(&t, l->at[i].first);
		html_text(&t, *l->at[i].place ? l->at[i].place : "not known");
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</div>\n");
	if (l->all > l->count) {
		doc_put(d, "<p>");
		doc_count(d, l->all - l->count);
		doc_put(d, " more kinds: <code>ramseal heap --leaks</code> lists them all.</p>\n");
	}
}
