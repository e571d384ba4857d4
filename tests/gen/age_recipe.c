/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/age_recipe.h"

#include <sodium.h>
#include <string.h>

#define BASE64 sodium_base64_VARIANT_ORIGINAL_NO_PADDING

struct kitchen {
	struct mem_sink *out;
	const uint8_t *file_key;
	uint64_t number; /* of the next chunk */
	uint64_t content;
	size_t whole; /* chunks */
	uint8_t key[32];
};

static const uint8_t file_key[16] = "sixteen, a key..", nonce[16] = "and another one.";

uint8_t age_recipe_byte(uint64_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) * 3 + (at >> 16));
}

static void put_bytes(struct kitchen *k, const void *p, size_t len)
{
	(void)sink_write(&k->out->sink, p, len, NULL);
}

static void put(struct kitchen *k, const char *text)
{
	put_bytes(k, text, strlen(text));
}

static void put_base64(struct kitchen *k, const uint8_t *bytes, size_t len)
{
	char text[128];

	put(k, sodium_bin2base64(text, sizeof(text), bytes, len, BASE64));
}

/* RFC 5869, with one block of output. */
static void derive(const uint8_t *from, size_t len, const uint8_t *salt, size_t salt_len,
		   const char *info, uint8_t ret[32])
{
	crypto_auth_hmacsha256_state s;
	uint8_t extracted[32];

	crypto_auth_hmacsha256_init(&s, salt, salt_len);
	crypto_auth_hmacsha256_update(&s, from, len);
	crypto_auth_hmacsha256_final(&s, extracted);
	crypto_auth_hmacsha256_init(&s, extracted, 32);
	crypto_auth_hmacsha256_update(&s, (const uint8_t *)info, strlen(info));
	crypto_auth_hmacsha256_update(&s, (const uint8_t *)"\1", 1);
	crypto_auth_hmacsha256_final(&s, ret);
}

/* The specification's example is the key of 32 times 0x42; anybody else's is of another byte. */
static void wrap(uint8_t of, uint8_t share[32], uint8_t body[32])
{
	static const char info[] = "age-encryption.org/v1/X25519";
	uint8_t secret[32], ephemeral[32], recipient[32], shared[32], salt[64], key[32];
	uint8_t zeros[12] = { 0 };

	memset(secret, of, 32);
	memset(ephemeral, 0x17, 32);
	crypto_scalarmult_base(recipient, secret);
	crypto_scalarmult_base(share, ephemeral);
	(void)!crypto_scalarmult(shared, ephemeral, recipient);
	memcpy(salt, share, 32);
	memcpy(salt + 32, recipient, 32);
	derive(shared, 32, salt, 64, info, key);
	crypto_aead_chacha20poly1305_ietf_encrypt(body, NULL, file_key, 16, NULL, 0, NULL, zeros,
						  key);
}

static void put_stanza(struct kitchen *k, uint8_t of)
{
	uint8_t share[32], body[32];

	wrap(of, share, body);
	put(k, "-> X25519 ");
	put_base64(k, share, 32);
	put(k, "\n");
	put_base64(k, body, 32);
	put(k, "\n");
}

static void put_end(struct kitchen *k, uint8_t wrong)
{
	uint8_t key[32], mac[32];

	put(k, "---");
	derive(file_key, 16, (const uint8_t *)"", 0, "header", key);
	crypto_auth_hmacsha256(mac, k->out->at, k->out->len, key);
	mac[0] ^= wrong;
	put(k, " ");
	put_base64(k, mac, 32);
	put(k, "\n");
}

static void put_word(struct kitchen *k, char word)
{
	uint8_t share[32], body[32], zeros[32] = { 0 };

	wrap(0x42, share, body);
	switch (word) {
	case 'v':
		put(k, "age-encryption.org/v1\n");
		break;
	case 'x':
		put_stanza(k, 0x42);
		break;
	case 'y':
		put_stanza(k, 0x43);
		break;
	case 'm':
		put_end(k, 0);
		break;
	case 'w':
		put_end(k, 1);
		break;
	case 's':
		put_base64(k, share, 32);
		break;
	case 'b':
		put_base64(k, body, 32);
		break;
	case 'z':
		put_base64(k, zeros, 32);
		break;
	default:
		break;
	}
}

/* `changed`: a bit of it; `stored`: as much of it is there. */
static void put_chunk(struct kitchen *k, size_t len, bool last, bool changed, size_t stored)
{
	static uint8_t content[65536], sealed[65536 + 16];
	uint8_t counter[12] = { 0 };

	if (len == sizeof(content) && k->whole++ >= AGE_RECIPE_CHUNKS)
		return;
	for (size_t i = 0; i < len; i++)
		content[i] = age_recipe_byte(k->content + i);
	counter[10] = (uint8_t)k->number++;
	counter[11] = last;
	k->content += len;
	crypto_aead_chacha20poly1305_ietf_encrypt(sealed, NULL, content, len, NULL, 0, NULL,
						  counter, k->key);
	sealed[len / 2] ^= changed;
	put_bytes(k, sealed, MIN(stored, len + 16));
}

static void put_letter(struct kitchen *k, char letter)
{
	switch (letter) {
	case 'N':
		put_bytes(k, nonce, 16);
		break;
	case 'n':
		put_bytes(k, nonce, 7);
		break;
	case 'F':
		put_chunk(k, 65536, false, false, SIZE_MAX);
		break;
	case 'f':
		put_chunk(k, 65536, true, false, SIZE_MAX);
		break;
	case 'd':
		put_chunk(k, 65536, false, true, SIZE_MAX);
		break;
	case 'S':
		put_chunk(k, 100, false, false, SIZE_MAX);
		break;
	case 's':
		put_chunk(k, 100, true, false, SIZE_MAX);
		break;
	case 'E':
		put_chunk(k, 0, false, false, SIZE_MAX);
		break;
	case 'e':
		put_chunk(k, 0, true, false, SIZE_MAX);
		break;
	case 'h':
		put_chunk(k, 65536, false, false, 32768);
		break;
	case 'g':
		put(k, "stray");
		break;
	case 't':
		put(k, "twenty stray bytes..");
		break;
	default:
		break;
	}
}

void age_recipe_cook(const char *header, size_t header_len, const char *payload, size_t payload_len,
		     struct mem_sink *out)
{
	struct kitchen k = { .out = out };

	if (sodium_init() < 0)
		return;
	for (size_t i = 0; i < header_len; i++) {
		if (header[i] == '$' && i + 1 < header_len)
			put_word(&k, header[++i]);
		else
			put_bytes(&k, &header[i], 1);
	}
	derive(file_key, 16, nonce, 16, "payload", k.key);
	for (size_t i = 0; i < payload_len; i++)
		put_letter(&k, payload[i]);
}

/* The kinds that C2SP's own test vectors have (CCTV, age), and what the payload can be. */
#define C         UINT64_C(65536)
#define BAD       ST_CORRUPT, false, 0, false
#define NOT_OURS  ST_INPUT, false, 0, false
#define IS(size)  ST_OK, true, (size), false
#define CUT(size) ST_OK, false, (size), false
/* 64 columns, which are a whole line of a body. */
#define LINE      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/\n"

const struct age_vector age_vectors[] = {
	/* keys */
	{ "one", "$v$x$m", "Ns", IS(100) },
	{ "second-of-two", "$v$y$x$m", "Ns", IS(100) },
	{ "first-of-two", "$v$x$y$m", "Ns", IS(100) },
	{ "for-another", "$v$y$m", "Ns", NOT_OURS },
	{ "grease", "$v-> !grease-x y 12 ~\n" LINE "abc\n$x-> z\n\n$m", "Ns", IS(100) },
	{ "empty-body-behind-a-line", "$v-> z\n" LINE "\n$x$m", "Ns", IS(100) },
	{ "other-case", "$v-> x25519 $s\n$b\n$x$m", "Ns", IS(100) },
	{ "only-unknown", "$v-> z\n\n$m", "Ns", NOT_OURS },
	{ "passphrase", "$v-> scrypt AAAAAAAAAAAAAAAAAAAAAA 10\n$b\n$m", "Ns", NOT_OURS },
	{ "passphrase-and-key", "$v-> scrypt AAAAAAAAAAAAAAAAAAAAAA 10\n$b\n$x$m", "Ns", IS(100) },
	/* X25519 stanzas */
	{ "no-share", "$v-> X25519\n$b\n$m", "Ns", BAD },
	{ "third-argument", "$v-> X25519 $s x\n$b\n$m", "Ns", BAD },
	{ "short-share", "$v-> X25519 AAAA\n$b\n$m", "Ns", BAD },
	{ "long-share", "$v-> X25519 $sAAAA\n$b\n$m", "Ns", BAD },
	{ "padded-share", "$v-> X25519 $s=\n$b\n$m", "Ns", BAD },
	/* 32 bytes end in 4 bits and 2 of nothing, which must be 0 */
	{ "share-not-canonical", "$v-> X25519 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB\n$b\n$m",
	  "Ns", BAD },
	{ "share-of-zeros", "$v-> X25519 $z\n$b\n$m", "Ns", BAD },
	{ "short-body", "$v-> X25519 $s\nAAAA\n$m", "Ns", BAD },
	{ "long-body", "$v-> X25519 $s\n$bAAAA\n$m", "Ns", BAD },
	{ "no-body", "$v-> X25519 $s\n\n$m", "Ns", BAD },
	{ "wrong-key", "$v-> X25519 $s\n$s\n$m", "Ns", NOT_OURS },
	/* lines */
	{ "no-stanza", "$v$m", "Ns", BAD },
	{ "version-2", "age-encryption.org/v2\n$x$m", "Ns", NOT_OURS },
	{ "version-with-cr", "age-encryption.org/v1\r\n$x$m", "Ns", NOT_OURS },
	{ "something-else", "agg-encryption.org/v1\n$x$m", "Ns", NOT_OURS },
	{ "cr-in-stanza", "$v-> X25519 $s\r\n$b\r\n$m", "Ns", BAD },
	{ "cr-behind-body", "$v-> X25519 $s\n$b\r\n$m", "Ns", BAD },
	{ "two-spaces", "$v-> X25519  $s\n$b\n$m", "Ns", BAD },
	{ "space-at-end", "$v-> X25519 $s \n$b\n$m", "Ns", BAD },
	{ "no-argument", "$v->\n\n$x$m", "Ns", BAD },
	{ "empty-argument", "$v-> \n\n$x$m", "Ns", BAD },
	{ "no-arrow", "$v> X25519 $s\n$b\n$m", "Ns", BAD },
	{ "arrow-without-space", "$v->X25519 $s\n$b\n$m", "Ns", BAD },
	{ "utf8-argument", "$v-> \xc3\xa9\n\n$x$m", "Ns", BAD },
	{ "long-line", "$v-> z\nA" LINE "\n$x$m", "Ns", BAD },
	{ "no-short-line", "$v-> z\n" LINE "$x$m", "Ns", BAD },
	{ "padded-body", "$v-> z\nAA==\n$x$m", "Ns", BAD },
	{ "body-not-canonical", "$v-> z\nAB\n$x$m", "Ns", BAD },
	{ "body-of-one-column", "$v-> z\nA\n$x$m", "Ns", BAD },
	{ "url-alphabet", "$v-> z\n-_-_\n$x$m", "Ns", BAD },
	{ "text-in-between", "$v-> z\n\nhello\n$x$m", "Ns", BAD },
	/* its end */
	{ "wrong-mac", "$v$x$w", "Ns", BAD },
	{ "mac-with-cr", "$v$x--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n", "Ns", BAD },
	{ "mac-of-zeros", "$v$x--- $z\n", "Ns", BAD },
	{ "mac-short", "$v$x--- AAAA\n", "Ns", BAD },
	{ "mac-padded", "$v$x--- $z=\n", "Ns", BAD },
	{ "mac-without-space", "$v$x---$z\n", "Ns", BAD },
	{ "mac-missing", "$v$x---\n", "Ns", BAD },
	{ "cut-in-version", "age-encryption.org/", "", BAD },
	{ "cut-behind-version", "$v", "", BAD },
	{ "cut-in-stanza", "$v-> X25519", "", BAD },
	{ "cut-behind-stanza", "$v$x", "", BAD },
	{ "cut-in-mac", "$v$x--- AAAA", "", BAD },
	/* payload */
	{ "no-nonce", "$v$x$m", "", BAD },
	{ "cut-in-nonce", "$v$x$m", "n", BAD },
	{ "nothing", "$v$x$m", "N", CUT(0) },
	{ "empty", "$v$x$m", "Ne", IS(0) },
	{ "empty-not-last", "$v$x$m", "NE", CUT(0) },
	{ "whole-last", "$v$x$m", "Nf", IS(C) },
	{ "whole-and-short", "$v$x$m", "NFs", IS(C + 100) },
	{ "two-whole", "$v$x$m", "NFf", IS(2 * C) },
	{ "three-and-short", "$v$x$m", "NFFFs", IS(3 * C + 100) },
	{ "last-is-empty", "$v$x$m", "NFe", CUT(C) },
	{ "cut-between-chunks", "$v$x$m", "NFF", CUT(2 * C) },
	{ "cut-in-chunk", "$v$x$m", "NFFh", CUT(2 * C) },
	{ "cut-in-first", "$v$x$m", "Nh", CUT(0) },
	{ "short-not-last", "$v$x$m", "NFS", CUT(C) },
	{ "bytes-behind-short", "$v$x$m", "NFsg", CUT(C) },
	{ "bytes-behind-whole", "$v$x$m", "NFft", ST_OK, false, 2 * C, true },
	{ "more-behind-last", "$v$x$m", "NfFs", ST_OK, true, 2 * C + 100, true },
	{ "changed", "$v$x$m", "NFdFs", ST_OK, true, 3 * C + 100, true },
	{ "changed-first", "$v$x$m", "Nds", ST_OK, true, C + 100, true },
};
const size_t age_n_vectors = ARRAY_SIZE(age_vectors);
