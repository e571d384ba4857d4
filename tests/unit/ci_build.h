/* SPDX-License-Identifier: Apache-2.0 */
/* Code integrity policies, field by field, after the sources that ci_policy.h names. */
#ifndef RAMSEAL_TESTS_UNIT_CI_BUILD_H
#define RAMSEAL_TESTS_UNIT_CI_BUILD_H

#include <string.h>

#include "formats/base/bytes.h"
#include "tests/unit/der_build.h"

struct ci_bytes {
	uint8_t at[4096];
	size_t len;
};

struct ci_rule {
	uint32_t kind; /* 0: deny, 1: allow, 2: attributes */
	const char *name;
	const uint8_t *hash;
	uint32_t hash_len;
};

struct ci_signer {
	const uint8_t *root; /* NULL: one of the well-known roots */
	uint32_t root_len;
	bool usage;
	const char *publisher;
	bool attributes; /* those of rule 0 */
};

/* One scenario; signers and rules by their numbers. */
struct ci_scenario {
	uint32_t value;
	bool inherits, exception;
	uint32_t allowed[4], denied[4], rules[4];
	size_t n_allowed, n_denied, n_rules;
};

struct ci_recipe {
	uint32_t format, options;
	uint16_t version[4];
	const char *name, *id;
	struct ci_rule rules[4];
	struct ci_signer signers[4];
	struct ci_scenario scenarios[2];
	size_t n_rules, n_signers, n_scenarios;
};

static inline void ci_put(struct ci_bytes *b, const void *p, size_t len)
{
	assert_true(b->len + len + 4 <= sizeof(b->at));
	if (len)
		memcpy(b->at + b->len, p, len);
	b->len += len;
}

static inline void ci_put32(struct ci_bytes *b, uint32_t v)
{
	uint8_t le[4];

	put_le32(le, v);
	ci_put(b, le, 4);
}

static inline void ci_put_padded(struct ci_bytes *b, const void *p, uint32_t len)
{
	ci_put32(b, len);
	ci_put(b, p, len);
	ci_put(b, "\0\0\0", -len & 3);
}

static inline void ci_put_text(struct ci_bytes *b, const char *text)
{
	uint8_t wide[256] = { 0 };
	const size_t n = text ? strlen(text) : 0;

	for (size_t i = 0; i < n; i++)
		wide[2 * i] = (uint8_t)text[i];
	ci_put_padded(b, wide, (uint32_t)(2 * n));
	ci_put32(b, 0);
}

static inline void ci_put_scenario(struct ci_bytes *b, const struct ci_scenario *s)
{
	ci_put32(b, s->value);
	ci_put32(b, s->inherits);
	if (s->inherits)
		ci_put32(b, 0);
	ci_put32(b, 0x800c);
	for (size_t k = 0; k < 3; k++) {
		const bool is_product = !k;

		ci_put32(b, is_product ? (uint32_t)s->n_allowed : 0);
		for (size_t i = 0; is_product && i < s->n_allowed; i++) {
			ci_put32(b, s->allowed[i]);
			ci_put32(b, s->exception);
			if (s->exception)
				ci_put32(b, 0);
		}
		ci_put32(b, is_product ? (uint32_t)s->n_denied : 0);
		for (size_t i = 0; is_product && i < s->n_denied; i++) {
			ci_put32(b, s->denied[i]);
			ci_put32(b, 0);
		}
		ci_put32(b, is_product ? (uint32_t)s->n_rules : 0);
		for (size_t i = 0; is_product && i < s->n_rules; i++)
			ci_put32(b, s->rules[i]);
	}
}

static inline void ci_put_setting(struct ci_bytes *b, const char *name, const char *value)
{
	ci_put_text(b, "PolicyInfo");
	ci_put_text(b, "Information");
	ci_put_text(b, name);
	ci_put32(b, 3);
	ci_put_text(b, value);
}

static inline void ci_put_signer(struct ci_bytes *b, const struct ci_signer *s)
{
	ci_put32(b, !s->root);
	if (s->root)
		ci_put_padded(b, s->root, s->root_len);
	else
		ci_put32(b, 6);
	ci_put32(b, s->usage);
	if (s->usage)
		ci_put32(b, 0);
	ci_put_text(b, NULL);
	ci_put_text(b, s->publisher);
	ci_put_text(b, NULL);
	ci_put32(b, s->attributes);
	if (s->attributes)
		ci_put32(b, 0);
}

static inline void ci_put_header(struct ci_bytes *b, const struct ci_recipe *r)
{
	/* {A244370E-44C9-4C06-B551-F6016E563076}, an enterprise's */
	static const uint8_t type[] = { 0x0e, 0x37, 0x44, 0xa2, 0xc9, 0x44, 0x06, 0x4c,
					0xb5, 0x51, 0xf6, 0x01, 0x6e, 0x56, 0x30, 0x76 };

	ci_put32(b, r->format ? r->format : 8);
	ci_put(b, type, sizeof(type));
	ci_put(b, type, sizeof(type));
	ci_put32(b, 0x80000000 | r->options);
	ci_put32(b, 1);
	ci_put32(b, (uint32_t)r->n_rules);
	ci_put32(b, (uint32_t)r->n_signers);
	ci_put32(b, (uint32_t)r->n_scenarios);
	for (size_t i = 4; i--;)
		ci_put(b, (uint8_t[]){ (uint8_t)r->version[i], (uint8_t)(r->version[i] >> 8) }, 2);
	ci_put32(b, 0x40);
}

static inline struct ci_bytes ci_make(const struct ci_recipe *r)
{
	struct ci_bytes b = { .len = 0 };

	ci_put_header(&b, r);
	ci_put_padded(&b, "\x01\x0a\x2b\x06\x01\x04\x01\x82\x37\x0a\x03\x05", 12); /* a usage */
	for (size_t i = 0; i < r->n_rules; i++) {
		ci_put32(&b, r->rules[i].kind);
		ci_put_text(&b, r->rules[i].name);
		ci_put(&b, "\0\0\0\0\0\0\x0a", 8);
		ci_put_padded(&b, r->rules[i].hash, r->rules[i].hash_len);
	}
	for (size_t i = 0; i < r->n_signers; i++)
		ci_put_signer(&b, &r->signers[i]);
	ci_put32(&b, 1); /* who may sign a later version */
	ci_put32(&b, 0);
	ci_put32(&b, 0);
	for (size_t i = 0; i < r->n_scenarios; i++)
		ci_put_scenario(&b, &r->scenarios[i]);
	ci_put32(&b, 0); /* memory integrity */
	ci_put32(&b, (r->name != NULL) + (r->id != NULL) + 1);
	ci_put_text(&b, "Microsoft");
	ci_put_text(&b, "PolicySettings");
	ci_put_text(&b, "SignedPolicySessionOnlyLock");
	ci_put32(&b, 0);
	ci_put32(&b, 1);
	if (r->id)
		ci_put_setting(&b, "Id", r->id);
	if (r->name)
		ci_put_setting(&b, "Name", r->name);
	ci_put32(&b, 3); /* what later formats add */
	return b;
}

/* The same within a signature; its bytes are at the end of `o`. */
static inline void ci_wrap(struct out *o, const struct ci_bytes *b)
{
	const size_t all = o->len;
	size_t at;

	put_as(o, 0x31, "", 0); /* signers */
	at = o->len;
	put_as(o, 0x04, b->at, b->len);
	wrap(o, 0xa0, at);
	PUT_OID(o, "\x2b\x06\x01\x04\x01\x82\x37\x4f\x01"); /* 1.3.6.1.4.1.311.79.1 */
	wrap(o, 0x30, at);
	put_as(o, 0x31, "", 0);
	put_as(o, 0x02, "\x01", 1);
	wrap(o, 0x30, all);
	wrap(o, 0xa0, all);
	PUT_OID(o, "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02");
	wrap(o, 0x30, all);
}

#endif
