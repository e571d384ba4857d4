/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/tls_link.h"

#include <mbedtls/error.h>
#include <mbedtls/psa_util.h>
#include <mbedtls/ssl.h>
#include <string.h>

#include "agent/collect/wire/network.h"
#include "agent/shared/program/clock.h"

struct tls_link {
	struct link link;
	mbedtls_ssl_context ssl;
	mbedtls_ssl_config config;
	mbedtls_x509_crt certificate;
	mbedtls_pk_context key;
	bool calls; /* we are the client, and the socket is the caller's */
	const char *pins;
	uint8_t first[sizeof((uint8_t[])LINK_BUSY)]; /* how what was read begins */
	size_t n_first;
	char pin[PIN_SIZE]; /* of the other end; "": not seen */
	bool refused;       /* that it is none of `pins` */
};

static enum status tls_link_failed(int code, const char *what, struct err *e)
{
	char text[128];

	mbedtls_strerror(code, text, sizeof(text));
	return err_set(e, ST_OUTPUT, "%s: %s", what, text);
}

static int bio_send(void *arg, const uint8_t *p, size_t len)
{
	struct tls_link *t = arg;
	size_t done = 0;

	if (socket_write(t->link.socket, p, len, &done, NULL))
		return MBEDTLS_ERR_SSL_CONN_EOF;
	if (done && t->link.options.sent)
		t->link.options.sent(t->link.options.arg, done);
	return done ? (int)done : MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* Mbed TLS tells that there was an alert, and not which. */
static void note_first(struct tls_link *t, const uint8_t *p, size_t len)
{
	const size_t n = MIN(len, sizeof(t->first) - t->n_first);

	memcpy(t->first + t->n_first, p, n);
	t->n_first += n;
}

static bool is_receiver_busy(const struct tls_link *t)
{
	static const uint8_t busy[] = LINK_BUSY;

	return t->calls && t->n_first == sizeof(busy) && !memcmp(t->first, busy, sizeof(busy));
}

static int bio_receive(void *arg, uint8_t *p, size_t room)
{
	struct tls_link *t = arg;
	size_t done = 0;
	const enum status st = socket_read(t->link.socket, p, room, &done, NULL);

	if (st)
		return st == ST_END ? 0 : MBEDTLS_ERR_SSL_CONN_EOF;
	note_first(t, p, done);
	return done ? (int)done : MBEDTLS_ERR_SSL_WANT_READ;
}

/*
 * The only judgement on a certificate: whose key it has. What the library thinks of names, dates
 * and issuers is wiped away; and of whatever else it was sent.
 */
static int judge_certificate(void *arg, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
	struct tls_link *t = arg;

	*flags = 0;
	if (depth)
		return 0;
	t->refused = tls_pin_of(crt->pk_raw.p, crt->pk_raw.len, t->pin, NULL) ||
		     (t->pins && !tls_pin_is_among(t->pin, t->pins));
	*flags = t->refused ? MBEDTLS_X509_BADCERT_NOT_TRUSTED : 0;
	return 0;
}

static int set_up_key(struct tls_link *t, const struct tls_key *key)
{
	size_t len;
	const uint8_t *der = tls_key_private(key, &len);
	int code = mbedtls_pk_parse_key(&t->key, der, len, NULL, 0, mbedtls_psa_get_random,
					MBEDTLS_PSA_RANDOM_STATE);

	der = tls_key_certificate(key, &len);
	if (!code)
		code = mbedtls_x509_crt_parse_der(&t->certificate, der, len);
	if (!code)
		code = mbedtls_ssl_conf_own_cert(&t->config, &t->certificate, &t->key);
	return code;
}

static int set_up_tls(struct tls_link *t, const struct tls_options *o, int end)
{
	int code = mbedtls_ssl_config_defaults(&t->config, end, MBEDTLS_SSL_TRANSPORT_STREAM,
					       MBEDTLS_SSL_PRESET_DEFAULT);

	if (!code)
		code = set_up_key(t, o->key);
	if (code)
		return code;
	mbedtls_ssl_conf_min_tls_version(&t->config, MBEDTLS_SSL_VERSION_TLS1_3);
	mbedtls_ssl_conf_max_tls_version(&t->config, MBEDTLS_SSL_VERSION_TLS1_3);
	mbedtls_ssl_conf_rng(&t->config, mbedtls_psa_get_random, MBEDTLS_PSA_RANDOM_STATE);
	mbedtls_ssl_conf_authmode(&t->config, MBEDTLS_SSL_VERIFY_REQUIRED);
	mbedtls_ssl_conf_verify(&t->config, judge_certificate, t);
	/* Without a chain there would be no verification to take part in; it decides nothing. */
	mbedtls_ssl_conf_ca_chain(&t->config, &t->certificate, NULL);
	code = mbedtls_ssl_setup(&t->ssl, &t->config);
	if (!code) /* No name is sent, and none is compared. */
		code = mbedtls_ssl_set_hostname(&t->ssl, NULL);
	mbedtls_ssl_set_bio(&t->ssl, t, bio_send, bio_receive, NULL);
	return code;
}

static bool is_want(int code)
{
	return code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* Until what it wants can be had. ST_END: not within `ms`. */
static enum status wait_for_tls(struct tls_link *t, int code, unsigned ms, struct err *e)
{
	return link_wait(&t->link,
			 code == MBEDTLS_ERR_SSL_WANT_WRITE ? SOCKET_WRITABLE : SOCKET_READABLE, ms,
			 e);
}

static unsigned left_until(uint64_t until)
{
	const uint64_t now = clock__mono_ns();

	return now < until ? (unsigned)((until - now + 999999) / 1000000) : 0;
}

static enum status judge_handshake(const struct tls_link *t, int code, struct err *e)
{
	if (t->refused)
		return err_set(e, ST_NO_PRIVILEGE,
			       "the other end's key is not the expected one: %s", t->pin);
	if (is_receiver_busy(t))
		return err_set(e, ST_OUTPUT, "the receiver has no place free");
	if (code == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE)
		return err_set(e, ST_NO_PRIVILEGE, "shows no key");
	if (code == MBEDTLS_ERR_SSL_INVALID_RECORD && t->calls)
		return err_set(e, ST_OUTPUT,
			       "the other end does not speak TLS: is it 'ramseal receive'?");
	return tls_link_failed(code, "TLS", e);
}

static enum status shake_hands(struct tls_link *t, unsigned ms, struct err *e)
{
	const uint64_t until = clock__mono_ns() + ms * (NS_PER_SECOND / 1000);

	for (;;) {
		const int code = mbedtls_ssl_handshake(&t->ssl);
		enum status st;

		if (!code)
			return ST_OK;
		if (!is_want(code))
			return judge_handshake(t, code, e);
		st = wait_for_tls(t, code, left_until(until), e);
		if (st == ST_END)
			return err_set(e, ST_OUTPUT, "TLS: the other end does not answer");
		if (st)
			return st;
	}
}

static enum status tls_read_end(int code, struct err *e)
{
	if (code == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
		return ST_END;
	if (!code || code == MBEDTLS_ERR_SSL_CONN_EOF)
		return err_set(e, ST_OUTPUT, "the connection broke");
	return tls_link_failed(code, "TLS", e);
}

static enum status tls_read(struct link *l, void *p, size_t room, unsigned wait_ms, size_t *got,
			    struct err *e)
{
	struct tls_link *t = (struct tls_link *)l;
	const uint64_t until = clock__mono_ns() + wait_ms * (NS_PER_SECOND / 1000);

	*got = 0;
	for (;;) {
		const int n = mbedtls_ssl_read(&t->ssl, p, room);
		enum status st;

		if (n > 0) {
			*got = (size_t)n;
			return ST_OK;
		}
		if (!is_want(n))
			return tls_read_end(n, e);
		st = wait_for_tls(t, n, left_until(until), e);
		if (st)
			return st == ST_END ? ST_OK : st;
	}
}

static enum status tls_write(struct link *l, const void *p, size_t len, struct err *e)
{
	struct tls_link *t = (struct tls_link *)l;
	const uint8_t *at = p;

	while (len) {
		const int n = mbedtls_ssl_write(&t->ssl, at, len);
		enum status st;

		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (!is_want(n))
			return tls_link_failed(n, "TLS", e);
		st = wait_for_tls(t, n, l->options.stall_ms, e);
		if (st == ST_END)
			return err_set(e, ST_OUTPUT, "the other end accepts no more data");
		if (st)
			return st;
	}
	return ST_OK;
}

/* If it cannot be said now, the other end takes it for a break. */
static void tls_end(struct link *l)
{
	struct tls_link *t = (struct tls_link *)l;
	int code = mbedtls_ssl_close_notify(&t->ssl);

	while (is_want(code) && !wait_for_tls(t, code, l->options.stall_ms, NULL))
		code = mbedtls_ssl_close_notify(&t->ssl);
	socket_end(l->socket);
}

static void tls_destroy(struct link *l)
{
	struct tls_link *t = (struct tls_link *)l;

	mbedtls_ssl_free(&t->ssl);
	mbedtls_ssl_config_free(&t->config);
	mbedtls_x509_crt_free(&t->certificate);
	mbedtls_pk_free(&t->key);
	if (!t->calls)
		socket_close(l->socket);
	free(t);
}

static const struct link_ops tls_ops = {
	.read = tls_read,
	.write = tls_write,
	.end = tls_end,
	.destroy = tls_destroy,
};

static enum status begin_tls_link(net_socket s, const struct tls_options *o, int end,
				  struct tls_link **ret, struct err *e)
{
	struct tls_link *t = calloc(1, sizeof(*t));
	enum status st = t ? network_begin(e) : err_nomem(e);
	int code;

	if (st) {
		if (end == MBEDTLS_SSL_IS_SERVER)
			socket_close(s);
		free(t);
		return st;
	}
	t->link = (struct link){ .ops = &tls_ops, .options = o->link, .socket = s };
	t->pins = o->pins;
	t->calls = end == MBEDTLS_SSL_IS_CLIENT;
	mbedtls_ssl_init(&t->ssl);
	mbedtls_ssl_config_init(&t->config);
	mbedtls_x509_crt_init(&t->certificate);
	mbedtls_pk_init(&t->key);
	*ret = t;
	code = set_up_tls(t, o, end);
	return code ? tls_link_failed(code, "TLS", e) : socket_adopt(s, e);
}

static enum status make_tls_link(net_socket s, const struct tls_options *o, int end,
				 struct tls_link **ret, struct err *e)
{
	struct tls_link *t = NULL;
	enum status st = begin_tls_link(s, o, end, &t, e);

	if (!st)
		st = shake_hands(t, o->handshake_ms, e);
	if (st && t && o->ret_busy)
		*o->ret_busy |= is_receiver_busy(t);
	if (!st)
		*ret = t;
	else if (t)
		tls_destroy(&t->link);
	return st;
}

enum status tls_link_connect(net_socket s, const struct tls_options *o, struct link **ret,
			     struct err *e)
{
	struct tls_link *t;
	const enum status st = make_tls_link(s, o, MBEDTLS_SSL_IS_CLIENT, &t, e);

	if (!st)
		*ret = &t->link;
	return st;
}

enum status tls_link_accept(net_socket s, const struct tls_options *o, struct link **ret,
			    char ret_pin[static PIN_SIZE], struct err *e)
{
	struct tls_link *t;
	const enum status st = make_tls_link(s, o, MBEDTLS_SSL_IS_SERVER, &t, e);

	if (st)
		return st;
	memcpy(ret_pin, t->pin, PIN_SIZE);
	*ret = &t->link;
	return ST_OK;
}
