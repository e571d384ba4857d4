/* SPDX-License-Identifier: Apache-2.0 */
#include <winsock2.h>
#include <ws2tcpip.h>

#include "agent/collect/wire/socket.h"
#include "agent/collect/wire/socket_address.h"
#include "formats/base/os.h"
#include "formats/base/win32.h"

static enum status winsock_failed(struct err *e, const char *what)
{
	return err_from_win32(e, ST_OUTPUT, (DWORD)WSAGetLastError(), "%s", what);
}

/* Once for each user is once too often at most: they are counted (WSAStartup). */
static enum status start_winsock(struct err *e)
{
	WSADATA data;
	const int code = WSAStartup(MAKEWORD(2, 2), &data);

	return code ? err_from_win32(e, ST_OUTPUT, (DWORD)code, "Winsock") : ST_OK;
}

enum status socket_adopt(net_socket s, struct err *e)
{
	if (ioctlsocket((SOCKET)s, FIONBIO, &(u_long){ 1 }))
		return winsock_failed(e, "socket");
	SetHandleInformation((HANDLE)s, HANDLE_FLAG_INHERIT, 0);
	setsockopt((SOCKET)s, IPPROTO_TCP, TCP_NODELAY, (const char *)&(int){ 1 }, sizeof(int));
	return ST_OK;
}

void socket_close(net_socket s)
{
	if (s != NO_SOCKET)
		closesocket((SOCKET)s);
}

enum status socket_wait(net_socket s, enum socket_event what, unsigned ms, struct err *e)
{
	WSAPOLLFD p = { .fd = (SOCKET)s,
			.events = what == SOCKET_READABLE ? POLLRDNORM : POLLWRNORM };
	const int n = WSAPoll(&p, 1, (int)ms);

	if (n < 0)
		return winsock_failed(e, "poll");
	return n ? ST_OK : ST_END;
}

enum status socket_wait_any(const net_socket *s, size_t n, unsigned ms, bool *ret, struct err *e)
{
	_cleanup_free_ WSAPOLLFD *p = calloc(n, sizeof(*p));
	int ready;

	if (!p)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++)
		p[i] = (WSAPOLLFD){ .fd = (SOCKET)s[i], .events = POLLRDNORM };
	ready = WSAPoll(p, (ULONG)n, (int)ms);
	if (ready < 0)
		return winsock_failed(e, "poll");
	for (size_t i = 0; i < n; i++)
		ret[i] = ready && p[i].revents;
	return ready ? ST_OK : ST_END;
}

static enum status judge_transfer(int n, size_t *done, const char *what, struct err *e)
{
	*done = n > 0 ? (size_t)n : 0;
	return n >= 0 || WSAGetLastError() == WSAEWOULDBLOCK ? ST_OK : winsock_failed(e, what);
}

enum status socket_read(net_socket s, void *p, size_t room, size_t *done, struct err *e)
{
	const int n = recv((SOCKET)s, p, (int)MIN(room, IO_MAX), 0);

	*done = 0;
	return n ? judge_transfer(n, done, "receive", e) : ST_END;
}

enum status socket_write(net_socket s, const void *p, size_t len, size_t *done, struct err *e)
{
	return judge_transfer(send((SOCKET)s, p, (int)MIN(len, IO_MAX), 0), done, "send", e);
}

enum status socket_peek(net_socket s, uint8_t *ret, bool *there, struct err *e)
{
	const int n = recv((SOCKET)s, (char *)ret, 1, MSG_PEEK);
	size_t done;
	const enum status st = n ? judge_transfer(n, &done, "receive", e) : ST_END;

	*there = !st && done;
	return st;
}

void socket_end(net_socket s)
{
	shutdown((SOCKET)s, SD_SEND);
}

static int set_only_v6(SOCKET s, const union socket_address *at, int only)
{
	if (at->any.sa_family == AF_INET)
		return 0;
	return setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&only, sizeof(only));
}

/* With IPv6 comes IPv4, as mapped addresses; Windows can be without it. */
enum status socket_listen(const char *at, net_socket *ret, struct err *e)
{
	union socket_address address;
	bool only_v6;
	SOCKET s;
	enum status st = socket_parse_address(at, &address, &only_v6, e);

	*ret = NO_SOCKET;
	if (!st)
		st = start_winsock(e);
	if (st)
		return st;
	s = socket(AF_INET6, SOCK_STREAM, 0);
	if (s == INVALID_SOCKET && WSAGetLastError() == WSAEAFNOSUPPORT && !only_v6) {
		socket_address_to_v4(&address);
		s = socket(AF_INET, SOCK_STREAM, 0);
	}
	if (s == INVALID_SOCKET)
		return winsock_failed(e, "socket");
	/* Nobody else may listen there beside us (winsock, SO_EXCLUSIVEADDRUSE). */
	if (setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&(int){ 1 },
		       sizeof(int)) ||
	    set_only_v6(s, &address, only_v6) ||
	    bind(s, &address.any, socket_address_size(&address)) || listen(s, SOMAXCONN)) {
		st = winsock_failed(e, at);
		closesocket(s);
		return st;
	}
	st = socket_adopt((net_socket)s, e);
	if (st)
		closesocket(s);
	else
		*ret = (net_socket)s;
	return st;
}

void socket_local(net_socket s, char ret[static SOCKET_ADDRESS_MAX])
{
	union socket_address address = { 0 };
	int len = sizeof(address);

	getsockname((SOCKET)s, &address.any, &len);
	socket_address_text(&address, ret);
}

enum status socket_accept(net_socket s, net_socket *ret, char ret_from[static SOCKET_ADDRESS_MAX],
			  struct err *e)
{
	union socket_address address = { 0 };
	int len = sizeof(address);
	const SOCKET caller = accept((SOCKET)s, &address.any, &len);
	enum status st;

	*ret = NO_SOCKET;
	/* Callers that have gone again are no failure of ours. */
	if (caller == INVALID_SOCKET)
		return WSAGetLastError() == WSAEMFILE || WSAGetLastError() == WSAENOBUFS
			       ? winsock_failed(e, "accept")
			       : ST_END;
	socket_address_text(&address, ret_from);
	st = socket_adopt((net_socket)caller, e);
	if (st)
		closesocket(caller);
	else
		*ret = (net_socket)caller;
	return st;
}
