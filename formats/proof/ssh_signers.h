/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may sign: the file that `ssh-keygen -Y verify -f` reads (ssh-keygen(1), ALLOWED SIGNERS).
 *
 *	PRINCIPALS [OPTIONS] KEYTYPE BASE64 [COMMENT]
 *
 * with the options cert-authority, namespaces="PATTERNS", valid-after="TIME" and
 * valid-before="TIME". Lines of certificate authorities never match: certificates are not
 * supported.
 */
#ifndef RAMSEAL_FORMATS_SSH_SIGNERS_H
#define RAMSEAL_FORMATS_SSH_SIGNERS_H

#include "formats/base/bytes.h"
#include "formats/base/err.h"

#define SSH_SIGNERS_MAX    ((size_t)1 << 20) /* bytes of the file */
#define SSH_PRINCIPALS_MAX 256

struct ssh_signer {
	char principals[SSH_PRINCIPALS_MAX]; /* as in the file, truncated if too long */
	unsigned line;
};

struct ssh_wanted {
	struct cursor key; /* as struct sshsig has it */
	const char *name_space;
	const char *principal; /* NULL: any that has this key */
	uint64_t time;         /* seconds since 1970: when the key must be valid */
};

/*
 * The first line that allows this key to sign for that purpose. ST_MISMATCH: none does, with the
 * reason for the last line that has the key. ST_INPUT: none does, and one is malformed. Malformed
 * lines are skipped, as by ssh-keygen. Times without a "Z" are in the local time zone.
 */
enum status ssh_signers_find(const void *p, size_t len, const struct ssh_wanted *w,
			     struct ssh_signer *ret, struct err *e);

#endif
