/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/collect/wire/socket_address.h"

enum status socket_adopt(net_socket s, struct err *e)
{
	const int fd = (int)s, flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return err_from_errno(e, ST_OUTPUT, errno, "socket");
	/* Fails on what is not TCP, which has nothing to hold back either. */
	(void)!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	return ST_OK;
}

void socket_close(net_socket s)
{
	if (s != NO_SOCKET)
		close((int)s);
}

enum status socket_wait(net_socket s, enum socket_event what, unsigned ms, struct err *e)
{
	struct pollfd p = { .fd = (int)s, .events = what == SOCKET_READABLE ? POLLIN : POLLOUT };
	const int n = poll(&p, 1, (int)ms);

	if (n < 0 && errno != EINTR)
		return err_from_errno(e, ST_OUTPUT, errno, "poll");
	return n > 0 ? ST_OK : ST_END;
}

enum status socket_wait_any(const net_socket *s, size_t n, unsigned ms, bool *ret, struct err *e)
{
	_cleanup_free_ struct pollfd *p = calloc(n, sizeof(*p));
	int ready;

	if (!p)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = (int)s[i], .events = POLLIN };
	ready = poll(p, n, (int)ms);
	if (ready < 0 && errno != EINTR)
		return err_from_errno(e, ST_OUTPUT, errno, "poll");
	for (size_t i = 0; i < n; i++)
		ret[i] = ready > 0 && p[i].revents;
	return ready > 0 ? ST_OK : ST_END;
}

static enum status judge_transfer(ssize_t n, size_t *done, const char *what, struct err *e)
{
	*done = n > 0 ? (size_t)n : 0;
	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return ST_OK;
	return err_from_errno(e, ST_OUTPUT, errno, "%s", what);
}

enum status socket_read(net_socket s, void *p, size_t room, size_t *done, struct err *e)
{
	const ssize_t n = recv((int)s, p, room, 0);

	*done = 0;
	return n ? judge_transfer(n, done, "receive", e) : ST_END;
}

enum status socket_write(net_socket s, const void *p, size_t len, size_t *done, struct err *e)
{
	return judge_transfer(send((int)s, p, len, MSG_NOSIGNAL), done, "send", e);
}

enum status socket_peek(net_socket s, uint8_t *ret, bool *there, struct err *e)
{
	const ssize_t n = recv((int)s, ret, 1, MSG_PEEK);
	size_t done;
	const enum status st = n ? judge_transfer(n, &done, "receive", e) : ST_END;

	*there = !st && done;
	return st;
}

void socket_end(net_socket s)
{
	shutdown((int)s, SHUT_WR);
}

static int listening_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int set_only_v6(int fd, const union socket_address *at, int only)
{
	if (at->any.sa_family == AF_INET)
		return 0;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
}

/* With IPv6 comes IPv4, as mapped addresses; a kernel with ipv6.disable=1 has that alone. */
enum status socket_listen(const char *at, net_socket *ret, struct err *e)
{
	union socket_address address;
	bool only_v6;
	enum status st = socket_parse_address(at, &address, &only_v6, e);
	int fd;

	*ret = NO_SOCKET;
	if (st)
		return st;
	fd = listening_socket(AF_INET6);
	if (fd < 0 && errno == EAFNOSUPPORT && !only_v6) {
		socket_address_to_v4(&address);
		fd = listening_socket(AF_INET);
	}
	if (fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) ||
	    set_only_v6(fd, &address, only_v6) ||
	    bind(fd, &address.any, socket_address_size(&address)) || listen(fd, SOCKET_BACKLOG)) {
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", at);
		close(fd);
		return st;
	}
	*ret = fd;
	return ST_OK;
}

void socket_local(net_socket s, char ret[static SOCKET_ADDRESS_MAX])
{
	union socket_address address = { 0 };
	socklen_t len = sizeof(address);

	(void)!getsockname((int)s, &address.any, &len);
	socket_address_text(&address, ret);
}

enum status socket_accept(net_socket s, net_socket *ret, char ret_from[static SOCKET_ADDRESS_MAX],
			  struct err *e)
{
	union socket_address address = { 0 };
	socklen_t len = sizeof(address);
	const int fd = accept4((int)s, &address.any, &len, SOCK_CLOEXEC);
	enum status st;

	*ret = NO_SOCKET;
	/* Callers that have gone again are no failure of ours (accept(2)). */
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM
			       ? err_from_errno(e, ST_OUTPUT, errno, "accept")
			       : ST_END;
	socket_address_text(&address, ret_from);
	st = socket_adopt(fd, e);
	if (st)
		close(fd);
	else
		*ret = fd;
	return st;
}
