/* SPDX-License-Identifier: Apache-2.0 */
/* Who signed a driver's file: for the manifest, `ramseal check` and `driver inspect`. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_DRIVER_SIGNERS_H
#define RAMSEAL_AGENT_COLLECT_HOST_DRIVER_SIGNERS_H

#include <jansson.h>
#include <stddef.h>

#include "formats/base/sha256.h"
#include "formats/proof/ci_policy.h"

/*
 * [{"name":, "digest":, "nested":, "whql":, "attestation":, "class":, "chain": [], "root":,
 * "time":, "covers_file":}] as authenticode.h has them, in the file's order; empty: it is not
 * signed. "time" is null without a time stamp; "covers_file" says whether the signature is over
 * these bytes, null where it uses a hash that is not computed here. Null: the bytes do not have
 * this SHA-256 (lower-case hexadecimal digits; what was hashed is what is loaded, and no other file
 * may speak for it), are no program, or its signature is damaged. The caller owns it; NULL if
 * memory ran out.
 */
json_t *driver_signers_json(const void *p, size_t len, const char *sha256);

/* The same for a file; also null if it cannot be read. */
json_t *driver_signers_of_file(const char *path, const char *sha256);

/* By what policies and lists know the file; empty if it is no program. ST_NOMEM alone fails. */
enum status driver_subject(const void *p, size_t len, struct ci_subject *ret, struct err *e);

/* A whole file of at most DRIVER_MAX, for free(). ST_INPUT if it is larger, or cannot be read. */
#define DRIVER_MAX ((uint64_t)16 << 20)
enum status driver_bytes_of_file(const char *path, uint8_t **ret, size_t *ret_len, struct err *e);

/*
 * What the file itself tells, on any system: {"path":, "bytes":, "sha256":, "version": of WinPmem
 * or null, "authenticode_sha256":, "authenticode_sha1":, "signers":}. ST_INPUT if it is no program
 * or its signature is damaged. The caller owns *ret.
 */
enum status driver_describe(const char *path, const void *p, size_t len, json_t **ret,
			    struct err *e);

/*
 * "Somebody, and Somebody else (nested)": all names in `signers` of such a driver, or the `signer`
 * that Windows names, or "no signer known".
 */
#define DRIVER_SIGNERS_MAX 256
void driver_signers_text(const json_t *driver, char ret[static DRIVER_SIGNERS_MAX]);

#endif
