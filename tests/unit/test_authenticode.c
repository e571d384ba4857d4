/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures are put together here byte by byte, after the same documents; and the drivers that
 * people really load are read, where they are at hand: in $RAMSEAL_TEST_DATA/winpmem, or in
 * ../shared/data/winpmem beside the sources. They are not a part of the sources.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/proof/authenticode.h"
#include "formats/base/bytes.h"
#include "tests/unit/der_build.h"

#define OID_SIGNED "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"
#define OID_NEST   "\x2b\x06\x01\x04\x01\x82\x37\x02\x04\x01"
#define OID_CN     "\x55\x04\x03"
#define OID_ORG    "\x55\x04\x0a"
#define OID_EKU    "\x55\x1d\x25"
#define OID_WHQL   "\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05"
#define OID_ATT    "\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05\x01"
#define OID_SHA1   "\x2b\x0e\x03\x02\x1a"
#define OID_SHA256 "\x60\x86\x48\x01\x65\x03\x04\x02\x01"

struct signer {
	const char *name;
	uint8_t text_tag; /* 0: UTF-8 */
	size_t name_len;  /* 0: strlen() */
	uint8_t serial;
	bool sha256, whql, attestation;
	const struct signer *nested[10];
};

static void put_name(struct out *o, const struct signer *s, const char *organisation)
{
	const size_t all = o->len;
	size_t set = o->len, pair = o->len;

	put_as(o, s->text_tag ? s->text_tag : 0x0c, s->name,
	       s->name_len ? s->name_len : strlen(s->name));
	PUT_OID(o, OID_CN);
	wrap(o, 0x30, pair);
	wrap(o, 0x31, set);
	set = pair = o->len;
	put_as(o, 0x13, organisation, strlen(organisation));
	PUT_OID(o, OID_ORG);
	wrap(o, 0x30, pair);
	wrap(o, 0x31, set);
	wrap(o, 0x30, all);
}

static void put_issuer(struct out *o)
{
	put_name(o, &(struct signer){ .name = "Some CA" }, "CA");
}

static void put_usages(struct out *o, const struct signer *s)
{
	const size_t all = o->len;

	if (s->attestation)
		PUT_OID(o, OID_ATT);
	if (s->whql)
		PUT_OID(o, OID_WHQL);
	PUT_OID(o, "\x2b\x06\x01\x05\x05\x07\x03\x03"); /* code signing */
	wrap(o, 0x30, all);
	wrap(o, 0x04, all);
	PUT_OID(o, OID_EKU);
	wrap(o, 0x30, all);
	wrap(o, 0x30, all);
	wrap(o, 0xa3, all);
}

/* TBSCertificate and what follows it, as far as anybody reads it. */
static void put_certificate(struct out *o, const struct signer *s)
{
	const size_t all = o->len;

	put_as(o, 0x03, "\0signature", 10);
	put_as(o, 0x30, "", 0);
	const size_t body = o->len;
	put_usages(o, s);
	put_as(o, 0x30, "", 0); /* public key */
	put_name(o, s, "Organisation");
	put_as(o, 0x30, "", 0); /* validity */
	put_issuer(o);
	put_as(o, 0x30, "", 0); /* algorithm */
	put_as(o, 0x02, &s->serial, 1);
	put_as(o, 0xa0, "\x02\x01\x02", 3);
	wrap(o, 0x30, body);
	wrap(o, 0x30, all);
}

static void put_signature(struct out *o, const struct signer *s);

static void put_nested(struct out *o, const struct signer *s)
{
	const size_t all = o->len;
	size_t n = ARRAY_SIZE(s->nested);

	while (n--)
		if (s->nested[n])
			put_signature(o, s->nested[n]);
	wrap(o, 0x31, all);
	PUT_OID(o, OID_NEST);
	wrap(o, 0x30, all);
	wrap(o, 0xa1, all);
}

static void put_signer(struct out *o, const struct signer *s)
{
	const size_t all = o->len;
	size_t at;

	if (s->nested[0])
		put_nested(o, s);
	put_as(o, 0x04, "signature", 9);
	put_as(o, 0x30, "", 0);
	put_as(o, 0xa0, "", 0);
	at = o->len;
	if (s->sha256)
		PUT_OID(o, OID_SHA256);
	else
		PUT_OID(o, OID_SHA1);
	wrap(o, 0x30, at);
	at = o->len;
	put_as(o, 0x02, &s->serial, 1);
	put_issuer(o);
	wrap(o, 0x30, at);
	put_as(o, 0x02, "\x01", 1);
	wrap(o, 0x30, all);
}

static void put_signature(struct out *o, const struct signer *s)
{
	const struct signer other = { .name = "Somebody else", .serial = 99, .whql = true };
	const size_t all = o->len;
	size_t at = o->len;

	put_signer(o, s);
	wrap(o, 0x31, at);
	at = o->len;
	put_certificate(o, s);
	put_certificate(o, &other); /* before the one that is meant */
	wrap(o, 0xa0, at);
	put_as(o, 0x30, "", 0);
	put_as(o, 0x31, "", 0);
	put_as(o, 0x02, "\x01", 1);
	wrap(o, 0x30, all);
	wrap(o, 0xa0, all);
	PUT_OID(o, OID_SIGNED);
	wrap(o, 0x30, all);
}

#define TABLE_AT 0x200

/* A PE32+ file of nothing but headers, and the signature behind them; free() it. */
static uint8_t *file_of(const struct signer *s, size_t *ret_len)
{
	static struct out o;
	const size_t header = 8;
	uint8_t *f;

	o.len = 0;
	if (s)
		put_signature(&o, s);
	*ret_len = TABLE_AT + (s ? header + o.len : 0);
	f = calloc(1, *ret_len);
	assert_non_null(f);
	memcpy(f, "MZ", 2);
	put_le32(f + 0x3c, 0x80);
	memcpy(f + 0x80, "PE\0", 4);
	put_le16(f + 0x80 + 24, 0x20b);
	put_le32(f + 0x80 + 24 + 108, 16);
	if (!s)
		return f;
	put_le32(f + 0x80 + 24 + 112 + 8 * 4, TABLE_AT);
	put_le32(f + 0x80 + 24 + 112 + 8 * 4 + 4, (uint32_t)(header + o.len));
	put_le32(f + TABLE_AT, (uint32_t)(header + o.len));
	put_le16(f + TABLE_AT + 4, 0x200);
	put_le16(f + TABLE_AT + 6, 2);
	memcpy(f + TABLE_AT + header, o.bytes + sizeof(o.bytes) - o.len, o.len);
	return f;
}

static struct authenticode read_made(const struct signer *s)
{
	struct err e = ERR_INIT;
	struct authenticode a;
	size_t len;
	uint8_t *f = file_of(s, &len);

	CHECK_OK(authenticode_read(f, len, &a, &e), &e);
	free(f);
	return a;
}

TEST(file_without_a_signature_has_no_signers)
{
	assert_int_equal(read_made(NULL).count, 0);
}

TEST(nested_signature_is_told_beside_the_first)
{
	const struct signer second = { .name = "Microsoft Windows Hardware",
				       .serial = 7,
				       .sha256 = true,
				       .attestation = true };
	const struct signer third = { .name = "Third", .serial = 8, .sha256 = true, .whql = true };
	const struct signer first = { .name = "Binary Ltd",
				      .serial = 5,
				      .nested = { &second, &third } };
	const struct authenticode a = read_made(&first);

	assert_int_equal(a.count, 3);
	assert_string_equal(a.at[0].name, "Binary Ltd");
	assert_string_equal(a.at[0].digest, "sha1");
	assert_false(a.at[0].nested || a.at[0].whql || a.at[0].attestation);
	assert_string_equal(a.at[1].name, "Microsoft Windows Hardware");
	assert_string_equal(a.at[1].digest, "sha256");
	assert_true(a.at[1].nested && a.at[1].attestation);
	assert_false(a.at[1].whql);
	assert_true(a.at[2].nested && a.at[2].whql);
	assert_false(a.at[2].attestation);
}

/* Two WIN_CERTIFICATEs: the second one begins at a multiple of 8, wherever the first one ends. */
TEST(second_certificate_is_told_behind_the_first)
{
	static const char *const names[] = { "A",     "AB",     "ABC",     "ABCD",
					     "ABCDE", "ABCDEF", "ABCDEFG", "ABCDEFGH" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct signer one = { .name = names[i], .serial = 5 };
		const struct signer two = { .name = "Second", .serial = 6, .sha256 = true };
		struct authenticode a;
		struct err e = ERR_INIT;
		size_t len, more, at;
		uint8_t *f = file_of(&one, &len), *g = file_of(&two, &more), *both;

		at = (len + 7) & ~(size_t)7;
		both = calloc(1, at + more - TABLE_AT);
		assert_non_null(both);
		memcpy(both, f, len);
		memcpy(both + at, g + TABLE_AT, more - TABLE_AT);
		put_le32(both + 0x80 + 24 + 112 + 8 * 4 + 4, (uint32_t)(at + more - 2 * TABLE_AT));
		CHECK_OK(authenticode_read(both, at + more - TABLE_AT, &a, &e), &e);
		assert_int_equal(a.count, 2);
		assert_string_equal(a.at[0].name, names[i]);
		assert_string_equal(a.at[1].name, "Second");
		assert_false(a.at[1].nested);
		free(both);
		free(f);
		free(g);
	}
}

TEST(names_come_in_several_alphabets)
{
	static const struct {
		struct signer s;
		const char *want;
	} cases[] = {
		{ { .name = "Ger\xc3\xa4t", .serial = 1 }, "Ger\xc3\xa4t" },
		{ { .name = "P", .text_tag = 0x13, .serial = 1 }, "P" },
		{ { .name = "\0B\0M\0P\x20\xac", .text_tag = 0x1e, .name_len = 8, .serial = 1 },
		  "BMP?" },
		{ { .name = "a\x1b[2Jb\n", .serial = 1 }, "a?[2Jb?" },
		{ { .name = "bad\xff", .serial = 1 }, "bad?" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(read_made(&cases[i].s).at[0].name, cases[i].want);
}

TEST(more_signers_than_fit_are_counted)
{
	const struct signer one = { .name = "N", .serial = 2 };
	const struct signer first = { .name = "F",
				      .serial = 1,
				      .nested = { &one, &one, &one, &one, &one, &one, &one, &one,
						  &one, &one } };
	const struct authenticode a = read_made(&first);

	assert_int_equal(a.count, AUTHENTICODE_SIGNERS_MAX);
	assert_int_equal(a.count + a.more, 11);
}

/* Cut anywhere, or with any byte changed, it ends, and reads nothing that is not there. */
TEST(damaged_signatures_end)
{
	const struct signer second = { .name = "Second", .serial = 7, .attestation = true };
	const struct signer first = { .name = "First", .serial = 5, .nested = { &second } };
	struct authenticode a;
	size_t len, bad = 0;
	uint8_t *f = file_of(&first, &len);

	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *part = malloc(cut ? cut : 1); /* of its own, for the sanitizer to watch */

		memcpy(part, f, cut);
		assert_int_equal(authenticode_read(part, cut, &a, NULL) == ST_CORRUPT,
				 cut < 0x98 + 2 || cut >= 0x98 + 108 + 44);
		free(part);
	}
	for (size_t i = TABLE_AT; i < len; i++) {
		const uint8_t was = f[i];

		f[i] ^= 0xff;
		bad += authenticode_read(f, len, &a, NULL) == ST_CORRUPT;
		f[i] = was;
	}
	assert_true(bad > (len - TABLE_AT) / 10);
	free(f);
}

/*
 * The drivers that are handed out
 */

static uint8_t *load(const char *name, size_t *ret_len)
{
	const char *root = getenv("RAMSEAL_TEST_DATA");
	uint8_t *bytes = malloc(1 << 20);
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/winpmem/%s", root ? root : SOURCE_ROOT "/../shared/data",
		 name);
	f = fopen(path, "rb");
	if (!f) {
		free(bytes);
		print_message("note: %s is not there: the driver's signatures are not looked at\n",
			      path);
		return NULL;
	}
	*ret_len = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

TEST(winpmem_2_has_two_signatures)
{
	struct err e = ERR_INIT;
	struct authenticode a;
	size_t len = 0;
	uint8_t *f = load("winpmem-2.0.1-x64.sys", &len);

	if (!f)
		skip();
	CHECK_OK(authenticode_read(f, len, &a, &e), &e);
	assert_int_equal(a.count, 2);
	assert_string_equal(a.at[0].name, "Binalyze LLC");
	assert_string_equal(a.at[0].digest, "sha1");
	assert_false(a.at[0].attestation || a.at[0].whql);
	assert_string_equal(a.at[1].name, "Microsoft Windows Hardware Compatibility Publisher");
	assert_string_equal(a.at[1].digest, "sha256");
	assert_true(a.at[1].nested && a.at[1].attestation);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_without_a_signature_has_no_signers),
		cmocka_unit_test(nested_signature_is_told_beside_the_first),
		cmocka_unit_test(second_certificate_is_told_behind_the_first),
		cmocka_unit_test(names_come_in_several_alphabets),
		cmocka_unit_test(more_signers_than_fit_are_counted),
		cmocka_unit_test(damaged_signatures_end),
		cmocka_unit_test(winpmem_2_has_two_signatures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
