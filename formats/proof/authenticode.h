/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who signed a Windows program or driver, as its own file says: all signatures, also those that are
 * nested in the first one, which Windows' own dialogs show and most tools do not. No signature is
 * verified; whether it is over this file can be found out (authenticode_ranges()).
 *
 * Sources: "Windows Authenticode Portable Executable Signature Format" (Microsoft, 2008) for where
 * a signature lies and which bytes it is over; "PE Format" (Microsoft Learn), the attribute
 * certificate table; RFC 5652 (CMS), RFC 5280 (certificates) and X.690 (DER). A second signature is
 * an unsigned attribute of the first, SPC_NESTED_SIGNATURE_OBJID (wintrust.h), whose values are
 * signatures of the same form. So is a time stamp: a counter-signature (RFC 5652, 11.4), or a token
 * (RFC 3161) as szOID_RFC3161_counterSign (wincrypt.h).
 */
#ifndef RAMSEAL_FORMATS_AUTHENTICODE_H
#define RAMSEAL_FORMATS_AUTHENTICODE_H

#include <stdbool.h>

#include "formats/base/err.h"

#define AUTHENTICODE_NAME_MAX    128
#define AUTHENTICODE_SIGNERS_MAX 8
#define AUTHENTICODE_CHAIN_MAX   6 /* the longest in a driver that we know has 3 */

/*
 * What kind of signature the kernel would take it for, by the names in its certificates.
 *
 * "Cross-Certificates for Kernel Mode Code Signing" (Microsoft Learn): the chain ends at a
 * certificate that Microsoft Code Verification Root issued for the root of an authority.
 */
enum authenticode_class {
	AUTHENTICODE_OTHER,    /* of an authority for which the file has no cross-certificate */
	AUTHENTICODE_WHCP,     /* of Microsoft's hardware program, after its tests */
	AUTHENTICODE_ATTESTED, /* of the same, without them */
	AUTHENTICODE_CROSS,    /* cross-signed */
	AUTHENTICODE_TEST,     /* its certificate signed itself, or is of a root for tests */
};

/* "whcp", "attested", "cross-signed", "test", "other". */
const char *authenticode_class_name(enum authenticode_class c);

/* One of a chain. `body` is the part that its issuer signed (TBSCertificate), in the file. */
struct authenticode_certificate {
	char name[AUTHENTICODE_NAME_MAX];
	const uint8_t *body;
	size_t body_len;
	const char *digest; /* with which it is signed; "other" */
};

struct authenticode_signer {
	/* UTF-8: the certificate's common name; "" if it has none. */
	char name[AUTHENTICODE_NAME_MAX];
	const char *digest; /* "sha1", "sha256", ...; "other" */
	bool nested;        /* a signature within the first one */
	enum authenticode_class class;
	/* From the signer's own upwards, as far as the file has them; and who issued the last. */
	struct authenticode_certificate chain[AUTHENTICODE_CHAIN_MAX];
	size_t chain_len;
	char root[AUTHENTICODE_NAME_MAX];
	/* The time stamp, ns since 1970-01-01T00:00:00Z, by its own authority's clock; 0: none. */
	uint64_t time;
	/* The hash of the file that it signs, in the file; NULL: it tells none. */
	const uint8_t *imprint;
	size_t imprint_len;
	const char *imprint_digest;
	/*
	 * Usages of Microsoft's hardware program that the certificate has ("Attestation signing a
	 * kernel driver", Microsoft Learn): it passed the tests of the hardware lab kit, or was
	 * only attested. A certificate may name both.
	 */
	bool whql;        /* 1.3.6.1.4.1.311.10.3.5 */
	bool attestation; /* 1.3.6.1.4.1.311.10.3.5.1 */
};

struct authenticode {
	struct authenticode_signer at[AUTHENTICODE_SIGNERS_MAX];
	size_t count;
	size_t more; /* signers that did not fit */
};

/*
 * All signers of the PE file of `len` bytes at `p`, in the file's order. Without a signature it is
 * ST_OK and `count` is 0. ST_CORRUPT: it is not a PE file, or its signature cannot be read to its
 * end; `ret` has what was read before that.
 */
enum status authenticode_read(const void *p, size_t len, struct authenticode *ret, struct err *e);

/*
 * The bytes that a signature is over, in their order (the document of 2008, "Calculating the PE
 * Image Hash"): all but the checksum, the entry of the certificate table, and that table. False: it
 * is no PE file, or the table is not within it.
 */
#define AUTHENTICODE_RANGES 4
struct authenticode_range {
	size_t at, len;
};
bool authenticode_ranges(const void *p, size_t len,
			 struct authenticode_range ret[static AUTHENTICODE_RANGES]);

#endif
