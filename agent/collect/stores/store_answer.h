/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by object stores: optional headers, checksums, and error answers, for which each store has
 * a list of its own.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_STORE_ANSWER_H
#define RAMSEAL_AGENT_COLLECT_STORES_STORE_ANSWER_H

#include "agent/collect/stores/remote.h"
#include "formats/base/sha256.h"

#define STORE_CODE_MAX 64

struct store_error {
	const char *code;    /* the store's code */
	enum remote_end end; /* is a retry worth it? */
	const char *advice;  /* in words, with what to do if known */
};

/*
 * Copies those of `n` headers that have a value to `ret`, which has room for all. Returns their
 * number.
 */
size_t store_headers(const struct http_header *all, size_t n, struct http_header *ret);

/* MD5 of a body in base64, as Content-MD5 has it. */
#define STORE_MD5_SIZE 25
enum status store_md5(const void *p, size_t len, char ret[static STORE_MD5_SIZE], struct err *e);

/* SHA-256 in base64, as x-amz-checksum-sha256 and Repr-Digest have it. */
#define STORE_SHA256_SIZE 45
void store_sha256(const uint8_t digest[static SHA256_SIZE], char ret[static STORE_SHA256_SIZE]);

/*
 * The <Code> of an answer, "" if it has none. Anything but letters and digits becomes '_', so that
 * nothing else from a server gets through.
 */
void store_code(const struct http_answer *a, char ret[static STORE_CODE_MAX]);
void store_clean_code(char code[static STORE_CODE_MAX]);

/*
 * How a failed request ended: by its code if that is one of the `n` in `known`, otherwise by its
 * status. `advice` is for unknown codes; it may be "".
 */
struct remote_result store_judge(const struct http_answer *a, const char *code,
				 const struct store_error *known, size_t n, const char *advice,
				 struct err *e);

#endif
