/* SPDX-License-Identifier: Apache-2.0 */
/* What wimlib never writes: blocks without compression. tests/ntfs/test_wof.py has all else. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/lzx.h"

/* Kind 3, a size in 16 bits, three distances, the bytes, and one more if they are odd. */
static size_t put_plain(uint8_t *to, const uint8_t *bytes, size_t size)
{
	put_le16(to, (uint16_t)(0x6000 | size >> 4));
	put_le16(to + 2, (uint16_t)(size << 12));
	for (size_t i = 0; i < 3; i++)
		put_le32(to + 4 + 4 * i, 1);
	memcpy(to + 16, bytes, size);
	to[16 + size] = 0xff;
	return 16 + size + size % 2;
}

TEST(blocks_without_compression_follow_each_other)
{
	uint8_t in[128], out[12];
	size_t n = put_plain(in, (const uint8_t *)"odd: ", 5);

	n += put_plain(in + n, (const uint8_t *)"and even", 7);
	assert_true(lzx_decode(in, n, out, sizeof(out)));
	assert_memory_equal(out, "odd: and eve", sizeof(out));
	/* The byte behind an odd number of them may be missing at the end, and no other. */
	assert_true(lzx_decode(in, n - 1, out, sizeof(out)));
	assert_false(lzx_decode(in, n - 2, out, sizeof(out)));
	assert_false(lzx_decode(in, n, out, sizeof(out) - 1));
	assert_false(lzx_decode(in, n, out, sizeof(out) + 1));
}

static int32_t target_after(size_t size, size_t at, int32_t target)
{
	uint8_t bytes[64] = { 0 }, in[128], out[64];

	bytes[at] = 0xe8;
	put_le32(bytes + at + 1, (uint32_t)target);
	assert_true(lzx_decode(in, put_plain(in, bytes, size), out, size));
	assert_int_equal(out[at], 0xe8);
	return (int32_t)get_le32(out + at + 1);
}

TEST(jumps_are_relative_again)
{
	assert_int_equal(target_after(64, 20, 1000), 980);
	assert_int_equal(target_after(64, 20, 0), -20);
	assert_int_equal(target_after(64, 20, 11999999), 11999979);
	assert_int_equal(target_after(64, 20, 12000000), 12000000);
	assert_int_equal(target_after(64, 20, -20), 11999980);
	assert_int_equal(target_after(64, 20, -21), -21);
	/* None begins in the last ten bytes. */
	assert_int_equal(target_after(64, 53, 1000), 947);
	assert_int_equal(target_after(64, 54, 1000), 1000);
	assert_int_equal(target_after(10, 0, 1000), 1000);
	assert_int_equal(target_after(12, 1, 1000), 999);
	assert_int_equal(target_after(12, 2, 1000), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_without_compression_follow_each_other),
		cmocka_unit_test(jumps_are_relative_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
