/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/timestamp.h"

#include <sodium.h>
#include <stdio.h>

#include "formats/base/utc.h"
#include "formats/base/utf8.h"
#include "formats/proof/der.h"

#define NS_PER_SECOND UINT64_C(1000000000)

#define OID_SIGNED    DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02")         /* RFC 5652, 5.1 */
#define OID_TIMESTAMP DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04") /* id-ct-TSTInfo */
#define OID_SHA256    DER_OID_OF("\x60\x86\x48\x01\x65\x03\x04\x02\x01")
#define OID_SHA512    DER_OID_OF("\x60\x86\x48\x01\x65\x03\x04\x02\x03")

void timestamp_request(const uint8_t sha256[static SHA256_SIZE],
		       uint8_t ret[static TIMESTAMP_REQUEST_SIZE])
{
	/* version 1; messageImprint: SHA-256, without parameters but NULL, and the hash */
	static const uint8_t front[] = { 0x30, 0x39, 0x02, 0x01, 0x01, 0x30, 0x31, 0x30,
					 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65,
					 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20 };
	/* certReq: true, so that the answer can be judged years later */
	static const uint8_t end[] = { 0x01, 0x01, 0xff };

	_Static_assert(sizeof(front) + SHA256_SIZE + sizeof(end) == TIMESTAMP_REQUEST_SIZE,
		       "RFC 3161, 2.4.1");
	memcpy(ret, front, sizeof(front));
	memcpy(ret + sizeof(front), sha256, SHA256_SIZE);
	memcpy(ret + sizeof(front) + SHA256_SIZE, end, sizeof(end));
}

/*
 * Refusals (RFC 3161, 2.4.2)
 */

#define STATUS_GRANTED_WITH_MODS 1

static const char *failure_name(unsigned bit)
{
	switch (bit) {
	case 0:
		return "badAlg";
	case 2:
		return "badRequest";
	case 5:
		return "badDataFormat";
	case 14:
		return "timeNotAvailable";
	case 15:
		return "unacceptedPolicy";
	case 16:
		return "unacceptedExtension";
	case 17:
		return "addInfoNotAvailable";
	case 25:
		return "systemFailure";
	default:
		return NULL;
	}
}

/* Of the BIT STRING behind the status, if there is one: the first that has a name. */
static const char *find_failure(struct cursor c)
{
	struct der d;

	while (der_next(&c, &d))
		for (unsigned bit = 0; d.tag == DER_BITS && bit < 32; bit++)
			if (bit / 8 + 1 < d.len && d.at[1 + bit / 8] & 0x80 >> bit % 8 &&
			    failure_name(bit))
				return failure_name(bit);
	return NULL;
}

/* The first text for people, if it is UTF-8. */
static struct cursor find_reason(struct cursor c)
{
	struct der texts, text;

	if (!der_optional(&c, DER_SEQUENCE, &texts))
		return cursor_over("", 0);
	c = der_inside(&texts);
	if (!der_want(&c, DER_UTF8, &text) || !utf8_valid(text.at, text.len))
		return cursor_over("", 0);
	return der_inside(&text);
}

static enum status check_status(const struct der *info, struct err *e)
{
	struct cursor c = der_inside(info);
	const char *failure;
	struct cursor reason;
	struct der status;

	if (!der_want(&c, DER_INTEGER, &status) || status.len != 1)
		return err_set(e, ST_INPUT, "is not an answer of a time-stamping authority");
	if (status.at[0] <= STATUS_GRANTED_WITH_MODS)
		return ST_OK;
	failure = find_failure(c);
	reason = find_reason(c);
	return err_set(e, ST_INPUT, "the time-stamping authority refused: status %u%s%s%s%.*s",
		       status.at[0], failure ? ", " : "", failure ? failure : "",
		       reason.left ? ": " : "", (int)MIN(reason.left, (size_t)200),
		       (const char *)reason.at);
}

/*
 * What is granted
 */

/* YYYYMMDDhhmmss[.f…]Z */
static bool take_generalized_time(const struct der *d, uint64_t *ret)
{
	uint64_t seconds, unit = NS_PER_SECOND;
	struct cursor c = der_inside(d);
	const uint8_t *digits = cur_bytes(&c, 14);
	struct utc t;

	if (!digits || !utc_from_digits((const char *)digits, 6, &t) ||
	    !utc_seconds(&t, &seconds) || seconds > UINT64_MAX / NS_PER_SECOND - 1)
		return false;
	*ret = seconds * NS_PER_SECOND;
	if (c.left > 1 && cur_u8(&c) != '.')
		return false;
	while (c.left > 1) {
		const unsigned digit = (unsigned)cur_u8(&c) - '0';

		if (digit > 9)
			return false;
		unit /= 10;
		*ret += digit * unit;
	}
	return cur_u8(&c) == 'Z';
}

static enum status take_imprint(const struct der *imprint, struct timestamp *ret, struct err *e)
{
	struct cursor c = der_inside(imprint), a;
	struct der algorithm, oid, hash;

	if (!der_want(&c, DER_SEQUENCE, &algorithm) || !der_want(&c, DER_OCTETS, &hash))
		return err_set(e, ST_INPUT, "the time stamp is damaged");
	a = der_inside(&algorithm);
	if (!der_want(&a, DER_OID, &oid))
		return err_set(e, ST_INPUT, "the time stamp is damaged");
	ret->sha512 = der_is_oid(&oid, OID_SHA512);
	if (!ret->sha512 && !der_is_oid(&oid, OID_SHA256))
		return err_set(e, ST_INPUT,
			       "stamps a hash that is neither SHA-256 nor SHA-512; check it with "
			       "openssl ts -verify");
	if (hash.len != (ret->sha512 ? crypto_hash_sha512_BYTES : crypto_hash_sha256_BYTES))
		return err_set(e, ST_INPUT, "the time stamp is damaged");
	memcpy(ret->imprint, hash.at, hash.len);
	return ST_OK;
}

/* TSTInfo: version, policy, imprint, serial number, time. */
static bool open_info(struct cursor c, struct der *ret_imprint, uint64_t *ret_time)
{
	struct der info, skip, time;
	struct cursor in;

	if (!der_want(&c, DER_SEQUENCE, &info))
		return false;
	in = der_inside(&info);
	return der_want(&in, DER_INTEGER, &skip) && der_want(&in, DER_OID, &skip) &&
	       der_want(&in, DER_SEQUENCE, ret_imprint) && der_want(&in, DER_INTEGER, &skip) &&
	       der_want(&in, DER_TIME, &time) && take_generalized_time(&time, ret_time);
}

static enum status take_info(struct cursor c, struct timestamp *ret, struct err *e)
{
	struct der imprint;

	if (!open_info(c, &imprint, &ret->time))
		return err_set(e, ST_INPUT, "the time stamp is damaged");
	return take_imprint(&imprint, ret, e);
}

/* ContentInfo with SignedData: version, digests, and what was signed (RFC 5652). */
static bool find_info(const struct der *token, struct cursor *ret)
{
	struct cursor c = der_inside(token), in;
	struct der oid, wrapped, data, skip, content, octets;

	if (!der_want(&c, DER_OID, &oid) || !der_is_oid(&oid, OID_SIGNED) ||
	    !der_want(&c, DER_CONTEXT(0), &wrapped))
		return false;
	in = der_inside(&wrapped);
	if (!der_want(&in, DER_SEQUENCE, &data))
		return false;
	c = der_inside(&data);
	if (!der_want(&c, DER_INTEGER, &skip) || !der_want(&c, DER_SET, &skip) ||
	    !der_want(&c, DER_SEQUENCE, &content))
		return false;
	c = der_inside(&content);
	if (!der_want(&c, DER_OID, &oid) || !der_is_oid(&oid, OID_TIMESTAMP) ||
	    !der_want(&c, DER_CONTEXT(0), &wrapped))
		return false;
	c = der_inside(&wrapped);
	if (!der_want(&c, DER_OCTETS, &octets))
		return false;
	*ret = der_inside(&octets);
	return true;
}

bool timestamp_token_time(const struct der *token, uint64_t *ret)
{
	struct der imprint;
	struct cursor info;

	return find_info(token, &info) && open_info(info, &imprint, ret);
}

enum status timestamp_parse(const void *p, size_t len, struct timestamp *ret, struct err *e)
{
	struct cursor c = cursor_over(p, len), in, info;
	struct der answer, status, token;
	enum status st;

	*ret = (struct timestamp){ 0 };
	if (!der_want(&c, DER_SEQUENCE, &answer) || c.left)
		return err_set(e, ST_INPUT, "is not an answer of a time-stamping authority");
	in = der_inside(&answer);
	if (!der_want(&in, DER_SEQUENCE, &status))
		return err_set(e, ST_INPUT, "is not an answer of a time-stamping authority");
	st = check_status(&status, e);
	if (st)
		return st;
	if (!der_want(&in, DER_SEQUENCE, &token) || in.left || !find_info(&token, &info))
		return err_set(e, ST_INPUT, "the time stamp is damaged");
	return take_info(info, ret, e);
}

enum status timestamp_check(const struct timestamp *t, const void *message, size_t len,
			    struct err *e)
{
	uint8_t digest[TIMESTAMP_IMPRINT_MAX];

	if (t->sha512)
		crypto_hash_sha512(digest, message, len);
	else
		crypto_hash_sha256(digest, message, len);
	if (memcmp(digest, t->imprint,
		   t->sha512 ? crypto_hash_sha512_BYTES : crypto_hash_sha256_BYTES) != 0)
		return err_set(e, ST_MISMATCH, "stamps other bytes");
	return ST_OK;
}
