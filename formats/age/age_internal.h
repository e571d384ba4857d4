/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of formats/age/: keys, the header's text, chunks. */
#ifndef RAMSEAL_FORMATS_AGE_INTERNAL_H
#define RAMSEAL_FORMATS_AGE_INTERNAL_H

#include <sodium.h>

#include "formats/age/age.h"

#define AGE__VERSION_LINE  "age-encryption.org/v1\n"
#define AGE__FILE_KEY_SIZE 16
#define AGE__MAC_SIZE      32

struct age_identities {
	size_t count;
	struct age__identity {
		uint8_t secret[AGE_KEY_SIZE], share[AGE_KEY_SIZE]; /* public */
	} at[AGE_IDENTITIES_MAX];
};

/*
 * Bech32 (BIP 173, without its limit of length) of 32 bytes behind `prefix`, which is all lower or
 * all upper case, as the text has to be.
 */
bool age__bech32(const char *prefix, const char *text, size_t len,
		 uint8_t ret[static AGE_KEY_SIZE]);

/* HKDF with SHA-256 (RFC 5869): 32 bytes. */
void age__hkdf(const void *ikm, size_t ikm_len, const void *salt, size_t salt_len, const char *info,
	       uint8_t ret[static 32]);

/* HMAC-SHA-256 with the key that is derived from the file key. `text` ends with "---". */
void age__header_mac(const uint8_t file_key[static AGE__FILE_KEY_SIZE], const char *text,
		     size_t len, uint8_t ret[static AGE__MAC_SIZE]);

/* The key of X25519 stanzas. False: the shared secret is all zeros. */
bool age__wrap_key(const uint8_t secret[static AGE_KEY_SIZE],
		   const uint8_t public_key[static AGE_KEY_SIZE],
		   const uint8_t share[static AGE_KEY_SIZE],
		   const uint8_t recipient[static AGE_KEY_SIZE], uint8_t ret[static 32]);

/* Text of a new header; for free(). ST_USAGE for a recipient of a small order. */
enum status age__header_write(const struct age_recipients *to,
			      const uint8_t file_key[static AGE__FILE_KEY_SIZE], char **ret,
			      size_t *ret_len, struct err *e);

/*
 * Opens the header at the start of `text`. ST_END: it is incomplete. Otherwise returns the file
 * key, with the statuses of age_reader_create(), and the header's length.
 */
enum status age__header_open(const char *text, size_t len, const struct age_identities *x,
			     uint8_t ret_file_key[static AGE__FILE_KEY_SIZE], size_t *ret_len,
			     struct err *e);

/* The chunks of one file. */
struct age__payload {
	uint8_t *key; /* sodium_malloc()ed: 32 bytes; owned */
	uint64_t at;  /* where the first one begins in the stored file */
};

enum status age__payload_init(struct age__payload *p,
			      const uint8_t file_key[static AGE__FILE_KEY_SIZE],
			      const uint8_t nonce[static AGE_NONCE_SIZE], uint64_t at,
			      struct err *e);
void age__payload_deinit(struct age__payload *p);

/* `out` has room for `len` bytes and the tag. */
void age__chunk_seal(const struct age__payload *p, uint64_t number, bool last, const void *in,
		     size_t len, uint8_t *out);
/*
 * `len` with the tag; `out` can be `in`. False if the tag does not match; `out` is then undefined.
 */
bool age__chunk_open(const struct age__payload *p, uint64_t number, bool last, const uint8_t *in,
		     size_t len, uint8_t *out);

/* Header and nonce of a file that is read. */
enum status age__payload_of(struct blob *stored, const struct age_identities *x,
			    struct age__payload *ret, struct err *e);

#endif
