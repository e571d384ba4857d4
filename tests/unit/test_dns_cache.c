/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver's cache in simulated heaps of each kind of table, beside what the simulator says of
 * it: every record, its entry, which names have none; and with pages missing nothing that is not
 * so.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/dns/cache.h"
#include "agent/simulator/heap.h"
#include "agent/simulator/heap_dns.h"
#include "formats/base/bytes.h"
#include "tests/gen/heap_regions.h"

#define NAMES 300

struct memory {
	struct sim_heap heaps[2]; /* of the entries, and of the records; or both in the first */
	size_t count;
	unsigned missing; /* percent */
};

static bool is_missing(const struct memory *m, uint64_t va)
{
	const uint64_t x = (va >> PAGE_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);

	return (x ^ x >> 32) % 100 < m->missing;
}

static uint8_t *byte_at(const struct memory *m, uint64_t va, bool *ret_committed)
{
	uint8_t *at = NULL;

	for (size_t i = 0; i < m->count && !at; i++)
		at = heap_region_byte(&m->heaps[i], va, ret_committed);
	return at;
}

static const uint8_t *page_of(void *context, uint64_t va)
{
	const struct memory *m = context;
	bool committed;
	const uint8_t *page = is_missing(m, va) ? NULL : byte_at(m, va, &committed);

	return page && committed ? page : NULL;
}

static void build(struct memory *m, enum sim_heap_layout layout, size_t heaps, uint32_t names,
		  struct sim_dns *dns)
{
	struct sim_heap_builder *b[2] = { NULL };
	struct err e = ERR_INIT;

	m->count = heaps;
	m->missing = 0;
	for (size_t i = 0; i < heaps; i++) {
		const struct sim_heap_plan plan = { .layout = layout,
						    .base = UINT64_C(0x10000000) * (i + 1),
						    .seed = 5 + i,
						    .lfh = 50,
						    .allocations = 500 };

		CHECK_OK(sim__heap_create(&plan, &b[i], &e), &e);
		CHECK_OK(sim__heap_work(b[i], &e), &e);
	}
	CHECK_OK(sim__heap_dns(b[0], b[heaps - 1], names, dns, &e), &e);
	for (size_t i = 0; i < heaps; i++)
		CHECK_OK(sim__heap_finish(b[i], &m->heaps[i], &e), &e);
}

struct found {
	struct memory_view view;
	struct dns_cache_sources sources;
	struct block_list list;
	struct heaps *heaps;
	struct dns_cache cache;
};

static bool is_wide(const void *context, size_t heap)
{
	(void)context;
	(void)heap;
	return true;
}

/* All of a container's heaps, as `heap --dns` has them. */
static void find(struct memory *m, struct found *ret)
{
	const struct memory_view view = { page_of, m };
	struct range at[64];
	struct heap_sources s = { .memory = &view };
	struct range_list all = { .at = at };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < m->count; i++) {
		assert_true(all.count + m->heaps[i].region_count <= ARRAY_SIZE(at));
		heap_region_ranges(&m->heaps[i], &all);
	}
	s.ranges = &all;
	*ret = (struct found){ .view = view, .list = { .with_free = true } };
	ret->sources = (struct dns_cache_sources){ .memory = &ret->view,
						   .list = &ret->list,
						   .wide = is_wide };
	CHECK_OK(heaps_open(&s, &ret->heaps, &e), &e);
	for (size_t i = 0; i < heaps_count(ret->heaps); i++) {
		const struct heap_visitor v = { block_list_take, &ret->list };
		struct heap_stats stats;

		CHECK_OK(heaps_walk(ret->heaps, i, &v, &stats, &e), &e);
	}
	block_list_sort(&ret->list);
	CHECK_OK(dns_cache_find(&ret->sources, &ret->cache, &e), &e);
}

static void drop(struct found *f)
{
	dns_cache_deinit(&f->cache);
	heaps_close(f->heaps);
	block_list_deinit(&f->list);
}

static const struct dns_found *record_of(const struct dns_cache *c, uint64_t address)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->records[i].block->address == address)
			return &c->records[i];
	return NULL;
}

/* The last that was made there: a block that was freed is used again. */
static const struct sim_dns_record *truth_of(const struct sim_dns *dns, uint64_t address)
{
	for (size_t i = dns->count; i-- > 0;)
		if (dns->records[i].address == address)
			return &dns->records[i];
	return NULL;
}

/* A name that has no record, by its entry. */
static const struct sim_dns_record *absent_of(const struct sim_dns *dns, uint64_t entry)
{
	for (size_t i = dns->count; i-- > 0;)
		if (!dns->records[i].address && dns->records[i].entry == entry)
			return &dns->records[i];
	return NULL;
}

/* Nothing is told that is not so. */
static void check_true(const struct sim_dns *dns, const struct found *of)
{
	const struct dns_cache_sources *s = &of->sources;
	const struct dns_cache *c = &of->cache;

	assert_true(!c->table || c->table->address == dns->table);
	for (size_t i = 0; i < c->count; i++) {
		const struct dns_found *f = &c->records[i];
		const struct sim_dns_record *r = truth_of(dns, f->block->address);

		assert_true(!f->entry || (r && f->entry->address == r->entry &&
					  (!f->in_table || r->place == SIM_DNS_LINKED)));
	}
	for (size_t i = 0; i < c->unanswered_count; i++) {
		const struct sim_dns_record *r = absent_of(dns, c->unanswered[i]->address);
		char name[DNS_NAME_MAX];

		assert_true(dns_cache_unanswered(s, c, i, name));
		assert_true(r && !strcmp(name, r->name) && r->place == SIM_DNS_LINKED);
	}
}

/* With all pages, all of it is told. */
static void check_whole(const struct sim_dns *dns, const struct dns_cache *c)
{
	size_t absent = 0;

	assert_non_null(c->table);
	for (size_t i = 0; i < dns->count; i++) {
		const struct sim_dns_record *r = &dns->records[i];
		const struct dns_found *f;

		absent += !r->address && r->place == SIM_DNS_LINKED;
		if (!r->address || r->place == SIM_DNS_FREED)
			continue;
		f = record_of(c, r->address);
		assert_true(f && f->entry && f->entry->address == r->entry &&
			    f->in_table == (r->place == SIM_DNS_LINKED));
	}
	assert_true(absent > 5);
	assert_int_equal(c->unanswered_count, absent);
}

static const enum sim_heap_layout layouts[] = { SIM_HEAP_7, SIM_HEAP_17763, SIM_HEAP_26100 };

TEST(entries_of_each_kind_of_table)
{
	for (size_t k = 0; k < 2 * ARRAY_SIZE(layouts); k++) {
		struct memory m;
		struct sim_dns dns;
		struct found f;

		build(&m, layouts[k / 2], 1 + k % 2, NAMES, &dns);
		find(&m, &f);
		check_true(&dns, &f);
		check_whole(&dns, &f.cache);
		drop(&f);
		free(dns.records);
		for (size_t i = 0; i < m.count; i++)
			sim__heap_deinit(&m.heaps[i]);
	}
}

TEST(with_pages_missing_nothing_is_told_that_is_not_so)
{
	static const unsigned percents[] = { 5, 10, 30, 50, 90 };
	size_t in_table = 0, unanswered = 0;

	for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
		struct memory m;
		struct sim_dns dns;

		build(&m, layouts[k], 2, NAMES, &dns);
		for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
			struct found f;

			m.missing = percents[i];
			find(&m, &f);
			check_true(&dns, &f);
			for (size_t n = 0; n < f.cache.count; n++)
				in_table += f.cache.records[n].in_table;
			unanswered += f.cache.unanswered_count;
			drop(&f);
		}
		free(dns.records);
		sim__heap_deinit(&m.heaps[0]);
		sim__heap_deinit(&m.heaps[1]);
	}
	assert_true(in_table > 100);
	assert_true(unanswered > 10);
}

static bool is_strange(const struct sim_dns_record *r)
{
	return r->address && r->place != SIM_DNS_FREED && r->entry / 16 % 3 == 0;
}

static void make_strange(const struct memory *m, const struct sim_dns_record *r)
{
	bool committed;
	uint8_t *type = is_strange(r) ? byte_at(m, r->address + 0x10, &committed) : NULL;

	if (type)
		put_le16(type, 65);
}

/* Chains go on behind entries whose records are of a type that nobody knows (65, HTTPS). */
TEST(entries_with_other_records_are_followed)
{
	for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
		size_t strange = 0, others = 0;
		struct memory m;
		struct sim_dns dns;
		struct found f;

		build(&m, layouts[k], 2, NAMES, &dns);
		for (size_t i = 0; i < dns.count; i++)
			make_strange(&m, &dns.records[i]);
		find(&m, &f);
		check_true(&dns, &f);
		for (size_t i = 0; i < dns.count; i++) {
			const struct sim_dns_record *r = &dns.records[i];
			const struct dns_found *is = record_of(&f.cache, r->address);

			strange += is_strange(r);
			if (!r->address || r->place != SIM_DNS_LINKED || is_strange(r))
				continue;
			assert_true(is && is->in_table);
			others++;
		}
		assert_true(strange > 50 && others > 100);
		drop(&f);
		free(dns.records);
		sim__heap_deinit(&m.heaps[0]);
		sim__heap_deinit(&m.heaps[1]);
	}
}

/* One or two names show no layout, and what has a text and no record is no entry. */
TEST(too_few_entries_teach_nothing)
{
	for (uint32_t names = 1; names <= 2; names++) {
		struct memory m;
		struct sim_dns dns;
		struct found f;

		build(&m, SIM_HEAP_17763, 1, names, &dns);
		find(&m, &f);
		assert_null(f.cache.table);
		assert_int_equal(f.cache.unanswered_count, 0);
		for (size_t i = 0; i < f.cache.count; i++)
			assert_null(f.cache.records[i].entry);
		drop(&f);
		free(dns.records);
		sim__heap_deinit(&m.heaps[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_of_each_kind_of_table),
		cmocka_unit_test(with_pages_missing_nothing_is_told_that_is_not_so),
		cmocka_unit_test(entries_with_other_records_are_followed),
		cmocka_unit_test(too_few_entries_teach_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
