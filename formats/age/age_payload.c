/* SPDX-License-Identifier: Apache-2.0 */
/* Behind the header: a nonce, and chunks. */
#include <inttypes.h>
#include <string.h>

#include "formats/age/age_internal.h"

enum status age__payload_init(struct age__payload *p,
			      const uint8_t file_key[static AGE__FILE_KEY_SIZE],
			      const uint8_t nonce[static AGE_NONCE_SIZE], uint64_t at,
			      struct err *e)
{
	*p = (struct age__payload){ .key = sodium_malloc(32), .at = at };
	if (!p->key)
		return err_nomem(e);
	age__hkdf(file_key, AGE__FILE_KEY_SIZE, nonce, AGE_NONCE_SIZE, "payload", p->key);
	return ST_OK;
}

void age__payload_deinit(struct age__payload *p)
{
	sodium_free(p->key);
	p->key = NULL;
}

/* The counter has 11 bytes, big-endian, of which a file never needs more than 8. */
static void chunk_nonce(uint64_t number, bool last,
			uint8_t ret[static crypto_aead_chacha20poly1305_ietf_NPUBBYTES])
{
	memset(ret, 0, 3);
	for (size_t i = 0; i < 8; i++)
		ret[3 + i] = (uint8_t)(number >> (56 - 8 * i));
	ret[11] = last;
}

void age__chunk_seal(const struct age__payload *p, uint64_t number, bool last, const void *in,
		     size_t len, uint8_t *out)
{
	uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

	chunk_nonce(number, last, nonce);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, in, len, NULL, 0, NULL, nonce, p->key);
}

bool age__chunk_open(const struct age__payload *p, uint64_t number, bool last, const uint8_t *in,
		     size_t len, uint8_t *out)
{
	uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

	chunk_nonce(number, last, nonce);
	return len >= AGE_TAG_SIZE && !crypto_aead_chacha20poly1305_ietf_decrypt(
					      out, NULL, NULL, in, len, NULL, 0, nonce, p->key);
}

/* Most headers have some hundred bytes: more is read only of those that need it. */
#define HEADER_FIRST ((size_t)4 << 10)

static enum status open_header(struct blob *stored, const struct age_identities *x, char *text,
			       uint8_t file_key[static AGE__FILE_KEY_SIZE], size_t *ret_len,
			       struct err *e)
{
	size_t got = 0;
	enum status st = ST_END;

	for (size_t room = HEADER_FIRST; st == ST_END && room <= AGE_HEADER_MAX; room *= 4) {
		st = stored->read_at(stored, 0, text, room, &got, e);
		if (st)
			return st;
		st = age__header_open(text, got, x, file_key, ret_len, e);
		if (st == ST_END && got < room)
			return err_set(e, ST_CORRUPT, "was cut off within its header");
	}
	return st == ST_END ? err_set(e, ST_CORRUPT, "has a header of more than %zu bytes",
				      AGE_HEADER_MAX)
			    : st;
}

enum status age__payload_of(struct blob *stored, const struct age_identities *x,
			    struct age__payload *ret, struct err *e)
{
	_cleanup_free_ char *text = malloc(AGE_HEADER_MAX);
	uint8_t file_key[AGE__FILE_KEY_SIZE], nonce[AGE_NONCE_SIZE];
	size_t len = 0, got = 0;
	enum status st = text ? age_init(e) : err_nomem(e);

	if (!st)
		st = open_header(stored, x, text, file_key, &len, e);
	if (!st)
		st = stored->read_at(stored, len, nonce, sizeof(nonce), &got, e);
	if (!st && got < sizeof(nonce))
		st = err_set(e, ST_CORRUPT, "was cut off right after its header");
	if (!st)
		st = age__payload_init(ret, file_key, nonce, len + sizeof(nonce), e);
	sodium_memzero(file_key, sizeof(file_key));
	return st;
}

bool age_content_size(uint64_t body, uint64_t *ret)
{
	const uint64_t chunks = body / AGE_STORED, rest = body % AGE_STORED;

	/* Only the file of no content has a chunk of none. */
	if (!body || (rest && rest < AGE_TAG_SIZE) || (rest == AGE_TAG_SIZE && chunks))
		return false;
	*ret = chunks * AGE_CHUNK + (rest ? rest - AGE_TAG_SIZE : 0);
	return true;
}
