/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_blocks.h"

#include <inttypes.h>
#include <string.h>

#include "agent/examine/show/block_content.h"
#include "agent/shared/program/interrupt.h"

/*
 * Blocks can be said to be as large as the address space. So many pages are looked at for all that
 * is printed: more than 200 GiB.
 */
#define JUDGED_MAX (UINT64_C(1) << 26)

static enum block_from block_origin(const struct peek_worth *w)
{
	switch (w->given) {
	case GIVEN_PAGE_FILE:
		return FROM_PAGE_FILE;
	case GIVEN_ZEROS:
		return FROM_ZEROS;
	case GIVEN_COMPRESSED:
		return FROM_COMPRESSED;
	default:
		return w->transition ? FROM_TRANSITION : FROM_VALID;
	}
}

void block_judge(struct block_printer *b, const struct heap_allocation *a, struct block_worth *ret)
{
	const uint64_t end = a->address + MAX(block_bytes(a), 1);
	bool any = false, unknown = false;
	enum trust worst = TRUST_NOT_APPLICABLE;

	*ret = (struct block_worth){ 0 };
	for (uint64_t va = a->address, next; va < end; va = next) {
		struct peek_worth w = { .given = GIVEN_NOTHING };

		if (b->judged == JUDGED_MAX || interrupted()) {
			ret->unread += end - va;
			unknown = true;
			break;
		}
		b->judged++;
		next = MIN(end, (va & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE);
		if (!peek_worth(b->session->peek, va, &w) || w.given == GIVEN_NOTHING) {
			ret->unread += next - va;
			continue;
		}
		ret->from[block_origin(&w)] += MIN(next - va, block_bytes(a));
		unknown |= !w.has_verdict;
		/* Safe, at risk, wrong: the later, the worse. Of an image nobody can say which. */
		if (w.has_verdict && (!any || w.trust > worst))
			worst = w.trust;
		any |= w.has_verdict;
	}
	if (any && !unknown)
		ret->trust = trust_name(worst);
	else
		ret->trust = unknown || any ? "unknown" : "none";
}

void block_from_text(const struct block_worth *w, char ret[static BLOCK_FROM_TEXT])
{
	static const char *const words[BLOCK_FROMS] = {
#define X(name, text, words) [name] = words,
		BLOCK_FROM_MAP(X)
#undef X
	};
	size_t n = 0;

	*ret = '\0';
	for (size_t i = 0; i < BLOCK_FROMS; i++)
		if (w->from[i])
			n += (size_t)snprintf(ret + n, BLOCK_FROM_TEXT - n, "%s%" PRIu64 " %s",
					      n ? ", " : "", w->from[i], words[i]);
	if (w->unread)
		snprintf(ret + n, BLOCK_FROM_TEXT - n, "%s%" PRIu64 " not read", n ? ", " : "",
			 w->unread);
	else if (!n)
		snprintf(ret, BLOCK_FROM_TEXT, "-");
}

static const char *const from_names[BLOCK_FROMS] = {
#define X(name, text, words) [name] = text,
	BLOCK_FROM_MAP(X)
#undef X
};

static json_t *from_json(const struct block_worth *w)
{
	json_t *o = json_object();

	for (size_t i = 0; o && i < BLOCK_FROMS; i++)
		if (w->from[i] && json_object_set_new(o, from_names[i], json_u64(w->from[i])))
			return json_decref(o), NULL;
	return o;
}

static void requested_text(const struct heap_allocation *a, char ret[static 24])
{
	if (a->has_requested)
		snprintf(ret, 24, "%" PRIu64, a->requested);
	else
		snprintf(ret, 24, "%s", "?");
}

json_t *block_json(const struct block_printer *p, const struct heap_allocation *a,
		   const struct block_worth *w)
{
	struct stack_trace t;
	const bool traced = heap_session_trace(p->session, a, &t);

	return json_fields(JSON_FIELDS(
		FIELD_SCHEMA("heap-block"),
		field_made("heap", heap_hex(heaps_at(p->session->heaps, a->heap)->address)),
		field_made("address", heap_hex(a->address)), field_u64("size", a->size),
		field_json("requested", a->has_requested ? json_u64(a->requested) : NULL),
		field_text("place", heap_place_name(a->place)),
		field_text("state", heap_state_name(a->state)),
		field_made("container", heap_hex(a->container)), field_bool("island", a->island),
		field_u64("unread", w->unread), field_made("from", from_json(w)),
		field_text("trust", w->trust),
		traced ? field_made("trace", heap_trace_json(p->session, &t))
		       : field_json("trace", NULL)));
}

/*
 * A row of CSV, without printf(), because there can be millions of them. Each field ends in a
 * comma, and the last comma becomes the end of the line.
 */
#define ROW_SIZE 512 /* of fifteen fields: names of ours, and numbers of 20 digits at most */

struct row {
	char text[ROW_SIZE];
	size_t n;
};

static void put_csv_text(struct row *r, const char *s)
{
	const size_t n = strlen(s);

	memcpy(r->text + r->n, s, n);
	r->n += n;
	r->text[r->n++] = ',';
}

static void put_csv_number(struct row *r, uint64_t x, unsigned base)
{
	char digits[21];
	size_t n = sizeof(digits) - 1;

	digits[n] = '\0';
	do {
		digits[--n] = "0123456789abcdef"[x % base];
		x /= base;
	} while (x);
	put_csv_text(r, digits + n);
}

static void put_hex(struct row *r, uint64_t x)
{
	r->text[r->n++] = '0';
	r->text[r->n++] = 'x';
	put_csv_number(r, x, 16);
}

static void print_csv(const struct heap_allocation *a, uint64_t heap, const struct block_worth *w)
{
	struct row r = { .n = 0 };

	put_hex(&r, heap);
	put_hex(&r, a->address);
	put_csv_number(&r, a->size, 10);
	if (a->has_requested)
		put_csv_number(&r, a->requested, 10);
	else
		put_csv_text(&r, "");
	put_csv_text(&r, heap_place_name(a->place));
	put_csv_text(&r, heap_state_name(a->state));
	put_hex(&r, a->container);
	put_csv_number(&r, a->island, 10);
	put_csv_number(&r, w->unread, 10);
	put_csv_text(&r, w->trust);
	for (size_t i = 0; i < BLOCK_FROMS; i++)
		put_csv_number(&r, w->from[i], 10);
	r.text[r.n - 1] = '\n';
	fwrite(r.text, 1, r.n, stdout); /* what it refused, main() finds when it closes it */
}

static enum status print_block_json(struct block_printer *p, const struct heap_allocation *a,
				    const struct block_worth *w, struct err *e)
{
	json_t *o = block_json(p, a, w);

	if (p->preview &&
	    !json_add_fields(o, JSON_FIELDS(field_made(
					"preview", block_preview_json(p->session, p->preview, a)))))
		return json_decref(o), err_nomem(e);
	return json_print(o, JSON_COMPACT, e);
}

static enum status print_block(struct block_printer *p, const struct heap_allocation *a,
			       struct err *e)
{
	const uint64_t heap = heaps_at(p->session->heaps, a->heap)->address;
	char requested[24], from[BLOCK_FROM_TEXT];
	struct block_worth w;

	block_judge(p, a, &w);
	if (p->json)
		return print_block_json(p, a, &w, e);
	if (p->csv) {
		print_csv(a, heap, &w);
		return ST_OK;
	}
	requested_text(a, requested);
	block_from_text(&w, from);
	table_cell(&p->table, "0x%012" PRIx64, heap);
	table_cell(&p->table, "0x%012" PRIx64, a->address);
	table_cell(&p->table, "%" PRIu64, a->size);
	table_cell(&p->table, "%s", requested);
	table_cell(&p->table, "%s", heap_place_name(a->place));
	table_cell(&p->table, "%s", heap_state_name(a->state));
	table_cell(&p->table, "%s", w.trust);
	table_cell(&p->table, "%s", from);
	if (p->preview)
		block_preview_print(p->session, p->preview, a);
	return ST_OK;
}

/* Reads the block, which a walk must not be interrupted for: only when blocks are printed. */
static bool has_wanted_content(const struct block_printer *p, const struct heap_allocation *a)
{
	struct memory_part h;
	struct block_text t;

	if (!p->filter || !p->filter->has_text)
		return true;
	block_head_read(p->session, a, &h);
	return block_text_find(&h, &t);
}

/* The heap goes first: its blocks are next to each other. */
static const struct table_column block_columns[] = {
	{ "heap", -14, 4 }, { "address", -14, 0 },
	{ "size", 9, 0 },   { "requested", 9, 2 },
	{ "place", -9, 3 }, { "state", -5, 0 },
	{ "trust", -7, 1 }, { "bytes by location", 0, 0 },
};

static void print_columns(struct block_printer *p)
{
	if (!p->begun && p->csv) {
		printf("heap,address,size,requested,place,state,container,island,unread,trust");
		for (size_t i = 0; i < BLOCK_FROMS; i++)
			printf(",%s", from_names[i]);
		putchar('\n');
	} else if (!p->begun && !p->json) {
		table_begin(&p->table, stdout, block_columns, ARRAY_SIZE(block_columns));
	}
	p->begun = true;
}

static enum status flush_blocks(struct block_printer *p, struct err *e)
{
	enum status st = ST_OK;

	print_columns(p);
	for (size_t i = 0; i < p->count && !st; i++)
		if (has_wanted_content(p, &p->at[i]))
			st = print_block(p, &p->at[i], e);
	p->count = 0;
	heaps_forget_page(p->session->heaps);
	if (!st && interrupted())
		st = interrupt_status(e);
	return st;
}

enum status block_printer_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct block_printer *p = context;

	if (a->state == BLOCK_INTERNAL ||
	    (p->filter && !block_filter_takes(p->filter, p->session, a)))
		return ST_OK;
	p->at[p->count++] = *a;
	return p->count < BLOCKS_AT_ONCE ? ST_OK : flush_blocks(p, e);
}

enum status block_printer_end(struct block_printer *p, struct err *e)
{
	const enum status st = flush_blocks(p, e);

	if (!p->json && !p->csv)
		table_end(&p->table);
	return st;
}
