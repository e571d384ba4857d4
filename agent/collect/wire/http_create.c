/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of libcurl that knows our options, and trusts nothing else. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <psa/crypto.h>

#include "agent/collect/wire/http_internal.h"
#include "agent/collect/wire/network.h"
#include "agent/shared/program/clock.h"

#define STALL_DEFAULT_S    30

/* Bytes a second of an answer, on average, behind the time that it may take anyway. */
#define ANSWER_LEAST_PER_S 1024

static bool is_base64(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '/';
}

/* libcurl takes what is no pin for the name of a file, and opens that. */
static bool is_pin(const char *text)
{
	static const char scheme[] = "sha256//";

	for (;;) {
		if (strncmp(text, scheme, sizeof(scheme) - 1))
			return false;
		text += sizeof(scheme) - 1;
		for (int i = 0; i < 43; i++)
			if (!is_base64(*text++))
				return false;
		if (*text++ != '=')
			return false;
		if (!*text)
			return true;
		if (*text++ != ';')
			return false;
	}
}

static enum status check_certificates(const struct secret *pem, const char *what, struct err *e)
{
	mbedtls_x509_crt crt;
	int failed;

	if (!pem->text)
		return ST_OK;
	mbedtls_x509_crt_init(&crt);
	failed = mbedtls_x509_crt_parse(&crt, (const uint8_t *)pem->text, pem->len + 1);
	mbedtls_x509_crt_free(&crt);
	/* Above 0: so many of them were not understood. */
	return failed ? err_set(e, ST_USAGE, "%s: no usable PEM certificates", what) : ST_OK;
}

static int psa_random(void *arg, unsigned char *p, size_t len)
{
	return psa_generate_random(p, len);
}

static enum status check_key(const struct secret *pem, struct err *e)
{
	mbedtls_pk_context key;
	int failed;

	if (!pem->text)
		return ST_OK;
	mbedtls_pk_init(&key);
	failed = mbedtls_pk_parse_key(&key, (const uint8_t *)pem->text, pem->len + 1, NULL, 0,
				      psa_random, NULL);
	mbedtls_pk_free(&key);
	return failed ? err_set(e, ST_USAGE,
				"the client's key: not PEM of an RSA or EC key without a "
				"passphrase")
		      : ST_OK;
}

static enum status check_proxy(struct http *h, struct err *e)
{
	const char *text = h->proxy.text, *at;
	enum status st;
	char *plain;

	if (!text)
		return ST_OK;
	if (strncmp(text, "http://", 7) && strncmp(text, "socks5h://", 10))
		return err_set(e, ST_USAGE, "a proxy is http://HOST:PORT or socks5h://HOST:PORT");
	at = strrchr(text, '@');
	at = at ? at + 1 : strstr(text, "//") + 2;
	if (asprintf(&plain, "http://%s", at) < 0)
		return err_nomem(e);
	st = http__place(plain, &h->proxy_at, e);
	free(plain);
	if (!st && !strrchr(h->proxy_at.shown + strlen("http://") + strlen(h->proxy_at.host), ':'))
		st = err_set(e, ST_USAGE, "name its port");
	return st ? err_add(e, ST_USAGE, "the proxy") : ST_OK;
}

/* NULL stays NULL. */
static enum status copy_secret(const char *text, struct secret *to, const char **ret, struct err *e)
{
	enum status st = ST_OK;

	*ret = NULL;
	if (text)
		st = secret_set(to, text, strlen(text), e);
	if (!st)
		*ret = to->text;
	return st;
}

static enum status copy_options(struct http *h, const struct http_options *o, struct err *e)
{
	enum status st;

	h->o = *o;
	if (!h->o.stall_s)
		h->o.stall_s = STALL_DEFAULT_S;
	st = copy_secret(o->pin, &h->pin, &h->o.pin, e);
	if (!st)
		st = copy_secret(o->ca, &h->ca, &h->o.ca, e);
	if (!st)
		st = copy_secret(o->proxy, &h->proxy, &h->o.proxy, e);
	if (!st)
		st = copy_secret(o->client_cert, &h->client_cert, &h->o.client_cert, e);
	if (!st)
		st = copy_secret(o->client_key, &h->client_key, &h->o.client_key, e);
	return st;
}

static enum status check_http_options(struct http *h, struct err *e)
{
	enum status st;

	if (h->o.pin && !is_pin(h->o.pin))
		return err_set(e, ST_USAGE,
			       "a pin is sha256//, then 43 characters of base64 and =");
	if (!h->o.client_cert != !h->o.client_key)
		return err_set(e, ST_USAGE,
			       "a client has both a certificate and a key, or neither");
	st = check_certificates(&h->ca, "the CA", e);
	if (!st)
		st = check_certificates(&h->client_cert, "the client", e);
	if (!st)
		st = check_key(&h->client_key, e);
	return st ? st : check_proxy(h, e);
}

void http__moved(struct http *h)
{
	h->moved_ns = clock__mono_ns();
}

static bool all_has_gone(const struct http *h)
{
	return h->body_at == h->body_len;
}

void http__heard(struct http *h, size_t len)
{
	if (!all_has_gone(h))
		return;
	http__moved(h);
	if (!h->heard_ns)
		h->heard_ns = h->moved_ns;
	h->heard += len;
}

unsigned http__stall_s(const struct http *h)
{
	return h->answer_s && all_has_gone(h) ? h->answer_s : h->o.stall_s;
}

/*
 * A server that lets a byte go now and then would keep us for ever. (S3 does that while it puts an
 * object together, within what answer_s allows.)
 */
static bool trickles(const struct http *h, uint64_t now)
{
	const uint64_t most = http__stall_s(h) + h->heard / ANSWER_LEAST_PER_S;

	return h->heard_ns && now - h->heard_ns > most * NS_PER_SECOND;
}

/* Called whenever something moves, and each second when nothing does. */
static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
		       curl_off_t up)
{
	struct http *h = arg;
	uint64_t now;

	h->stopped = h->o.stop && h->o.stop(h->o.arg);
	if (h->stopped)
		return 1;
	if (up != h->moved) {
		h->moved = up;
		http__moved(h);
	}
	now = clock__mono_ns();
	h->stalled = now - h->moved_ns > http__stall_s(h) * NS_PER_SECOND || trickles(h, now);
	return h->stalled;
}

/* Nothing of the environment, of files or of a server's wishes decides about anything. */
static CURLcode set_manners(struct http *h, CURL *c)
{
	CURLcode bad = CURLE_OK;

	bad |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	bad |= curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	bad |= curl_easy_setopt(c, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_USERAGENT, "ramseal/" RAMSEAL_VERSION);
	bad |= curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, h->o.stall_s * 1000L);
	bad |= curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->detail);
	bad |= curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	bad |= curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	bad |= curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
	bad |= curl_easy_setopt(c, CURLOPT_PROXY, h->o.proxy ? h->o.proxy : "");
	bad |= curl_easy_setopt(c, CURLOPT_NOPROXY, "");
	bad |= curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	return bad;
}

/*
 * Without a CA any certificate would do, were there not the pin: libcurl compares that by itself,
 * whatever CURLOPT_SSL_VERIFYPEER says (lib/vtls/mbedtls.c, mbed_connect_step2()).
 */
static CURLcode set_trust(struct http *h, CURL *c)
{
	/* Mbed TLS wants the NUL of a key in PEM, libcurl adds that of certificates. */
	struct curl_blob ca = { h->ca.text, h->ca.len, CURL_BLOB_NOCOPY };
	struct curl_blob cert = { h->client_cert.text, h->client_cert.len, CURL_BLOB_NOCOPY };
	struct curl_blob key = { h->client_key.text, h->client_key.len + 1, CURL_BLOB_NOCOPY };
	CURLcode bad = CURLE_OK;

	bad |= curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	bad |= curl_easy_setopt(c, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	bad |= curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, h->o.ca ? 1L : 0L);
	bad |= curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, h->o.ca ? 2L : 0L);
	bad |= curl_easy_setopt(c, CURLOPT_CAINFO, NULL);
	bad |= curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	if (h->o.ca)
		bad |= curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &ca);
	if (h->o.pin)
		bad |= curl_easy_setopt(c, CURLOPT_PINNEDPUBLICKEY, h->o.pin);
	if (h->o.client_cert) {
		bad |= curl_easy_setopt(c, CURLOPT_SSLCERT_BLOB, &cert);
		bad |= curl_easy_setopt(c, CURLOPT_SSLKEY_BLOB, &key);
	}
	return bad;
}

enum status http__route_init(struct http *h, struct http_route *r, struct err *e)
{
	r->curl = curl_easy_init();
	/* All these options are known: what else is there that may fail. */
	if (!r->curl || set_manners(h, r->curl) || set_trust(h, r->curl)) {
		http__route_deinit(r);
		return err_nomem(e);
	}
	return ST_OK;
}

void http__route_deinit(struct http_route *r)
{
	curl_easy_cleanup(r->curl);
	curl_slist_free_all(r->addresses);
	*r = (struct http_route){ .curl = NULL };
}

enum status http_create(const struct http_options *o, struct http **ret, struct err *e)
{
	struct http *h = NULL;
	enum status st = network_begin(e);

	if (st)
		return st;
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_nomem(e);
	st = copy_options(h, o, e);
	if (!st)
		st = check_http_options(h, e);
	if (!st)
		st = http__route_init(h, &h->asking, e);
	if (st) {
		http_destroy(h);
		return st;
	}
	*ret = h;
	return ST_OK;
}

void http_destroy(struct http *h)
{
	if (!h)
		return;
	http_disconnect(h);
	http__route_deinit(&h->asking);
	http_answer_builder_deinit(&h->builder);
	secret_wipe(&h->pin);
	secret_wipe(&h->ca);
	secret_wipe(&h->proxy);
	secret_wipe(&h->client_cert);
	secret_wipe(&h->client_key);
	free(h);
}
