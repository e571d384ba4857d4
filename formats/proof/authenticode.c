/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/authenticode_internal.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utc.h"
#include "formats/base/utf8.h"
#include "formats/proof/der.h"
#include "formats/proof/timestamp.h"

/*
 * Object identifiers, encoded
 */

#define OID_SIGNED_DATA DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02") /* RFC 5652, 5.1 */
#define OID_NESTED                                                                                 \
	DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x02\x04\x01")           /* 1.3.6.1.4.1.311.2.4.1 */
#define OID_TOKEN DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x03\x03\x01") /* 1.3.6.1.4.1.311.3.3.1 */
#define OID_INDIRECT                                                                               \
	DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x04") /* SPC_INDIRECT_DATA_OBJID */
#define OID_COUNTER_SIGNATURE DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x06")
#define OID_SIGNING_TIME      DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05")
#define OID_COMMON_NAME       DER_OID_OF("\x55\x04\x03") /* RFC 5280, A.1 */
#define OID_EXTENDED_USE      DER_OID_OF("\x55\x1d\x25") /* RFC 5280, 4.2.1.12 */
#define OID_WHQL              DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05")
#define OID_ATTESTATION       DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05\x01")

/* RFC 3279, 2.1, and RFC 5754, 2. */
static const char *digest_name(const struct der *oid)
{
	static const struct {
		struct der_oid oid;
		const char *name;
	} digests[] = {
		{ { "\x2a\x86\x48\x86\xf7\x0d\x02\x05", 8 }, "md5" },
		{ { "\x2b\x0e\x03\x02\x1a", 5 }, "sha1" },
		{ { "\x60\x86\x48\x01\x65\x03\x04\x02\x01", 9 }, "sha256" },
		{ { "\x60\x86\x48\x01\x65\x03\x04\x02\x02", 9 }, "sha384" },
		{ { "\x60\x86\x48\x01\x65\x03\x04\x02\x03", 9 }, "sha512" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(digests); i++)
		if (der_is_oid(oid, digests[i].oid))
			return digests[i].name;
	return "other";
}

/* RFC 8017, A.2.4, and RFC 5758, 3.2. */
static const char *signature_digest_name(const struct der *oid)
{
	static const struct {
		struct der_oid oid;
		const char *name;
	} algorithms[] = {
		{ { "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", 9 }, "md5" },
		{ { "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", 9 }, "sha1" },
		{ { "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", 9 }, "sha256" },
		{ { "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", 9 }, "sha384" },
		{ { "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", 9 }, "sha512" },
		{ { "\x2a\x86\x48\xce\x3d\x04\x03\x02", 8 }, "sha256" },
		{ { "\x2a\x86\x48\xce\x3d\x04\x03\x03", 8 }, "sha384" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (der_is_oid(oid, algorithms[i].oid))
			return algorithms[i].name;
	return "other";
}

/*
 * Certificates (RFC 5280, 4.1)
 */

/* What is not UTF-8, and not ASCII in two bytes each, is a question mark. */
static void take_der_text(const struct der *d, char ret[static AUTHENTICODE_NAME_MAX])
{
	const size_t width = d->tag == DER_BMP ? 2 : 1;
	const bool utf8 = d->tag == DER_UTF8 && utf8_valid(d->at, d->len);
	size_t n = 0;

	for (size_t i = 0; i + width <= d->len && n < AUTHENTICODE_NAME_MAX - 1; i += width) {
		const uint8_t c = d->at[i + width - 1];
		const bool plain = c >= 0x20 && c < 0x7f && (width == 1 || !d->at[i]);

		ret[n++] = plain || (utf8 && c >= 0x80) ? (char)c : '?';
	}
	/* Not in the middle of a character. */
	while (n && utf8 && !utf8_valid(ret, n))
		n--;
	ret[n] = '\0';
}

static void take_subject_name(const struct der *subject, char ret[static AUTHENTICODE_NAME_MAX])
{
	struct cursor names = der_inside(subject);
	struct der set, pair, type, value;

	while (der_next(&names, &set)) {
		struct cursor pairs = der_inside(&set);

		while (der_next(&pairs, &pair)) {
			struct cursor c = der_inside(&pair);

			if (der_want(&c, DER_OID, &type) && der_is_oid(&type, OID_COMMON_NAME) &&
			    der_next(&c, &value))
				take_der_text(&value, ret);
		}
	}
}

static void take_usages(const struct der *octets, struct authenticode_signer *ret)
{
	struct cursor c = der_inside(octets), usages;
	struct der list, usage;

	if (!der_want(&c, DER_SEQUENCE, &list))
		return;
	usages = der_inside(&list);
	while (der_next(&usages, &usage)) {
		ret->whql |= der_is_oid(&usage, OID_WHQL);
		ret->attestation |= der_is_oid(&usage, OID_ATTESTATION);
	}
}

static void take_extensions(const struct der *explicit_list, struct authenticode_signer *ret)
{
	struct cursor c = der_inside(explicit_list), extensions;
	struct der list, extension, oid, value;

	if (!der_want(&c, DER_SEQUENCE, &list))
		return;
	extensions = der_inside(&list);
	while (der_next(&extensions, &extension)) {
		struct cursor x = der_inside(&extension);

		if (!der_want(&x, DER_OID, &oid) || !der_is_oid(&oid, OID_EXTENDED_USE))
			continue;
		while (der_next(&x, &value)) /* a flag may stand before it */
			if (value.tag == DER_OCTETS)
				take_usages(&value, ret);
	}
}

/* The parts of a certificate by which it is found and judged. */
struct certificate {
	struct der body, serial, issuer, subject, extensions; /* .len 0: it has none */
	const char *digest;
};

/* version, serial number, algorithm, issuer, validity, subject, key, extensions */
static bool parse_certificate(const struct der *whole, struct certificate *ret)
{
	struct cursor outer = der_inside(whole), c;
	struct der algorithm, oid, skip;

	*ret = (struct certificate){ .digest = "other" };
	if (!der_want(&outer, DER_SEQUENCE, &ret->body))
		return false;
	c = der_inside(&ret->body);
	der_optional(&c, DER_CONTEXT(0), &skip);
	if (!der_want(&c, DER_INTEGER, &ret->serial) || !der_next(&c, &algorithm) ||
	    !der_next(&c, &ret->issuer) || !der_next(&c, &skip) || !der_next(&c, &ret->subject))
		return false;
	while (der_next(&c, &skip))
		if (skip.tag == DER_CONTEXT(3))
			ret->extensions = skip;
	c = der_inside(&algorithm);
	if (der_want(&c, DER_OID, &oid))
		ret->digest = signature_digest_name(&oid);
	return true;
}

static bool find_certificate_of(const struct der *certificates, const struct der *issuer,
				const struct der *serial, struct certificate *ret)
{
	struct cursor c = der_inside(certificates);
	struct der one;

	while (der_next(&c, &one))
		if (one.tag == DER_SEQUENCE && parse_certificate(&one, ret) &&
		    der_same(&ret->serial, serial) && der_same(&ret->issuer, issuer))
			return true;
	return false;
}

static bool signed_itself(const struct certificate *c)
{
	return der_same(&c->issuer, &c->subject);
}

/*
 * Whose subject issued `below`. A root may be there twice, signed by itself and by Microsoft: the
 * one that leads further counts.
 */
static bool find_issuer(const struct der *certificates, const struct certificate *below,
			struct certificate *ret)
{
	struct cursor c = der_inside(certificates);
	struct certificate one;
	bool found = false;
	struct der d;

	while (der_next(&c, &d)) {
		if (d.tag != DER_SEQUENCE || !parse_certificate(&d, &one) ||
		    !der_same(&one.subject, &below->issuer) || (found && signed_itself(&one)))
			continue;
		*ret = one;
		found = true;
	}
	return found;
}

static void take_chain(const struct der *certificates, struct certificate *c,
		       struct authenticode_signer *ret)
{
	bool more = true;

	while (more) {
		struct authenticode_certificate *to = &ret->chain[ret->chain_len++];
		struct certificate above;

		take_subject_name(&c->subject, to->name);
		to->body = c->body.whole;
		to->body_len = c->body.whole_len;
		to->digest = c->digest;
		more = ret->chain_len < AUTHENTICODE_CHAIN_MAX && !signed_itself(c) &&
		       find_issuer(certificates, c, &above);
		if (more)
			*c = above;
	}
	take_subject_name(&c->issuer, ret->root);
}

/*
 * Classes
 */

const char *authenticode_class_name(enum authenticode_class c)
{
	static const char *const names[] = {
		[AUTHENTICODE_OTHER] = "other",       [AUTHENTICODE_WHCP] = "whcp",
		[AUTHENTICODE_ATTESTED] = "attested", [AUTHENTICODE_CROSS] = "cross-signed",
		[AUTHENTICODE_TEST] = "test",
	};

	return names[c];
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

/*
 * Microsoft's roots that the kernel knows, as "Trusted Root Certificates in Windows" and "Windows
 * Driver Signing" name them, and those for tests (bcdedit's TESTSIGNING). A usage counts below one
 * of them only: anybody can write it into a certificate of his own.
 */
static enum authenticode_class class_of(const struct authenticode_signer *s)
{
	static const char *const microsoft[] = {
		"Microsoft Root Certificate Authority 2010",
		"Microsoft Root Certificate Authority 2011",
		"Microsoft Root Certificate Authority",
		"Microsoft Root Authority",
		NULL,
	};
	static const char *const tests[] = {
		"Microsoft Test Root Authority",
		"Microsoft Testing Root Certificate Authority 2010",
		NULL,
	};

	if (is_one_of(s->root, microsoft) && s->attestation)
		return AUTHENTICODE_ATTESTED;
	if (is_one_of(s->root, microsoft) && s->whql)
		return AUTHENTICODE_WHCP;
	if (!strcmp(s->root, "Microsoft Code Verification Root"))
		return AUTHENTICODE_CROSS;
	/* What Visual Studio makes for one developer: "WDKTestCert NAME,NUMBER". */
	if (is_one_of(s->root, tests) || !strncmp(s->root, "WDKTestCert ", 12) ||
	    (s->chain_len == 1 && s->name[0] && !strcmp(s->root, s->name)))
		return AUTHENTICODE_TEST;
	return AUTHENTICODE_OTHER;
}

/* Nothing of a certificate that the file does not have. */
static void take_certificate(const struct der *certificates, const struct der *issuer,
			     const struct der *serial, struct authenticode_signer *ret)
{
	struct certificate c;

	if (!find_certificate_of(certificates, issuer, serial, &c))
		return;
	take_subject_name(&c.subject, ret->name);
	if (c.extensions.len)
		take_extensions(&c.extensions, ret);
	take_chain(certificates, &c, ret);
	ret->class = class_of(ret);
}

/*
 * Time stamps
 */

/* YYMMDDhhmmssZ (RFC 5280, 4.1.2.5.1): years from 50 on are of the last century. */
static bool take_utc_time(const struct der *d, uint64_t *ret)
{
	char digits[15] = "20";
	uint64_t seconds;
	struct utc t;

	if (d->tag != DER_UTC_TIME || d->len != 13 || d->at[12] != 'Z')
		return false;
	memcpy(digits + 2, d->at, 12);
	if (digits[2] >= '5')
		memcpy(digits, "19", 2);
	if (!utc_from_digits(digits, 6, &t) || !utc_seconds(&t, &seconds))
		return false;
	*ret = seconds * UINT64_C(1000000000);
	return true;
}

/* SignerInfo, up to its signed attributes, of which one is the time. */
static bool take_counter_signature(const struct der *info, uint64_t *ret)
{
	struct cursor c = der_inside(info);
	struct der skip, attributes, attribute, oid, values, time;

	if (!der_want(&c, DER_INTEGER, &skip) || !der_want(&c, DER_SEQUENCE, &skip) ||
	    !der_want(&c, DER_SEQUENCE, &skip) || !der_optional(&c, DER_CONTEXT(0), &attributes))
		return false;
	c = der_inside(&attributes);
	while (der_next(&c, &attribute)) {
		struct cursor a = der_inside(&attribute);

		if (!der_want(&a, DER_OID, &oid) || !der_is_oid(&oid, OID_SIGNING_TIME) ||
		    !der_want(&a, DER_SET, &values))
			continue;
		a = der_inside(&values);
		return der_next(&a, &time) && take_utc_time(&time, ret);
	}
	return false;
}

/* One that cannot be read is none: the file's hash is what matters here. */
static void take_time(const struct der *oid, const struct der *values, uint64_t *ret)
{
	struct cursor c = der_inside(values);
	struct der value;

	if (*ret || !der_next(&c, &value) || value.tag != DER_SEQUENCE)
		return;
	if (der_is_oid(oid, OID_COUNTER_SIGNATURE))
		take_counter_signature(&value, ret);
	else if (der_is_oid(oid, OID_TOKEN) && !timestamp_token_time(&value, ret))
		*ret = 0;
}

/*
 * Signatures (RFC 5652, 5)
 */

/* Only the outermost signature can have others in it: of deeper ones nobody makes any use. */
static bool read_attributes(const struct der *attributes, bool nested, uint64_t *ret_time,
			    struct authenticode *ret)
{
	struct cursor c = der_inside(attributes);
	struct der attribute, oid, values;

	while (der_next(&c, &attribute)) {
		struct cursor a = der_inside(&attribute), v;

		if (!der_want(&a, DER_OID, &oid) || !der_want(&a, DER_SET, &values))
			return false;
		take_time(&oid, &values, ret_time);
		v = der_inside(&values);
		while (!nested && der_is_oid(&oid, OID_NESTED) && v.left)
			if (!authenticode__read_signature(&v, true, ret))
				return false;
	}
	return !c.bad;
}

static void add_signer(const struct authenticode_signer *signer, struct authenticode *ret)
{
	if (ret->count < AUTHENTICODE_SIGNERS_MAX)
		ret->at[ret->count++] = *signer;
	else
		ret->more++;
}

/* What the signers of one SignedData have in common. */
struct signed_data {
	struct der certificates;
	struct authenticode_signer signer; /* its imprint, and whether it is nested */
};

/*
 * Its place in the list is before those of the signatures within it, and its time stamp is an
 * attribute beside them.
 */
static bool read_signer(const struct der *info, const struct signed_data *of,
			struct authenticode *ret)
{
	struct authenticode_signer signer = of->signer;
	struct cursor c = der_inside(info), id, digest;
	struct der skip, who, issuer, serial, algorithm, oid, attributes;
	const size_t place = ret->count;
	bool whole;

	if (!der_want(&c, DER_INTEGER, &skip) || !der_want(&c, DER_SEQUENCE, &who) ||
	    !der_want(&c, DER_SEQUENCE, &algorithm))
		return false;
	id = der_inside(&who);
	digest = der_inside(&algorithm);
	if (!der_want(&id, DER_SEQUENCE, &issuer) || !der_want(&id, DER_INTEGER, &serial) ||
	    !der_want(&digest, DER_OID, &oid))
		return false;
	signer.digest = digest_name(&oid);
	take_certificate(&of->certificates, &issuer, &serial, &signer);
	add_signer(&signer, ret);
	der_optional(&c, DER_CONTEXT(0), &skip); /* signed attributes */
	if (!der_want(&c, DER_SEQUENCE, &skip) || !der_want(&c, DER_OCTETS, &skip))
		return false;
	if (!der_optional(&c, DER_CONTEXT(1), &attributes))
		return true;
	whole = read_attributes(&attributes, signer.nested, &signer.time, ret);
	if (place < AUTHENTICODE_SIGNERS_MAX)
		ret->at[place].time = signer.time;
	return whole;
}

/* SpcIndirectDataContent: what the data is, and a DigestInfo. Another content has no imprint. */
static void take_imprint_of(const struct der *content, struct authenticode_signer *ret)
{
	struct cursor c = der_inside(content);
	struct der oid, wrapped, data, info, algorithm, hash;

	if (!der_want(&c, DER_OID, &oid) || !der_is_oid(&oid, OID_INDIRECT) ||
	    !der_want(&c, DER_CONTEXT(0), &wrapped))
		return;
	c = der_inside(&wrapped);
	if (!der_want(&c, DER_SEQUENCE, &data))
		return;
	c = der_inside(&data);
	if (!der_next(&c, &info) || !der_want(&c, DER_SEQUENCE, &info))
		return;
	c = der_inside(&info);
	if (!der_want(&c, DER_SEQUENCE, &algorithm) || !der_want(&c, DER_OCTETS, &hash))
		return;
	c = der_inside(&algorithm);
	if (!der_want(&c, DER_OID, &oid))
		return;
	ret->imprint = hash.at;
	ret->imprint_len = hash.len;
	ret->imprint_digest = digest_name(&oid);
}

/* SignedData: version, digests, content, certificates, revocations, signers. */
static bool read_signed_data(const struct der *data, bool nested, struct authenticode *ret)
{
	struct signed_data of = { .signer.nested = nested };
	struct cursor c = der_inside(data), infos;
	struct der skip, content, signers, info;

	if (!der_want(&c, DER_INTEGER, &skip) || !der_want(&c, DER_SET, &skip) ||
	    !der_want(&c, DER_SEQUENCE, &content))
		return false;
	take_imprint_of(&content, &of.signer);
	der_optional(&c, DER_CONTEXT(0), &of.certificates);
	der_optional(&c, DER_CONTEXT(1), &skip);
	if (!der_want(&c, DER_SET, &signers))
		return false;
	infos = der_inside(&signers);
	while (der_next(&infos, &info))
		if (info.tag != DER_SEQUENCE || !read_signer(&info, &of, ret))
			return false;
	return !infos.bad;
}

/* ContentInfo, at the cursor. */
bool authenticode__read_signature(struct cursor *c, bool nested, struct authenticode *ret)
{
	struct der info, oid, wrapped, data;
	struct cursor in, x;

	if (!der_want(c, DER_SEQUENCE, &info))
		return false;
	in = der_inside(&info);
	if (!der_want(&in, DER_OID, &oid) || !der_is_oid(&oid, OID_SIGNED_DATA) ||
	    !der_want(&in, DER_CONTEXT(0), &wrapped))
		return false;
	x = der_inside(&wrapped);
	return der_want(&x, DER_SEQUENCE, &data) && read_signed_data(&data, nested, ret);
}
