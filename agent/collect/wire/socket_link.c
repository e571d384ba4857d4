/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/socket_link.h"

static enum status plain_read(struct link *l, void *p, size_t room, unsigned wait_ms, size_t *got,
			      struct err *e)
{
	enum status st;

	*got = 0;
	st = link_wait(l, SOCKET_READABLE, wait_ms, e);
	if (st)
		return st == ST_END ? ST_OK : st;
	return socket_read(l->socket, p, room, got, e);
}

static enum status plain_write(struct link *l, const void *p, size_t len, struct err *e)
{
	const uint8_t *at = p;

	while (len) {
		size_t done;
		enum status st = link_wait(l, SOCKET_WRITABLE, l->options.stall_ms, e);

		if (st == ST_END)
			return err_set(e, ST_OUTPUT, "the other end accepts no more data");
		if (!st)
			st = socket_write(l->socket, at, len, &done, e);
		if (st)
			return st;
		if (l->options.sent)
			l->options.sent(l->options.arg, done);
		at += done;
		len -= done;
	}
	return ST_OK;
}

static void plain_end(struct link *l)
{
	socket_end(l->socket);
}

static void plain_destroy(struct link *l)
{
	socket_close(l->socket);
	free(l);
}

static const struct link_ops plain_ops = {
	.read = plain_read,
	.write = plain_write,
	.end = plain_end,
	.destroy = plain_destroy,
};

enum status socket_link_create(net_socket s, const struct link_options *o, struct link **ret,
			       struct err *e)
{
	struct link *l = calloc(1, sizeof(*l));
	enum status st = l ? socket_adopt(s, e) : err_nomem(e);

	if (st) {
		socket_close(s);
		free(l);
		return st;
	}
	*l = (struct link){ .ops = &plain_ops, .options = *o, .socket = s };
	*ret = l;
	return ST_OK;
}
