/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not be seen: keys, tokens, and addresses that are credentials themselves (a presigned
 * URL, a SAS URL). It is in locked memory where the system allows that, wiped when it goes, and
 * never part of a message: what is shown of an address is made by address_shown().
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SECRET_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SECRET_H

#include <stdbool.h>

#include "formats/base/err.h"

struct secret {
	char *text; /* NUL-terminated; NULL: none */
	size_t len;
};

/* A longer one is refused: no key, token or URL has so many bytes. */
#define SECRET_MAX (16 * 1024)

/* Copies. ST_NOMEM. */
enum status secret_set(struct secret *s, const char *text, size_t len, struct err *e);

/*
 * Reads one from where an argument says: "@PATH", "fd:N" (a descriptor that was inherited, and is
 * closed then) or "-" (stdin, to its end). White space around it is cut off. ST_USAGE for an
 * argument that is the secret itself: it would be in every list of processes.
 */
enum status secret_read(const char *from, struct secret *ret, struct err *e);

/* Of a variable of the environment, which stays there; false if it is not set, or empty. */
bool secret_from_environment(const char *name, struct secret *ret, struct err *e);

void secret_wipe(struct secret *s); /* fine on { 0 } */

/* For any bytes. */
void memory_wipe(void *p, size_t len);

#endif
