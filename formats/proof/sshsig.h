/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of files as `ssh-keygen -Y sign` makes them, with Ed25519 keys, including those on
 * security tokens. Sources: OpenSSH's PROTOCOL.sshsig (the signature), PROTOCOL.u2f (tokens), RFC
 * 8709 (ssh-ed25519), RFC 4251, section 5 (strings and integers). libsodium does the arithmetic.
 */
#ifndef RAMSEAL_FORMATS_SSHSIG_H
#define RAMSEAL_FORMATS_SSHSIG_H

#include "formats/base/bytes.h"
#include "formats/base/err.h"

/* RSA keys and signatures of 16,384 bits, the largest of OpenSSH, take 2 KiB each. */
#define SSHSIG_BLOB_MAX 8192
#define SSHSIG_FILE_MAX ((size_t)16 << 10) /* bytes of the file: base64 with its armor */

struct sshsig {
	uint8_t blob[SSHSIG_BLOB_MAX];
	/* Within `blob`: */
	struct cursor key;  /* public key, as in authorized_keys */
	struct cursor type; /* its type: "ssh-ed25519" */
	struct cursor name_space;
	struct cursor hash; /* "sha512" */
	struct cursor signature;
};

/* Parses the armored file. ST_INPUT: it is not such a signature. `ret` must not be copied. */
enum status sshsig_parse(const void *p, size_t len, struct sshsig *ret, struct err *e);

/*
 * ST_OK: the holder of the private key signed these bytes for that purpose; ssh_signers_find() says
 * who that is. ST_MISMATCH: not so. ST_INPUT: a kind of key or hash that is not supported here;
 * ssh-keygen supports them all, and the message says so.
 */
enum status sshsig_verify(const struct sshsig *s, const char *name_space, const void *message,
			  size_t len, struct err *e);

/* "SHA256:…" of the public key, as ssh-keygen -l shows it. */
#define SSHSIG_FINGERPRINT_SIZE sizeof("SHA256:0123456789012345678901234567890123456789012")
void sshsig_fingerprint(const struct sshsig *s, char ret[static SSHSIG_FINGERPRINT_SIZE]);

/* The next string of RFC 4251, section 5; empty, with `bad` set, if there is none. */
struct cursor sshsig__string(struct cursor *c);
bool sshsig__is(struct cursor c, const char *text);

#endif
