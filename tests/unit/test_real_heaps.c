/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps that Windows' own heap managers made (tests/gen/real_heaps.h): every block that was live is
 * listed with the size that was asked for, and nothing else is, with all pages and with some. One
 * test for each set that is there; without any, the whole is skipped.
 */
#include "tests/unit/test.h"

#include "agent/examine/heap/heap.h"
#include "agent/examine/heap/heap_checks.h"
#include "tests/gen/real_heaps.h"
#include "tests/gen/swept_heaps.h"

static struct real_heap_names names;
static char folder[REAL_HEAPS_PATH_MAX];

struct listed {
	const struct real_heaps *real;
	struct heap_allocation *at;
	size_t count, room;
	uint32_t missing; /* percent of the pages */
	uint64_t seed;
};

static bool is_missing(const struct listed *l, uint64_t va)
{
	uint64_t x = (va >> PAGE_SHIFT) * UINT64_C(0x9e3779b97f4a7c15) + l->seed;

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 32;
	return x % 100 < l->missing;
}

static const uint8_t *page_of(void *context, uint64_t va)
{
	const struct listed *l = context;

	return is_missing(l, va) ? NULL : real_heaps_byte(l->real, va);
}

static bool is_absent(void *context, uint64_t va)
{
	const struct listed *l = context;

	return !real_heaps_byte(l->real, va);
}

static enum status take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct listed *l = context;

	(void)e;
	if (a->state != BLOCK_BUSY)
		return ST_OK;
	assert_true(ARRAY_ROOM(l->at, l->count, l->room));
	l->at[l->count++] = *a;
	return ST_OK;
}

static int by_address(const void *a, const void *b)
{
	const struct heap_allocation *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void check_counts(const char *name, const struct heap_info *i, const struct heap_stats *s)
{
	struct heap_check checks[HEAP_CHECKS];

	assert_int_equal(i->refused, REFUSED_NOTHING);
	assert_false(i->experimental);
	if (s->contradictions || heap_stats_lost(s) || s->containers_lost || s->cut)
		fail_msg("%s: heap 0x%" PRIx64 ": %" PRIu64 " contradictions, %" PRIu64
			 " bytes lost, %" PRIu64 " containers",
			 name, i->address, s->contradictions, heap_stats_lost(s),
			 s->containers_lost);
	assert_true(heap_is_had(i, s));
	heap_checks(i, s, checks);
	for (size_t k = 0; k < HEAP_CHECKS; k++)
		if (checks[k].has && checks[k].counted != checks[k].walked)
			fail_msg("%s: heap 0x%" PRIx64 ": %s: %" PRIu64 ", counted as %" PRIu64,
				 name, i->address, checks[k].name, checks[k].walked,
				 checks[k].counted);
}

/* With all pages everything is checked; where some are missing, that no block is made up. */
static void list(const struct real_heaps *real, const char *name, struct listed *l,
		 uint64_t *ret_heaps)
{
	const struct memory_view m = { page_of, l, is_absent, NULL };
	const struct heap_sources s = { .memory = &m, .peb = real->peb, .ranges = &real->ranges };
	const struct heap_visitor v = { take, l };
	struct heaps *h;
	struct err e = ERR_INIT;

	l->real = real;
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	for (size_t i = 0; i < heaps_count(h); i++) {
		const size_t before = l->count;
		struct heap_stats stats;

		CHECK_OK(heaps_walk(h, i, &v, &stats, &e), &e);
		for (size_t k = before; k < l->count; k++)
			l->at[k].container = heaps_at(h, i)->address;
		if (!l->missing)
			check_counts(name, heaps_at(h, i), &stats);
	}
	*ret_heaps = heaps_count(h);
	heaps_close(h);
	array_sort(l->at, l->count, sizeof(*l->at), by_address);
}

/*
 * ntdll itself allocates from the process's heap: its blocks are no block's that is known, and do
 * not reach into one.
 */
static bool is_ntdlls(const struct real_heaps *real, const struct listed *l,
		      const struct heap_allocation *a)
{
	const size_t i = FIRST_WHERE(k, real->live_count,
				     real->live[k].address + real->live[k].requested > a->address);

	return (a->container == real->heaps[0] || l->missing) &&
	       (i == real->live_count || a->address + a->size - 8 <= real->live[i].address);
}

struct score {
	uint64_t right, wrong, others;
};

static void compare(const struct real_heaps *real, const struct listed *l, struct score *ret)
{
	size_t k = 0;

	*ret = (struct score){ 0 };
	for (size_t i = 0; i < l->count; i++) {
		const struct heap_allocation *a = &l->at[i];
		const struct real_block *b;

		while (k < real->live_count && real->live[k].address < a->address)
			k++;
		b = k < real->live_count && real->live[k].address == a->address ? &real->live[k]
										: NULL;
		/* One whose first page is missing is named by a segment. */
		if (b && (l->missing || a->container == real->heaps[b->heap]) &&
		    a->size >= b->requested &&
		    (a->has_requested ? a->requested == b->requested : l->missing != 0)) {
			ret->right++;
		} else if (!b && is_ntdlls(real, l, a)) {
			ret->others++;
		} else if (ret->wrong++ < 4) {
			print_message("wrong: 0x%" PRIx64 " %s, %" PRIu64 " bytes%s of %" PRIu64
				      "; live: %" PRIu64 "\n",
				      a->address, heap_place_name(a->place), a->requested,
				      a->has_requested ? "" : " (not known)", a->size,
				      b ? b->requested : 0);
		}
	}
}

/* Percent of the pages, for each round. */
static const uint32_t missing[] = { 5, 30, 30, 60 };

#define ROUNDS ARRAY_SIZE(missing)

static void check_set(void **state)
{
	const char *name = *state;
	struct real_heaps real;
	struct listed l = { 0 };
	struct score whole, part;
	uint64_t heaps;

	if (!real_heaps_load(&real, folder, name))
		fail_msg("%s/%s: cannot be read", folder, name);
	list(&real, name, &l, &heaps);
	compare(&real, &l, &whole);
	assert_int_equal(heaps, real.heap_count);
	print_message("%s: %" PRIu64 " of %" PRIu64 " blocks, and %" PRIu64 " of ntdll's own\n",
		      name, whole.right, (uint64_t)real.live_count, whole.others);
	assert_int_equal(whole.right, real.live_count);
	assert_int_equal(whole.wrong, 0);
	for (l.seed = 0; l.seed < ROUNDS; l.seed++) {
		l.count = 0;
		l.missing = missing[l.seed];
		list(&real, name, &l, &heaps);
		compare(&real, &l, &part);
		print_message("with %u %% of the pages missing: %" PRIu64 "\n", l.missing,
			      part.right);
		assert_int_equal(part.wrong, 0);
	}
	free(l.at);
	real_heaps_deinit(&real);
}

/* With the notes of a sweep they are the same. */
static void check_notes(void **state)
{
	struct real_heaps real;
	struct memory_view m = { real_heaps_page, &real, real_heaps_absent, NULL };
	struct heap_sources s = { .memory = &m, .ranges = &real.ranges };

	if (!real_heaps_load(&real, folder, *state))
		fail_msg("%s/%s: cannot be read", folder, (const char *)*state);
	s.peb = real.peb;
	assert_true(swept_heaps_agree(&s, NULL, NULL));
	real_heaps_deinit(&real);
}

static void none_is_there(void **state)
{
	(void)state;
	print_message("note: %s: no set that xz unpacks\n", folder);
	skip();
}

int main(void)
{
	struct CMUnitTest tests[2 * REAL_HEAPS_NAMES_MAX + 1] = { 0 };
	size_t n = 0;

	real_heaps_folder(SOURCE_ROOT, folder);
	real_heaps_list(folder, &names);
	for (size_t i = 0; i < names.count; i++) {
		tests[n++] = (struct CMUnitTest){ .name = names.at[i],
						  .test_func = check_set,
						  .initial_state = names.at[i] };
		tests[n++] = (struct CMUnitTest){ .name = "its notes",
						  .test_func = check_notes,
						  .initial_state = names.at[i] };
	}
	if (!n)
		tests[n++] = (struct CMUnitTest)cmocka_unit_test(none_is_there);
	return _cmocka_run_group_tests("real heaps", tests, n, NULL, NULL);
}
