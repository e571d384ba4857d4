/* SPDX-License-Identifier: Apache-2.0 */
/* A link that sends plain bytes. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SOCKET_LINK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SOCKET_LINK_H

#include "agent/collect/wire/link.h"

/* Owns the socket from now on, even after a failure. */
enum status socket_link_create(net_socket s, const struct link_options *o, struct link **ret,
			       struct err *e);

#endif
