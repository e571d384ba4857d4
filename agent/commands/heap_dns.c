/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/heap_dns.h"

#include <inttypes.h>

#include "agent/heap/dns.h"
#include "agent/program/interrupt.h"
#include "formats/base/array.h"

/* More than any cache has; what goes on is none. */
#define RECORDS_MAX ((size_t)1 << 20)

static bool read_record(const struct block_printer *p, const struct heap_allocation *a,
			struct dns_record *ret)
{
	const struct memory_view m = peek_view(p->session->peek);

	return dns_record_read(&m, a->address, a->size, heaps_at(p->session->heaps, a->heap)->wide,
			       ret);
}

/* Also free ones: what was in them stays until they are used again. */
enum status dns_list_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct dns_list *l = context;
	struct dns_record record;
	bool is;

	if (interrupted())
		return interrupt_status(e);
	if (a->state == BLOCK_INTERNAL || l->count == RECORDS_MAX)
		return ST_OK;
	is = read_record(l->printer, a, &record);
	heaps_forget_page(l->printer->session->heaps);
	if (!is)
		return ST_OK;
	if (l->count == l->room) {
		struct heap_allocation *grown = array_grow(l->at, &l->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		l->at = grown;
	}
	l->at[l->count++] = *a;
	return ST_OK;
}

void dns_list_deinit(struct dns_list *l)
{
	free(l->at);
	*l = (struct dns_list){ 0 };
}

static json_t *record_json(const struct dns_list *l, const struct heap_allocation *a,
			   const struct dns_record *r)
{
	struct block_worth w;

	block_judge(l->printer, a, &w);
	return json_fields(JSON_FIELDS(
		field_made("address", heap_hex(a->address)),
		field_made("heap",
			   heap_hex(heaps_at(l->printer->session->heaps, a->heap)->address)),
		field_text("state", heap_state_name(a->state)), field_text("trust", w.trust),
		field_text("name", r->name), field_text("type", dns_type_name(r->type)),
		field_text("data", *r->data ? r->data : NULL), field_u64("ttl", r->ttl),
		field_u64("flags", r->flags),
		field_json("next", r->next ? heap_hex(r->next) : NULL)));
}

static enum status print_json(const struct dns_list *l, const struct process_session *s,
			      struct err *e)
{
	const struct process_facts *f = process_facts(s->process);
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->count; i++) {
		struct dns_record r;

		if (read_record(l->printer, &l->at[i], &r) &&
		    json_array_append_new(list, record_json(l, &l->at[i], &r)))
			return json_decref(list), err_nomem(e);
	}
	return json_print(
		json_fields(JSON_FIELDS(FIELD_SCHEMA("heap-dns"), field_text("file", s->path),
					field_u64("pid", f->pid), field_text("name", f->name),
					field_made("records", list))),
		JSON_INDENT(2), e);
}

enum status dns_list_print(const struct dns_list *l, const struct process_session *s, struct err *e)
{
	if (l->printer->json)
		return print_json(l, s, e);
	printf("%zu DNS records\n", l->count);
	for (size_t i = 0; i < l->count; i++) {
		const struct heap_allocation *a = &l->at[i];
		struct dns_record r;
		struct block_worth w;

		/* Names have no other characters than hosts have. */
		if (!read_record(l->printer, a, &r))
			continue;
		block_judge(l->printer, a, &w);
		printf("0x%012" PRIx64 "  %-4s  %-7s  %-5s  %s  %s  ttl %" PRIu32 "\n", a->address,
		       heap_state_name(a->state), w.trust, dns_type_name(r.type), r.name,
		       *r.data ? r.data : "?", r.ttl);
	}
	return ST_OK;
}
