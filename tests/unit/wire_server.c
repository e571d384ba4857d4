/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/wire_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef _WIN32
#include <ws2tcpip.h>
#define poll    WSAPoll
#define SHUT_WR SD_SEND
typedef int socklen_type;
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#define closesocket close
typedef socklen_t socklen_type;
#endif

#include <mbedtls/base64.h>
#include <mbedtls/ecp.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/sha256.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <psa/crypto.h>

#include "agent/collect/wire/network.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

struct peer {
	wire_socket socket;
	mbedtls_ssl_context *tls; /* NULL: none */
	const volatile bool *ending;
	bool broken; /* peer_break() */
};

#define MUST_WORK(cond)                                                                            \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* --- certificates --------------------------------------------------------------------------- */

static int rng(void *arg, unsigned char *p, size_t len)
{
	return psa_generate_random(p, len);
}

static char *text_of(const char *text)
{
	char *ret = strdup(text);

	MUST_WORK(ret);
	return ret;
}

static void make_pin(mbedtls_pk_context *key, char ret[static 9 + 44])
{
	uint8_t der[512], hash[32];
	const int len = mbedtls_pk_write_pubkey_der(key, der, sizeof(der));
	size_t written;

	MUST_WORK(len > 0);
	MUST_WORK(!mbedtls_sha256(der + sizeof(der) - len, (size_t)len, hash, 0));
	strcpy(ret, "sha256//");
	MUST_WORK(!mbedtls_base64_encode((uint8_t *)ret + 8, 45, &written, hash, sizeof(hash)));
}

static void make_cert(mbedtls_pk_context *key, const char *name, bool expired, struct identity *ret)
{
	mbedtls_x509write_cert w;
	mbedtls_x509_san_list san = { .node = { .type = MBEDTLS_X509_SAN_DNS_NAME } };
	uint8_t serial[] = { 1 }, address[4];
	char pem[4096], subject[128], dns_name[64];

	snprintf(subject, sizeof(subject), "CN=%s", name);
	snprintf(dns_name, sizeof(dns_name), "%s", name);
	san.node.san.unstructured_name.p = (uint8_t *)dns_name;
	san.node.san.unstructured_name.len = strlen(name);
	if (inet_pton(AF_INET, name, address) == 1) {
		san.node.type = MBEDTLS_X509_SAN_IP_ADDRESS;
		san.node.san.unstructured_name.p = address;
		san.node.san.unstructured_name.len = sizeof(address);
	}
	mbedtls_x509write_crt_init(&w);
	mbedtls_x509write_crt_set_md_alg(&w, MBEDTLS_MD_SHA256);
	mbedtls_x509write_crt_set_subject_key(&w, key);
	mbedtls_x509write_crt_set_issuer_key(&w, key);
	MUST_WORK(!mbedtls_x509write_crt_set_subject_name(&w, subject));
	MUST_WORK(!mbedtls_x509write_crt_set_issuer_name(&w, subject));
	MUST_WORK(!mbedtls_x509write_crt_set_serial_raw(&w, serial, sizeof(serial)));
	MUST_WORK(!mbedtls_x509write_crt_set_validity(
		&w, "20200101000000", expired ? "20210101000000" : "20991231235959"));
	MUST_WORK(!mbedtls_x509write_crt_set_basic_constraints(&w, 1, -1));
	MUST_WORK(!mbedtls_x509write_crt_set_subject_alternative_name(&w, &san));
	MUST_WORK(!mbedtls_x509write_crt_pem(&w, (uint8_t *)pem, sizeof(pem), rng, NULL));
	mbedtls_x509write_crt_free(&w);
	ret->cert = text_of(pem);
}

struct identity identity_make(const char *name, bool expired)
{
	struct err e = ERR_INIT;
	struct identity ret;
	mbedtls_pk_context key;
	char pem[1024];

	MUST_WORK(!network_begin(&e));
	mbedtls_pk_init(&key);
	MUST_WORK(!mbedtls_pk_setup(&key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)));
	MUST_WORK(!mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key), rng, NULL));
	MUST_WORK(!mbedtls_pk_write_key_pem(&key, (uint8_t *)pem, sizeof(pem)));
	ret.key = text_of(pem);
	make_pin(&key, ret.pin);
	make_cert(&key, name, expired, &ret);
	mbedtls_pk_free(&key);
	return ret;
}

void identity_free(struct identity *i)
{
	free(i->cert);
	free(i->key);
}

/* --- connections ---------------------------------------------------------------------------- */

/* Readable, or to be given up. */
static bool wait_for(wire_socket s, const volatile bool *ending)
{
	struct pollfd p = { .fd = s, .events = POLLIN };

	while (!*ending)
		if (poll(&p, 1, 50) > 0)
			return true;
	return false;
}

static int plain_read(void *arg, unsigned char *to, size_t room)
{
	struct peer *p = arg;
	const int n =
		wait_for(p->socket, p->ending) ? (int)recv(p->socket, (char *)to, (int)room, 0) : 0;

	return n < 0 ? MBEDTLS_ERR_SSL_INTERNAL_ERROR : n;
}

static int plain_write(void *arg, const unsigned char *from, size_t len)
{
	struct peer *p = arg;
	const int n = (int)send(p->socket, (const char *)from, (int)len, MSG_NOSIGNAL);

	return n < 0 ? MBEDTLS_ERR_SSL_INTERNAL_ERROR : n;
}

size_t peer_read(struct peer *p, void *to, size_t room)
{
	const int n = p->tls ? mbedtls_ssl_read(p->tls, to, room) : plain_read(p, to, room);

	return n > 0 ? (size_t)n : 0;
}

bool peer_write(struct peer *p, const void *from, size_t len)
{
	const uint8_t *at = from;

	while (len) {
		const int n = p->tls ? mbedtls_ssl_write(p->tls, at, len) : plain_write(p, at, len);

		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

bool peer_say(struct peer *p, const char *text)
{
	return peer_write(p, text, strlen(text));
}

void peer_head(struct peer *p, char *to, size_t room)
{
	size_t len = 0;

	to[0] = '\0';
	while (len + 1 < room && !strstr(to, "\r\n\r\n")) {
		if (!peer_read(p, to + len, 1)) {
			to[0] = '\0';
			return;
		}
		to[++len] = '\0';
	}
}

bool peer_body(struct peer *p, void *to, size_t len)
{
	uint8_t *at = to;

	while (len) {
		const size_t n = peer_read(p, at, len);

		if (!n)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

void peer_wait(struct peer *p)
{
	char buf[4096];

	while (peer_read(p, buf, sizeof(buf)))
		;
}

void peer_break(struct peer *p)
{
	const struct linger at_once = { .l_onoff = 1 };

	setsockopt(p->socket, SOL_SOCKET, SO_LINGER, (const void *)&at_once, sizeof(at_once));
	p->broken = true;
}

static void loopback(struct sockaddr_in *a, unsigned port)
{
	*a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* Copies what is there; false at the end. */
static bool pass_on(wire_socket from, wire_socket to)
{
	char buf[16384];
	const int n = (int)recv(from, buf, sizeof(buf), 0);

	return n > 0 && send(to, buf, n, MSG_NOSIGNAL) == n;
}

bool peer_relay(struct peer *p, unsigned port, const void *hello, size_t len)
{
	const wire_socket other = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd both[] = { { .fd = p->socket, .events = POLLIN },
				 { .fd = other, .events = POLLIN } };
	struct sockaddr_in a;
	bool open;

	loopback(&a, port);
	open = !connect(other, (struct sockaddr *)&a, sizeof(a)) && peer_write(p, hello, len);
	for (bool on = open; on && !*p->ending;) {
		if (poll(both, 2, 50) <= 0)
			continue;
		on = (!both[0].revents || pass_on(p->socket, other)) &&
		     (!both[1].revents || pass_on(other, p->socket));
	}
	closesocket(other);
	return open;
}

/* --- servers -------------------------------------------------------------------------------- */

struct tls_side {
	mbedtls_ssl_config config;
	mbedtls_ssl_context ssl;
	mbedtls_x509_crt own, ca;
	mbedtls_pk_context key;
};

static void parse_pem(mbedtls_x509_crt *crt, const char *pem)
{
	MUST_WORK(!mbedtls_x509_crt_parse(crt, (const uint8_t *)pem, strlen(pem) + 1));
}

static void tls_open(struct tls_side *t, const struct server_options *o)
{
	mbedtls_ssl_config_init(&t->config);
	mbedtls_ssl_init(&t->ssl);
	mbedtls_x509_crt_init(&t->own);
	mbedtls_x509_crt_init(&t->ca);
	mbedtls_pk_init(&t->key);
	parse_pem(&t->own, o->tls->cert);
	MUST_WORK(!mbedtls_pk_parse_key(&t->key, (const uint8_t *)o->tls->key,
					strlen(o->tls->key) + 1, NULL, 0, rng, NULL));
	MUST_WORK(!mbedtls_ssl_config_defaults(&t->config, MBEDTLS_SSL_IS_SERVER,
					       MBEDTLS_SSL_TRANSPORT_STREAM,
					       MBEDTLS_SSL_PRESET_DEFAULT));
	mbedtls_ssl_conf_rng(&t->config, rng, NULL);
	MUST_WORK(!mbedtls_ssl_conf_own_cert(&t->config, &t->own, &t->key));
	if (o->client_ca) {
		parse_pem(&t->ca, o->client_ca);
		mbedtls_ssl_conf_ca_chain(&t->config, &t->ca, NULL);
		mbedtls_ssl_conf_authmode(&t->config, MBEDTLS_SSL_VERIFY_REQUIRED);
	}
	if (o->only_tls12)
		mbedtls_ssl_conf_max_tls_version(&t->config, MBEDTLS_SSL_VERSION_TLS1_2);
	MUST_WORK(!mbedtls_ssl_setup(&t->ssl, &t->config));
}

static void tls_close(struct tls_side *t)
{
	mbedtls_ssl_free(&t->ssl);
	mbedtls_ssl_config_free(&t->config);
	mbedtls_x509_crt_free(&t->own);
	mbedtls_x509_crt_free(&t->ca);
	mbedtls_pk_free(&t->key);
}

static void serve_tls(struct server *s, struct peer *p)
{
	struct tls_side t;

	tls_open(&t, &s->o);
	mbedtls_ssl_set_bio(&t.ssl, p, plain_write, plain_read, NULL);
	if (!mbedtls_ssl_handshake(&t.ssl)) {
		s->talks++;
		p->tls = &t.ssl;
		s->o.talk(p, s->o.arg);
		mbedtls_ssl_close_notify(&t.ssl);
	}
	tls_close(&t);
}

/* Unread bytes would turn the end into a reset, which may overtake what was said. */
static void close_softly(struct peer *p)
{
	p->tls = NULL;
	if (p->broken) {
		closesocket(p->socket);
		return;
	}
	shutdown(p->socket, SHUT_WR);
	peer_wait(p);
	closesocket(p->socket);
}

static void *serve(void *arg)
{
	struct server *s = arg;

	while (wait_for(s->listening, &s->ending)) {
		struct peer p = { .socket = accept(s->listening, NULL, NULL),
				  .ending = &s->ending };

		s->accepted++;
		if (s->o.tls) {
			serve_tls(s, &p);
		} else {
			s->talks++;
			s->o.talk(&p, s->o.arg);
		}
		close_softly(&p);
	}
	return NULL;
}

/* Of any free port; its number. */
static unsigned bind_loopback(wire_socket s)
{
	struct sockaddr_in a;
	socklen_type len = sizeof(a);

	loopback(&a, 0);
	MUST_WORK(!bind(s, (struct sockaddr *)&a, sizeof(a)));
	MUST_WORK(!getsockname(s, (struct sockaddr *)&a, &len));
	return ntohs(a.sin_port);
}

void server_start(struct server *s, const struct server_options *o)
{
	struct err e = ERR_INIT;

	MUST_WORK(!network_begin(&e));
	*s = (struct server){ .o = *o, .listening = socket(AF_INET, SOCK_STREAM, 0) };
	s->port = bind_loopback(s->listening);
	MUST_WORK(!listen(s->listening, 8));
	MUST_WORK(!pthread_create(&s->thread, NULL, serve, s));
}

void server_stop(struct server *s)
{
	s->ending = true;
	pthread_join(s->thread, NULL);
	closesocket(s->listening);
}

unsigned port_of_nobody(void)
{
	struct err e = ERR_INIT;
	wire_socket s;
	unsigned ret;

	MUST_WORK(!network_begin(&e));
	s = socket(AF_INET, SOCK_STREAM, 0);
	ret = bind_loopback(s);
	closesocket(s);
	return ret;
}

static void *serve_names(void *arg)
{
	struct name_server *s = arg;
	uint8_t question[512], answer[512];
	struct sockaddr_in from;

	while (wait_for(s->socket, &s->ending)) {
		socklen_type from_len = sizeof(from);
		const int n = (int)recvfrom(s->socket, (char *)question, sizeof(question), 0,
					    (struct sockaddr *)&from, &from_len);
		const size_t len = n > 12 ? s->answer(question, (size_t)n, answer) : 0;

		if (len)
			sendto(s->socket, (char *)answer, (int)len, 0, (struct sockaddr *)&from,
			       from_len);
	}
	return NULL;
}

void name_server_start(struct name_server *s,
		       size_t (*answer)(const uint8_t *question, size_t len, uint8_t answer[512]))
{
	struct err e = ERR_INIT;

	MUST_WORK(!network_begin(&e));
	*s = (struct name_server){ .answer = answer, .socket = socket(AF_INET, SOCK_DGRAM, 0) };
	s->port = bind_loopback(s->socket);
	snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", s->port);
	MUST_WORK(!pthread_create(&s->thread, NULL, serve_names, s));
}

void name_server_stop(struct name_server *s)
{
	s->ending = true;
	pthread_join(s->thread, NULL);
	closesocket(s->socket);
}

/* The question as it came, marked as an answer with this code (RFC 1035, 4.1.1). */
static size_t answer_of(const uint8_t *question, size_t len, uint8_t code, uint8_t answer[512])
{
	memcpy(answer, question, len);
	answer[2] |= 0x80;
	answer[3] = code;
	memset(answer + 6, 0, 6); /* no records: not the EDNS one either */
	return len;
}

/* Behind the name and its type and class. */
static size_t question_end(const uint8_t *question, size_t len)
{
	size_t at = 12;

	while (at < len && question[at])
		at += question[at] + 1u;
	return at + 5;
}

size_t name_server_no_such_name(const uint8_t *question, size_t len, uint8_t answer[512])
{
	return answer_of(question, question_end(question, len), 3, answer);
}

size_t name_server_out_of_order(const uint8_t *question, size_t len, uint8_t answer[512])
{
	return answer_of(question, question_end(question, len), 2, answer);
}

size_t name_server_loopback(const uint8_t *question, size_t len, uint8_t answer[512])
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1 };
	const size_t end = question_end(question, len);
	size_t ret = answer_of(question, end, 0, answer);

	if (question[end - 3] == 1) {
		answer[7] = 1;
		memcpy(answer + ret, record, sizeof(record));
		ret += sizeof(record);
	}
	return ret;
}
