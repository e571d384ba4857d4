/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the DNS resolver by their shape, out of memory made by hand. */
#include "tests/unit/test.h"

#include "agent/examine/heap/dns/records.h"
#include "tests/unit/sparse_view.h"

#define RECORD UINT64_C(0x10040)
#define NAME   UINT64_C(0x20ff0) /* over the end of a page */
#define OTHER  UINT64_C(0x30010)

static struct sparse s;
static struct memory_view view;
static struct dns_record got;

static void put_name(uint64_t va, const char *name)
{
	for (size_t i = 0; i <= strlen(name); i++)
		sparse_u16(&s, va + 2 * i, (uint8_t)name[i]);
}

static void put_record(bool wide, uint16_t type, uint16_t length)
{
	view = sparse_view(&s);
	if (wide) {
		sparse_u64(&s, RECORD, OTHER + 0x100);
		sparse_u64(&s, RECORD + 8, NAME);
	} else {
		sparse_u32(&s, RECORD, (uint32_t)OTHER + 0x100);
		sparse_u32(&s, RECORD + 4, (uint32_t)NAME);
	}
	sparse_u16(&s, RECORD + (wide ? 0x10 : 8), type);
	sparse_u16(&s, RECORD + (wide ? 0x12 : 0xa), length);
	sparse_u32(&s, RECORD + (wide ? 0x14 : 0xc), 0x2009);
	sparse_u32(&s, RECORD + (wide ? 0x18 : 0x10), 3600);
	put_name(NAME, "www.example.com");
	put_name(OTHER, "front.example.net");
}

static bool ask(bool wide)
{
	return dns_record_read(&view, RECORD, 64, wide, &got);
}

TEST(address_is_read_in_both_widths)
{
	for (int wide = 0; wide < 2; wide++) {
		put_record(wide, DNS_A, 4);
		sparse_u32(&s, RECORD + (wide ? 0x20 : 0x18), 0x010200c0);
		assert_true(ask(wide));
		assert_int_equal(got.type, DNS_A);
		assert_int_equal(got.ttl, 3600);
		assert_int_equal(got.flags, 0x2009);
		assert_int_equal(got.next, OTHER + 0x100);
		assert_string_equal(got.name, "www.example.com");
		assert_string_equal(got.data, "192.0.2.1");
		sparse_deinit(&s);
	}
}

TEST(names_are_followed)
{
	static const struct {
		uint16_t type, length;
	} of[] = { { DNS_CNAME, 8 }, { DNS_PTR, 8 },  { DNS_NS, 8 },
		   { DNS_MX, 16 },   { DNS_SRV, 16 }, { DNS_SOA, 40 } };

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		put_record(true, of[i].type, of[i].length);
		sparse_u64(&s, RECORD + 0x20, OTHER);
		assert_true(dns_record_read(&view, RECORD, 128, true, &got));
		assert_string_equal(got.data, "front.example.net");
		sparse_lose(&s, OTHER, true);
		assert_true(dns_record_read(&view, RECORD, 128, true, &got));
		assert_string_equal(got.data, ""); /* its own name is what makes it a record */
		sparse_deinit(&s);
	}
}

TEST(ipv6_is_written_as_rfc_5952_says)
{
	static const struct {
		const char *bytes, *text;
	} of[] = {
		{ "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", "2001:db8::1" },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "::" },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", "::1" },
		{ "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "fe80::" },
		{ "\x20\x01\0\0\0\1\0\0\0\0\0\1\0\1\0\1", "2001:0:1::1:1:1" },
		{ "\x20\x01\0\1\0\0\0\1\0\1\0\1\0\1\0\1", "2001:1:0:1:1:1:1:1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		put_record(true, DNS_AAAA, 16);
		sparse_put(&s, RECORD + 0x20, of[i].bytes, 16);
		assert_true(ask(true));
		assert_string_equal(got.data, of[i].text);
		sparse_deinit(&s);
	}
}

TEST(what_contradicts_itself_is_no_record)
{
	put_record(true, DNS_A, 4);
	assert_true(ask(true));
	assert_false(dns_record_read(&view, RECORD, 0x23, true, &got)); /* its data does not fit */
	sparse_u16(&s, RECORD + 0x12, 5);
	assert_false(ask(true));
	sparse_u16(&s, RECORD + 0x12, 4);
	sparse_u16(&s, RECORD + 0x10, 3);
	assert_false(ask(true));
	sparse_u16(&s, RECORD + 0x10, DNS_A);
	sparse_u32(&s, RECORD + 0x18, DNS_TTL_MAX + 1);
	assert_false(ask(true));
	sparse_u32(&s, RECORD + 0x18, 1);
	sparse_u64(&s, RECORD, UINT64_C(0xffff800000000000));
	assert_false(ask(true));
	sparse_u64(&s, RECORD, 0);
	assert_true(ask(true));
	sparse_u16(&s, NAME + 4, ' ');
	assert_false(ask(true));
	sparse_u16(&s, NAME + 4, 'w');
	sparse_u16(&s, NAME, 0); /* no name at all */
	assert_false(ask(true));
	sparse_u16(&s, NAME, 'w');
	for (size_t i = 0; i < 300; i++) /* and one that does not end where names do */
		sparse_u16(&s, NAME + 2 * i, 'a');
	assert_false(ask(true));
	sparse_lose(&s, NAME + PAGE_SIZE, true);
	assert_false(ask(true));
	sparse_lose(&s, RECORD, true);
	assert_false(ask(true));
	sparse_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_is_read_in_both_widths),
		cmocka_unit_test(names_are_followed),
		cmocka_unit_test(ipv6_is_written_as_rfc_5952_says),
		cmocka_unit_test(what_contradicts_itself_is_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
