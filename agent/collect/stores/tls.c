/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls://HOST:PORT[/NAME]: to `ramseal receive`. sender.h has the talk; here are the connections.
 */
#include <string.h>

#include "agent/collect/host/host.h"
#include "agent/collect/stores/remote.h"
#include "agent/collect/stores/sender.h"
#include "agent/collect/wire/tls_link.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

#define SCHEME       "tls://"
#define PIECE        ((size_t)1 << 20)
#define STALL_S      30
#define HANDSHAKE_MS 30000
#define PROBE_NAME   "a measurement of the link" /* in the receiver's log */

struct tls_remote {
	struct remote remote;
	const struct remote_options *options;
	struct http *way; /* there: names, proxies */
	char *host;
	unsigned port;
	char *name; /* what the receiver may call it in its log; NULL */
	struct tls_key *key;
	bool own_key;   /* it was given, and not made for this once */
	bool connected; /* at least once: whatever is wrong then may pass */
	struct sender sender;
};

static const struct remote_result done = { .end = REMOTE_DONE };

static struct tls_remote *tls_remote_of(struct remote *r)
{
	return (struct tls_remote *)r;
}

static void tls_close(struct remote *r)
{
	struct tls_remote *t = tls_remote_of(r);

	sender_deinit(&t->sender);
	http_destroy(t->way);
	tls_key_destroy(t->key);
	free(t->host);
	free(t->name);
	free(t->remote.shown);
	free(t);
}

/* Behind the colon, of `len` bytes. */
static bool take_port(const char *text, size_t len, unsigned *ret)
{
	if (!len || len > 5 || strspn(text, "0123456789") < len)
		return false;
	*ret = (unsigned)strtoul(text, NULL, 10);
	return *ret && *ret <= 65535;
}

/* The first `len` bytes. */
static char *copy_text_part(const char *text, size_t len)
{
	char *ret = NULL;

	return asprintf(&ret, "%.*s", (int)len, text) < 0 ? NULL : ret;
}

static enum status tls_parse_address(struct tls_remote *t, const char *address, struct err *e)
{
	const char *host = address + strlen(SCHEME);
	const size_t len = strcspn(host, "/?#");
	const char *name = host + len + (host[len] == '/');
	size_t colon = len;

	while (colon && host[colon - 1] != ':')
		colon--;
	if (colon < 2 || memchr(host, '@', len) || strpbrk(name, "?#") || host[len] == '?' ||
	    host[len] == '#' || !take_port(host + colon, len - colon, &t->port))
		return err_set(e, ST_USAGE,
			       "a receiver is tls://HOST:PORT or tls://HOST:PORT/NAME");
	t->host = copy_text_part(host, colon - 1);
	if (t->options->probe)
		t->name = strdup(PROBE_NAME);
	else
		t->name = *name ? strdup(name)
				: host_output_path(t->options->encrypted ? ".rsz.age" : ".rsz");
	t->remote.shown = copy_text_part(address, (size_t)(host - address) + len);
	return t->host && t->name && t->remote.shown ? ST_OK : err_nomem(e);
}

/* Of what it is told only the way there counts: TLS is ours. */
static enum status take_way(struct tls_remote *t, const struct http_options *o, struct err *e)
{
	const struct http_options way = {
		.pin = o->pin,
		.proxy = o->proxy,
		.stall_s = o->stall_s,
		.stop = o->stop,
		.arg = o->arg,
	};

	if (!o->pin)
		return err_set(e, ST_USAGE,
			       "tls:// needs --pin: the receiver prints its pin when it starts");
	return http_create(&way, &t->way, e);
}

static enum status tls_set_key(struct tls_remote *t, const struct secret *pem, struct err *e)
{
	t->own_key = pem && pem->text;
	return t->own_key ? tls_key_parse(pem, &t->key, e) : tls_key_make(&t->key, e);
}

static enum status tls_open(const struct remote_options *o, struct remote **ret, struct err *e)
{
	struct tls_remote *t = calloc(1, sizeof(*t));
	enum status st;

	if (!t)
		return err_nomem(e);
	t->remote.ops = &remote_tls;
	t->remote.piece_size = PIECE;
	t->options = o;
	st = tls_parse_address(t, o->address, e);
	if (!st)
		st = take_way(t, &o->http, e);
	if (!st)
		st = tls_set_key(t, o->identity, e);
	if (!st)
		st = sender_init(&t->sender, o->probe ? 0 : o->expected, t->name,
				 1000 * (o->http.stall_s ? o->http.stall_s : STALL_S), e);
	t->sender.exactly = o->exactly;
	if (st)
		tls_close(&t->remote);
	else
		*ret = &t->remote;
	return st;
}

/* What to do about a key that is not welcome, at either end. */
static struct remote_result wrong_key(const struct tls_remote *t, struct err *e)
{
	const struct err why = *e;

	if (t->own_key)
		err_set(e, ST_OUTPUT, "%.200s (ours is %s: `ramseal receive --sender`)",
			why.message, tls_key_pin(t->key));
	else
		err_set(e, ST_OUTPUT,
			"%.200s (a new key was made for this run: give one that the receiver knows "
			"with --client-key, or start the receiver with --any-sender)",
			why.message);
	return (struct remote_result){ .end = REMOTE_NEVER };
}

static struct remote_result tls_connect_failed(struct tls_remote *t, enum status st, bool again,
					       struct err *e)
{
	if (st == ST_INTERRUPTED || st == ST_NOMEM || st == ST_SYSTEM || st == ST_NO_PRIVILEGE)
		return (struct remote_result){ .end = REMOTE_NEVER };
	return (struct remote_result){ .end = again || t->connected ? REMOTE_AGAIN : REMOTE_NEVER };
}

/* What comes may be less than was expected. */
static void warn_of_size(const struct tls_remote *t)
{
	char most[TEXT_SIZE_MAX], expected[TEXT_SIZE_MAX];

	if (t->sender.hello.expected <= t->sender.most)
		return;
	text_size(t->sender.most, most);
	text_size(t->sender.hello.expected, expected);
	log_warning("receiver-size",
		    "%s accepts %s per file (its --max-size), and up to %s may be sent",
		    t->remote.shown, most, expected);
}

static struct remote_result tls_greet(struct tls_remote *t, struct link *l, struct err *e)
{
	struct remote_result r = sender_greet(&t->sender, l, e);

	/* With the key that it is known by: nobody has mistyped anything. */
	t->remote.answered |= t->sender.refused;
	if (r.end == REMOTE_DONE) {
		if (!t->connected)
			warn_of_size(t);
		t->connected = true;
	} else if (t->sender.unwelcome) {
		r = wrong_key(t, e);
	}
	return r;
}

static struct remote_result dial(struct tls_remote *t, struct err *e)
{
	const struct http_options *o = &t->options->http;
	const struct tls_options how = {
		.link = { .stall_ms = t->sender.stall_ms,
			  .stop = o->stop,
			  .sent = o->sent,
			  .arg = o->arg },
		.key = t->key,
		.pins = o->pin,
		.handshake_ms = HANDSHAKE_MS,
		.ret_busy = &t->remote.answered,
	};
	struct link *l = NULL;
	net_socket s;
	bool again = true;
	enum status st;

	sender_hang_up(&t->sender);
	st = http_connect(t->way, t->host, t->port, &s, &again, e);
	if (!st) {
		again = true;
		st = tls_link_connect(s, &how, &l, e);
	}
	return st ? tls_connect_failed(t, st, again, e) : tls_greet(t, l, e);
}

static struct remote_result tls_begin(struct remote *r, struct err *e)
{
	return dial(tls_remote_of(r), e);
}

static struct remote_result tls_put(struct remote *r, const struct remote_piece *p,
				    uint64_t *acknowledged, struct err *e)
{
	struct sender *s = &tls_remote_of(r)->sender;
	const struct remote_result ret = sender_put(s, p->offset, p->at, p->len, e);

	*acknowledged = s->acknowledged;
	return ret;
}

static struct remote_result tls_where(struct remote *r, uint64_t *ret, struct err *e)
{
	struct tls_remote *t = tls_remote_of(r);
	const struct remote_result result = t->sender.talk.link ? done : dial(t, e);

	*ret = t->sender.position;
	return result;
}

static struct remote_result tls_settle(struct remote *r, uint64_t *acknowledged, struct err *e)
{
	struct sender *s = &tls_remote_of(r)->sender;
	const struct remote_result ret = sender_settle(s, e);

	*acknowledged = s->acknowledged;
	return ret;
}

/* What ends early may have bytes on the way: what arrives of them is taken along. */
static struct remote_result tls_finish(struct remote *r, uint64_t total, bool sealed, struct err *e)
{
	struct tls_remote *t = tls_remote_of(r);
	struct remote_result ret = t->sender.talk.link ? done : dial(t, e);

	if (ret.end == REMOTE_DONE && !sealed)
		ret = sender_settle(&t->sender, e);
	if (ret.end == REMOTE_DONE && t->sender.position < total) {
		err_set(e, ST_OUTPUT, "the receiver has less than it acknowledged");
		return (struct remote_result){ .end = REMOTE_NEVER };
	}
	return ret.end == REMOTE_DONE ? sender_finish(&t->sender, sealed, e) : ret;
}

static struct remote_result tls_probe(struct remote *r, const void *p, size_t len, struct err *e)
{
	struct sender *s = &tls_remote_of(r)->sender;
	const struct remote_result ret = sender_put(s, s->position, p, len, e);

	return ret.end == REMOTE_DONE ? sender_settle(s, e) : ret;
}

/*
 * The receiver gives nothing back that it has (PROTOCOL.md, section 3). But a measurement is not to
 * look like an acquisition that broke off, which it would wait for.
 */
static struct remote_result tls_abandon(struct remote *r, struct err *e)
{
	struct tls_remote *t = tls_remote_of(r);
	struct remote_result ret = done;

	if (t->options->probe && t->sender.talk.link)
		ret = sender_finish(&t->sender, false, e);
	sender_hang_up(&t->sender);
	return ret;
}

const struct remote_ops remote_tls = {
	.scheme = "tls",
	.form = "tls://HOST:PORT",
	.help = "another machine that runs 'ramseal receive'",
	.open = tls_open,
	.begin = tls_begin,
	.put = tls_put,
	.where = tls_where,
	.settle = tls_settle,
	.finish = tls_finish,
	.probe = tls_probe,
	.probe_is = "an incomplete upload",
	.probe_leaves = "the receiver keeps what was sent, as a file that is no container, and "
			"lines in its log",
	.abandon = tls_abandon,
	.destroy = tls_close,
};
