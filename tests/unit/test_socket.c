/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, also where there is no IPv6: a filter of system calls takes it away, for good. */
#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/collect/wire/socket.h"

static unsigned port_of(const char *address)
{
	return (unsigned)strtoul(strrchr(address, ':') + 1, NULL, 10);
}

/* It is called over IPv4, and knows from where. */
static void hears_v4(const char *at, const char *want)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char address[SOCKET_ADDRESS_MAX], from[SOCKET_ADDRESS_MAX];
	const int caller = socket(AF_INET, SOCK_STREAM, 0);
	net_socket listening, s;
	struct err e = ERR_INIT;

	CHECK_OK(socket_listen(at, &listening, &e), &e);
	socket_local(listening, address);
	assert_int_equal(strncmp(address, want, strlen(want)), 0);
	to.sin_port = htons((uint16_t)port_of(address));
	assert_int_equal(connect(caller, (struct sockaddr *)&to, sizeof(to)), 0);
	CHECK_OK(socket_wait(listening, SOCKET_READABLE, 20000, &e), &e);
	CHECK_OK(socket_accept(listening, &s, from, &e), &e);
	assert_int_equal(strncmp(from, "127.0.0.1:", 10), 0);
	socket_close(s);
	socket_close(listening);
	close(caller);
}

TEST(v4_addresses_are_served)
{
	hears_v4("127.0.0.1:0", "127.0.0.1:");
	hears_v4("0.0.0.0:0", "0.0.0.0:");
}

/* What a kernel with ipv6.disable=1 says of socket(AF_INET6, ...). */
static bool take_v6_away(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = ARRAY_SIZE(code), .filter = code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* The last one: there is no way back. */
TEST(without_ipv6_the_rest_is_served)
{
	struct err e = ERR_INIT;
	net_socket s;

	if (!take_v6_away())
		skip();
	hears_v4("0", "0.0.0.0:");
	hears_v4("127.0.0.1:0", "127.0.0.1:");
	CHECK_STATUS(socket_listen("[::1]:0", &s, &e), ST_OUTPUT, &e);
	CHECK_STATUS(socket_listen("[::]:0", &s, &e), ST_OUTPUT, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v4_addresses_are_served),
		cmocka_unit_test(without_ipv6_the_rest_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
