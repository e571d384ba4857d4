/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this program has networking, and the initialisation of its libraries. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_NETWORK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_NETWORK_H

#include <stdbool.h>

#include "formats/base/err.h"

/* Was it built with -Dnetwork=true? If not, there is no kind of remote,
 * and no http.h. */
bool network_built_in(void);

/*
 * Initialises libcurl, Mbed TLS's PSA and c-ares (on Windows also Winsock) for all threads; can be
 * repeated. ST_SYSTEM if there are no random numbers. http_create() and names_resolve() call it;
 * code that uses Mbed TLS directly must call it first.
 */
enum status network_begin(struct err *e);

#endif
