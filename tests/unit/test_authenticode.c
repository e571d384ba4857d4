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
#include "formats/base/md5_sha1.h"
#include "formats/base/sha256.h"
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

struct above {
	const char *name, *issuer;
};

struct signer {
	const char *name;
	const char *issuer;          /* NULL: "Some CA" */
	const struct above above[4]; /* certificates beside the signer's own */
	const char *time;            /* of a counter-signature: "201009084853Z" */
	uint8_t text_tag;            /* 0: UTF-8 */
	size_t name_len;             /* 0: strlen() */
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

/* As another certificate's subject has it, byte by byte. */
static void put_issuer(struct out *o, const char *name)
{
	put_name(o, &(struct signer){ .name = name ? name : "Some CA" }, "Organisation");
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
	put_issuer(o, s->issuer);
	put_as(o, 0x30, "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", 11);
	put_as(o, 0x02, &s->serial, 1);
	put_as(o, 0xa0, "\x02\x01\x02", 3);
	wrap(o, 0x30, body);
	wrap(o, 0x30, all);
}

static void put_signature(struct out *o, const struct signer *s);

/* RFC 5652, 11.4: a SignerInfo, of which only the time matters. */
static void put_time(struct out *o, const char *time)
{
	const size_t all = o->len;
	size_t at;

	put_as(o, 0x04, "signature", 9);
	put_as(o, 0x30, "", 0);
	at = o->len;
	put_as(o, 0x17, time, strlen(time));
	wrap(o, 0x31, at);
	PUT_OID(o, "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05");
	wrap(o, 0x30, at);
	wrap(o, 0xa0, at);
	put_as(o, 0x30, "", 0);
	put_as(o, 0x30, "", 0);
	put_as(o, 0x02, "\x01", 1);
	wrap(o, 0x30, all);
	wrap(o, 0x31, all);
	PUT_OID(o, "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x06");
	wrap(o, 0x30, all);
}

static void put_nested(struct out *o, const struct signer *s)
{
	const size_t all = o->len;
	size_t n = ARRAY_SIZE(s->nested);

	if (!s->nested[0])
		return;
	while (n--)
		if (s->nested[n])
			put_signature(o, s->nested[n]);
	wrap(o, 0x31, all);
	PUT_OID(o, OID_NEST);
	wrap(o, 0x30, all);
}

static void put_signer(struct out *o, const struct signer *s)
{
	const size_t all = o->len;
	size_t at;

	put_nested(o, s);
	if (s->time)
		put_time(o, s->time);
	if (o->len > all)
		wrap(o, 0xa1, all);
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
	put_issuer(o, s->issuer);
	wrap(o, 0x30, at);
	put_as(o, 0x02, "\x01", 1);
	wrap(o, 0x30, all);
}

/* SpcIndirectDataContent over a file whose SHA-1 is 20 times "h". */
static void put_content(struct out *o)
{
	const size_t all = o->len;
	size_t at = o->len;

	put_as(o, 0x04, "hhhhhhhhhhhhhhhhhhhh", 20);
	at = o->len;
	PUT_OID(o, OID_SHA1);
	wrap(o, 0x30, at);
	wrap(o, 0x30, all);
	put_as(o, 0x30, "", 0); /* SpcPeImageData */
	wrap(o, 0x30, all);
	wrap(o, 0xa0, all);
	PUT_OID(o, "\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x04");
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
	for (size_t i = 0; i < ARRAY_SIZE(s->above) && s->above[i].name; i++)
		put_certificate(o, &(struct signer){ .name = s->above[i].name,
						     .issuer = s->above[i].issuer,
						     .serial = (uint8_t)(100 + i) });
	put_certificate(o, s);
	put_certificate(o, &other); /* before the one that is meant */
	wrap(o, 0xa0, at);
	put_content(o);
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
 * Chains
 */

#define MICROSOFT "Microsoft Root Certificate Authority 2010"
#define CROSS     "Microsoft Code Verification Root"

TEST(class_is_that_of_the_chain)
{
	static const struct {
		struct signer s;
		enum authenticode_class want;
		const char *root;
		size_t chain;
	} cases[] = {
		{ { .name = "A", .serial = 1 }, AUTHENTICODE_OTHER, "Some CA", 1 },
		{ { .name = "A", .issuer = "A", .serial = 1 }, AUTHENTICODE_TEST, "A", 1 },
		{ { .name = "A", .issuer = "WDKTestCert me,1337", .serial = 1 },
		  AUTHENTICODE_TEST,
		  "WDKTestCert me,1337",
		  1 },
		{ { .name = "A",
		    .issuer = "M",
		    .above = { { "M", "Microsoft Testing Root Certificate Authority 2010" } },
		    .serial = 1 },
		  AUTHENTICODE_TEST,
		  "Microsoft Testing Root Certificate Authority 2010",
		  2 },
		{ { .name = "A", .issuer = "M", .above = { { "M", CROSS } }, .serial = 1 },
		  AUTHENTICODE_CROSS,
		  CROSS,
		  2 },
		/* Of the root that is there twice, the one that leads on, in either order. */
		{ { .name = "A",
		    .issuer = "M",
		    .above = { { "M", "R" }, { "R", "R" }, { "R", CROSS } },
		    .serial = 1 },
		  AUTHENTICODE_CROSS,
		  CROSS,
		  3 },
		{ { .name = "A",
		    .issuer = "M",
		    .above = { { "R", CROSS }, { "R", "R" }, { "M", "R" } },
		    .serial = 1 },
		  AUTHENTICODE_CROSS,
		  CROSS,
		  3 },
		{ { .name = "A",
		    .issuer = "M",
		    .above = { { "M", MICROSOFT } },
		    .serial = 1,
		    .whql = true },
		  AUTHENTICODE_WHCP,
		  MICROSOFT,
		  2 },
		{ { .name = "A",
		    .issuer = "M",
		    .above = { { "M", MICROSOFT } },
		    .serial = 1,
		    .whql = true,
		    .attestation = true },
		  AUTHENTICODE_ATTESTED,
		  MICROSOFT,
		  2 },
		/* Anybody can write such a usage, and such a name somewhere below. */
		{ { .name = "A", .issuer = "A", .serial = 1, .whql = true },
		  AUTHENTICODE_TEST,
		  "A",
		  1 },
		{ { .name = "A",
		    .issuer = MICROSOFT,
		    .above = { { MICROSOFT, "Mine" } },
		    .serial = 1,
		    .whql = true },
		  AUTHENTICODE_OTHER,
		  "Mine",
		  2 },
		/* Microsoft's, but not of its hardware program. */
		{ { .name = "A", .issuer = "M", .above = { { "M", MICROSOFT } }, .serial = 1 },
		  AUTHENTICODE_OTHER,
		  MICROSOFT,
		  2 },
		/* In a circle: it ends. */
		{ { .name = "A",
		    .issuer = "M",
		    .above = { { "M", "N" }, { "N", "M" } },
		    .serial = 1 },
		  AUTHENTICODE_OTHER,
		  "N",
		  AUTHENTICODE_CHAIN_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct authenticode a = read_made(&cases[i].s);

		if (a.at[0].class != cases[i].want)
			fail_msg("case %zu: %s", i, authenticode_class_name(a.at[0].class));
		if (strcmp(a.at[0].root, cases[i].root) != 0 || a.at[0].chain_len != cases[i].chain)
			fail_msg("case %zu: %s, %zu", i, a.at[0].root, a.at[0].chain_len);
		assert_string_equal(a.at[0].chain[0].name, "A");
		assert_string_equal(a.at[0].chain[0].digest, "sha256");
	}
}

TEST(time_stamp_is_told)
{
	static const struct {
		const char *time;
		uint64_t want;
	} cases[] = {
		{ "201009084853Z", UINT64_C(1602233333) },
		{ "990101000000Z", UINT64_C(915148800) },
		{ "201309084853Z", 0 }, /* month 13 */
		{ "20100908485Z", 0 },
		{ NULL, 0 },
	};
	const struct signer inner = { .name = "B", .serial = 2, .time = "180910235304Z" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct signer s = {
			.name = "A", .serial = 1, .time = cases[i].time, .nested = { &inner }
		};
		const struct authenticode a = read_made(&s);

		assert_int_equal(a.count, 2);
		assert_int_equal(a.at[0].time, cases[i].want * UINT64_C(1000000000));
		assert_int_equal(a.at[1].time, UINT64_C(1536623584000000000));
	}
}

/* All bytes but the checksum, the entry and the table, each of them once. */
TEST(ranges_leave_out_what_is_not_signed)
{
	const struct signer s = { .name = "A", .serial = 1 };
	struct authenticode_range r[AUTHENTICODE_RANGES];
	uint8_t marked[0x4000] = { 0 };
	size_t len;
	uint8_t *f = file_of(&s, &len);

	assert_true(len < sizeof(marked));
	assert_true(authenticode_ranges(f, len, r));
	for (size_t i = 0; i < AUTHENTICODE_RANGES; i++)
		for (size_t k = 0; k < r[i].len; k++)
			marked[r[i].at + k]++;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(marked[i],
				 !((i >= 0x98 + 64 && i < 0x98 + 68) ||
				   (i >= 0x98 + 144 && i < 0x98 + 152) || i >= TABLE_AT));
	/* A table that lies over the headers, or beyond the end. */
	put_le32(f + 0x98 + 144, 0x40);
	assert_false(authenticode_ranges(f, len, r));
	put_le32(f + 0x98 + 144, (uint32_t)len);
	assert_false(authenticode_ranges(f, len, r));
	free(f);
	f = file_of(NULL, &len);
	assert_true(authenticode_ranges(f, len, r));
	assert_int_equal(r[2].at + r[2].len, len);
	free(f);
	assert_false(authenticode_ranges("MZ", 2, r));
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

/* Does the first imprint of this kind say what the file is? */
static bool imprint_is_right(const uint8_t *f, size_t len, const struct authenticode_signer *s)
{
	uint8_t sha256[SHA256_SIZE], md5[MD5_SIZE], sha1[SHA1_SIZE];
	struct authenticode_range r[AUTHENTICODE_RANGES];
	struct md5_sha1 *small = NULL;
	struct sha256 *big = NULL;
	bool right;

	assert_true(authenticode_ranges(f, len, r));
	assert_int_equal(sha256_create(&big, NULL), ST_OK);
	assert_int_equal(md5_sha1_create(&small, NULL), ST_OK);
	sha256_begin(big);
	for (size_t i = 0; i < AUTHENTICODE_RANGES; i++) {
		sha256_update(big, f + r[i].at, r[i].len);
		md5_sha1_update(small, f + r[i].at, r[i].len);
	}
	sha256_end(big, sha256);
	md5_sha1_end(small, md5, sha1);
	right = !strcmp(s->imprint_digest, "sha1")
			? s->imprint_len == SHA1_SIZE && !memcmp(s->imprint, sha1, SHA1_SIZE)
			: s->imprint_len == SHA256_SIZE && !memcmp(s->imprint, sha256, SHA256_SIZE);
	sha256_destroy(big);
	md5_sha1_destroy(small);
	return right;
}

#define WHCP "Microsoft Windows Hardware Compatibility Publisher"

TEST(winpmem_as_it_is_handed_out)
{
	static const struct {
		const char *file;
		struct {
			const char *name, *digest, *root;
			enum authenticode_class class;
			size_t chain;
			uint64_t time; /* s */
		} signer[3];
	} cases[] = {
		{ "winpmem-2.0.1-x64.sys",
		  { { "Binalyze LLC", "sha1", CROSS, AUTHENTICODE_CROSS, 3, 1602233333 },
		    { WHCP, "sha256", MICROSOFT, AUTHENTICODE_ATTESTED, 2, 1602234108 } } },
		{ "winpmem-1.6.3-x64.sys",
		  { { "Binalyze LLC", "sha1", CROSS, AUTHENTICODE_CROSS, 3, 1536623584 } } },
		{ "winpmem-1.6.3-attestation-x64.sys",
		  { { "Binalyze LLC", "sha1", CROSS, AUTHENTICODE_CROSS, 3, 1536623584 },
		    { WHCP, "sha256", MICROSOFT, AUTHENTICODE_ATTESTED, 2, 1536624481 } } },
		{ "winpmem-4.1-test-x64.sys",
		  { { "WDKTestCert Administrator,133758963446503213", "sha256",
		      "WDKTestCert Administrator,133758963446503213", AUTHENTICODE_TEST, 1, 0 } } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		struct authenticode a;
		size_t len = 0, n = 0;
		uint8_t *f = load(cases[i].file, &len);

		if (!f)
			skip();
		CHECK_OK(authenticode_read(f, len, &a, &e), &e);
		for (; n < 3 && cases[i].signer[n].name; n++) {
			const struct authenticode_signer *s = &a.at[n];

			assert_string_equal(s->name, cases[i].signer[n].name);
			assert_string_equal(s->digest, cases[i].signer[n].digest);
			assert_string_equal(s->root, cases[i].signer[n].root);
			assert_int_equal(s->class, cases[i].signer[n].class);
			assert_int_equal(s->chain_len, cases[i].signer[n].chain);
			assert_int_equal(s->time / UINT64_C(1000000000), cases[i].signer[n].time);
			assert_int_equal(s->nested, n > 0);
			assert_int_equal(s->attestation, s->class == AUTHENTICODE_ATTESTED);
			assert_int_equal(s->whql, s->class == AUTHENTICODE_ATTESTED);
			assert_true(imprint_is_right(f, len, s));
			f[0x40] ^= 1; /* in the DOS stub */
			assert_false(imprint_is_right(f, len, s));
			f[0x40] ^= 1;
		}
		assert_int_equal(a.count, n);
		free(f);
	}
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
		cmocka_unit_test(class_is_that_of_the_chain),
		cmocka_unit_test(time_stamp_is_told),
		cmocka_unit_test(ranges_leave_out_what_is_not_signed),
		cmocka_unit_test(winpmem_as_it_is_handed_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
