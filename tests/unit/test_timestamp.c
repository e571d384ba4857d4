/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers are put together here byte by byte, after RFC 3161 and RFC 5652; those of OpenSSL are in
 * tests/cli/test_timestamp.py.
 */
#include "tests/unit/test.h"

#include <stdlib.h>

#include "formats/proof/timestamp.h"
#include "tests/unit/der_build.h"

#define OID_SIGNED "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"
#define OID_INFO   "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04"
#define OID_SHA256 "\x60\x86\x48\x01\x65\x03\x04\x02\x01"
#define OID_SHA512 "\x60\x86\x48\x01\x65\x03\x04\x02\x03"
#define OID_SHA384 "\x60\x86\x48\x01\x65\x03\x04\x02\x02"
/* sha256sum and sha512sum of "hello\n" */
#define HELLO                                                                                      \
	"\x58\x91\xb5\xb5\x22\xd5\xdf\x08\x6d\x0f\xf0\xb1\x10\xfb\xd9\xd2\x1b\xb4\xfc\x71\x63\xaf" \
	"\x34\xd0\x82\x86\xa2\xe8\x46\xf6\xbe\x03"
#define HELLO_512                                                                                  \
	"\xe7\xc2\x2b\x99\x4c\x59\xd9\xcf\x2b\x48\xe5\x49\xb1\xe2\x46\x66\x63\x60\x45\x93\x0d\x3d" \
	"\xa7\xc1\xac\xb2\x99\xd1\xc3\xb7\xf9\x31\xf9\x4a\xae\x41\xed\xda\x2c\x2b\x20\x7a\x36\xe1" \
	"\x0f\x8b\xcb\x8d\x45\x22\x3e\x54\x87\x8f\x5b\x31\x6e\x7c\xe3\xb6\xbc\x01\x96\x29"

struct answer {
	const char *time;
	const char *oid; /* of the hash */
	size_t hash_len;
	uint8_t status;
	const char *refused; /* status text; NULL: granted */
};

static void put_info(struct out *o, const struct answer *a)
{
	const size_t all = o->len;
	size_t imprint, algorithm;

	put_as(o, 0x18, a->time, strlen(a->time));
	put_as(o, 0x02, "\x01", 1);
	imprint = o->len;
	put_as(o, 0x04, HELLO, a->hash_len);
	algorithm = o->len;
	put_as(o, 0x06, a->oid, 9);
	wrap(o, 0x30, algorithm);
	wrap(o, 0x30, imprint);
	put_as(o, 0x06, "\x2a\x03\x04", 3);
	put_as(o, 0x02, "\x01", 1);
	wrap(o, 0x30, all);
}

static void put_token(struct out *o, const struct answer *a)
{
	const size_t all = o->len;

	put_info(o, a);
	wrap(o, 0x04, all);
	wrap(o, 0xa0, all);
	PUT_OID(o, OID_INFO);
	wrap(o, 0x30, all);
	put_as(o, 0x31, "", 0);
	put_as(o, 0x02, "\x03", 1);
	wrap(o, 0x30, all);
	wrap(o, 0xa0, all);
	PUT_OID(o, OID_SIGNED);
	wrap(o, 0x30, all);
}

static void put_answer(struct out *o, const struct answer *a)
{
	size_t status;

	o->len = 0;
	if (!a->refused)
		put_token(o, a);
	status = o->len;
	if (a->refused) {
		put_as(o, 0x03, "\x05\x00\x02\x00\x80", 4); /* bit 14 */
		put_as(o, 0x0c, a->refused, strlen(a->refused));
		wrap(o, 0x30, o->len - strlen(a->refused) - 2);
	}
	put_as(o, 0x02, &a->status, 1);
	wrap(o, 0x30, status);
	wrap(o, 0x30, 0);
}

static const struct answer good = { "20261122140403Z", OID_SHA256, 32, 0, NULL };

static enum status parse(const struct answer *a, struct timestamp *ret, struct err *e)
{
	static struct out o;

	put_answer(&o, a);
	return timestamp_parse(o.bytes + sizeof(o.bytes) - o.len, o.len, ret, e);
}

TEST(the_request_is_openssls)
{
	/* openssl ts -query -data - -sha256 -no_nonce -cert */
	static const char wanted[] =
		"\x30\x39\x02\x01\x01\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01"
		"\x05\x00\x04\x20" HELLO "\x01\x01\xff";
	uint8_t request[TIMESTAMP_REQUEST_SIZE];

	timestamp_request((const uint8_t *)HELLO, request);
	assert_int_equal(sizeof(wanted) - 1, sizeof(request));
	assert_memory_equal(request, wanted, sizeof(request));
}

TEST(time_and_hash_are_read)
{
	struct err e = ERR_INIT;
	struct timestamp t;

	CHECK_OK(parse(&good, &t, &e), &e);
	assert_int_equal(t.time, UINT64_C(1795356243000000000));
	CHECK_OK(timestamp_check(&t, "hello\n", 6, &e), &e);
	CHECK_STATUS(timestamp_check(&t, "hello", 5, &e), ST_MISMATCH, &e);
	CHECK_OK(parse(&(struct answer){ "20261122140403.25Z", OID_SHA256, 32, 1, NULL }, &t, &e),
		 &e);
	assert_int_equal(t.time, UINT64_C(1795356243250000000));
}

TEST(every_byte_of_a_hash_is_compared)
{
	for (int sha512 = 0; sha512 < 2; sha512++) {
		struct timestamp t = { .sha512 = sha512 };
		struct err e = ERR_INIT;

		memcpy(t.imprint, sha512 ? HELLO_512 : HELLO, sha512 ? 64 : 32);
		CHECK_OK(timestamp_check(&t, "hello\n", 6, &e), &e);
		for (size_t i = 0; i < (sha512 ? 64 : 32); i++) {
			t.imprint[i] ^= 1;
			CHECK_STATUS(timestamp_check(&t, "hello\n", 6, &e), ST_MISMATCH, &e);
			t.imprint[i] ^= 1;
		}
	}
}

TEST(what_cannot_be_is_refused)
{
	static const struct {
		struct answer a;
		const char *why;
	} cases[] = {
		{ { "20261122140403", OID_SHA256, 32, 0, NULL }, "damaged" },
		{ { "20261122140403+", OID_SHA256, 32, 0, NULL }, "damaged" },
		{ { "20261122140403.Z5", OID_SHA256, 32, 0, NULL }, "damaged" },
		{ { "20261322140403Z", OID_SHA256, 32, 0, NULL }, "damaged" },
		{ { "99991122140403Z", OID_SHA256, 32, 0, NULL }, "damaged" },
		{ { "261122140403Z", OID_SHA256, 32, 0, NULL }, "damaged" },
		{ { "20261122140403Z", OID_SHA256, 20, 0, NULL }, "damaged" },
		{ { "20261122140403Z", OID_SHA512, 32, 0, NULL }, "damaged" },
		{ { "20261122140403Z", OID_SHA384, 32, 0, NULL }, "openssl ts -verify" },
		{ { "", "", 0, 2, "come back tomorrow" },
		  "refused: status 2, timeNotAvailable: come back tomorrow" },
	};
	struct timestamp t;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;

		CHECK_STATUS(parse(&cases[i].a, &t, &e), ST_INPUT, &e);
		CHECK_HAS(e.message, cases[i].why);
	}
}

TEST(nothing_shorter_is_one)
{
	static struct out o;
	struct timestamp t;

	put_answer(&o, &good);
	for (size_t len = 0; len < o.len; len++) {
		/* An end of its own, so that the sanitizer sees a byte too far. */
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, o.bytes + sizeof(o.bytes) - o.len, len);
		assert_int_equal(timestamp_parse(copy, len, &t, NULL), ST_INPUT);
		free(copy);
	}
	/* Nor anything longer. */
	put(&o, "\0", 1);
	memmove(o.bytes + sizeof(o.bytes) - o.len, o.bytes + sizeof(o.bytes) - o.len + 1,
		o.len - 1);
	assert_int_equal(timestamp_parse(o.bytes + sizeof(o.bytes) - o.len, o.len, &t, NULL),
			 ST_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_request_is_openssls),
		cmocka_unit_test(time_and_hash_are_read),
		cmocka_unit_test(every_byte_of_a_hash_is_compared),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(nothing_shorter_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
