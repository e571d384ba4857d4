/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/dns/cache.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"

/* How far from its beginning an entry's pointers are looked for. */
#define ENTRY_BYTES 0x100
#define ENTRY_WORDS (ENTRY_BYTES / 4)
/* ... and how far into it a link can lead, which is not always to its first byte. */
#define LINK_BYTES  0x20
#define LINK_WORDS  (LINK_BYTES / 4)

/* So many entries are asked for the layout, and so many have to agree. */
#define VOTERS_MAX  4096
#define VOTES_LEAST 3

/* A pointer in a block. */
struct reference {
	const struct heap_allocation *from;
	size_t to;   /* a record's or an entry's number */
	uint32_t at; /* where in the block */
	uint32_t into;
};

struct references {
	struct reference *at;
	size_t count, room;
};

/* A block that can be an entry. */
struct entry {
	const struct heap_allocation *block;
	struct dns_found *record; /* NULL: none, ... */
	bool answered;            /* ... but a pointer to something that is not known to be one */
	bool in_table;
};

struct entries {
	struct entry *at; /* by rising address */
	size_t count, room;
};

struct layout {
	bool wide;
	uint32_t record, name; /* where in an entry their pointers are */
};

struct search {
	const struct dns_cache_sources *s;
	struct dns_cache *c;
	struct references records; /* pointers to records, from blocks that are none */
	struct references links;   /* ... and from any block to entries */
	struct entries entries;
	struct layout layout;
	uint64_t searched; /* pages */
};

static bool is_block_wide(const struct search *x, const struct heap_allocation *a)
{
	return x->s->wide(x->s->context, a->heap);
}

static size_t word_of(const struct search *x, const struct heap_allocation *a)
{
	return is_block_wide(x, a) ? 8 : 4;
}

/*
 * Records
 */

bool dns_cache_record(const struct dns_cache_sources *s, const struct dns_found *f,
		      struct dns_record *ret)
{
	const struct heap_allocation *a = f->block;

	return dns_record_read(s->memory, a->address, a->size, s->wide(s->context, a->heap), ret);
}

/* Also free ones: what was in them stays until they are used again. */
static enum status find_records(struct search *x, struct err *e)
{
	const struct block_list *l = x->s->list;

	for (size_t i = 0; i < l->count && x->c->count < DNS_RECORDS_MAX; i++) {
		struct dns_found f = { .block = &l->at[i] };
		struct dns_record record;

		if (interrupted())
			return interrupt_status(e);
		if (!dns_cache_record(x->s, &f, &record))
			continue;
		if (x->c->count == x->c->room) {
			struct dns_found *grown =
				array_grow(x->c->records, &x->c->room, sizeof(*grown));

			if (!grown)
				return err_nomem(e);
			x->c->records = grown;
		}
		x->c->records[x->c->count++] = f;
	}
	return ST_OK;
}

static struct dns_found *dns_record_at(const struct search *x, uint64_t va)
{
	struct dns_found *records = x->c->records;
	const size_t i = FIRST_WHERE(k, x->c->count, records[k].block->address >= va);

	return i < x->c->count && records[i].block->address == va ? &records[i] : NULL;
}

/*
 * Words of busy blocks. Free ones are not asked: what they refer to is what was referred to once.
 */

typedef enum status take_word(struct search *x, const struct heap_allocation *a, uint64_t at,
			      uint64_t word, struct err *e);

static enum status each_block_word(struct search *x, const struct heap_allocation *a, uint64_t from,
				   const uint8_t *bytes, size_t len, take_word *take, struct err *e)
{
	const size_t word = word_of(x, a);
	enum status st = ST_OK;

	for (size_t at = 0; at + word <= len && !st; at += word)
		st = take(x, a, from + at, word == 8 ? get_le64(bytes + at) : get_le32(bytes + at),
			  e);
	return st;
}

static enum status search_dns_block(struct search *x, const struct heap_allocation *a,
				    take_word *take, struct err *e)
{
	const uint64_t end = a->address + block_bytes(a);
	enum status st = ST_OK;

	for (uint64_t va = a->address, next; va < end && !st; va = next) {
		const uint64_t page = va & ~(uint64_t)(PAGE_SIZE - 1);
		const uint8_t *bytes;

		if (interrupted())
			return interrupt_status(e);
		if (x->searched == DNS_SEARCHED_MAX)
			return ST_OK;
		x->searched++;
		next = MIN(end, page + PAGE_SIZE);
		bytes = x->s->memory->page(x->s->memory->context, page);
		if (bytes)
			st = each_block_word(x, a, va - a->address, bytes + (va - page), next - va,
					     take, e);
	}
	return st;
}

static enum status search_blocks(struct search *x, take_word *take, struct err *e)
{
	const struct block_list *l = x->s->list;
	enum status st = ST_OK;

	x->searched = 0;
	for (size_t i = 0; i < l->count && !st; i++)
		if (l->at[i].state == BLOCK_BUSY)
			st = search_dns_block(x, &l->at[i], take, e);
	return st;
}

static enum status add_reference(struct references *l, const struct reference *r, struct err *e)
{
	if (l->count == DNS_RECORDS_MAX)
		return ST_OK;
	if (l->count == l->room) {
		struct reference *grown = array_grow(l->at, &l->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		l->at = grown;
	}
	l->at[l->count++] = *r;
	return ST_OK;
}

/* To a record. */
static enum status take_record(struct search *x, const struct heap_allocation *a, uint64_t at,
			       uint64_t word, struct err *e)
{
	const struct dns_cache *c = x->c;
	struct dns_found *f;
	bool from_record;

	if (word < c->records[0].block->address || word > c->records[c->count - 1].block->address)
		return ST_OK;
	f = dns_record_at(x, word);
	if (!f || f->block == a)
		return ST_OK;
	from_record = dns_record_at(x, a->address) != NULL;
	f->linked = MAX(f->linked, from_record ? DNS_LINKED_FROM_RECORD : DNS_LINKED_FROM_BLOCK);
	if (from_record || at >= ENTRY_BYTES)
		return ST_OK;
	return add_reference(&x->records,
			     &(const struct reference){ .from = a,
							.to = (size_t)(f - c->records),
							.at = (uint32_t)at },
			     e);
}

/*
 * What an entry looks like
 */

static bool read_block_word(const struct search *x, const struct heap_allocation *a, uint32_t at,
			    uint64_t *ret)
{
	return at + word_of(x, a) <= block_bytes(a) &&
	       view_pointer(x->s->memory, a->address + at, is_block_wide(x, a), ret);
}

/* The name that a word of the block points to. */
static bool read_entry_name(const struct search *x, const struct heap_allocation *a, uint32_t at,
			    char ret[static DNS_NAME_MAX])
{
	uint64_t va;

	return read_block_word(x, a, at, &va) && va >= PAGE_SIZE &&
	       dns_name_read(x->s->memory, va, ret);
}

/* Names are the same in any case (RFC 1035, 2.3.3). */
static bool same_name(const char *a, const char *b)
{
	while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

/* A vote for each place in the block that leads to the name of its record. */
static void vote_for_entry_layout(const struct search *x, const struct reference *r,
				  unsigned votes[ENTRY_WORDS][ENTRY_WORDS])
{
	const uint32_t word = (uint32_t)word_of(x, r->from);
	char name[DNS_NAME_MAX];
	struct dns_record record;

	if (!dns_cache_record(x->s, &x->c->records[r->to], &record))
		return;
	for (uint32_t at = 0; at < ENTRY_BYTES; at += word)
		votes[r->at / 4][at / 4] += at != r->at && read_entry_name(x, r->from, at, name) &&
					    same_name(name, record.name);
}

/* False: too few agree. */
static bool learn_layout(struct search *x)
{
	unsigned votes[2][ENTRY_WORDS][ENTRY_WORDS] = { 0 }, most = 0;

	for (size_t i = 0; i < MIN(x->records.count, (size_t)VOTERS_MAX) && !interrupted(); i++)
		vote_for_entry_layout(x, &x->records.at[i],
				      votes[is_block_wide(x, x->records.at[i].from)]);
	for (size_t wide = 0; wide < ARRAY_SIZE(votes); wide++)
		for (uint32_t record = 0; record < ENTRY_WORDS; record++)
			for (uint32_t name = 0; name < ENTRY_WORDS; name++)
				if (votes[wide][record][name] > most) {
					most = votes[wide][record][name];
					x->layout = (struct layout){ wide, 4 * record, 4 * name };
				}
	return most >= VOTES_LEAST;
}

/*
 * Entries
 */

static enum status add_entry(struct search *x, const struct entry *n, struct err *e)
{
	struct entries *l = &x->entries;

	if (l->count == DNS_RECORDS_MAX)
		return ST_OK;
	if (l->count == l->room) {
		struct entry *grown = array_grow(l->at, &l->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		l->at = grown;
	}
	l->at[l->count++] = *n;
	return ST_OK;
}

/*
 * With a record of its name; or with a name and something else, or nothing, where the record would
 * be: such an entry has to be in the table's chains to be one, and others hang on it there.
 */
static enum status find_dns_entry(struct search *x, const struct heap_allocation *a, struct err *e)
{
	struct entry n = { .block = a };
	char name[DNS_NAME_MAX];
	struct dns_record record;
	uint64_t va;

	if (is_block_wide(x, a) != x->layout.wide || dns_record_at(x, a->address) ||
	    !read_block_word(x, a, x->layout.record, &va) ||
	    !read_entry_name(x, a, x->layout.name, name))
		return ST_OK;
	n.answered = va != 0;
	n.record = dns_record_at(x, va);
	if (n.record &&
	    (!dns_cache_record(x->s, n.record, &record) || !same_name(name, record.name)))
		n.record = NULL;
	return add_entry(x, &n, e);
}

static enum status find_entries(struct search *x, struct err *e)
{
	const struct block_list *l = x->s->list;
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count && !st; i++) {
		if (interrupted())
			return interrupt_status(e);
		if (l->at[i].state == BLOCK_BUSY)
			st = find_dns_entry(x, &l->at[i], e);
	}
	return st;
}

/* The last entry that begins at `va` or before it, and is no more than a link's place away. */
static struct entry *entry_near(const struct search *x, uint64_t va)
{
	const struct entries *l = &x->entries;
	size_t behind;

	/* Nearly all words lead to none. */
	if (!l->count || va < l->at[0].block->address ||
	    va >= l->at[l->count - 1].block->address + LINK_BYTES)
		return NULL;
	behind = FIRST_WHERE(i, l->count, l->at[i].block->address > va);
	return behind && va - l->at[behind - 1].block->address < LINK_BYTES ? &l->at[behind - 1]
									    : NULL;
}

/* To an entry. */
static enum status take_link(struct search *x, const struct heap_allocation *a, uint64_t at,
			     uint64_t word, struct err *e)
{
	const struct entry *to = entry_near(x, word);

	if (!to || to->block == a || word % 4 || at > UINT32_MAX)
		return ST_OK;
	return add_reference(
		&x->links,
		&(const struct reference){ .from = a,
					   .to = (size_t)(to - x->entries.at),
					   .at = (uint32_t)at,
					   .into = (uint32_t)(word - to->block->address) },
		e);
}

/*
 * The table
 */

static int by_block_and_entry(const void *a, const void *b)
{
	const struct reference *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static bool is_answered(const struct search *x, const struct reference *r)
{
	return x->entries.at[r->to].record != NULL;
}

/* Where into entries links lead: to the first byte of one, or to its LIST_ENTRY. */
static uint32_t learn_into(const struct search *x)
{
	unsigned votes[LINK_WORDS] = { 0 };
	uint32_t best = 0;

	for (size_t i = 0; i < x->links.count; i++)
		votes[x->links.at[i].into / 4] += is_answered(x, &x->links.at[i]);
	for (uint32_t i = 1; i < LINK_WORDS; i++)
		if (votes[i] > votes[best])
			best = i;
	return 4 * best;
}

static const struct entry *entry_of_block(const struct search *x, const struct heap_allocation *a)
{
	const struct entry *n = entry_near(x, a->address);

	return n && n->block == a ? n : NULL;
}

/* Where in entries links to others are. UINT32_MAX: no entry with a record leads to another. */
static uint32_t learn_at(const struct search *x)
{
	unsigned votes[ENTRY_WORDS] = { 0 };
	uint32_t best = 0;

	for (size_t i = 0; i < x->links.count; i++) {
		const struct reference *r = &x->links.at[i];
		const struct entry *from = entry_of_block(x, r->from);

		if (from && from->record && r->at < ENTRY_BYTES)
			votes[r->at / 4] += is_answered(x, r);
	}
	for (uint32_t i = 1; i < ENTRY_WORDS; i++)
		if (votes[i] > votes[best])
			best = i;
	return votes[best] ? 4 * best : UINT32_MAX;
}

static void keep_links(struct search *x, uint32_t into)
{
	size_t kept = 0;

	for (size_t i = 0; i < x->links.count; i++)
		if (x->links.at[i].into == into)
			x->links.at[kept++] = x->links.at[i];
	x->links.count = kept;
	array_sort(x->links.at, x->links.count, sizeof(*x->links.at), by_block_and_entry);
}

/* What leads to most entries that have a record, each counted once. NULL: nothing to three. */
static const struct heap_allocation *elect_table(const struct search *x)
{
	const struct references *l = &x->links;
	const struct heap_allocation *table = NULL;
	size_t most = VOTES_LEAST - 1;

	for (size_t i = 0, end; i < l->count; i = end) {
		size_t entries = 0;

		for (end = i; end < l->count && l->at[end].from == l->at[i].from; end++)
			if (end == i || l->at[end].to != l->at[end - 1].to)
				entries += x->entries.at[l->at[end].to].record != NULL;
		if (entries > most) {
			most = entries;
			table = l->at[i].from;
		}
	}
	return table;
}

/* Marks what the block leads to from `at`, or from anywhere, and puts what is new on the stack. */
static size_t follow_entry_links(struct search *x, const struct heap_allocation *from,
				 const uint32_t *at, size_t *stack, size_t depth)
{
	const struct references *l = &x->links;

	for (size_t i = FIRST_WHERE(k, l->count, l->at[k].from >= from);
	     i < l->count && l->at[i].from == from; i++) {
		struct entry *to = &x->entries.at[l->at[i].to];

		if (to->in_table || (at && l->at[i].at != *at))
			continue;
		to->in_table = true;
		stack[depth++] = l->at[i].to;
	}
	return depth;
}

static enum status follow_cache_table(struct search *x, struct err *e)
{
	_cleanup_free_ size_t *stack = malloc(MAX(x->entries.count, (size_t)1) * sizeof(*stack));
	const uint32_t at = learn_at(x);
	size_t depth;

	if (!stack)
		return err_nomem(e);
	depth = follow_entry_links(x, x->c->table, NULL, stack, 0);
	while (depth) {
		const struct heap_allocation *from = x->entries.at[stack[--depth]].block;

		depth = follow_entry_links(x, from, &at, stack, depth);
	}
	return ST_OK;
}

/* Whether an entry is in the table holds for all records of its answer that can be reached. */
static void tell_records(struct search *x, const struct entry *from)
{
	struct dns_found *f = from->record;
	struct dns_record record;

	while (f && !f->entry) {
		f->entry = from->block;
		f->in_table = from->in_table;
		f = dns_cache_record(x->s, f, &record) && record.next
			    ? dns_record_at(x, record.next)
			    : NULL;
	}
}

static enum status tell_unanswered(struct search *x, const struct entry *from, struct err *e)
{
	struct dns_cache *c = x->c;

	if (c->unanswered_count == c->unanswered_room) {
		const struct heap_allocation **grown =
			array_grow(c->unanswered, &c->unanswered_room, sizeof(const void *));

		if (!grown)
			return err_nomem(e);
		c->unanswered = grown;
	}
	c->unanswered[c->unanswered_count++] = from->block;
	return ST_OK;
}

/* Those in the table first: what others still lead to is theirs. */
static enum status tell_entries(struct search *x, struct err *e)
{
	enum status st = ST_OK;

	for (int in_table = 1; in_table >= 0; in_table--)
		for (size_t i = 0; i < x->entries.count; i++)
			if (x->entries.at[i].in_table == in_table)
				tell_records(x, &x->entries.at[i]);
	for (size_t i = 0; i < x->entries.count && !st; i++)
		if (x->entries.at[i].in_table && !x->entries.at[i].answered)
			st = tell_unanswered(x, &x->entries.at[i], e);
	return st;
}

static enum status find_cache_table(struct search *x, struct err *e)
{
	enum status st = find_entries(x, e);

	if (!st)
		st = search_blocks(x, take_link, e);
	if (st)
		return st;
	keep_links(x, learn_into(x));
	x->c->table = elect_table(x);
	if (x->c->table)
		st = follow_cache_table(x, e);
	return st ? st : tell_entries(x, e);
}

enum status dns_cache_find(const struct dns_cache_sources *s, struct dns_cache *ret, struct err *e)
{
	struct search x = { .s = s, .c = ret };
	enum status st;

	*ret = (struct dns_cache){ 0 };
	st = find_records(&x, e);
	if (!st && ret->count)
		st = search_blocks(&x, take_record, e);
	if (!st && learn_layout(&x))
		st = find_cache_table(&x, e);
	if (!st && interrupted())
		st = interrupt_status(e);
	ret->name_at = x.layout.name;
	free(x.records.at);
	free(x.links.at);
	free(x.entries.at);
	return st;
}

void dns_cache_deinit(struct dns_cache *c)
{
	free(c->records);
	free(c->unanswered);
}

bool dns_cache_entry_name(const struct dns_cache_sources *s, const struct dns_cache *c,
			  const struct heap_allocation *entry, char ret[static DNS_NAME_MAX])
{
	const struct search x = { .s = s };

	return read_entry_name(&x, entry, c->name_at, ret);
}

bool dns_cache_unanswered(const struct dns_cache_sources *s, const struct dns_cache *c, size_t i,
			  char ret[static DNS_NAME_MAX])
{
	return dns_cache_entry_name(s, c, c->unanswered[i], ret);
}
