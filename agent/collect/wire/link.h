/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes to the other end and back. tls_link.h is the real one; socket_link.h sends
 * plain bytes, for tests. One thread at a time.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_LINK_H
#define RAMSEAL_AGENT_COLLECT_WIRE_LINK_H

#include <stdbool.h>

#include "agent/collect/wire/socket.h"

struct link;

/*
 * What a receiver without a free place sends before any TLS: the alert user_canceled, which means
 * that there was no protocol error (RFC 8446, 6.1), but as a fatal one, which nobody else sends
 * there. Anybody on the wire can send it, but could just as well cut the connection.
 */
#define LINK_BUSY { 21, 3, 3, 0, 2, 2, 90 }

struct link_ops {
	/*
	 * At least one byte, and at most `room`. ST_OK with *got of 0: none came within `wait_ms`.
	 * ST_END: the other end has closed in an orderly way. ST_OUTPUT: the connection is broken.
	 */
	enum status (*read)(struct link *l, void *p, size_t room, unsigned wait_ms, size_t *got,
			    struct err *e);
	/* Writes everything. ST_OUTPUT: broken, or no progress for `stall_ms`. */
	enum status (*write)(struct link *l, const void *p, size_t len, struct err *e);
	/* Nothing more will be written; the other end reads ST_END. Reading goes on. */
	void (*end)(struct link *l);
	void (*destroy)(struct link *l);
};

struct link_options {
	unsigned stall_ms;
	bool (*stop)(void *arg); /* true: give up at once, with ST_INTERRUPTED; NULL: never */
	void (*sent)(void *arg, size_t len); /* bytes sent; may sleep; or NULL */
	void *arg;
};

/* Each kind's own struct begins with this. */
struct link {
	const struct link_ops *ops;
	struct link_options options;
	net_socket socket; /* owned, unless the link's creator says otherwise */
};

static inline enum status link_read(struct link *l, void *p, size_t room, unsigned wait_ms,
				    size_t *got, struct err *e)
{
	return l->ops->read(l, p, room, wait_ms, got, e);
}

static inline enum status link_write(struct link *l, const void *p, size_t len, struct err *e)
{
	return l->ops->write(l, p, len, e);
}

static inline void link_destroy(struct link *l)
{
	if (l)
		l->ops->destroy(l);
}

/*
 * For implementations: waits until the socket is ready, or for `ms` (ST_END). ST_INTERRUPTED by
 * stop().
 */
enum status link_wait(const struct link *l, enum socket_event what, unsigned ms, struct err *e);

#endif
