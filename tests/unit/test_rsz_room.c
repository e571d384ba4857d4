/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for decoded chunks: what is taken is one's own, and what is given back is taken again. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/os.h"
#include "formats/rsz/rsz_room.h"

#define MIB    ((size_t)1 << 20)
#define BLOCKS 3
#define PLACES (BLOCKS * OS_HUGE_BUFFER / MIB)

static uint8_t *take(struct rsz__room *r, size_t len, uint8_t mark)
{
	uint8_t *p = rsz__room_take(r, len);

	assert_non_null(p);
	memset(p, mark, len);
	return p;
}

static void check(const uint8_t *p, size_t len, uint8_t mark)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != mark)
			fail_msg("byte %zu is %u, and was %u", i, p[i], mark);
}

/* More than it has, of sizes that it has and of others; nobody's bytes are anybody else's. */
TEST(everybody_has_bytes_of_his_own)
{
	static const size_t sizes[] = { MIB,     MIB - 1, MIB / 2 + 1, MIB / 2,
					MIB + 1, 3 * MIB, 1,           4096 };
	struct rsz__room *r = rsz__room_create(BLOCKS * OS_HUGE_BUFFER + MIB);
	uint8_t *p[4 * PLACES];

	assert_non_null(r);
	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = take(r, sizes[(i + round) % ARRAY_SIZE(sizes)],
				    (uint8_t)(i + round));
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			check(p[i], sizes[(i + round) % ARRAY_SIZE(sizes)], (uint8_t)(i + round));
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			rsz__room_give(r, p[(i * 7) % ARRAY_SIZE(p)]);
	}
	rsz__room_destroy(r);
}

TEST(places_are_taken_again)
{
	struct rsz__room *r = rsz__room_create(OS_HUGE_BUFFER);
	uint8_t *a = take(r, MIB, 1), *b = take(r, MIB, 2), *c = take(r, MIB, 3), *again;

	assert_int_equal(a - b == (ptrdiff_t)MIB || b - a == (ptrdiff_t)MIB, 1);
	rsz__room_give(r, a);
	again = take(r, MIB, 4);
	assert_ptr_equal(again, a);
	check(b, MIB, 2);
	check(c, MIB, 3);
	rsz__room_give(r, c);
	rsz__room_give(r, b);
	rsz__room_give(r, NULL);
	rsz__room_destroy(r); /* with what was not given back */
}

TEST(too_small_a_room_is_none)
{
	struct rsz__room *r = rsz__room_create(OS_HUGE_BUFFER - 1);
	uint8_t *p = rsz__room_take(r, MIB);

	assert_null(r);
	assert_non_null(p);
	rsz__room_give(r, p);
	rsz__room_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_has_bytes_of_his_own),
		cmocka_unit_test(places_are_taken_again),
		cmocka_unit_test(too_small_a_room_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
