/* SPDX-License-Identifier: Apache-2.0 */
/* Who signed a driver's file, all of them, for the manifest and for `ramseal check`. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_DRIVER_SIGNERS_H
#define RAMSEAL_AGENT_COLLECT_HOST_DRIVER_SIGNERS_H

#include <jansson.h>
#include <stddef.h>

/*
 * [{"name":, "digest":, "nested":, "whql":, "attestation":}] as authenticode.h has them, in the
 * file's order; empty: it is not signed. Null: the bytes do not have this SHA-256 (lower-case
 * hexadecimal digits; what was hashed is what is loaded, and no other file may speak for it), are
 * no program, or its signature is damaged. The caller owns it; NULL if memory ran out.
 */
json_t *driver_signers_json(const void *p, size_t len, const char *sha256);

/* The same of a file; null also where it cannot be read. */
json_t *driver_signers_of_file(const char *path, const char *sha256);

#endif
