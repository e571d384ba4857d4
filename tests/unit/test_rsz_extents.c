/* SPDX-License-Identifier: Apache-2.0 */
/* The newest capture of every address, against a model that is asked address by address. */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "formats/rsz/rsz_extents.h"

#define STREAMS   2
#define ADDRESSES 4096 /* of each stream */

/* A model: which extent each address belongs to, and how much of each it has left. */
struct model {
	uint64_t base;                       /* of addresses */
	uint64_t step;                       /* from one to the next */
	uint64_t number[STREAMS][ADDRESSES]; /* 0: none; else the extent's place, from 1 on */
	struct rsz__piece *added;
	size_t count;
};

static uint64_t seed;

static uint64_t chance(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static void draw(struct model *m, uint64_t longest)
{
	const uint64_t first = chance(ADDRESSES);
	const uint64_t wish = 1 + chance(longest);
	const uint64_t length = MIN(wish, ADDRESSES - first);
	const uint32_t stream = (uint32_t)chance(STREAMS);

	m->added[m->count++] = (struct rsz__piece){ .address = m->base + first * m->step,
						    .length = length * m->step,
						    .stream = stream };
	for (uint64_t i = first; i < first + length; i++)
		m->number[stream][i] = m->count;
}

/* Numbers `first` and on, in their order or from the highest down. */
static void fill(struct rsz__extents *x, const struct model *m, uint64_t first, bool backwards)
{
	struct err e = ERR_INIT;

	rsz__extents_init(x);
	for (size_t i = 0; i < m->count; i++) {
		const size_t k = backwards ? m->count - 1 - i : i;

		m->added[k].extent = first + k;
		CHECK_OK(rsz__extents_add(x, &m->added[k], &e), &e);
	}
	CHECK_OK(rsz__extents_settle(x, &e), &e);
}

/* Whose address it is, from 1 on; 0: nobody's. */
static uint64_t owner(const struct rsz__extents *x, uint32_t stream, uint64_t at, uint64_t first)
{
	const size_t i = rsz__extents_find(x, stream, at);
	struct rsz__piece p;

	if (i == x->pieces.rows)
		return 0;
	p = rsz__extents_get(x, i);
	assert_int_equal(p.stream, stream);
	assert_true(p.address + p.length > at);
	return p.address > at ? 0 : p.extent - first + 1;
}

static void check(const struct rsz__extents *x, const struct model *m, uint64_t first)
{
	uint64_t *left = calloc(m->count + 1, sizeof(*left));

	assert_non_null(left);
	for (uint32_t s = 0; s < STREAMS; s++)
		for (uint64_t i = 0; i < ADDRESSES; i++) {
			const uint64_t at = m->base + i * m->step;

			assert_int_equal(owner(x, s, at, first), m->number[s][i]);
			assert_int_equal(owner(x, s, at + m->step - 1, first), m->number[s][i]);
			left[m->number[s][i]] += m->step;
		}
	for (size_t i = 0; i < m->count; i++)
		assert_int_equal(rsz__extents_is_covered(x, first + i),
				 left[i + 1] < m->added[i].length);
	for (size_t i = 1; i < x->pieces.rows; i++) {
		const struct rsz__piece a = rsz__extents_get(x, i - 1);
		const struct rsz__piece b = rsz__extents_get(x, i);

		assert_true(a.stream < b.stream || a.address + a.length <= b.address);
		assert_true(a.extent != b.extent || a.address + a.length < b.address);
	}
	free(left);
}

static void compare(size_t count, uint64_t longest, uint64_t base, uint64_t step, uint64_t first)
{
	struct model *m = calloc(1, sizeof(*m));
	struct rsz__extents x;

	assert_non_null(m);
	m->base = base;
	m->step = step;
	m->added = calloc(count, sizeof(*m->added));
	assert_non_null(m->added);
	while (m->count < count)
		draw(m, longest);
	for (int backwards = 0; backwards < 2; backwards++) {
		fill(&x, m, first, backwards);
		check(&x, m, first);
		rsz__extents_deinit(&x);
	}
	free(m->added);
	free(m);
}

TEST(newest_extent_has_the_address)
{
	for (size_t n = 1; n < 40; n++) {
		seed = n;
		compare(n, 300, 0, 1, 0);
		compare(20 * n, 40, 0, 4096, 0);
	}
}

TEST(runs_are_merged)
{
	seed = 3;
	compare(2 * RSZ__RUN + 1, 8, 0, 4096, 0);
	compare(RSZ__RUN, 100, 1, 1, 0);
}

/* Numbers and addresses beyond 32 bits, up to the last that a container can have. */
TEST(large_numbers_and_addresses_are_kept)
{
	const uint64_t top = (UINT64_C(1) << 63) - UINT64_C(4096) * ADDRESSES;

	seed = 5;
	compare(1000, 50, top, 4096, (UINT64_C(1) << 32) - 500);
	compare(1000, 50, top, 4096, UINT64_MAX - 999);
	compare(1000, 50, UINT64_C(1) << 44, UINT64_C(1) << 40, 0);
}

TEST(what_nobody_has_is_not_found)
{
	const struct rsz__piece one = { .address = 8192, .length = 4096, .extent = 7, .stream = 1 };
	struct err e = ERR_INIT;
	struct rsz__extents x;

	rsz__extents_init(&x);
	CHECK_OK(rsz__extents_settle(&x, &e), &e);
	assert_int_equal(rsz__extents_find(&x, 0, 0), x.pieces.rows);
	assert_false(rsz__extents_is_covered(&x, 0));
	rsz__extents_deinit(&x);

	rsz__extents_init(&x);
	CHECK_OK(rsz__extents_add(&x, &one, &e), &e);
	CHECK_OK(rsz__extents_settle(&x, &e), &e);
	assert_int_equal(rsz__extents_find(&x, 1, 0), 0);
	assert_int_equal(rsz__extents_find(&x, 1, 12287), 0);
	assert_int_equal(rsz__extents_find(&x, 1, 12288), 1);
	assert_int_equal(rsz__extents_find(&x, 0, 0), 1);
	assert_int_equal(rsz__extents_find(&x, 2, 0), 1);
	assert_false(rsz__extents_is_covered(&x, 7));
	rsz__extents_deinit(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_extent_has_the_address),
		cmocka_unit_test(runs_are_merged),
		cmocka_unit_test(large_numbers_and_addresses_are_kept),
		cmocka_unit_test(what_nobody_has_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
