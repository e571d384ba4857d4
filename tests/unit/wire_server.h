/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers on the loopback for tests, in the test's own process: what they say, a function of the
 * test decides. Nothing here knows HTTP. Failures end the program: there is no test without them.
 */
#ifndef RAMSEAL_TESTS_UNIT_WIRE_SERVER_H
#define RAMSEAL_TESTS_UNIT_WIRE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#include <winsock2.h>
typedef SOCKET wire_socket;
#else
typedef int wire_socket;
#endif

struct peer; /* a connection, as the server sees it */

/* The number of bytes, 0 at the end or when it broke. */
size_t peer_read(struct peer *p, void *to, size_t room);
bool peer_write(struct peer *p, const void *from, size_t len);
bool peer_say(struct peer *p, const char *text);
/* Reads up to the empty line, which is kept, NUL-terminated; "" if there was none. */
void peer_head(struct peer *p, char *to, size_t room);
/* Exactly so many; false if there are fewer. */
bool peer_body(struct peer *p, void *to, size_t len);
/*
 * Connects to another server, says `hello` if that is done, and passes everything on between the
 * two until one of them ends. False: no connection.
 */
bool peer_relay(struct peer *p, unsigned port, const void *hello, size_t len);
/* Waits until the other end closes. */
void peer_wait(struct peer *p);
/* The connection is to end with a reset, as one that breaks, and not as one that is closed. */
void peer_break(struct peer *p);

struct identity {
	char *cert, *key; /* PEM; for free() */
	char pin[9 + 44]; /* "sha256//..." */
};

/* A certificate for `name` (DNS name or IPv4 address) that signs itself. */
struct identity identity_make(const char *name, bool expired);
void identity_free(struct identity *i);

struct server_options {
	void (*talk)(struct peer *p,
		     void *arg); /* once for each connection, in the server's thread */
	void *arg;
	const struct identity *tls; /* NULL: TCP alone */
	const char *client_ca;      /* PEM; a client that has no certificate of it is refused */
	bool only_tls12;
};

struct server {
	struct server_options o;
	wire_socket listening;
	unsigned port;
	pthread_t thread;
	volatile bool ending;
	unsigned accepted; /* connections; to be read after server_stop() */
	unsigned talks;    /* of those, whose TLS came about */
};

void server_start(struct server *s, const struct server_options *o);
void server_stop(struct server *s);

/* A port of the loopback that nobody listens on. */
unsigned port_of_nobody(void);

/* A name server: answers each question by the function, which makes an answer of the question. */
struct name_server {
	size_t (*answer)(const uint8_t *question, size_t len, uint8_t answer[512]); /* 0: none */
	wire_socket socket;
	unsigned port;
	pthread_t thread;
	volatile bool ending;
	char address[32]; /* for names__servers */
};

void name_server_start(struct name_server *s,
		       size_t (*answer)(const uint8_t *question, size_t len, uint8_t answer[512]));
void name_server_stop(struct name_server *s);

/*
 * Such functions: every name is 127.0.0.1; none exists (NXDOMAIN); the server is broken (SERVFAIL).
 */
size_t name_server_loopback(const uint8_t *question, size_t len, uint8_t answer[512]);
size_t name_server_no_such_name(const uint8_t *question, size_t len, uint8_t answer[512]);
size_t name_server_out_of_order(const uint8_t *question, size_t len, uint8_t answer[512]);

#endif
