/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/ci_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "formats/proof/der.h"

#define OID_SIGNED_POLICY DER_OID_OF("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02") /* RFC 5652, 5.1 */

#define FORMAT_FIRST      2
#define FORMAT_LAST       9
#define HEADER_END        0x40       /* what the last word of the header says */
#define OPTIONS_VALID     0x80000000 /* always set */

/* Least bytes of one of each, by which counts are judged before there is room for them. */
#define RULE_LEAST        24
#define SIGNER_LEAST      40
#define SCENARIO_LEAST    48

#define SCENARIO_DRIVERS  131

/*
 * The envelope
 */

/* SignedData's content, whatever its type: an octet string. False: it is no signature. */
static bool open_policy_envelope(struct cursor *c)
{
	struct cursor in = *c, x;
	struct der info, oid, wrapped, data, skip, content, octets;

	if (!der_want(&in, DER_SEQUENCE, &info))
		return false;
	in = der_inside(&info);
	if (!der_want(&in, DER_OID, &oid) || !der_is_oid(&oid, OID_SIGNED_POLICY) ||
	    !der_want(&in, DER_CONTEXT(0), &wrapped))
		return false;
	x = der_inside(&wrapped);
	if (!der_want(&x, DER_SEQUENCE, &data))
		return false;
	x = der_inside(&data);
	if (!der_want(&x, DER_INTEGER, &skip) || !der_want(&x, DER_SET, &skip) ||
	    !der_want(&x, DER_SEQUENCE, &content))
		return false;
	x = der_inside(&content);
	if (!der_want(&x, DER_OID, &oid) || !der_want(&x, DER_CONTEXT(0), &wrapped))
		return false;
	x = der_inside(&wrapped);
	if (!der_want(&x, DER_OCTETS, &octets))
		return false;
	*c = der_inside(&octets);
	return true;
}

/* The first three fields are numbers, little-endian; the rest are bytes ([MS-DTYP], 2.3.4.2). */
static void take_policy_guid(struct cursor *c, char ret[static CI_GUID_SIZE])
{
	const uint32_t a = cur_le32(c);
	const uint16_t b = cur_le16(c), d = cur_le16(c);
	uint8_t rest[8];

	for (size_t i = 0; i < sizeof(rest); i++)
		rest[i] = cur_u8(c);
	snprintf(ret, CI_GUID_SIZE, "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}",
		 (unsigned)a, b, d, rest[0], rest[1], rest[2], rest[3], rest[4], rest[5], rest[6],
		 rest[7]);
}

static enum status check_policy_header(const struct cursor *c, const struct ci_policy *p,
				       uint32_t end, struct err *e)
{
	if (p->format < FORMAT_FIRST || p->format > 0xffff)
		return err_set(e, ST_CORRUPT, "is no code integrity policy");
	if (c->bad)
		return err_set(e, ST_CORRUPT, "is cut short");
	if (!(p->options & OPTIONS_VALID) || end != HEADER_END)
		return err_set(e, ST_CORRUPT, "is no code integrity policy");
	if (p->format > FORMAT_LAST)
		return err_set(e, ST_CORRUPT, "has format %u, which is newer than this program",
			       (unsigned)p->format);
	return ST_OK;
}

enum status ci_policy_read(const void *p, size_t len, struct ci_policy *ret, struct err *e)
{
	struct cursor c = cursor_over(p, len);
	char platform[CI_GUID_SIZE];
	uint32_t end;

	*ret = (struct ci_policy){ 0 };
	if (!len)
		return err_set(e, ST_CORRUPT, "is empty");
	ret->is_signed = open_policy_envelope(&c);
	if (!ret->is_signed && *(const uint8_t *)p == DER_SEQUENCE)
		return err_set(e, ST_CORRUPT, "is cut short, or its signature is damaged");
	ret->format = cur_le32(&c);
	take_policy_guid(&c, ret->type);
	take_policy_guid(&c, platform);
	ret->options = cur_le32(&c);
	ret->usages = cur_le32(&c);
	ret->rules = cur_le32(&c);
	ret->signers = cur_le32(&c);
	ret->scenarios = cur_le32(&c);
	for (size_t i = 4; i--;)
		ret->version[i] = cur_le16(&c);
	end = cur_le32(&c);
	ret->body = c.at;
	ret->body_len = c.left;
	return check_policy_header(&c, ret, end, e);
}

/*
 * Fields of the body
 */

/* A length, as many bytes, and what makes it a multiple of 4. */
static struct cursor take_padded(struct cursor *c)
{
	const uint32_t len = cur_le32(c);
	const uint8_t *p = cur_bytes(c, len);

	cur_bytes(c, -len & 3);
	return cursor_over(c->bad ? NULL : p, c->bad ? 0 : len);
}

/* UTF-16, and a zero behind it. */
static struct cursor take_policy_text(struct cursor *c)
{
	const struct cursor text = take_padded(c);

	cur_le32(c);
	return text;
}

/* A count of numbers, and these. */
static void skip_numbers(struct cursor *c)
{
	const uint32_t n = cur_le32(c);

	if (n > c->left / 4)
		c->bad = true;
	else
		cur_bytes(c, (size_t)n * 4);
}

static bool is_one_of_digests(const struct cursor *d, const struct ci_digest *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (d->left && d->left == list[i].len && !memcmp(d->at, list[i].at, d->left))
			return true;
	return false;
}

/*
 * Rules
 */

/* What is known of a rule or a signer when the scenarios say which of them count. */
struct mark {
	uint8_t kind;  /* of a rule */
	uint8_t match; /* enum ci_verdict */
	bool by_name;
};

enum { RULE_DENY, RULE_ALLOW, RULE_ATTRIBUTES, RULE_KINDS };

struct walk {
	struct cursor c;
	const struct ci_policy *policy;
	const struct ci_subject *subject;
	struct mark *rules, *signers;
	struct ci_match *ret;
};

static void take_policy_rules(struct walk *w)
{
	for (uint32_t i = 0; i < w->policy->rules && !w->c.bad; i++) {
		const uint32_t kind = cur_le32(&w->c);
		const struct cursor name = take_policy_text(&w->c);
		struct cursor hash;

		cur_le64(&w->c); /* a version */
		hash = take_padded(&w->c);
		if (kind >= RULE_KINDS) {
			w->c.bad = true;
			return;
		}
		w->rules[i] = (struct mark){
			.kind = (uint8_t)kind,
			.match = is_one_of_digests(&hash, w->subject->hashes, w->subject->n_hashes)
					 ? CI_YES
					 : CI_NO,
			.by_name = name.left && !hash.left,
		};
	}
}

/* A root, or any certificate of a chain, with conditions; see cipolicy.xsd, Signer. */
static void take_policy_signers(struct walk *w)
{
	for (uint32_t i = 0; i < w->policy->signers && !w->c.bad; i++) {
		const bool well_known = cur_le32(&w->c);
		struct cursor root = { .left = 0 };
		bool conditions;
		uint32_t n;

		if (well_known)
			cur_le32(&w->c);
		else
			root = take_padded(&w->c);
		n = cur_le32(&w->c); /* usages */
		conditions = n;
		if (n > w->c.left / 4)
			w->c.bad = true;
		cur_bytes(&w->c, w->c.bad ? 0 : (size_t)n * 4);
		for (size_t k = 0; k < 3; k++) /* issuer, publisher, OEM */
			conditions |= take_policy_text(&w->c).left != 0;
		conditions |= w->c.left >= 4 && get_le32(w->c.at); /* attributes of the file */
		skip_numbers(&w->c);
		if (is_one_of_digests(&root, w->subject->certificates, w->subject->n_certificates))
			w->signers[i].match = conditions ? CI_MAYBE : CI_YES;
	}
}

/*
 * Scenarios
 */

static void raise_verdict(enum ci_verdict *v, unsigned to)
{
	if (to > *v)
		*v = (enum ci_verdict)to;
}

/* Signers, each with exceptions, which are rules that say the opposite. */
static void take_scenario_signers(struct walk *w, enum ci_verdict *ret)
{
	const uint32_t n = cur_le32(&w->c);

	for (uint32_t i = 0; i < n && !w->c.bad; i++) {
		const uint32_t signer = cur_le32(&w->c);
		const bool exceptions = w->c.left >= 4 && get_le32(w->c.at);

		skip_numbers(&w->c);
		if (signer >= w->policy->signers)
			w->c.bad = true;
		else if (ret)
			raise_verdict(ret, exceptions && w->signers[signer].match
						   ? CI_MAYBE
						   : w->signers[signer].match);
	}
}

static void take_scenario_rules(struct walk *w, bool counts)
{
	const uint32_t n = cur_le32(&w->c);

	for (uint32_t i = 0; i < n && !w->c.bad; i++) {
		const uint32_t at = cur_le32(&w->c);
		const struct mark *m = at < w->policy->rules ? &w->rules[at] : NULL;

		if (!m)
			w->c.bad = true;
		if (!m || !counts)
			continue;
		w->ret->by_name |= m->by_name;
		if (m->kind == RULE_DENY)
			raise_verdict(&w->ret->denied, m->match);
		else if (m->kind == RULE_ALLOW)
			raise_verdict(&w->ret->allowed, m->match);
	}
}

/*
 * Three times the same: for products, for tests, and for what is signed for tests. Inheriting from
 * another scenario is in the schema, but nobody has seen it.
 */
static enum status take_policy_scenarios(struct walk *w, struct err *e)
{
	for (uint32_t i = 0; i < w->policy->scenarios && !w->c.bad; i++) {
		const bool drivers = (cur_le32(&w->c) & 0xff) == SCENARIO_DRIVERS;
		const bool inherits = w->c.left >= 4 && get_le32(w->c.at);

		skip_numbers(&w->c);
		if (drivers && inherits)
			return err_set(e, ST_CORRUPT, "its rules for drivers inherit others");
		cur_le32(&w->c); /* least hash algorithm */
		for (size_t k = 0; k < 3; k++) {
			const bool counts = drivers && !k;

			take_scenario_signers(w, counts ? &w->ret->allowed : NULL);
			take_scenario_signers(w, counts ? &w->ret->denied : NULL);
			take_scenario_rules(w, counts);
		}
	}
	return w->c.bad ? err_set(e, ST_CORRUPT, "its rules are cut short or damaged") : ST_OK;
}

/*
 * Settings
 */

static bool text_is(const struct cursor *text, const char *want)
{
	size_t n = 0;

	for (; want[n]; n++)
		if (text->left < 2 * n + 2 || get_le16(text->at + 2 * n) != (uint8_t)want[n])
			return false;
	return text->left == 2 * n;
}

/* What is not ASCII is a question mark. */
static void copy_policy_text(const struct cursor *text, char ret[static CI_NAME_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < text->left && n < CI_NAME_MAX - 1; i += 2) {
		const uint16_t c = get_le16(text->at + i);

		ret[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
	}
	ret[n] = '\0';
}

/* Behind the options for memory integrity. They are for people: what is damaged is left out. */
static void take_policy_settings(struct walk *w)
{
	uint32_t n;

	cur_le32(&w->c);
	n = cur_le32(&w->c);
	for (uint32_t i = 0; i < n && !w->c.bad; i++) {
		const struct cursor provider = take_policy_text(&w->c);
		const struct cursor key = take_policy_text(&w->c);
		const struct cursor value = take_policy_text(&w->c);
		const bool info = text_is(&provider, "PolicyInfo") && text_is(&key, "Information");
		struct cursor text = { .left = 0 };

		switch (cur_le32(&w->c)) {
		case 0: /* a boolean */
		case 1:
			cur_le32(&w->c);
			break;
		case 2:
			take_padded(&w->c);
			break;
		case 3:
			text = take_policy_text(&w->c);
			break;
		default:
			return;
		}
		if (info && text_is(&value, "Name"))
			copy_policy_text(&text, w->ret->name);
		else if (info && text_is(&value, "Id"))
			copy_policy_text(&text, w->ret->id);
	}
}

enum status ci_policy_match(const struct ci_policy *p, const struct ci_subject *s,
			    struct ci_match *ret, struct err *e)
{
	struct walk w = {
		.c = cursor_over(p->body, p->body_len), .policy = p, .subject = s, .ret = ret
	};
	enum status st;

	*ret = (struct ci_match){ 0 };
	for (uint32_t i = 0; i < p->usages && !w.c.bad; i++)
		take_padded(&w.c);
	if (w.c.bad || p->rules > w.c.left / RULE_LEAST || p->signers > w.c.left / SIGNER_LEAST ||
	    p->scenarios > w.c.left / SCENARIO_LEAST)
		return err_set(e, ST_CORRUPT, "its rules are cut short or damaged");
	w.rules = calloc((size_t)p->rules + 1, sizeof(*w.rules));
	w.signers = calloc((size_t)p->signers + 1, sizeof(*w.signers));
	if (w.rules && w.signers) {
		take_policy_rules(&w);
		take_policy_signers(&w);
		skip_numbers(&w.c); /* who may sign a later version */
		skip_numbers(&w.c); /* "CiSigners" */
		st = take_policy_scenarios(&w, e);
		if (!st)
			take_policy_settings(&w);
	} else {
		st = err_nomem(e);
	}
	free(w.rules);
	free(w.signers);
	return st;
}
