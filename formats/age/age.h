/* SPDX-License-Identifier: Apache-2.0 */
/*
 * age v1: a file that only the holder of a private key can read. Source of everything here: the
 * specification "age" of C2SP (c2sp.org/age, age.md at 037e546); its terms are used. Only X25519
 * keys: no passphrases, no post-quantum keys, no plugins, no armor.
 *
 *	header   text: a version line, a stanza for each recipient, which wraps the file key, a MAC
 *	nonce    16 bytes
 *	chunks   64 KiB of content each, but for the last, and each with a tag of 16 bytes
 *
 * The primitives are libsodium's. Secret keys are in memory that libsodium locks if the system
 * allows it, and wipes when it is freed; derived secrets are wiped in place.
 */
#ifndef RAMSEAL_FORMATS_AGE_H
#define RAMSEAL_FORMATS_AGE_H

#include <stdbool.h>

#include "formats/base/io.h"

#define AGE_KEY_SIZE       32 /* bytes of a key of X25519 */
#define AGE_CHUNK          ((size_t)64 << 10)
#define AGE_TAG_SIZE       16
#define AGE_STORED         (AGE_CHUNK + AGE_TAG_SIZE)
#define AGE_NONCE_SIZE     16

/*
 * The specification sets no limit. A stanza of X25519 takes 98 bytes, one of a post-quantum key
 * some 1,600.
 */
#define AGE_HEADER_MAX     ((size_t)1 << 20)
#define AGE_RECIPIENTS_MAX 1024
#define AGE_IDENTITIES_MAX 256

/*
 * Call once before anything else here; calling it again is harmless. ST_SYSTEM: no source of
 * randomness.
 */
enum status age_init(struct err *e);

/*
 * Keys
 */

/* Public keys to encrypt to. Zero-initialise. */
struct age_recipients {
	uint8_t (*at)[AGE_KEY_SIZE];
	size_t count;
	size_t room;
};

/*
 * "age1...". ST_USAGE for anything else, with what it is; the text itself is not repeated, because
 * it may be a secret key.
 */
enum status age_recipients_add(struct age_recipients *r, const char *text, size_t len,
			       struct err *e);
/*
 * One in a line, as `age -R` has them: what begins with '#' and what is empty is skipped. ST_INPUT
 * with the number of the line.
 */
enum status age_recipients_read(struct age_recipients *r, const char *text, size_t len,
				struct err *e);
void age_recipients_deinit(struct age_recipients *r);

/* Secret keys to decrypt with, in locked memory. */
struct age_identities;

enum status age_identities_create(struct age_identities **ret, struct err *e);
void age_identities_destroy(struct age_identities *x); /* NULL is fine */
/*
 * Lines as `age-keygen` writes them. ST_INPUT with the number of the line but not its text; also if
 * there is no identity at all.
 */
enum status age_identities_read(struct age_identities *x, const char *text, size_t len,
				struct err *e);
size_t age_identities_count(const struct age_identities *x); /* NULL: 0 */

/*
 * Writing
 */

struct age_writer;

/*
 * For one file: its keys are generated here. Nothing is written before the first content or the
 * end. The sink, at its beginning, stays the caller's and must outlive the writer. ST_USAGE for a
 * key that no identity can have (of small order).
 */
enum status age_writer_create(struct sink *out, const struct age_recipients *to,
			      struct age_writer **ret, struct err *e);
void age_writer_destroy(struct age_writer *w); /* NULL is fine; does not end the file */

/*
 * Appends content. Up to a whole chunk is held back, because the last chunk is encrypted
 * differently.
 *
 * A chunk is never encrypted again with other content, whatever happens to the output: that would
 * reveal both contents (the key stream and Poly1305's key would be the same). So if the sink fails,
 * it is asked to cut off its part of the chunk, which releases the space it reserves for the end,
 * and then gets the very same bytes again; age_writer_is_full() is true from then on. If that fails
 * too, so does this call and every later one.
 */
enum status age_writer_write(struct age_writer *w, const void *p, size_t len, struct err *e);

/* The last chunk. Nothing can be written after it. */
enum status age_writer_end(struct age_writer *w, struct err *e);

/*
 * The sink failed, and then accepted the same bytes with the space for the end. `e` says how it
 * failed.
 */
bool age_writer_is_full(const struct age_writer *w, struct err *e);
/* No more can be written: the sink failed, or the end was written. */
bool age_writer_is_over(const struct age_writer *w);
/* Bytes of whole chunks in the sink. */
uint64_t age_writer_stored(const struct age_writer *w);

/*
 * What was written so far, decrypted, to be read until the next write: `stored` is the sink's
 * content, borrowed. Owned by the writer.
 */
struct blob *age_writer_blob(struct age_writer *w, struct blob *stored);

/*
 * Reading
 */

/*
 * Does it begin like an age file? `p`: its first `len` bytes, AGE_MAGIC_SIZE if it has that many.
 */
#define AGE_MAGIC      "age-encryption.org/"
#define AGE_MAGIC_SIZE (sizeof(AGE_MAGIC) - 1)

static inline bool age_is_magic(const void *p, size_t len)
{
	return len >= AGE_MAGIC_SIZE && !__builtin_memcmp(p, AGE_MAGIC, AGE_MAGIC_SIZE);
}

/* How the encryption of a file ends. */
struct age_end {
	bool whole;      /* with the last chunk */
	uint64_t cut;    /* if not whole: useless bytes after the last whole chunk */
	bool damaged;    /* it has chunks that are not this file's content */
	uint64_t offset; /* of the first of these in the stored file */
};

/*
 * A file that can be read at any offset: its content up to the end or, if that is missing, all
 * whole chunks.
 *
 * A damaged chunk reads as zeros, so that what follows can be read: this is for content with hashes
 * of its own. Content whose tag does not match is never returned.
 */
struct age_reader;

/*
 * ST_CORRUPT for a header that breaks a rule, or was cut off or changed; ST_INPUT if it is for
 * others: no identity matches, or it has a passphrase. `stored` stays the caller's.
 */
enum status age_reader_create(struct blob *stored, const struct age_identities *x,
			      struct age_reader **ret, struct err *e);
void age_reader_destroy(struct age_reader *r); /* NULL is fine */
/* Any number of threads may read it, if they may read `stored`. */
struct blob *age_reader_blob(struct age_reader *r);
void age_reader_end(struct age_reader *r, struct age_end *ret); /* damage so far */

/* The same for what can only be read forward. */
struct age_stream;

enum status age_stream_create(struct blob *stored, const struct age_identities *x,
			      struct age_stream **ret, struct err *e);
void age_stream_destroy(struct age_stream *s); /* NULL is fine */
/* The next chunk, at most AGE_CHUNK bytes, valid until the next call. ST_END: that was all. */
enum status age_stream_next(struct age_stream *s, const uint8_t **ret, size_t *ret_len,
			    struct err *e);
void age_stream_end(const struct age_stream *s, struct age_end *ret); /* after ST_END */

/*
 * The content size of a whole file with `body` bytes after its nonce; false if no file has that
 * size.
 */
bool age_content_size(uint64_t body, uint64_t *ret);

#endif
