/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/names.h"

#define CARES_NO_DEPRECATED /* ares_getsock(), which 1.18 has too */
#include <ares.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#define poll           WSAPoll
#define unsetenv(name) _putenv(name "=")
#else
#include <arpa/inet.h>
#include <poll.h>
#endif

#include "agent/collect/wire/network.h"
#include "agent/shared/program/clock.h"

const char *names__servers;

/* A server that is silent is asked again, c-ares says how long after. */
#define SERVER_TIMEOUT_MS 2000
#define SERVER_TRIES      3
#define STOP_POLL_MS      200

/* One less than c-ares tells of: the last one's bit is the sign of what it returns. */
#define SOCKETS_MAX       (ARES_GETSOCK_MAXNUM - 1)

struct lookup {
	int status; /* of c-ares */
	bool done;
	struct names *ret;
};

static void add_address(struct names *n, int family, const void *address)
{
	if (n->n < NAMES_MAX && inet_ntop(family, address, n->at[n->n], NAMES_ADDRESS_MAX))
		n->n++;
}

static bool is_numeric_address(const char *host, struct names *ret)
{
	uint8_t address[16];

	if (inet_pton(AF_INET, host, address) == 1)
		add_address(ret, AF_INET, address);
	else if (inet_pton(AF_INET6, host, address) == 1)
		add_address(ret, AF_INET6, address);
	return ret->n > 0;
}

static bool is_localhost(const char *host, struct names *ret)
{
	if (strcasecmp(host, "localhost"))
		return false;
	return is_numeric_address("127.0.0.1", ret) && is_numeric_address("::1", ret);
}

static void addresses_found(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct lookup *l = arg;

	l->status = status;
	l->done = true;
	for (struct ares_addrinfo_node *n = info ? info->nodes : NULL; n; n = n->ai_next) {
		if (n->ai_family == AF_INET)
			add_address(l->ret, AF_INET, &((struct sockaddr_in *)n->ai_addr)->sin_addr);
		else if (n->ai_family == AF_INET6)
			add_address(l->ret, AF_INET6,
				    &((struct sockaddr_in6 *)n->ai_addr)->sin6_addr);
	}
	ares_freeaddrinfo(info);
}

/*
 * "b": name servers only, so that hosts is not read, and nothing in nsswitch.conf and its like
 * counts (1.34.8, ares_sysconfig_apply()). No option keeps c-ares from the environment
 * (ares_init_by_environment()).
 */
static int channel_create(ares_channel *ret)
{
	char lookups[] = "b";
	struct ares_options o = {
		.flags = ARES_FLAG_NOALIASES,
		.timeout = SERVER_TIMEOUT_MS,
		.tries = SERVER_TRIES,
		.lookups = lookups,
	};
	int status;

	unsetenv("LOCALDOMAIN");
	unsetenv("RES_OPTIONS");
	status = ares_init_options(
		ret, &o, ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS);

	if (status == ARES_SUCCESS && names__servers)
		status = ares_set_servers_ports_csv(*ret, names__servers);
	return status;
}

/* Waits for c-ares' sockets, STOP_POLL_MS at most, and lets it go on. */
static void step_lookup(ares_channel channel)
{
	ares_socket_t sockets[SOCKETS_MAX];
	struct pollfd p[SOCKETS_MAX];
	struct timeval most = { .tv_usec = STOP_POLL_MS * 1000 }, wait;
	const int bits = ares_getsock(channel, sockets, SOCKETS_MAX);
	unsigned n = 0;

	for (unsigned i = 0; i < SOCKETS_MAX; i++) {
		const short events = (short)((ARES_GETSOCK_READABLE(bits, i) ? POLLIN : 0) |
					     (ARES_GETSOCK_WRITABLE(bits, i) ? POLLOUT : 0));

		if (events)
			p[n++] = (struct pollfd){ .fd = sockets[i], .events = events };
	}
	ares_timeout(channel, &most, &wait);
	if (n == 0)
		nanosleep(&(struct timespec){ .tv_nsec = wait.tv_usec * 1000L }, NULL);
	else
		poll(p, n, (int)(wait.tv_sec * 1000 + wait.tv_usec / 1000) + 1);
	ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* what has taken too long */
	for (unsigned i = 0; i < n; i++) {
		const bool failed = p[i].revents & (POLLERR | POLLHUP | POLLNVAL);

		ares_process_fd(channel,
				failed || p[i].revents & POLLIN ? p[i].fd : ARES_SOCKET_BAD,
				p[i].revents & POLLOUT ? p[i].fd : ARES_SOCKET_BAD);
	}
}

/* c-ares says ECANCELLED of what was stopped, and of what took too long. */
static bool run_lookup(ares_channel channel, const struct lookup *l, const struct names_options *o)
{
	const uint64_t end = clock__mono_ns() + (o->timeout_s ? o->timeout_s : 30) * NS_PER_SECOND;
	bool stopped = false;

	while (!l->done) {
		stopped = o->stop && o->stop(o->arg);
		if (stopped || clock__mono_ns() > end)
			ares_cancel(channel);
		else
			step_lookup(channel);
	}
	return stopped;
}

static enum status lookup_failed(const char *host, int status, bool *again, struct err *e)
{
	switch (status) {
	case ARES_ENOMEM:
		return err_nomem(e);
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
	case ARES_SUCCESS: /* without any address */
		return err_set(e, ST_OUTPUT, "%s: no such host", host);
	case ARES_EBADNAME:
	case ARES_EBADQUERY:
		return err_set(e, ST_OUTPUT, "%s: not a valid host name", host);
	case ARES_ETIMEOUT:
	case ARES_ECANCELLED:
	case ARES_ECONNREFUSED:
		*again = true;
		return err_set(e, ST_OUTPUT, "%s: no name server answered", host);
	default:
		*again = true;
		return err_set(e, ST_OUTPUT, "%s: the name server failed: %s", host,
			       ares_strerror(status));
	}
}

enum status names_resolve(const char *host, const struct names_options *o, struct names *ret,
			  bool *again, struct err *e)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC };
	struct lookup l = { .ret = ret };
	ares_channel channel;
	bool stopped;
	enum status st = network_begin(e);
	int status;

	*again = false;
	*ret = (struct names){ .n = 0 };
	if (st || is_numeric_address(host, ret) || is_localhost(host, ret))
		return st;
	status = channel_create(&channel);
	if (status != ARES_SUCCESS)
		return lookup_failed(host, status, again, e);
	ares_getaddrinfo(channel, host, NULL, &hints, addresses_found, &l);
	stopped = run_lookup(channel, &l, o);
	ares_destroy(channel);
	if (stopped && !ret->n)
		return err_set(e, ST_INTERRUPTED, "interrupted while looking for %s", host);
	return ret->n ? ST_OK : lookup_failed(host, l.status, again, e);
}
