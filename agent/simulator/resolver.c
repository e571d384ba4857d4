/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: a hash table of pointers to entries in one heap, their DNS_RECORDs and names in
 * another. Records are the documented DNS_RECORDW; an entry of 7 SP1 has its next one at 0, the
 * name at 8, the record at 0x18, and the name's text at 0x30 (google/rekall 55d1925, DNS profile).
 */
#include "agent/simulator/resolver.h"

#include <string.h>

#include "agent/simulator/heap.h"
#include "agent/simulator/manager.h"
#include "formats/base/bytes.h"

#define RECORDS_HEAP    4 /* of the 12 */
#define TABLE_HEAP      12

/* Addresses of the paper's figure, and what is said of their sizes. */
#define RECORDS_BASE    0x11d0000
#define RECORDS_PAGES   128
/* At first: what is committed later begins with a chunk of the heap's own. */
#define RECORDS_COMMIT  124
#define NAME_AT         0x11e2870
#define NAME_SIZE       88
#define SECOND_AT       0x11e2b30
#define SECOND_SIZE     72
#define FIRST_AT        0x1244fc0
#define FIRST_SIZE      56
#define TABLE_BASE      0x5100000
#define TABLE_PAGES     16
#define TABLE_MORE      0x5360000
#define TABLE_MORE_SIZE 256 /* pages */
#define TABLE_AT        0x51012f0
#define TABLE_SIZE      1688
#define SLOT            1392
#define ENTRY_AT        0x5101f60
#define ENTRY_SIZE      88

/* The other ten: 2,886 pages, as one of them has a block of 262 that is no segment. */
#define BLOCK_PAGES     262
#define OTHERS          10
#define OTHERS_FIRST    UINT64_C(0x6000000) /* behind the paper's */
#define USED_PAGES      76                  /* of each, or so */
#define CACHED          12                  /* names beside the paper's */

#define CANONICAL       "front.cdn.example.net"

#define DNS_A           1
#define DNS_CNAME       5

static const uint32_t reserves[OTHERS] = { 384, 256, 256, 256, 256, 256, 256, 256, 256, 192 };

/* A record that an entry in the other heap refers to. */
struct crossing {
	uint64_t record, referrer;
};

struct builders {
	struct sim_heap_builder *of[SIM_RESOLVER_HEAPS + 1];
	struct crossing crossings[1 + CACHED];
	size_t count;
};

static void fill_resolver_block(struct sim_heap_builder *b, uint32_t block, uint64_t size,
				uint64_t *random)
{
	uint8_t *at = sim__heap_bytes(b, block);

	for (uint64_t i = 0; i < size; i++)
		at[i] = (uint8_t)('a' + sim_draw(random) % 26);
}

/* A block at an address, behind as many others as it takes. SIM_HEAP_NO_BLOCK: it can't be. */
static uint32_t alloc_at(struct sim_heap_builder *b, uint64_t address, uint64_t size,
			 uint64_t *random)
{
	uint32_t block = sim__heap_alloc(b, 8);
	uint64_t next;

	if (block == SIM_HEAP_NO_BLOCK)
		return block;
	for (next = sim__heap_address(b, block) + 0x20; next < address;) {
		const uint64_t left = address - next;
		/* Whole chunks, of which none leaves a rest that no chunk fits in. */
		const uint64_t chunk = left < 0x400 ? left : 0x40 + 16 * sim_below(random, 24);

		block = sim__heap_alloc(b, chunk - 8);
		if (block == SIM_HEAP_NO_BLOCK || sim__heap_address(b, block) != next)
			return SIM_HEAP_NO_BLOCK;
		fill_resolver_block(b, block, chunk - 8, random);
		sim__heap_root(b, block);
		next += chunk;
	}
	block = sim__heap_alloc(b, size);
	return block != SIM_HEAP_NO_BLOCK && sim__heap_address(b, block) == address
		       ? block
		       : SIM_HEAP_NO_BLOCK;
}

static void put_cached_name(uint8_t *at, const char *name)
{
	for (size_t i = 0; i <= strlen(name); i++)
		put_le16(at + 2 * i, (uint8_t)name[i]);
}

/* `data` is an address (IPv4) or a pointer, by the type. */
static void put_dns_record(uint8_t *at, uint64_t next, uint64_t name, uint16_t type, uint64_t data)
{
	put_le64(at, next);
	put_le64(at + 8, name);
	put_le16(at + 0x10, type);
	put_le16(at + 0x12, type == DNS_A ? 4 : 8);
	put_le32(at + 0x14, 0x2009);
	put_le32(at + 0x18, 3600);
	put_le64(at + 0x20, data);
}

/* For the record's heap a root, as it knows of no other. */
static void note_crossing(struct builders *all, uint32_t block, uint64_t record, uint64_t entry)
{
	sim__heap_root(all->of[RECORDS_HEAP], block);
	all->crossings[all->count++] = (struct crossing){ record, entry + 0x18 };
}

/*
 * From the table to the name: slot, entry, its record (an alias), that one's next, and its name.
 */
static bool put_paper(struct builders *all, uint64_t *random, uint32_t *table)
{
	struct sim_heap_builder *records = all->of[RECORDS_HEAP], *tables = all->of[TABLE_HEAP];
	uint32_t name, second, first, entry, alias;

	name = alloc_at(records, NAME_AT, NAME_SIZE, random);
	if (name == SIM_HEAP_NO_BLOCK)
		return false;
	second = alloc_at(records, SECOND_AT, SECOND_SIZE, random);
	if (second == SIM_HEAP_NO_BLOCK)
		return false;
	first = alloc_at(records, FIRST_AT, FIRST_SIZE, random);
	alias = sim__heap_alloc(records, 2 * sizeof(CANONICAL));
	*table = alloc_at(tables, TABLE_AT, TABLE_SIZE, random);
	if (first == SIM_HEAP_NO_BLOCK || alias == SIM_HEAP_NO_BLOCK || *table == SIM_HEAP_NO_BLOCK)
		return false;
	entry = alloc_at(tables, ENTRY_AT, ENTRY_SIZE, random);
	if (entry == SIM_HEAP_NO_BLOCK)
		return false;
	put_cached_name(sim__heap_bytes(records, name), CANONICAL);
	put_cached_name(sim__heap_bytes(records, alias), CANONICAL);
	put_dns_record(sim__heap_bytes(records, second), 0, NAME_AT, DNS_A, 0x0a0000c0);
	put_dns_record(sim__heap_bytes(records, first), SECOND_AT, ENTRY_AT + 0x30, DNS_CNAME, 0);
	put_le64(sim__heap_bytes(tables, entry) + 8, ENTRY_AT + 0x30);
	put_le64(sim__heap_bytes(tables, entry) + 0x18, FIRST_AT);
	put_cached_name(sim__heap_bytes(tables, entry) + 0x30, "www.example.com");
	sim__heap_refer(records, second, 8, name, 0);
	sim__heap_refer(records, first, 0, second, 0);
	sim__heap_refer(records, first, 0x20, alias, 0);
	note_crossing(all, first, FIRST_AT, ENTRY_AT);
	sim__heap_refer(tables, *table, SLOT, entry, 0);
	sim__heap_root(tables, *table);
	return true;
}

static bool put_cached(struct builders *all, uint32_t i, uint32_t table)
{
	struct sim_heap_builder *records = all->of[RECORDS_HEAP], *tables = all->of[TABLE_HEAP];
	const uint32_t entry = sim__heap_alloc(tables, ENTRY_SIZE);
	const uint32_t record = sim__heap_alloc(records, FIRST_SIZE);
	uint64_t name;
	char text[20];

	if (entry == SIM_HEAP_NO_BLOCK || record == SIM_HEAP_NO_BLOCK)
		return false;
	name = sim__heap_address(tables, entry) + 0x30;
	snprintf(text, sizeof(text), "host%u.example.org", i);
	put_cached_name(sim__heap_bytes(tables, entry) + 0x30, text);
	put_le64(sim__heap_bytes(tables, entry) + 8, name);
	put_le64(sim__heap_bytes(tables, entry) + 0x18, sim__heap_address(records, record));
	put_dns_record(sim__heap_bytes(records, record), 0, name, DNS_A, 0x010000c0 + (i << 24));
	note_crossing(all, record, sim__heap_address(records, record),
		      sim__heap_address(tables, entry));
	sim__heap_refer(tables, table, 64 + (uint64_t)80 * i, entry, 0);
	return true;
}

/* Blocks of all sizes, until so many pages of the first segment are in use. */
static bool use_resolver_pages(struct sim_heap_builder *b, uint64_t base, uint32_t pages,
			       uint64_t *random)
{
	uint64_t at = 0;

	while (at < base + (uint64_t)pages * PAGE_SIZE) {
		const uint64_t size = 16 + sim_below(random, 2000);
		const uint32_t block = sim__heap_alloc(b, size);

		if (block == SIM_HEAP_NO_BLOCK)
			return false;
		fill_resolver_block(b, block, size, random);
		sim__heap_root(b, block);
		at = sim__heap_address(b, block);
	}
	return true;
}

static struct sim_heap_plan resolver_heap_plan(struct sim_making *x, uint32_t index)
{
	const uint32_t other = index < RECORDS_HEAP ? index - 1 : index - 2;
	struct sim_heap_plan plan = {
		.layout = SIM_HEAP_7,
		.seed = sim_draw(&x->in->random),
		.index = index,
		.lfh_key = x->lfh_key,
	};

	if (index == RECORDS_HEAP) {
		plan.base = RECORDS_BASE;
		plan.reserve = RECORDS_PAGES * PAGE_SIZE;
		plan.commit = RECORDS_COMMIT * PAGE_SIZE;
	} else if (index == TABLE_HEAP) {
		plan.base = TABLE_BASE;
		plan.reserve = TABLE_PAGES * PAGE_SIZE;
		plan.commit = (TABLE_PAGES - 1) * PAGE_SIZE;
		plan.more = TABLE_MORE;
		plan.lfh = 50;
		plan.allocations = 800;
		plan.size_min = 16;
		plan.size_max = 600;
	} else {
		plan.reserve = reserves[other] * PAGE_SIZE;
		plan.base = sim__making_place(x, reserves[other]);
		plan.more = sim__making_place(x, BLOCK_PAGES);
	}
	return plan;
}

static enum status begin_resolver_heaps(struct sim_making *x, struct builders *all, struct err *e)
{
	for (uint32_t i = 1; i <= SIM_RESOLVER_HEAPS; i++) {
		const struct sim_heap_plan plan = resolver_heap_plan(x, i);
		const enum status st = sim__heap_create(&plan, &all->of[i], e);

		if (st)
			return st;
		if (i == RECORDS_HEAP || i == TABLE_HEAP)
			continue;
		if (!use_resolver_pages(all->of[i], plan.base, USED_PAGES, &x->in->random) ||
		    (i == 1 && sim__heap_alloc(all->of[i], (BLOCK_PAGES - 1) * PAGE_SIZE) ==
				       SIM_HEAP_NO_BLOCK))
			return err_set(e, ST_USAGE, "the resolver's heaps have no room");
	}
	return ST_OK;
}

static enum status work_on_resolver_heaps(struct sim_making *x, struct builders *all, struct err *e)
{
	uint32_t table;

	if (!put_paper(all, &x->in->random, &table))
		return err_set(e, ST_USAGE, "the paper's allocations cannot be where they were");
	for (uint32_t i = 0; i < CACHED; i++)
		if (!put_cached(all, i, table))
			return err_set(e, ST_USAGE, "the resolver's heaps have no room");
	return sim__heap_work(all->of[TABLE_HEAP], e);
}

/* What the other heap refers to needs no pointer outside of both. */
static void keep_roots(const struct builders *all, struct sim_heap *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->root_count; i++) {
		bool crosses = false;

		for (size_t k = 0; k < all->count; k++)
			crosses |= all->crossings[k].record == h->roots[i];
		if (!crosses)
			h->roots[kept++] = h->roots[i];
	}
	h->root_count = kept;
	for (size_t i = 0; i < h->count; i++)
		for (size_t k = 0; k < all->count; k++)
			if (all->crossings[k].record == h->allocations[i].address)
				h->allocations[i].referrer = all->crossings[k].referrer;
}

static enum status finish_resolver_heaps(struct sim_making *x, struct builders *all, struct err *e)
{
	enum status st = ST_OK;

	for (uint32_t i = 1; i <= SIM_RESOLVER_HEAPS && !st; i++) {
		struct sim_heap h = { 0 };

		st = sim__heap_finish(all->of[i], &h, e);
		all->of[i] = NULL;
		if (!st && i == RECORDS_HEAP)
			keep_roots(all, &h);
		if (!st)
			st = sim__making_heap(x, i, false, &h, e);
		sim__heap_deinit(&h);
	}
	return st;
}

enum status sim__resolver_make(struct sim_making *x, struct err *e)
{
	struct builders all = { 0 };
	enum status st;

	x->next = MAX(x->next, OTHERS_FIRST);
	st = begin_resolver_heaps(x, &all, e);

	if (!st)
		st = work_on_resolver_heaps(x, &all, e);
	if (!st)
		st = finish_resolver_heaps(x, &all, e);
	for (uint32_t i = 1; i <= SIM_RESOLVER_HEAPS; i++)
		if (all.of[i])
			sim__heap_destroy(all.of[i]);
	return st;
}

/*
 * The states
 */

static bool is_resolver_page_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, PAGE_SIZE - 1);
}

struct drawing {
	uint32_t used[SIM_RESOLVER_PAGES], zero[SIM_RESOLVER_PAGES]; /* numbers of pages */
	uint32_t n_used, n_zero;
	uint32_t total;
};

static void collect_resolver_pages(const struct sim_region *r, uint8_t *states, struct drawing *d)
{
	for (uint32_t i = 0; i < r->pages; i++) {
		const uint32_t page = r->before + i;

		if (++d->total > SIM_RESOLVER_PAGES)
			return;
		if (!r->committed[i]) {
			states[page] = POPULATE_EMPTY;
			continue;
		}
		states[page] = POPULATE_ZERO;
		if (is_resolver_page_zero(r->bytes + (size_t)i * PAGE_SIZE))
			d->zero[d->n_zero++] = page;
		else
			d->used[d->n_used++] = page;
	}
}

static void shuffle_pages(uint32_t *at, uint32_t count, uint64_t *random)
{
	for (uint32_t i = 1; i < count; i++) {
		const uint32_t k = (uint32_t)sim_below(random, i + 1), kept = at[i];

		at[i] = at[k];
		at[k] = kept;
	}
}

/* Every page that holds something, and of the others so many that the sum is the paper's. */
static bool draw_states(uint8_t *states, struct drawing *d, uint64_t *random)
{
	const uint32_t sum = SIM_RESOLVER_VALID + SIM_RESOLVER_TRANSITION + SIM_RESOLVER_PAGED;

	if (d->total != SIM_RESOLVER_PAGES || d->n_used > sum || d->n_used + d->n_zero < sum)
		return false;
	shuffle_pages(d->zero, d->n_zero, random);
	for (uint32_t i = 0; d->n_used < sum; i++)
		d->used[d->n_used++] = d->zero[i];
	shuffle_pages(d->used, sum, random);
	for (uint32_t i = 0; i < sum; i++)
		states[d->used[i]] = i < SIM_RESOLVER_VALID ? POPULATE_VALID
				     : i < SIM_RESOLVER_VALID + SIM_RESOLVER_TRANSITION
					     ? POPULATE_TRANSITION
					     : POPULATE_PAGED;
	return true;
}

uint8_t *sim__resolver_states(const struct sim_process *p, const struct sim_vads *v,
			      uint64_t *random)
{
	uint8_t *states = malloc(MAX(p->regions.pages, 1));
	struct drawing *d = calloc(1, sizeof(*d));

	if (states && d) {
		memset(states, SIM_RESOLVER_ANY, p->regions.pages);
		for (size_t i = 0; i < v->count; i++)
			if (v->at[i].heap)
				collect_resolver_pages(
					sim__regions_find(&p->regions, v->at[i].first), states, d);
	}
	if (!states || !d || !draw_states(states, d, random)) {
		free(states);
		states = NULL;
	}
	free(d);
	return states;
}
