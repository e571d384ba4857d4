/* SPDX-License-Identifier: Apache-2.0 */
/* All signers of a driver's file, for the manifest and for `ramseal check`. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_DRIVER_SIGNERS_H
#define RAMSEAL_AGENT_COLLECT_HOST_DRIVER_SIGNERS_H

#include <jansson.h>
#include <stddef.h>

/*
 * [{"name":, "digest":, "nested":, "whql":, "attestation":}] as authenticode.h has them, in the
 * file's order; empty if it is not signed. Null if the bytes do not have this SHA-256 (in
 * lower-case hexadecimal: only the file that was hashed is loaded), are not a program, or have a
 * damaged signature. The caller owns it; NULL if out of memory.
 */
json_t *driver_signers_json(const void *p, size_t len, const char *sha256);

/* The same for a file; also null if it cannot be read. */
json_t *driver_signers_of_file(const char *path, const char *sha256);

/*
 * "Somebody, and Somebody else (nested)": all names in `signers` of such a driver, or the `signer`
 * that Windows names, or "no signer known".
 */
#define DRIVER_SIGNERS_MAX 256
void driver_signers_text(const json_t *driver, char ret[static DRIVER_SIGNERS_MAX]);

#endif
