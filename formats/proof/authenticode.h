/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who signed a Windows program or driver, according to the file itself: all signatures, including
 * those nested in the first one, which Windows's own dialogs show and most tools do not. Nothing is
 * verified.
 *
 * Sources: "Windows Authenticode Portable Executable Signature Format" (Microsoft, 2008) for where
 * a signature lies; "PE Format" (Microsoft Learn), the attribute certificate table; RFC 5652 (CMS),
 * RFC 5280 (certificates) and X.690 (DER). A second signature is an unsigned attribute of the
 * first, SPC_NESTED_SIGNATURE_OBJID (wintrust.h), whose values are signatures of the same form.
 */
#ifndef RAMSEAL_FORMATS_AUTHENTICODE_H
#define RAMSEAL_FORMATS_AUTHENTICODE_H

#include <stdbool.h>

#include "formats/base/err.h"

#define AUTHENTICODE_NAME_MAX    128
#define AUTHENTICODE_SIGNERS_MAX 8

struct authenticode_signer {
	/* UTF-8: the certificate's common name; "" if it has none. */
	char name[AUTHENTICODE_NAME_MAX];
	const char *digest; /* "sha1", "sha256", ...; "other" */
	bool nested;        /* a signature within the first one */
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

#endif
