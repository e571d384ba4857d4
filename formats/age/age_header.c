/* SPDX-License-Identifier: Apache-2.0 */
/* The header: text in lines, each of which ends with a LF alone. */
#include <string.h>

#include "formats/age/age_internal.h"

#define BASE64       sodium_base64_VARIANT_ORIGINAL_NO_PADDING
#define COLUMNS      64
/* Characters of 32 bytes in base64 without padding. */
#define BASE64_32    43
#define WRAPPED_SIZE (AGE__FILE_KEY_SIZE + AGE_TAG_SIZE)
/* Enough for any file of ours, and so few that with one identity looking at all takes no time. */
#define STANZAS_MAX  (2 * AGE_RECIPIENTS_MAX)
/* "-> X25519 ", the share, LF, the body, LF. */
#define STANZA_SIZE  (10 + BASE64_32 + 1 + BASE64_32 + 1)

static const uint8_t zero_nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

/*
 * Writing
 */

static char *put_header_text(char *at, const char *text)
{
	const size_t len = strlen(text);

	memcpy(at, text, len);
	return at + len;
}

static char *put_base64(char *at, const uint8_t bytes[static 32])
{
	char text[BASE64_32 + 1];

	sodium_bin2base64(text, sizeof(text), bytes, 32, BASE64);
	return put_header_text(at, text);
}

/* False: the recipient is of a small order. */
static bool put_stanza(char **at, const uint8_t recipient[static AGE_KEY_SIZE],
		       const uint8_t file_key[static AGE__FILE_KEY_SIZE])
{
	uint8_t secret[AGE_KEY_SIZE], share[AGE_KEY_SIZE], key[32], body[WRAPPED_SIZE];
	bool good;

	randombytes_buf(secret, sizeof(secret));
	good = !crypto_scalarmult_base(share, secret) &&
	       age__wrap_key(secret, recipient, share, recipient, key);
	sodium_memzero(secret, sizeof(secret));
	if (!good)
		return false;
	crypto_aead_chacha20poly1305_ietf_encrypt(body, NULL, file_key, AGE__FILE_KEY_SIZE, NULL, 0,
						  NULL, zero_nonce, key);
	sodium_memzero(key, sizeof(key));
	*at = put_base64(put_header_text(*at, "-> X25519 "), share);
	*at = put_base64(put_header_text(*at, "\n"), body);
	*at = put_header_text(*at, "\n");
	return true;
}

enum status age__header_write(const struct age_recipients *to,
			      const uint8_t file_key[static AGE__FILE_KEY_SIZE], char **ret,
			      size_t *ret_len, struct err *e)
{
	_cleanup_free_ char *text = malloc(sizeof(AGE__VERSION_LINE) + to->count * STANZA_SIZE +
					   sizeof("--- \n") + BASE64_32);
	uint8_t mac[AGE__MAC_SIZE];
	char *at = text;

	if (!text)
		return err_nomem(e);
	at = put_header_text(at, AGE__VERSION_LINE);
	for (size_t i = 0; i < to->count; i++)
		if (!put_stanza(&at, to->at[i], file_key))
			return err_set(e, ST_USAGE,
				       "recipient %zu is a key that no identity can have", i + 1);
	at = put_header_text(at, "---");
	age__header_mac(file_key, text, (size_t)(at - text), mac);
	at = put_base64(put_header_text(at, " "), mac);
	at = put_header_text(at, "\n");
	*ret_len = (size_t)(at - text);
	*ret = take_ptr(text);
	return ST_OK;
}

/*
 * Reading
 */

struct lines {
	const char *text;
	size_t len;
	size_t at; /* of the next one */
};

/* Without its LF. ST_END: it is not all there. */
static enum status next_header_line(struct lines *l, const char **ret, size_t *ret_len)
{
	const char *from = l->text + l->at, *end = memchr(from, '\n', l->len - l->at);

	if (!end)
		return ST_END;
	*ret = from;
	*ret_len = (size_t)(end - from);
	l->at += *ret_len + 1;
	return ST_OK;
}

/* Canonical: bits that encode nothing are 0, and there is no padding. */
static bool get_base64(const char *text, size_t len, uint8_t *ret, size_t room, size_t *ret_len)
{
	return !sodium_base642bin(ret, room, text, len, NULL, ret_len, NULL, BASE64);
}

/* What there is to know of a stanza: only those of 32 bytes are for us. */
struct stanza {
	const char *type;
	size_t type_len;
	const char *argument; /* the second one */
	size_t argument_len;
	size_t arguments;
	uint8_t body[COLUMNS]; /* its first bytes */
	size_t body_len;       /* all of it */
};

static bool is_type(const struct stanza *s, const char *type)
{
	return s->type_len == strlen(type) && !memcmp(s->type, type, s->type_len);
}

/* Arguments of characters that are seen, with one space between them. */
static bool get_arguments(const char *line, size_t len, struct stanza *ret)
{
	for (size_t at = 0; at <= len; ret->arguments++) {
		const size_t from = at;

		while (at < len && line[at] >= '!' && line[at] <= '~')
			at++;
		if (at == from || (at < len && line[at] != ' '))
			return false;
		if (!ret->arguments) {
			ret->type = line + from;
			ret->type_len = at - from;
		} else if (ret->arguments == 1) {
			ret->argument = line + from;
			ret->argument_len = at - from;
		}
		at++;
	}
	return true;
}

/* Lines of 64 columns, and a shorter one, which may be empty. */
static enum status get_body(struct lines *l, struct stanza *ret, struct err *e)
{
	uint8_t bytes[COLUMNS];
	const char *line;
	size_t len, n;

	do {
		const enum status st = next_header_line(l, &line, &len);

		/* Nor can such a line be the beginning of one that is not all there. */
		if (st)
			return l->len - l->at > COLUMNS
				       ? err_set(e, ST_CORRUPT, "a line of the header is too long")
				       : st;
		if (len > COLUMNS || !get_base64(line, len, bytes, sizeof(bytes), &n))
			return err_set(e, ST_CORRUPT,
				       "a stanza of the header has a body that is not base64");
		if (!ret->body_len)
			memcpy(ret->body, bytes, n);
		ret->body_len += n;
	} while (len == COLUMNS);
	return ST_OK;
}

/* ST_NOT_MINE: the line is no stanza, and the next one to be taken. */
static enum status next_stanza(struct lines *l, struct stanza *ret, struct err *e)
{
	const size_t before = l->at;
	const char *line;
	size_t len;
	enum status st = next_header_line(l, &line, &len);

	*ret = (struct stanza){ 0 };
	if (st)
		return st;
	if (len < 3 || memcmp(line, "-> ", 3) != 0) {
		l->at = before;
		return ST_NOT_MINE;
	}
	if (!get_arguments(line + 3, len - 3, ret))
		return err_set(e, ST_CORRUPT, "a stanza of the header has invalid arguments");
	return get_body(l, ret, e);
}

/* What was found on the way through the header. */
struct header {
	const struct age_identities *x;
	size_t stanzas;
	bool passphrase;
	bool found;
	uint8_t *file_key; /* borrowed */
};

/* ST_NOT_MINE: it is for another one. */
static enum status unwrap(const struct stanza *s, const uint8_t share[static AGE_KEY_SIZE],
			  const struct age__identity *x, uint8_t *ret, struct err *e)
{
	uint8_t key[32];
	bool good;

	if (!age__wrap_key(x->secret, share, share, x->share, key))
		return err_set(e, ST_CORRUPT,
			       "a stanza of the header has an unsafe share (of small order)");
	good = !crypto_aead_chacha20poly1305_ietf_decrypt(ret, NULL, NULL, s->body, WRAPPED_SIZE,
							  NULL, 0, zero_nonce, key);
	sodium_memzero(key, sizeof(key));
	return good ? ST_OK : ST_NOT_MINE;
}

static enum status try_stanza(struct header *h, const struct stanza *s, struct err *e)
{
	uint8_t share[AGE_KEY_SIZE];
	size_t n;
	enum status st = ST_NOT_MINE;

	if (s->arguments != 2 ||
	    !get_base64(s->argument, s->argument_len, share, sizeof(share), &n) ||
	    n != sizeof(share) || s->body_len != WRAPPED_SIZE)
		return err_set(e, ST_CORRUPT, "an X25519 stanza of the header is malformed");
	for (size_t i = 0; i < age_identities_count(h->x) && st == ST_NOT_MINE && !h->found; i++)
		st = unwrap(s, share, &h->x->at[i], h->file_key, e);
	if (!st)
		h->found = true;
	return st == ST_NOT_MINE ? ST_OK : st;
}

/* Stanzas of other kinds are none of our business, whatever the rules for those are. */
static enum status take_stanzas(struct header *h, struct lines *l, struct err *e)
{
	struct stanza s;
	enum status st = ST_OK;

	for (; !st; h->stanzas++) {
		st = next_stanza(l, &s, e);
		if (st)
			break;
		if (h->stanzas == STANZAS_MAX)
			return err_set(e, ST_CORRUPT, "the header has more than %d stanzas",
				       STANZAS_MAX);
		h->passphrase = h->passphrase || is_type(&s, "scrypt");
		if (is_type(&s, "X25519"))
			st = try_stanza(h, &s, e);
	}
	if (st != ST_NOT_MINE)
		return st;
	return h->stanzas ? ST_OK : err_set(e, ST_CORRUPT, "the header has no stanza");
}

static enum status get_version(struct lines *l, struct err *e)
{
	const size_t want = strlen(AGE__VERSION_LINE), have = MIN(l->len, want);
	const char *line;
	size_t len;

	if (have < want && !memcmp(l->text, AGE__VERSION_LINE, have))
		return ST_END;
	if (!memcmp(l->text, AGE__VERSION_LINE, have))
		return next_header_line(l, &line, &len);
	return age_is_magic(l->text, l->len)
		       ? err_set(e, ST_INPUT, "is encrypted with a version of age other than 1")
		       : err_set(e, ST_INPUT, "is not encrypted with age");
}

/* "--- " and the MAC; ret_over: how much of the text that is of. */
static enum status get_mac(struct lines *l, uint8_t ret[static AGE__MAC_SIZE], size_t *ret_over,
			   struct err *e)
{
	const size_t before = l->at;
	const char *line;
	size_t len, n;
	enum status st = next_header_line(l, &line, &len);

	if (st)
		return st;
	if (len != 4 + BASE64_32 || memcmp(line, "--- ", 4) != 0 ||
	    !get_base64(line + 4, BASE64_32, ret, AGE__MAC_SIZE, &n) || n != AGE__MAC_SIZE)
		return err_set(e, ST_CORRUPT,
			       "the header has a line that is neither a stanza nor "
			       "its end");
	*ret_over = before + 3;
	return ST_OK;
}

static enum status refuse_identities(const struct header *h, struct err *e)
{
	const size_t n = age_identities_count(h->x);

	if (h->passphrase)
		return err_set(e, ST_INPUT,
			       "is encrypted with a passphrase: decrypt it with `age -d` first");
	if (n == 1)
		return err_set(e, ST_INPUT, "is encrypted with age, but not for this identity");
	return err_set(e, ST_INPUT, "is encrypted with age, and none of the %zu identities matches",
		       n);
}

enum status age__header_open(const char *text, size_t len, const struct age_identities *x,
			     uint8_t ret_file_key[static AGE__FILE_KEY_SIZE], size_t *ret_len,
			     struct err *e)
{
	struct lines l = { .text = text, .len = len };
	struct header h = { .x = x, .file_key = ret_file_key };
	uint8_t said[AGE__MAC_SIZE], is[AGE__MAC_SIZE];
	size_t over = 0;
	enum status st = get_version(&l, e);

	if (!st)
		st = take_stanzas(&h, &l, e);
	if (!st)
		st = get_mac(&l, said, &over, e);
	if (!st && !h.found)
		st = refuse_identities(&h, e);
	if (st)
		return st;
	age__header_mac(ret_file_key, text, over, is);
	if (sodium_memcmp(said, is, sizeof(is)) != 0)
		return err_set(e, ST_CORRUPT, "the header was changed: its MAC is wrong");
	*ret_len = l.at;
	return ST_OK;
}
