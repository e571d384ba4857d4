/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/heap_dns.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/heap/dns.h"
#include "agent/program/interrupt.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* More than any cache has; what goes on is none. */
#define RECORDS_MAX  ((size_t)1 << 20)

/* So many pages of blocks are searched for references: 256 GiB. */
#define SEARCHED_MAX (UINT64_C(1) << 26)

/* What leads to a record's first byte. A block that is no record can be an entry of the cache. */
enum linked_from {
	LINKED_NOT,
	LINKED_FROM_RECORD,
	LINKED_FROM_BLOCK,
};

static const char *const linked_names[] = {
	[LINKED_FROM_RECORD] = "record",
	[LINKED_FROM_BLOCK] = "block",
};

struct found {
	const struct heap_allocation *block;
	enum linked_from linked;
};

struct dns_search {
	struct block_printer *printer;
	const struct block_list *list;
	struct found *at; /* by rising address */
	size_t count, room;
	uint64_t searched; /* pages */
};

static bool is_wide(const struct dns_search *x, const struct heap_allocation *a)
{
	return heaps_at(x->printer->session->heaps, a->heap)->wide;
}

static bool read_record(const struct dns_search *x, const struct heap_allocation *a,
			struct dns_record *ret)
{
	const struct memory_view m = peek_view(x->printer->session->peek);

	return dns_record_read(&m, a->address, a->size, is_wide(x, a), ret);
}

/* Also free ones: what was in them stays until they are used again. */
static enum status find_records(struct dns_search *x, struct err *e)
{
	for (size_t i = 0; i < x->list->count && x->count < RECORDS_MAX; i++) {
		struct dns_record record;

		if (interrupted())
			return interrupt_status(e);
		if (!read_record(x, &x->list->at[i], &record))
			continue;
		if (x->count == x->room) {
			struct found *grown = array_grow(x->at, &x->room, sizeof(*grown));

			if (!grown)
				return err_nomem(e);
			x->at = grown;
		}
		x->at[x->count++] = (struct found){ .block = &x->list->at[i] };
	}
	return ST_OK;
}

static int compare(const void *key, const void *member)
{
	const uint64_t va = *(const uint64_t *)key;
	const struct found *f = member;

	return (va > f->block->address) - (va < f->block->address);
}

static struct found *record_at(const struct dns_search *x, uint64_t va)
{
	return bsearch(&va, x->at, x->count, sizeof(*x->at), compare);
}

static void take_words(struct dns_search *x, const struct heap_allocation *a, enum linked_from from,
		       const uint8_t *bytes, size_t len)
{
	const size_t word = is_wide(x, a) ? 8 : 4;

	for (size_t at = 0; at + word <= len; at += word) {
		const uint64_t va = word == 8 ? get_le64(bytes + at) : get_le32(bytes + at);
		struct found *f;

		if (va < x->at[0].block->address || va > x->at[x->count - 1].block->address)
			continue;
		f = record_at(x, va);
		if (f && f->block != a)
			f->linked = MAX(f->linked, from);
	}
}

/* Free blocks are not asked: what they refer to is what was referred to once. */
static enum status find_links(struct dns_search *x, struct err *e)
{
	struct peek *peek = x->printer->session->peek;

	for (size_t i = 0; i < x->list->count && x->count; i++) {
		const struct heap_allocation *a = &x->list->at[i];
		const uint64_t end = a->address + block_bytes(a);
		const enum linked_from from =
			record_at(x, a->address) ? LINKED_FROM_RECORD : LINKED_FROM_BLOCK;

		for (uint64_t va = a->address, next; va < end && a->state == BLOCK_BUSY;
		     va = next) {
			const uint64_t page = va & ~(uint64_t)(PAGE_SIZE - 1);
			const struct peek_page *p;

			if (interrupted())
				return interrupt_status(e);
			if (x->searched++ == SEARCHED_MAX)
				return ST_OK;
			next = MIN(end, page + PAGE_SIZE);
			p = peek_page(peek, page);
			if (!p)
				return peek_failed(peek, e);
			if (p->bytes)
				take_words(x, a, from, p->bytes + (va - page), next - va);
		}
	}
	return ST_OK;
}

static json_t *record_json(const struct dns_search *x, const struct found *f,
			   const struct dns_record *r)
{
	const struct heap_allocation *a = f->block;
	struct block_worth w;

	block_judge(x->printer, a, &w);
	return json_fields(JSON_FIELDS(
		field_made("address", heap_hex(a->address)),
		field_made("heap",
			   heap_hex(heaps_at(x->printer->session->heaps, a->heap)->address)),
		field_text("state", heap_state_name(a->state)), field_text("trust", w.trust),
		field_text("linked_from", linked_names[f->linked]), field_text("name", r->name),
		field_text("type", dns_type_name(r->type)),
		field_text("data", *r->data ? r->data : NULL), field_u64("ttl", r->ttl),
		field_u64("flags", r->flags),
		field_json("next", r->next ? heap_hex(r->next) : NULL)));
}

static enum status print_json(const struct dns_search *x, struct err *e)
{
	const struct process_session *s = x->printer->session->process;
	const struct process_facts *f = process_facts(s->process);
	json_t *list = json_array();

	for (size_t i = 0; list && i < x->count; i++) {
		struct dns_record r;

		if (read_record(x, x->at[i].block, &r) &&
		    json_array_append_new(list, record_json(x, &x->at[i], &r)))
			return json_decref(list), err_nomem(e);
	}
	return json_print(
		json_fields(JSON_FIELDS(FIELD_SCHEMA("heap-dns"), field_text("file", s->path),
					field_u64("pid", f->pid), field_text("name", f->name),
					field_made("records", list))),
		JSON_INDENT(2), e);
}

static void print_text(const struct dns_search *x)
{
	printf("%zu DNS record%s\n", x->count, x->count == 1 ? "" : "s");
	if (x->count)
		printf("%-14s %-5s %-14s %-6s %-5s %7s %s\n", "address", "state", "trust", "linked",
		       "type", "ttl", "name and data");
	for (size_t i = 0; i < x->count; i++) {
		const struct heap_allocation *a = x->at[i].block;
		const char *linked = linked_names[x->at[i].linked];
		struct dns_record r;
		struct block_worth w;

		/* Names have no other characters than hosts have. */
		if (!read_record(x, a, &r))
			continue;
		block_judge(x->printer, a, &w);
		printf("0x%012" PRIx64 " %-5s %-14s %-6s %-5s %7" PRIu32 " %s %s\n", a->address,
		       heap_state_name(a->state), w.trust, linked ? linked : "no",
		       dns_type_name(r.type), r.ttl, r.name, *r.data ? r.data : "?");
	}
}

enum status heap_dns(struct block_printer *p, const struct block_list *l, struct err *e)
{
	struct dns_search x = { .printer = p, .list = l };
	enum status st = find_records(&x, e);

	if (!st)
		st = find_links(&x, e);
	if (!st && p->json)
		st = print_json(&x, e);
	else if (!st)
		print_text(&x);
	free(x.at);
	return st;
}
