/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as people have them, and how others are derived from them. */
#include <string.h>

#include "formats/age/age_internal.h"
#include "formats/base/array.h"

enum status age_init(struct err *e)
{
	return sodium_init() < 0 ? err_set(e, ST_SYSTEM, "libsodium finds no random numbers")
				 : ST_OK;
}

/*
 * Bech32
 */

#define BECH32_GROUPS 52 /* of 5 bits: 32 bytes and 4 bits that are 0 */
#define BECH32_SUM    6

/* BIP 173, "Checksum". */
static uint32_t polymod(uint32_t sum, uint8_t value)
{
	static const uint32_t generator[] = { 0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
					      0x2a1462b3 };
	const uint32_t top = sum >> 25;

	sum = (sum & 0x1ffffff) << 5 ^ value;
	for (size_t i = 0; i < ARRAY_SIZE(generator); i++)
		if (top >> i & 1)
			sum ^= generator[i];
	return sum;
}

/* 32: it is none. */
static uint8_t bech32_value(char c)
{
	static const char digits[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (uint8_t)(at - digits) : 32;
}

static char to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static uint32_t prefix_sum(const char *prefix)
{
	uint32_t sum = 1;

	for (const char *p = prefix; *p; p++)
		sum = polymod(sum, (uint8_t)to_lower(*p) >> 5);
	sum = polymod(sum, 0);
	for (const char *p = prefix; *p; p++)
		sum = polymod(sum, (uint8_t)to_lower(*p) & 31);
	return sum;
}

/* All groups, with the sum behind them; `upper`: as the text is. */
static bool bech32_groups(const char *text, bool upper, uint32_t sum,
			  uint8_t ret[static BECH32_GROUPS + BECH32_SUM])
{
	for (size_t i = 0; i < BECH32_GROUPS + BECH32_SUM; i++) {
		const char c = text[i];

		if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z')
			return false;
		ret[i] = bech32_value(to_lower(c));
		if (ret[i] > 31)
			return false;
		sum = polymod(sum, ret[i]);
	}
	return sum == 1;
}

bool age__bech32(const char *prefix, const char *text, size_t len, uint8_t ret[static AGE_KEY_SIZE])
{
	const size_t n = strlen(prefix);
	uint8_t group[BECH32_GROUPS + BECH32_SUM];
	uint32_t bits = 0;
	bool good;

	if (len != n + 1 + BECH32_GROUPS + BECH32_SUM || memcmp(text, prefix, n) != 0 ||
	    text[n] != '1')
		return false;
	good = bech32_groups(text + n + 1, prefix[0] >= 'A' && prefix[0] <= 'Z', prefix_sum(prefix),
			     group) &&
	       !(group[BECH32_GROUPS - 1] & 15);
	for (size_t i = 0, at = 0, have = 0; good && i < BECH32_GROUPS; i++) {
		bits = bits << 5 | group[i];
		have += 5;
		if (have >= 8 && at < AGE_KEY_SIZE) {
			have -= 8;
			ret[at++] = (uint8_t)(bits >> have);
		}
	}
	sodium_memzero(group, sizeof(group));
	sodium_memzero(&bits, sizeof(bits));
	return good;
}

/*
 * Lists of keys
 */

static bool key_begins_with(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(text, with, strlen(with));
}

/* What is not a key of ours, as far as it can be told. */
static const char *what_it_is(const char *text, size_t len)
{
	static const struct {
		const char *begins, *what;
	} known[] = {
		{ "age1pq1", "is a post-quantum recipient, which is not supported" },
		{ "AGE-SECRET-KEY-PQ-1", "is a post-quantum identity, which is not supported" },
		{ "AGE-SECRET-KEY-1", "is a secret key or part of one" },
		{ "AGE-PLUGIN-", "is the identity of a plugin, which is not supported" },
		{ "ssh-", "is an SSH key, which is not supported" },
		{ "-----BEGIN OPENSSH", "is an SSH key, which is not supported" },
		{ "-----BEGIN AGE", "is encrypted itself: decrypt it first" },
		{ AGE_MAGIC, "is encrypted itself: decrypt it first" },
		{ "age1", "is not a complete age recipient" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (key_begins_with(text, len, known[i].begins))
			return known[i].what;
	return NULL;
}

enum status age_recipients_add(struct age_recipients *r, const char *text, size_t len,
			       struct err *e)
{
	const char *what = what_it_is(text, len);
	uint8_t key[AGE_KEY_SIZE];

	if (!age__bech32("age", text, len, key))
		return err_set(e, ST_USAGE, "%s",
			       what ? what : "is not an age recipient (age1...)");
	for (size_t i = 0; i < r->count; i++)
		if (!memcmp(r->at[i], key, sizeof(key)))
			return ST_OK;
	if (r->count == AGE_RECIPIENTS_MAX)
		return err_set(e, ST_USAGE, "exceeds the limit of %d recipients",
			       AGE_RECIPIENTS_MAX);
	if (!ARRAY_ROOM(r->at, r->count, r->room))
		return err_nomem(e);
	memcpy(r->at[r->count++], key, sizeof(key));
	return ST_OK;
}

void age_recipients_deinit(struct age_recipients *r)
{
	free(r->at);
	*r = (struct age_recipients){ 0 };
}

/* A file of keys, line by line. Windows' editors end them with a CR. */
struct key_lines {
	const char *at;
	size_t left;
	size_t number; /* of the line that was taken last, from 1 */
};

static bool next_key(struct key_lines *l, const char **ret, size_t *ret_len)
{
	while (l->left) {
		const char *line = l->at, *end = memchr(line, '\n', l->left);
		size_t len = end ? (size_t)(end - line) : l->left;

		l->at += len + (end != NULL);
		l->left -= len + (end != NULL);
		l->number++;
		if (len && line[len - 1] == '\r')
			len--;
		if (!len || line[0] == '#')
			continue;
		*ret = line;
		*ret_len = len;
		return true;
	}
	return false;
}

enum status age_recipients_read(struct age_recipients *r, const char *text, size_t len,
				struct err *e)
{
	struct key_lines lines = { .at = text, .left = len };
	const size_t before = r->count;
	const char *line;
	size_t n, seen = 0;

	for (; next_key(&lines, &line, &n); seen++) {
		const enum status st = age_recipients_add(r, line, n, e);

		if (st == ST_USAGE)
			return err_add(e, ST_INPUT, "line %zu", lines.number);
		if (st)
			return st;
	}
	return seen || r->count > before ? ST_OK : err_set(e, ST_INPUT, "holds no recipient");
}

enum status age_identities_create(struct age_identities **ret, struct err *e)
{
	const enum status st = age_init(e);
	struct age_identities *x = st ? NULL : sodium_malloc(sizeof(*x));

	if (!x)
		return st ? st : err_nomem(e);
	sodium_memzero(x, sizeof(*x));
	*ret = x;
	return ST_OK;
}

void age_identities_destroy(struct age_identities *x)
{
	sodium_free(x);
}

size_t age_identities_count(const struct age_identities *x)
{
	return x ? x->count : 0;
}

static enum status add_identity(struct age_identities *x, const char *text, size_t len,
				struct err *e)
{
	const char *what = what_it_is(text, len);
	struct age__identity *to = &x->at[x->count];

	if (x->count == AGE_IDENTITIES_MAX)
		return err_set(e, ST_INPUT, "exceeds the limit of %d identities",
			       AGE_IDENTITIES_MAX);
	if (!age__bech32("AGE-SECRET-KEY-", text, len, to->secret))
		return err_set(e, ST_INPUT, "%s",
			       what && !key_begins_with(text, len, "age1") &&
					       !key_begins_with(text, len, "AGE-SECRET-KEY-1")
				       ? what
				       : "is not an age identity (AGE-SECRET-KEY-1...)");
	if (crypto_scalarmult_base(to->share, to->secret))
		return err_set(e, ST_INPUT, "is an identity that has no recipient");
	x->count++;
	return ST_OK;
}

enum status age_identities_read(struct age_identities *x, const char *text, size_t len,
				struct err *e)
{
	struct key_lines lines = { .at = text, .left = len };
	const size_t before = x->count;
	const char *line;
	size_t n;

	while (next_key(&lines, &line, &n)) {
		const enum status st = add_identity(x, line, n, e);

		if (st)
			return err_add(e, st, "line %zu", lines.number);
	}
	return x->count > before
		       ? ST_OK
		       : err_set(e, ST_INPUT, "contains no age identity (AGE-SECRET-KEY-1...)");
}

/*
 * Derivation
 */

void age__hkdf(const void *ikm, size_t ikm_len, const void *salt, size_t salt_len, const char *info,
	       uint8_t ret[static 32])
{
	static const uint8_t one = 1;
	crypto_auth_hmacsha256_state s;
	uint8_t prk[crypto_auth_hmacsha256_BYTES];

	crypto_auth_hmacsha256_init(&s, salt, salt_len);
	crypto_auth_hmacsha256_update(&s, ikm, ikm_len);
	crypto_auth_hmacsha256_final(&s, prk);
	crypto_auth_hmacsha256_init(&s, prk, sizeof(prk));
	crypto_auth_hmacsha256_update(&s, (const uint8_t *)info, strlen(info));
	crypto_auth_hmacsha256_update(&s, &one, 1);
	crypto_auth_hmacsha256_final(&s, ret);
	sodium_memzero(prk, sizeof(prk));
	sodium_memzero(&s, sizeof(s));
}

void age__header_mac(const uint8_t file_key[static AGE__FILE_KEY_SIZE], const char *text,
		     size_t len, uint8_t ret[static AGE__MAC_SIZE])
{
	uint8_t key[32];

	age__hkdf(file_key, AGE__FILE_KEY_SIZE, "", 0, "header", key);
	crypto_auth_hmacsha256(ret, (const uint8_t *)text, len, key);
	sodium_memzero(key, sizeof(key));
}

bool age__wrap_key(const uint8_t secret[static AGE_KEY_SIZE],
		   const uint8_t public_key[static AGE_KEY_SIZE],
		   const uint8_t share[static AGE_KEY_SIZE],
		   const uint8_t recipient[static AGE_KEY_SIZE], uint8_t ret[static 32])
{
	uint8_t shared[crypto_scalarmult_BYTES], salt[2 * AGE_KEY_SIZE];
	/* libsodium refuses a shared secret of zeros, and points of a small order, which give it.*/
	const bool good = !crypto_scalarmult(shared, secret, public_key);

	memcpy(salt, share, AGE_KEY_SIZE);
	memcpy(salt + AGE_KEY_SIZE, recipient, AGE_KEY_SIZE);
	if (good)
		age__hkdf(shared, sizeof(shared), salt, sizeof(salt),
			  "age-encryption.org/v1/X25519", ret);
	sodium_memzero(shared, sizeof(shared));
	return good;
}
