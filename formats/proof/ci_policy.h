/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows' code integrity policies as they lie on disk (.cip, .p7b): which one it is, its version,
 * and whether its rules for drivers name a certain file. Whether it is in force no file tells.
 *
 * Microsoft documents the XML that such a file is compiled from (cipolicy.xsd), and the bits of the
 * options ("Understanding App Control event IDs", event 3099), but not the binary form. Of that:
 * ConvertTo-WDACCodeIntegrityPolicy, by M. Graeber and J. Forshaw (gist.github.com/mattifestation,
 * 92e545bf1ee5b68eeb71d254cec2f78e), Get-CodeIntegrityPolicy in itm4n's PrivescCheck, and
 * SspToBar.ps1 in Rufus, which agree; and "System Integrity Policy Transformations", in the wiki of
 * HotCakeX/Harden-Windows-Security. They know the formats 2 to 9. Later formats add blocks at the
 * end, which nothing here reads.
 */
#ifndef RAMSEAL_FORMATS_CI_POLICY_H
#define RAMSEAL_FORMATS_CI_POLICY_H

#include <stdbool.h>

#include "formats/base/err.h"

#define CI_GUID_SIZE    sizeof("{784C4414-79F4-4C32-A6A5-F0FB42A51D0D}")
#define CI_NAME_MAX     128
#define CI_POLICY_MAX   ((size_t)16 << 20) /* the list of vulnerable drivers has 0.3 MB */

/* "Enabled:Audit Mode", bit 16 of the options of event 3099. */
#define CI_OPTION_AUDIT 0x00010000

struct ci_policy {
	bool is_signed; /* it is wrapped in a signature, which is not verified */
	uint32_t format;
	char type[CI_GUID_SIZE]; /* in capitals, with braces */
	uint32_t options;
	uint16_t version[4]; /* 10.0.27770.0: as people write it */
	uint32_t usages, rules, signers, scenarios;
	const uint8_t *body; /* in the caller's bytes */
	size_t body_len;
};

/* The header alone. ST_CORRUPT: it is none, is cut short, or has a format that is not known. */
enum status ci_policy_read(const void *p, size_t len, struct ci_policy *ret, struct err *e);

/* A file's hash, or that of a certificate. */
#define CI_DIGEST_MAX 32
struct ci_digest {
	uint8_t at[CI_DIGEST_MAX];
	size_t len; /* 20: SHA-1, 32: SHA-256 */
};

/* What a driver's file is known by. Zero-initialise. */
#define CI_HASHES_MAX       2
#define CI_CERTIFICATES_MAX 48
struct ci_subject {
	struct ci_digest hashes[CI_HASHES_MAX]; /* of the file, as a signature takes them */
	size_t n_hashes;
	/* Of the signed part of each certificate, with the algorithm that it is signed with. */
	struct ci_digest certificates[CI_CERTIFICATES_MAX];
	size_t n_certificates;
};

/* CI_MAYBE: a rule names one of its certificates, and has conditions that are not judged here. */
enum ci_verdict { CI_NO, CI_MAYBE, CI_YES };

struct ci_match {
	enum ci_verdict allowed, denied; /* by rules for drivers */
	bool by_name;                    /* there are rules for drivers that go by a file's name */
	/* As its author calls it; "" where it does not say. */
	char name[CI_NAME_MAX], id[CI_NAME_MAX];
};

/* ST_CORRUPT: its rules cannot be read to their end; then nothing of *ret is to be believed. */
enum status ci_policy_match(const struct ci_policy *p, const struct ci_subject *s,
			    struct ci_match *ret, struct err *e);

#endif
