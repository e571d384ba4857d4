/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this program has a network, and what its libraries want before anything else. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_NETWORK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_NETWORK_H

#include <stdbool.h>

#include "formats/base/err.h"

/* Was it built with -Dnetwork=true? If not, there is no kind of remote,
 * and no http.h. */
bool network_built_in(void);

/*
 * Makes libcurl, Mbed TLS's PSA and c-ares (on Windows also Winsock) ready for all threads; again
 * is fine. ST_SYSTEM when there are no random numbers. http_create() and names_resolve() call it,
 * whoever uses Mbed TLS by itself does so first.
 */
enum status network_begin(struct err *e);

#endif
