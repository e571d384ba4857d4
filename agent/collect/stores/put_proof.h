/* SPDX-License-Identifier: Apache-2.0 */
/* Is the file on a server ours, as far as the server's own answer proves it? */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_PUT_PROOF_H
#define RAMSEAL_AGENT_COLLECT_STORES_PUT_PROOF_H

#include "agent/collect/wire/http.h"
#include "formats/base/io.h"

/*
 * `a` is its answer to a HEAD. True only if it has a hash of all of `b`, which is read for this:
 * SHA-256 in Repr-Digest (RFC 9530, 3), or an ETag that is the MD5, as object stores make it. A
 * length or a date proves nothing. `stop` of http_options ends the reading.
 */
bool put_is_proven(const struct http_answer *a, struct blob *b, const struct http_options *o);

#endif
