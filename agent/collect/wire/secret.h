/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets: keys, tokens, and addresses that are credentials themselves (a presigned URL, a SAS
 * URL). They are in locked memory if the system allows it, wiped when freed, and never part of a
 * message: address_shown() makes the printable form of an address.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SECRET_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SECRET_H

#include <stdbool.h>

#include "formats/base/err.h"

struct secret {
	char *text; /* NUL-terminated; NULL: none */
	size_t len;
};

/* Longer ones are refused: no key, token or URL is that long. */
#define SECRET_MAX (16 * 1024)

/* Copies. ST_NOMEM. */
enum status secret_set(struct secret *s, const char *text, size_t len, struct err *e);

/*
 * Reads a secret from the place an argument names: "@PATH", "fd:N" (an inherited descriptor, which
 * is then closed) or "-" (stdin, to its end). Surrounding white space is removed. ST_USAGE if the
 * argument is the secret itself: every list of processes would show it.
 */
enum status secret_read(const char *from, struct secret *ret, struct err *e);

/* From an environment variable, which stays set; false if it is unset or empty. */
bool secret_from_environment(const char *name, struct secret *ret, struct err *e);

void secret_wipe(struct secret *s); /* fine on { 0 } */

/* Wipes any bytes. */
void memory_wipe(void *p, size_t len);

#endif
