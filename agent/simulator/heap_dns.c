/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/heap_dns.h"

#include <stdlib.h>
#include <string.h>

#include "agent/simulator/heap_build.h"
#include "formats/base/array.h"

/* DNS_RECORDW */
#define RECORD_NAME   0x08
#define RECORD_TYPE   0x10
#define RECORD_LENGTH 0x12
#define RECORD_FLAGS  0x14
#define RECORD_TTL    0x18
#define RECORD_DATA   0x20

#define TYPE_A        1
#define TYPE_CNAME    5
#define TYPE_PTR      12
#define TYPE_MX       15
#define TYPE_AAAA     28
#define TYPE_SRV      33

/*
 * 7's table has 211 chains: an allocation of 1688 bytes in the 2015 paper. The others' numbers are
 * ours, of the sizes that MemProcFS expects.
 */
static const struct dns_shape {
	uint32_t buckets;
	bool lists; /* buckets are LIST_ENTRY, and entries are linked by one */
	uint16_t link, name, record, name_inline, size;
} shapes[SIM_HEAP_LAYOUTS] = {
	[SIM_HEAP_7] = { 211, false, 0, 0x08, 0x18, 0x30, 0x30 },
	[SIM_HEAP_8] = { 211, false, 0, 0x08, 0x18, 0x30, 0x30 },
	[SIM_HEAP_14393] = { 521, false, 8, 0x38, 0x58, 0, 0x68 },
	[SIM_HEAP_17763] = { 521, false, 8, 0x38, 0x58, 0, 0x68 },
	[SIM_HEAP_26100] = { 1801, true, 8, 0x38, 0x58, 0, 0x68 },
};

struct dns {
	struct sim_heap_builder *cache, *heap;
	const struct dns_shape *shape;
	struct sim_dns *ret;
	size_t room;
	uint32_t table;
	uint32_t *last; /* the end of each chain: an entry's block, or SIM_HEAP_NO_BLOCK */
	bool failed;
};

/* A block of zeros, even without memory for it: its heap will tell. */
static uint32_t take_zeroed_block(struct sim_heap_builder *b, uint64_t size)
{
	const uint32_t block = sim__heap_alloc(b, size);

	if (block != SIM_HEAP_NO_BLOCK)
		memset(sim__heap_bytes(b, block), 0, size);
	return block;
}

/* A pointer from one heap to the same, or into another, where it counts as a root. */
static void point_block_at(struct sim_heap_builder *from_heap, uint32_t from, uint64_t at,
			   struct sim_heap_builder *to_heap, uint32_t to, uint64_t into)
{
	if (from == SIM_HEAP_NO_BLOCK || to == SIM_HEAP_NO_BLOCK)
		return;
	if (from_heap == to_heap) {
		sim__heap_refer(from_heap, from, at, to, into);
		return;
	}
	put_le64(sim__heap_bytes(from_heap, from) + at, sim__heap_address(to_heap, to) + into);
	sim__heap_root(to_heap, to);
}

static void put_dns_text(uint8_t *at, const char *text)
{
	for (; *text; text++, at += 2)
		put_le16(at, (uint16_t)*text);
	put_le16(at, 0);
}

static uint32_t take_dns_text(struct sim_heap_builder *b, const char *text)
{
	const uint32_t block = take_zeroed_block(b, 2 * (strlen(text) + 1));

	if (block != SIM_HEAP_NO_BLOCK)
		put_dns_text(sim__heap_bytes(b, block), text);
	return block;
}

/*
 * Names
 */

static const char *const labels[] = { "www", "update", "cdn",   "mail", "time",   "api",
				      "img", "static", "login", "ocsp", "config", "edge" };
static const char *const domains[] = { "example.com",    "example.org",  "example.net",
				       "corp.example",   "test.example", "host.test",
				       "invalid.example" };

static void draw_dns_name(uint64_t *random, char ret[static SIM_DNS_NAME_MAX])
{
	snprintf(ret, SIM_DNS_NAME_MAX, "%s%u.%s", labels[sim_below(random, ARRAY_SIZE(labels))],
		 (unsigned)sim_below(random, 1000),
		 domains[sim_below(random, ARRAY_SIZE(domains))]);
}

/* FNV-1a, which nobody says that Windows uses: only that chains are of different lengths. */
static uint32_t dns_bucket_of(const struct dns *d, const char *name)
{
	uint32_t h = 2166136261;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619;
	return h % d->shape->buckets;
}

/*
 * Records
 */

static struct sim_dns_record *next_told_record(struct dns *d)
{
	struct sim_dns_record *more;

	if (!ARRAY_ROOM(d->ret->records, d->ret->count, d->room)) {
		d->failed = true;
		return NULL;
	}
	more = &d->ret->records[d->ret->count++];
	*more = (struct sim_dns_record){ 0 };
	return more;
}

static uint16_t draw_type(uint64_t *random)
{
	static const uint16_t types[] = { TYPE_A,    TYPE_A,   TYPE_A,  TYPE_AAAA,
					  TYPE_AAAA, TYPE_PTR, TYPE_MX, TYPE_SRV };

	return types[sim_below(random, ARRAY_SIZE(types))];
}

/* One DNS_RECORD; its address and what it says go to `of`. */
static uint32_t make_record(struct dns *d, struct sim_dns_record *of)
{
	uint64_t *random = &d->heap->random;
	const bool address = of->type == TYPE_A || of->type == TYPE_AAAA;
	uint16_t length = of->type == TYPE_A ? 4 : 8;
	uint32_t block, text;
	uint8_t *at;

	if (of->type == TYPE_AAAA || of->type == TYPE_MX || of->type == TYPE_SRV)
		length = 16;
	block = take_zeroed_block(d->heap, RECORD_DATA + length);
	if (block == SIM_HEAP_NO_BLOCK)
		return block;
	of->address = sim__heap_address(d->heap, block);
	of->ttl = 1 + (uint32_t)sim_below(random, 86400);
	at = sim__heap_bytes(d->heap, block);
	put_le16(at + RECORD_TYPE, of->type);
	put_le16(at + RECORD_LENGTH, length);
	put_le32(at + RECORD_FLAGS, 0x2009); /* in the answer, Unicode; the rest is unnamed */
	put_le32(at + RECORD_TTL, of->ttl);
	if (address) {
		for (uint16_t i = 0; i < length; i++)
			of->data[i] = (uint8_t)sim_draw(random);
		memcpy(at + RECORD_DATA, of->data, length);
	} else if (length > 8) {
		put_le16(at + RECORD_DATA + 8, (uint16_t)sim_below(random, 100));
	}
	text = take_dns_text(d->heap, of->name);
	point_block_at(d->heap, block, RECORD_NAME, d->heap, text, 0);
	if (address)
		return block;
	if (!of->target[0])
		draw_dns_name(random, of->target);
	text = take_dns_text(d->heap, of->target);
	point_block_at(d->heap, block, RECORD_DATA, d->heap, text, 0);
	return block;
}

/* The answer for a name: at times a CNAME first. The first record's block. */
static uint32_t make_answer(struct dns *d, const char *name, uint8_t place, uint64_t entry)
{
	uint64_t *random = &d->heap->random;
	unsigned records = 1 + (unsigned)sim_below(random, 3);
	uint32_t first = SIM_HEAP_NO_BLOCK, before = first, block;
	const uint16_t type = draw_type(random);
	bool alias = sim_below(random, 3) == 0;
	char owner[SIM_DNS_NAME_MAX];

	snprintf(owner, sizeof(owner), "%s", name);
	for (records += alias; records; records--, alias = false) {
		struct sim_dns_record *r = next_told_record(d);

		if (!r)
			return first;
		r->entry = entry;
		r->place = place;
		r->type = alias ? TYPE_CNAME : type;
		snprintf(r->name, sizeof(r->name), "%s", owner);
		block = make_record(d, r);
		if (alias)
			snprintf(owner, sizeof(owner), "%s", r->target);
		if (before == SIM_HEAP_NO_BLOCK)
			first = block;
		else
			point_block_at(d->heap, before, 0, d->heap, block, 0);
		before = block;
	}
	return first;
}

/*
 * Entries
 */

static uint32_t make_entry(struct dns *d, const char *name)
{
	const struct dns_shape *s = d->shape;
	uint32_t entry, text;

	if (s->name_inline) {
		entry = take_zeroed_block(d->cache, s->name_inline + 2 * (strlen(name) + 1));
		if (entry == SIM_HEAP_NO_BLOCK)
			return entry;
		put_dns_text(sim__heap_bytes(d->cache, entry) + s->name_inline, name);
		put_le64(sim__heap_bytes(d->cache, entry) + s->name,
			 sim__heap_address(d->cache, entry) + s->name_inline);
		return entry;
	}
	entry = take_zeroed_block(d->cache, s->size);
	text = take_dns_text(d->cache, name);
	point_block_at(d->cache, entry, s->name, d->cache, text, 0);
	return entry;
}

/* At the end of its chain. */
static void link_entry(struct dns *d, uint32_t entry, uint32_t bucket)
{
	const struct dns_shape *s = d->shape;
	const uint32_t width = s->lists ? 16 : 8, last = d->last[bucket];
	const bool first = last == SIM_HEAP_NO_BLOCK;

	point_block_at(d->cache, first ? d->table : last, first ? width * bucket : s->link,
		       d->cache, entry, s->lists ? s->link : 0);
	d->last[bucket] = entry;
	if (!s->lists)
		return;
	point_block_at(d->cache, entry, s->link + 8, d->cache, first ? d->table : last,
		       first ? width * bucket : s->link);
	point_block_at(d->cache, entry, s->link, d->cache, d->table, width * bucket);
	point_block_at(d->cache, d->table, width * bucket + 8, d->cache, entry, s->link);
}

static void add_name(struct dns *d)
{
	uint64_t *random = &d->heap->random;
	const bool absent = sim_below(random, 8) == 0;
	const uint64_t draw = sim_below(random, 10);
	const uint8_t place = draw < 8   ? SIM_DNS_LINKED
			      : draw < 9 ? SIM_DNS_UNLINKED
					 : SIM_DNS_FREED;
	char name[SIM_DNS_NAME_MAX];
	struct sim_dns_record *none;
	uint32_t entry, answer;

	draw_dns_name(random, name);
	entry = make_entry(d, name);
	if (entry == SIM_HEAP_NO_BLOCK)
		return;
	if (absent) {
		none = next_told_record(d);
		if (!none)
			return;
		none->entry = sim__heap_address(d->cache, entry);
		none->place = place;
		snprintf(none->name, sizeof(none->name), "%s", name);
		answer = SIM_HEAP_NO_BLOCK;
	} else {
		answer = make_answer(d, name, place, sim__heap_address(d->cache, entry));
		point_block_at(d->cache, entry, d->shape->record, d->heap, answer, 0);
	}
	if (place == SIM_DNS_LINKED)
		link_entry(d, entry, dns_bucket_of(d, name));
	if (place != SIM_DNS_FREED)
		return;
	sim__heap_free(d->cache, entry);
	if (answer != SIM_HEAP_NO_BLOCK)
		sim__heap_free(d->heap, answer);
}

enum status sim__heap_dns(struct sim_heap_builder *cache, struct sim_heap_builder *records,
			  uint32_t names, struct sim_dns *ret, struct err *e)
{
	const struct dns_shape *s = &shapes[cache->plan.layout];
	const uint32_t width = s->lists ? 16 : 8;
	struct dns d = { .cache = cache, .heap = records, .shape = s, .ret = ret };
	_cleanup_free_ uint32_t *last = malloc(s->buckets * sizeof(*last));

	*ret = (struct sim_dns){ .buckets = s->buckets };
	if (cache->plan.x86 || records->plan.x86 || !names)
		return err_set(e, ST_USAGE, "a DNS cache is made for x64, with names");
	if (!last)
		return err_set(e, ST_NOMEM, "a DNS cache");
	memset(last, 0xff, s->buckets * sizeof(*last));
	d.last = last;
	d.table = take_zeroed_block(cache, (uint64_t)s->buckets * width);
	if (d.table == SIM_HEAP_NO_BLOCK)
		return ST_OK;
	ret->table = sim__heap_address(cache, d.table);
	sim__heap_root(cache, d.table);
	for (uint32_t i = 0; s->lists && i < 2 * s->buckets; i++)
		put_le64(sim__heap_bytes(cache, d.table) + 8 * i, ret->table + 16 * (i / 2));
	for (uint32_t i = 0; i < names && !d.failed; i++)
		add_name(&d);
	return d.failed ? err_set(e, ST_NOMEM, "a DNS cache") : ST_OK;
}
