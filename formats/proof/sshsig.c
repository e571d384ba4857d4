/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/bytes.h"
#include "formats/proof/sshsig.h"

#include <sodium.h>
#include <stdio.h>

#define BEGIN          "-----BEGIN SSH SIGNATURE-----"
#define END            "-----END SSH SIGNATURE-----"
#define MAGIC          "SSHSIG" /* without a NUL */
#define VERSION        1
#define TYPE_ED25519   "ssh-ed25519"
#define TYPE_TOKEN     "sk-ssh-ed25519@openssh.com"
#define NAME_SPACE_MAX 64 /* of ours; the longest that is asked for */

static uint32_t cur_be32(struct cursor *c)
{
	uint32_t ret = 0;

	for (unsigned i = 0; i < 4; i++)
		ret = ret << 8 | cur_u8(c);
	return ret;
}

struct cursor sshsig__string(struct cursor *c)
{
	const uint32_t len = cur_be32(c);
	const uint8_t *at = cur_bytes(c, c->bad ? SIZE_MAX : len);

	return at ? cursor_over(at, len) : cursor_over("", 0);
}

bool sshsig__is(struct cursor c, const char *text)
{
	return c.left == strlen(text) && !memcmp(c.at, text, c.left);
}

/*
 * Reading
 */

/* What is between the two lines; NULL if they are not there, or something else is behind them. */
static const char *find_armor(const char *p, size_t len, size_t *ret_len)
{
	const size_t begin = sizeof(BEGIN) - 1, end = sizeof(END) - 1;

	while (len && byte_is_blank((uint8_t)p[len - 1]))
		len--;
	if (len <= begin + end || memcmp(p, BEGIN, begin) != 0 ||
	    !byte_is_blank((uint8_t)p[begin]) || memcmp(p + len - end, END, end) != 0)
		return NULL;
	*ret_len = len - begin - end;
	return p + begin;
}

static bool parse_blob(struct sshsig *s, size_t len)
{
	struct cursor c = cursor_over(s->blob, len), key;
	const uint8_t *magic = cur_bytes(&c, sizeof(MAGIC) - 1);

	if (!magic || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0 || cur_be32(&c) != VERSION)
		return false;
	s->key = sshsig__string(&c);
	s->name_space = sshsig__string(&c);
	sshsig__string(&c); /* reserved: to be ignored */
	s->hash = sshsig__string(&c);
	s->signature = sshsig__string(&c);
	key = s->key;
	s->type = sshsig__string(&key);
	return !c.bad && !c.left && !key.bad && s->type.left && s->name_space.left;
}

enum status sshsig_parse(const void *p, size_t len, struct sshsig *ret, struct err *e)
{
	size_t n;
	const char *armor = len <= SSHSIG_FILE_MAX ? find_armor(p, len, &n) : NULL;

	if (!armor || sodium_base642bin(ret->blob, sizeof(ret->blob), armor, n, "\r\n", &n, NULL,
					sodium_base64_VARIANT_ORIGINAL))
		return err_set(e, ST_INPUT, "is not a signature by ssh-keygen -Y sign");
	if (!parse_blob(ret, n))
		return err_set(e, ST_INPUT, "the signature is damaged");
	return ST_OK;
}

void sshsig_fingerprint(const struct sshsig *s, char ret[static SSHSIG_FINGERPRINT_SIZE])
{
	uint8_t digest[crypto_hash_sha256_BYTES];
	const size_t n = (size_t)sprintf(ret, "SHA256:");

	crypto_hash_sha256(digest, s->key.at, s->key.left);
	sodium_bin2base64(ret + n, SSHSIG_FINGERPRINT_SIZE - n, digest, sizeof(digest),
			  sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

/*
 * Judging
 */

static size_t put_be32(uint8_t *to, size_t v)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (24 - 8 * i));
	return 4;
}

static size_t put_ssh_string(uint8_t *to, const void *p, size_t len)
{
	const size_t n = put_be32(to, len);

	if (len)
		memcpy(to + n, p, len);
	return n + len;
}

/* What is signed in place of the message; room for names of NAME_SPACE_MAX and 8 bytes. */
#define SIGNED_MAX (sizeof(MAGIC) - 1 + 4 * 4 + NAME_SPACE_MAX + 8 + crypto_hash_sha512_BYTES)

static size_t put_signed(const struct sshsig *s, const char *name_space, const void *message,
			 size_t len, uint8_t ret[static SIGNED_MAX])
{
	const bool sha512 = sshsig__is(s->hash, "sha512");
	uint8_t digest[crypto_hash_sha512_BYTES];
	size_t n = sizeof(MAGIC) - 1;

	if (sha512)
		crypto_hash_sha512(digest, message, len);
	else
		crypto_hash_sha256(digest, message, len);
	memcpy(ret, MAGIC, n);
	n += put_ssh_string(ret + n, name_space, strlen(name_space));
	n += put_ssh_string(ret + n, NULL, 0);
	n += put_ssh_string(ret + n, s->hash.at, s->hash.left);
	return n + put_ssh_string(ret + n, digest,
				  sha512 ? crypto_hash_sha512_BYTES : crypto_hash_sha256_BYTES);
}

struct pieces {
	const uint8_t *key;       /* crypto_sign_PUBLICKEYBYTES */
	const uint8_t *signature; /* crypto_sign_BYTES */
	bool token;
	struct cursor application; /* of a token */
	const uint8_t *presence;   /* and what it adds: flags and a counter, 5 bytes */
};

static const uint8_t *string_of(struct cursor *c, size_t len)
{
	const struct cursor s = sshsig__string(c);

	if (s.left != len)
		c->bad = true;
	return s.at;
}

static bool take_signature_apart(const struct sshsig *s, struct pieces *ret)
{
	struct cursor key = s->key, signature = s->signature, type;

	*ret = (struct pieces){ .token = sshsig__is(s->type, TYPE_TOKEN) };
	sshsig__string(&key);
	ret->key = string_of(&key, crypto_sign_PUBLICKEYBYTES);
	type = sshsig__string(&signature);
	ret->signature = string_of(&signature, crypto_sign_BYTES);
	if (ret->token) {
		ret->application = sshsig__string(&key);
		ret->presence = cur_bytes(&signature, 5);
	}
	return sshsig__is(type, ret->token ? TYPE_TOKEN : TYPE_ED25519) && !key.bad && !key.left &&
	       !signature.bad && !signature.left;
}

/* PROTOCOL.u2f, "SSH U2F Signatures": a token signs hashes, and what it has seen. */
static size_t put_token_signed(const struct pieces *p, const uint8_t *text, size_t len,
			       uint8_t ret[static SIGNED_MAX])
{
	uint8_t *to = ret;

	crypto_hash_sha256(to, p->application.at, p->application.left);
	to += crypto_hash_sha256_BYTES;
	memcpy(to, p->presence, 5);
	to += 5;
	crypto_hash_sha256(to, text, len);
	return (size_t)(to - ret) + crypto_hash_sha256_BYTES;
}

static enum status check_key_kind(const struct sshsig *s, struct err *e)
{
	if (!sshsig__is(s->type, TYPE_ED25519) && !sshsig__is(s->type, TYPE_TOKEN))
		return err_set(e, ST_INPUT,
			       "is by a key of type %.*s; check it with ssh-keygen -Y verify",
			       (int)MIN(s->type.left, (size_t)64), (const char *)s->type.at);
	if (!sshsig__is(s->hash, "sha512") && !sshsig__is(s->hash, "sha256"))
		return err_set(e, ST_INPUT, "signs a hash that is neither sha512 nor sha256");
	return ST_OK;
}

enum status sshsig_verify(const struct sshsig *s, const char *name_space, const void *message,
			  size_t len, struct err *e)
{
	uint8_t text[SIGNED_MAX], hashed[SIGNED_MAX];
	enum status st = check_key_kind(s, e);
	struct pieces p;
	size_t n;

	if (st)
		return st;
	if (strlen(name_space) > NAME_SPACE_MAX || sodium_init() < 0)
		return err_set(e, ST_SYSTEM, "libsodium does not start");
	if (!sshsig__is(s->name_space, name_space))
		return err_set(e, ST_MISMATCH, "is for \"%.*s\", not for \"%s\" (ssh-keygen -n)",
			       (int)MIN(s->name_space.left, (size_t)64),
			       (const char *)s->name_space.at, name_space);
	if (!take_signature_apart(s, &p))
		return err_set(e, ST_INPUT, "the signature is damaged");
	n = put_signed(s, name_space, message, len, text);
	if (p.token) {
		n = put_token_signed(&p, text, n, hashed);
		memcpy(text, hashed, n);
	}
	if (crypto_sign_verify_detached(p.signature, text, n, p.key))
		return err_set(e, ST_MISMATCH, "does not sign these bytes, or is not by its key");
	return ST_OK;
}
