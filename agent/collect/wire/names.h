/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves host names with c-ares. Only the name servers and search domains of the host's
 * configuration are used (resolv.conf, on Windows those of its adapters), because they are nowhere
 * else. /etc/hosts and HOSTALIASES are not read, LOCALDOMAIN and RES_OPTIONS are removed from the
 * environment, and no module is loaded. c-ares 1.34, unlike 1.18, always opens nsswitch.conf,
 * netsvc.conf and svc.conf too, but ignores their content. So whoever controls the host or its name
 * server controls the address of a name; the pin or the certificate proves who is there.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_NAMES_H
#define RAMSEAL_AGENT_COLLECT_WIRE_NAMES_H

#include <stdbool.h>

#include "formats/base/err.h"

#define NAMES_MAX         8  /* addresses of one name; more are left out */
#define NAMES_ADDRESS_MAX 46 /* "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255" */

struct names {
	size_t n;
	char at[NAMES_MAX][NAMES_ADDRESS_MAX]; /* "192.0.2.1", "2001:db8::1": best first */
};

struct names_options {
	unsigned timeout_s; /* in total; 0: 30 s */
	bool (*stop)(
		void *arg); /* true: ST_INTERRUPTED; asked a few times each second. NULL: never */
	void *arg;
};

/*
 * `host` is a name, or an address, which is then the result. "localhost" is 127.0.0.1 and ::1.
 * ST_OUTPUT if there is none; *again: a name server was silent or failing and may answer later.
 */
enum status names_resolve(const char *host, const struct names_options *o, struct names *ret,
			  bool *again, struct err *e);

/* "ADDRESS:PORT" of name servers to use instead of the host's, for tests; NULL: the host's. */
extern const char *names__servers;

#endif
