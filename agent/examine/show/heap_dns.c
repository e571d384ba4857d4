/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_dns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/dns/cache.h"
#include "agent/examine/show/block_content.h"
#include "formats/base/array.h"

static const char *const linked_names[] = {
	[DNS_LINKED_FROM_RECORD] = "record",
	[DNS_LINKED_FROM_BLOCK] = "block",
};

struct dns_list {
	struct block_printer *printer;
	struct dns_cache_sources sources;
	struct dns_cache cache;
};

static json_t *block_hex(const struct heap_allocation *a)
{
	return a ? heap_hex(a->address) : json_null();
}

static json_t *heap_of(const struct dns_list *x, const struct heap_allocation *a)
{
	return heap_hex(heaps_at(x->printer->session->heaps, a->heap)->address);
}

static json_t *record_json(const struct dns_list *x, const struct dns_found *f,
			   const struct dns_record *r)
{
	struct block_worth w;

	block_judge(x->printer, f->block, &w);
	return json_fields(JSON_FIELDS(
		field_made("address", block_hex(f->block)),
		field_made("heap", heap_of(x, f->block)),
		field_text("state", heap_state_name(f->block->state)), field_text("trust", w.trust),
		field_text("linked_from", linked_names[f->linked]),
		field_made("entry", block_hex(f->entry)),
		field_made("in_table", f->in_table ? json_true() : json_null()),
		field_text("name", r->name), field_text("type", dns_type_name(r->type)),
		field_text("data", *r->data ? r->data : NULL), field_u64("ttl", r->ttl),
		field_u64("flags", r->flags),
		field_json("next", r->next ? heap_hex(r->next) : NULL)));
}

static json_t *dns_records_json(const struct dns_list *x)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < x->cache.count; i++) {
		struct dns_record r;

		if (dns_cache_record(&x->sources, &x->cache.records[i], &r) &&
		    json_array_append_new(list, record_json(x, &x->cache.records[i], &r)))
			return json_decref(list), NULL;
	}
	return list;
}

static json_t *unanswered_json(const struct dns_list *x)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < x->cache.unanswered_count; i++) {
		const struct heap_allocation *a = x->cache.unanswered[i];
		char name[DNS_NAME_MAX];
		struct block_worth w;

		if (!dns_cache_unanswered(&x->sources, &x->cache, i, name))
			continue;
		block_judge(x->printer, a, &w);
		if (json_array_append_new(list,
					  json_fields(JSON_FIELDS(field_made("entry", block_hex(a)),
								  field_made("heap", heap_of(x, a)),
								  field_text("trust", w.trust),
								  field_text("name", name)))))
			return json_decref(list), NULL;
	}
	return list;
}

static enum status print_dns_json(const struct dns_list *x, struct err *e)
{
	const struct process_session *s = x->printer->session->process;
	const struct process_facts *f = process_facts(s->process);

	return json_print(
		json_fields(JSON_FIELDS(FIELD_SCHEMA("heap-dns"), field_text("file", s->path),
					field_u64("pid", f->pid), field_text("name", f->name),
					field_made("table", block_hex(x->cache.table)),
					field_made("records", dns_records_json(x)),
					field_made("unanswered", unanswered_json(x)))),
		JSON_INDENT(2), e);
}

/*
 * The tree: entries, those in the table first; below each its answer's records, as one leads to the
 * next; last the records that no known entry leads to.
 */

struct dns_row {
	const struct dns_found *found; /* NULL: an entry without a record */
	const struct heap_allocation *entry;
	uint64_t next; /* the row's record names it; 0: none */
	bool in_table;
	bool behind; /* another record of the same answer leads to it */
	bool told;
};

struct dns_tree {
	struct dns_row *rows;
	size_t count;
};

static uint64_t row_address(const struct dns_row *r)
{
	return r->found ? r->found->block->address : 0;
}

/* By entry, those in the table first; then by address. */
static int by_entry(const void *a, const void *b)
{
	const struct dns_row *x = a, *y = b;
	const uint64_t of_x = x->entry ? x->entry->address : UINT64_MAX;
	const uint64_t of_y = y->entry ? y->entry->address : UINT64_MAX;

	if (x->in_table != y->in_table)
		return x->in_table ? -1 : 1;
	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	return (row_address(x) > row_address(y)) - (row_address(x) < row_address(y));
}

/* The row of this answer's record at `va`; `i` is one of its rows. */
static struct dns_row *row_at(const struct dns_tree *t, const struct dns_row *of, uint64_t va)
{
	const struct dns_row sought = {
		.found =
			&(const struct dns_found){
				.block = &(const struct heap_allocation){ .address = va } },
		.entry = of->entry,
		.in_table = of->in_table,
	};
	const size_t i = FIRST_WHERE(k, t->count, by_entry(&t->rows[k], &sought) >= 0);

	return i < t->count && !by_entry(&t->rows[i], &sought) ? &t->rows[i] : NULL;
}

static enum status make_dns_tree(const struct dns_list *x, struct dns_tree *ret, struct err *e)
{
	const struct dns_cache *c = &x->cache;
	struct dns_record r;

	ret->count = 0;
	ret->rows = calloc(MAX(c->count + c->unanswered_count, 1), sizeof(*ret->rows));
	if (!ret->rows)
		return err_nomem(e);
	for (size_t i = 0; i < c->count; i++)
		if (dns_cache_record(&x->sources, &c->records[i], &r))
			ret->rows[ret->count++] = (struct dns_row){
				.found = &c->records[i],
				.entry = c->records[i].entry,
				.next = r.next,
				.in_table = c->records[i].in_table,
			};
	for (size_t i = 0; i < c->unanswered_count; i++)
		ret->rows[ret->count++] =
			(struct dns_row){ .entry = c->unanswered[i], .in_table = true };
	array_sort(ret->rows, ret->count, sizeof(*ret->rows), by_entry);
	for (size_t i = 0; i < ret->count; i++) {
		struct dns_row *next =
			ret->rows[i].next ? row_at(ret, &ret->rows[i], ret->rows[i].next) : NULL;

		if (next && next != &ret->rows[i])
			next->behind = true;
	}
	return ST_OK;
}

#define DNS_NAME_WIDTH 28

/* What there is to say of a block beside that it is in use and safe. */
static void put_dns_remarks(const struct dns_list *x, const struct heap_allocation *a,
			    const char *linked)
{
	const char *words[3];
	struct block_worth w;
	size_t n = 0;

	block_judge(x->printer, a, &w);
	if (a->state == BLOCK_FREE)
		words[n++] = "free";
	/* Of an image, no page can be judged. */
	if (strcmp(w.trust, "safe") && strcmp(w.trust, "not-applicable"))
		words[n++] = w.trust;
	if (linked)
		words[n++] = linked;
	for (size_t i = 0; i < n; i++)
		printf("%s%s", i ? ", " : "  (", words[i]);
	puts(n ? ")" : "");
}

static const char *const linked_remarks[] = {
	[DNS_LINKED_NOT] = "nothing leads to it",
	[DNS_LINKED_FROM_RECORD] = "after another record",
	[DNS_LINKED_FROM_BLOCK] = "a block leads to it",
};

/* Names have no other characters than hosts have. */
static void put_cached_record(const struct dns_list *x, struct dns_row *row, bool below)
{
	const struct dns_found *f = row->found;
	struct dns_record r;
	int n;

	row->told = true;
	if (!dns_cache_record(&x->sources, f, &r))
		return;
	n = printf("%s%-*s 0x%012" PRIx64 " %-5s %6" PRIu32, below ? ". " : "",
		   below ? DNS_NAME_WIDTH - 2 : DNS_NAME_WIDTH, r.name, f->block->address,
		   dns_type_name(r.type), r.ttl);
	printf("%s%s", line_has_room((size_t)n + 1 + strlen(r.data)) ? " " : "\n    ",
	       *r.data ? r.data : "?");
	put_dns_remarks(x, f->block, f->entry || below ? NULL : linked_remarks[f->linked]);
}

static void put_dns_entry(const struct dns_list *x, const struct dns_row *row)
{
	char name[DNS_NAME_MAX];

	if (!dns_cache_entry_name(&x->sources, &x->cache, row->entry, name))
		snprintf(name, sizeof(name), "?");
	printf("%-*s 0x%012" PRIx64 " %-5s %6s%s", DNS_NAME_WIDTH, name, row->entry->address,
	       row->in_table ? "table" : "entry", "-", row->found ? "" : " no record");
	put_dns_remarks(x, row->entry, NULL);
}

/* One record after the other; at most once each, so a cycle ends, too. */
static void put_dns_answer(const struct dns_list *x, const struct dns_tree *t, struct dns_row *row)
{
	bool below = row->entry != NULL;

	for (; row && !row->told; row = row->next ? row_at(t, row, row->next) : NULL) {
		put_cached_record(x, row, below);
		below = true;
	}
}

static enum status print_dns_tree(const struct dns_list *x, struct err *e)
{
	const struct dns_cache *c = &x->cache;
	struct dns_tree t;
	const enum status st = make_dns_tree(x, &t, e);

	if (st)
		return st;
	printf("%zu DNS record%s", c->count, c->count == 1 ? "" : "s");
	if (c->table)
		printf(", %zu name%s without one; table 0x%" PRIx64, c->unanswered_count,
		       c->unanswered_count == 1 ? "" : "s", c->table->address);
	putchar('\n');
	if (t.count)
		printf("%-*s %-14s %-5s %6s %s\n", DNS_NAME_WIDTH, "name", "address", "type", "ttl",
		       "data");
	for (size_t i = 0, end; i < t.count; i = end) {
		if (t.rows[i].entry)
			put_dns_entry(x, &t.rows[i]);
		for (end = i; end < t.count && t.rows[end].entry == t.rows[i].entry; end++)
			if (t.rows[end].found && !t.rows[end].behind)
				put_dns_answer(x, &t, &t.rows[end]);
		for (size_t k = i; k < end; k++) /* of a cycle, all are behind one */
			if (t.rows[k].found)
				put_dns_answer(x, &t, &t.rows[k]);
	}
	free(t.rows);
	return ST_OK;
}

static bool is_dns_heap_wide(const void *heaps, size_t heap)
{
	return heaps_at(heaps, heap)->wide;
}

enum status heap_dns(struct block_printer *p, const struct block_list *l, struct err *e)
{
	const struct memory_view m = peek_view(p->session->peek);
	struct dns_list x = {
		.printer = p,
		.sources = { .memory = &m,
			     .list = l,
			     .wide = is_dns_heap_wide,
			     .context = p->session->heaps },
	};
	enum status st = dns_cache_find(&x.sources, &x.cache, e);

	if (!st)
		st = peek_failed(p->session->peek, e);
	if (!st && p->json)
		st = print_dns_json(&x, e);
	else if (!st)
		st = print_dns_tree(&x, e);
	dns_cache_deinit(&x.cache);
	return st;
}
