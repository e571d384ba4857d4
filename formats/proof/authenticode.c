/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/authenticode.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utf8.h"
#include "formats/proof/der.h"

/*
 * Object identifiers, encoded
 */

#define OID_SIGNED_DATA DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02") /* RFC 5652, 5.1 */
#define OID_NESTED                                                                                 \
	DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x02\x04\x01") /* 1.3.6.1.4.1.311.2.4.1 */
#define OID_COMMON_NAME  DER_OID_OF("\x55\x04\x03")            /* RFC 5280, A.1 */
#define OID_EXTENDED_USE DER_OID_OF("\x55\x1d\x25")            /* RFC 5280, 4.2.1.12 */
#define OID_WHQL         DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05")
#define OID_ATTESTATION  DER_OID_OF("\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05\x01")

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

/* Takes what is wanted of the certificate, if it is that of this issuer and number. */
static bool take_certificate(const struct der *certificate, const struct der *issuer,
			     const struct der *serial, struct authenticode_signer *ret)
{
	struct cursor outer = der_inside(certificate), c;
	struct der body, number, by, skip, subject;

	if (!der_want(&outer, DER_SEQUENCE, &body))
		return false;
	c = der_inside(&body);
	der_optional(&c, DER_CONTEXT(0), &skip); /* version */
	if (!der_want(&c, DER_INTEGER, &number) || !der_next(&c, &skip) || !der_next(&c, &by) ||
	    !der_same(&number, serial) || !der_same(&by, issuer) || !der_next(&c, &skip) ||
	    !der_next(&c, &subject))
		return false;
	take_subject_name(&subject, ret->name);
	while (der_next(&c, &skip))
		if (skip.tag == DER_CONTEXT(3))
			take_extensions(&skip, ret);
	return true;
}

static void find_issued_certificate(const struct der *certificates, const struct der *issuer,
				    const struct der *serial, struct authenticode_signer *ret)
{
	struct cursor c = der_inside(certificates);
	struct der one;

	while (der_next(&c, &one))
		if (one.tag == DER_SEQUENCE && take_certificate(&one, issuer, serial, ret))
			return;
}

/*
 * Signatures (RFC 5652, 5)
 */

static bool read_pkcs7_signature(struct cursor *c, bool nested, struct authenticode *ret);

/* Only the outermost signature can have others in it: of deeper ones nobody makes any use. */
static bool read_attributes(const struct der *attributes, struct authenticode *ret)
{
	struct cursor c = der_inside(attributes);
	struct der attribute, oid, values;

	while (der_next(&c, &attribute)) {
		struct cursor a = der_inside(&attribute), v;

		if (!der_want(&a, DER_OID, &oid) || !der_want(&a, DER_SET, &values))
			return false;
		v = der_inside(&values);
		while (der_is_oid(&oid, OID_NESTED) && v.left)
			if (!read_pkcs7_signature(&v, true, ret))
				return false;
	}
	return !c.bad;
}

static bool read_signer(const struct der *info, const struct der *certificates, bool nested,
			struct authenticode *ret)
{
	struct authenticode_signer signer = { .nested = nested };
	struct cursor c = der_inside(info), id, digest;
	struct der skip, who, issuer, serial, algorithm, oid, attributes;

	if (!der_want(&c, DER_INTEGER, &skip) || !der_want(&c, DER_SEQUENCE, &who) ||
	    !der_want(&c, DER_SEQUENCE, &algorithm))
		return false;
	id = der_inside(&who);
	digest = der_inside(&algorithm);
	if (!der_want(&id, DER_SEQUENCE, &issuer) || !der_want(&id, DER_INTEGER, &serial) ||
	    !der_want(&digest, DER_OID, &oid))
		return false;
	signer.digest = digest_name(&oid);
	find_issued_certificate(certificates, &issuer, &serial, &signer);
	if (ret->count < AUTHENTICODE_SIGNERS_MAX)
		ret->at[ret->count++] = signer;
	else
		ret->more++;
	der_optional(&c, DER_CONTEXT(0), &skip); /* signed attributes */
	if (!der_want(&c, DER_SEQUENCE, &skip) || !der_want(&c, DER_OCTETS, &skip))
		return false;
	return nested || !der_optional(&c, DER_CONTEXT(1), &attributes) ||
	       read_attributes(&attributes, ret);
}

/* SignedData: version, digests, content, certificates, revocations, signers. */
static bool read_signed_data(const struct der *data, bool nested, struct authenticode *ret)
{
	struct cursor c = der_inside(data), infos;
	struct der skip, certificates = { .len = 0 }, signers, info;

	if (!der_want(&c, DER_INTEGER, &skip) || !der_want(&c, DER_SET, &skip) ||
	    !der_want(&c, DER_SEQUENCE, &skip))
		return false;
	der_optional(&c, DER_CONTEXT(0), &certificates);
	der_optional(&c, DER_CONTEXT(1), &skip);
	if (!der_want(&c, DER_SET, &signers))
		return false;
	infos = der_inside(&signers);
	while (der_next(&infos, &info))
		if (info.tag != DER_SEQUENCE || !read_signer(&info, &certificates, nested, ret))
			return false;
	return !infos.bad;
}

/* ContentInfo, at the cursor. */
static bool read_pkcs7_signature(struct cursor *c, bool nested, struct authenticode *ret)
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

/*
 * The PE file
 */

/* Offsets of IMAGE_DOS_HEADER, IMAGE_NT_HEADERS and the optional headers ("PE Format"). */
#define DOS_NEW_HEADER  0x3c
#define PE_OPTIONAL     24
#define MAGIC_PE32      0x10b
#define MAGIC_PE32_PLUS 0x20b
#define DIRECTORIES_32  92 /* NumberOfRvaAndSizes; the directories follow */
#define DIRECTORIES_64  108
#define DIRECTORY_CERT  4

/* WIN_CERTIFICATE (wintrust.h): length of all, revision, type; each begins at a multiple of 8. */
#define CERT_HEADER     8
#define CERT_PKCS       2 /* WIN_CERT_TYPE_PKCS_SIGNED_DATA */

/* Where the certificate table is; `*ret_len` is 0 if there is none. False: this is no PE file. */
static bool find_certificate_table(const uint8_t *p, size_t len, uint64_t *ret_at,
				   uint64_t *ret_len)
{
	uint64_t optional, directories;
	uint16_t magic;

	if (len < DOS_NEW_HEADER + 4 || memcmp(p, "MZ", 2) != 0)
		return false;
	optional = (uint64_t)get_le32(p + DOS_NEW_HEADER) + PE_OPTIONAL;
	if (!range_fits(optional, 2, len) || memcmp(p + optional - PE_OPTIONAL, "PE\0", 4) != 0)
		return false;
	magic = get_le16(p + optional);
	if (magic != MAGIC_PE32 && magic != MAGIC_PE32_PLUS)
		return false;
	directories = optional + (magic == MAGIC_PE32 ? DIRECTORIES_32 : DIRECTORIES_64);
	*ret_at = *ret_len = 0;
	if (!range_fits(directories, 4 + 8 * (DIRECTORY_CERT + 1), len) ||
	    get_le32(p + directories) <= DIRECTORY_CERT)
		return true;
	*ret_at = get_le32(p + directories + 4 + 8 * DIRECTORY_CERT);
	*ret_len = get_le32(p + directories + 8 + 8 * DIRECTORY_CERT);
	return true;
}

static bool read_table(struct cursor c, struct authenticode *ret)
{
	while (c.left >= CERT_HEADER) {
		const uint32_t size = get_le32(c.at);
		const uint16_t type = get_le16(c.at + 6);
		struct cursor signature = cursor_over(c.at + CERT_HEADER, 0);

		if (size < CERT_HEADER || size > c.left)
			return false;
		signature.left = size - CERT_HEADER;
		if (type == CERT_PKCS && !read_pkcs7_signature(&signature, false, ret))
			return false;
		cur_bytes(&c, MIN(((size_t)size + 7) & ~(size_t)7, c.left));
	}
	return true;
}

enum status authenticode_read(const void *p, size_t len, struct authenticode *ret, struct err *e)
{
	uint64_t at, size;

	*ret = (struct authenticode){ 0 };
	if (!find_certificate_table(p, len, &at, &size))
		return err_set(e, ST_CORRUPT, "is no Windows program and no driver");
	if (!size)
		return ST_OK;
	if (!range_fits(at, size, len) ||
	    !read_table(cursor_over((const uint8_t *)p + at, (size_t)size), ret))
		return err_set(e, ST_CORRUPT, "its signature is damaged");
	return ST_OK;
}
