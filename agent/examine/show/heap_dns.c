/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_dns.h"

#include <inttypes.h>

#include "agent/examine/heap/dns/cache.h"

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

static const char *linked_text(const struct dns_list *x, const struct dns_found *f)
{
	if (f->entry)
		return f->in_table ? "table" : "entry";
	return linked_names[f->linked] ? linked_names[f->linked] : "no";
}

/* Names have no other characters than hosts have. */
static void print_dns_records(const struct dns_list *x)
{
	const struct dns_cache *c = &x->cache;

	printf("%zu DNS record%s\n", c->count, c->count == 1 ? "" : "s");
	if (c->count)
		printf("%-14s %-5s %-14s %-6s %-5s %7s %s\n", "address", "state", "trust", "linked",
		       "type", "ttl", "name and data");
	for (size_t i = 0; i < c->count; i++) {
		const struct heap_allocation *a = c->records[i].block;
		struct dns_record r;
		struct block_worth w;

		if (!dns_cache_record(&x->sources, &c->records[i], &r))
			continue;
		block_judge(x->printer, a, &w);
		printf("0x%012" PRIx64 " %-5s %-14s %-6s %-5s %7" PRIu32 " %s %s\n", a->address,
		       heap_state_name(a->state), w.trust, linked_text(x, &c->records[i]),
		       dns_type_name(r.type), r.ttl, r.name, *r.data ? r.data : "?");
	}
	if (!c->table)
		return;
	printf("%zu name%s in the cache's table without a record\n", c->unanswered_count,
	       c->unanswered_count == 1 ? "" : "s");
	for (size_t i = 0; i < c->unanswered_count; i++) {
		const struct heap_allocation *a = c->unanswered[i];
		char name[DNS_NAME_MAX];
		struct block_worth w;

		if (!dns_cache_unanswered(&x->sources, c, i, name))
			continue;
		block_judge(x->printer, a, &w);
		printf("0x%012" PRIx64 " %-5s %-14s %-6s %-5s %7s %s\n", a->address,
		       heap_state_name(a->state), w.trust, "table", "-", "-", name);
	}
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
		print_dns_records(&x);
	dns_cache_deinit(&x.cache);
	return st;
}
