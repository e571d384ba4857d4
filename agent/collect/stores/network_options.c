/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/network_options.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "agent/shared/program/address.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/text.h"
#include "formats/base/io.h"

static enum status parse_lock(const char *text, void *at, struct err *e)
{
	return object_lock_parse(text, at, e);
}

static const struct option_def network_defs[] = {
	CLI_STRING(struct network_options, to, 0, "to", "@FILE|fd:N|-",
		   "read the target address from FILE, a descriptor or stdin, for an address that "
		   "is itself a secret, such as a presigned URL"),
	CLI_STRING(struct network_options, keys, 0, "keys", "@FILE|fd:N|-",
		   "read the object store's keys, in the format of ~/.aws/credentials; default: "
		   "AWS_ACCESS_KEY_ID and related variables. AWS_REGION and AWS_ENDPOINT_URL apply "
		   "unless FILE sets them"),
	CLI_STRING(struct network_options, pin, 0, "pin", "sha256//BASE64",
		   "trust the server with this public key; separate several with ';'"),
	CLI_STRING(struct network_options, ca, 0, "ca", "FILE",
		   "trust servers with a certificate issued by one of these CAs (PEM); this "
		   "machine's own CAs are not trusted"),
	CLI_STRING(struct network_options, client_cert, 0, "client-cert", "FILE",
		   "client certificate, for servers that require one (PEM)"),
	CLI_STRING(struct network_options, client_key, 0, "client-key", "@FILE|fd:N|-",
		   "private key of --client-cert, or of a tls:// sender (PEM)"),
	CLI_STRING(struct network_options, proxy, 0, "proxy", "URL|@FILE",
		   "http://HOST:PORT or socks5h://HOST:PORT; in a file if it has a password. "
		   "Environment variables are ignored"),
	CLI_SIZE(struct network_options, bytes_per_s, 0, "bwlimit", "SIZE", 1024, UINT64_MAX,
		 "send at most SIZE bytes per second"),
	CLI_SIZE(struct network_options, spool_size, 0, "spool-size", "SIZE", (uint64_t)1 << 20,
		 (uint64_t)64 << 30,
		 "memory for data waiting to be sent; at least two parts of the upload"),
	CLI_STRING(struct network_options, spool, 0, "spool", "DIR",
		   "when that memory is full, continue in an unnamed file in DIR"),
	CLI_SIZE(struct network_options, spool_max, 0, "spool-max", "SIZE", (uint64_t)1 << 20,
		 (uint64_t)1 << 60, "size limit of that file"),
	CLI_STRING(struct network_options, state, 0, "upload-state", "FILE",
		   "save resume state for 'upload --finish' until the upload is complete; without "
		   "it, 'upload --finish' asks the store"),
	CLI_PARSED(struct network_options, lock, 0, "object-lock", "MODE:UNTIL", parse_lock,
		   "have the store retain the object (S3 Object Lock, Azure immutability). MODE "
		   "governance can be lifted early by those with that right, compliance by nobody; "
		   "UNTIL is 2027-01-31, 2027-01-31T12:00:00Z or 90d"),
};

const struct option_group network_option_group = { network_defs, ARRAY_SIZE(network_defs) };

enum status network_options_check(const struct cli *cli, const struct network_options *o,
				  const char *output, struct err *e)
{
	const struct option_def *given = cli_given_of(cli, &network_option_group);

	if (o->to && output)
		return cli_usage(cli, e, "-o and --to cannot be combined");
	if (output && is_address(output) && address_is_secret(output))
		return cli_usage(cli, e,
				 "the address contains a secret, which every process list shows: "
				 "put it into a file and use --to @FILE");
	if (o->proxy && address_is_secret(o->proxy))
		return cli_usage(cli, e,
				 "every process list would show the proxy's password: put its "
				 "address into a file and use --proxy @FILE");
	if (given && !o->to && !(output && is_address(output)))
		return cli_usage(cli, e, "--%s is for addresses such as s3://BUCKET/KEY",
				 given->name);
	return ST_OK;
}

/*
 * Keys
 */

static const char *trim_key_text(const char *at, const char **end)
{
	while (at < *end && isspace((unsigned char)*at))
		at++;
	while (at < *end && isspace((unsigned char)(*end)[-1]))
		--*end;
	return at;
}

/* The last one wins. */
static enum status replace_secret(struct secret *s, const char *text, size_t len, struct err *e)
{
	secret_wipe(s);
	return secret_set(s, text, len, e);
}

static enum status set_key_text(char **at, const char *text, size_t len, struct err *e)
{
	free(*at);
	*at = text_copy(text, len);
	return *at ? ST_OK : err_nomem(e);
}

static bool is_key_named(const char *name, size_t len, const char *want)
{
	if (len > 4 && !strncasecmp(name, "aws_", 4) && strncasecmp(want, "aws_", 4) != 0) {
		name += 4;
		len -= 4;
	}
	return strlen(want) == len && !strncasecmp(name, want, len);
}

static enum status set_remote_key(const char *name, size_t n, const char *value, size_t len,
				  struct remote_keys *ret, struct err *e)
{
	if (is_key_named(name, n, "access_key_id"))
		return replace_secret(&ret->id, value, len, e);
	if (is_key_named(name, n, "secret_access_key"))
		return replace_secret(&ret->secret, value, len, e);
	if (is_key_named(name, n, "session_token"))
		return replace_secret(&ret->token, value, len, e);
	if (is_key_named(name, n, "region") || is_key_named(name, n, "default_region"))
		return set_key_text(&ret->region, value, len, e);
	if (is_key_named(name, n, "endpoint_url") || is_key_named(name, n, "endpoint_url_s3"))
		return set_key_text(&ret->endpoint, value, len, e);
	return ST_OK;
}

static enum status parse_key_line(const char *at, const char *end, struct remote_keys *ret,
				  struct err *e)
{
	const char *equals, *value, *name_end;

	at = trim_key_text(at, &end);
	if (end - at > 7 && !strncmp(at, "export ", 7))
		at = trim_key_text(at + 7, &end);
	equals = at < end ? memchr(at, '=', (size_t)(end - at)) : NULL;
	if (!equals || *at == '#' || *at == ';')
		return ST_OK;
	name_end = equals;
	at = trim_key_text(at, &name_end);
	value = trim_key_text(equals + 1, &end);
	if (end - value >= 2 && (*value == '"' || *value == '\'') && end[-1] == *value) {
		value++;
		end--;
	}
	return set_remote_key(at, (size_t)(name_end - at), value, (size_t)(end - value), ret, e);
}

enum status network_parse_keys(const char *text, struct remote_keys *ret, struct err *e)
{
	unsigned sections = 0;
	enum status st = ST_OK;

	while (*text && !st) {
		const char *end = text + strcspn(text, "\n");

		if (text[strspn(text, " \t")] == '[' && sections++)
			return err_set(e, ST_USAGE,
				       "has several profiles; keep the one to be used");
		st = parse_key_line(text, end, ret, e);
		text = *end ? end + 1 : end;
	}
	return st;
}

/* The first of the variables that is set. */
static enum status environment_text(const char *const *names, char **ret, struct err *e)
{
	for (; *names; names++) {
		const char *text = getenv(*names);

		if (text && *text)
			return set_key_text(ret, text, strlen(text), e);
	}
	return ST_OK;
}

static void keys_of_environment(struct remote_keys *ret, struct err *e)
{
	secret_from_environment("AWS_ACCESS_KEY_ID", &ret->id, e);
	secret_from_environment("AWS_SECRET_ACCESS_KEY", &ret->secret, e);
	secret_from_environment("AWS_SESSION_TOKEN", &ret->token, e);
}

/* Where the store is, unless the file of keys says so: that has them as a rule, and no more. */
static enum status place_of_environment(struct remote_keys *ret, struct err *e)
{
	static const char *const regions[] = { "AWS_REGION", "AWS_DEFAULT_REGION", NULL };
	static const char *const urls[] = { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL };
	enum status st = ST_OK;

	if (!ret->region)
		st = environment_text(regions, &ret->region, e);
	if (!st && !ret->endpoint)
		st = environment_text(urls, &ret->endpoint, e);
	return st;
}

static enum status read_key_file(const char *from, struct remote_keys *ret, struct err *e)
{
	struct secret text = { 0 };
	enum status st = secret_read(from, &text, e);

	if (!st)
		st = network_parse_keys(text.text, ret, e);
	secret_wipe(&text);
	return st ? err_add(e, st, "--keys") : ST_OK;
}

static enum status read_keys(const char *from, struct remote_keys *ret, struct err *e)
{
	enum status st = ST_OK;

	if (from)
		st = read_key_file(from, ret, e);
	else
		keys_of_environment(ret, e);
	return st ? st : place_of_environment(ret, e);
}

/*
 * All together
 */

#define PEM_MAX ((size_t)1 << 20)

/* NULL stays NULL. */
static enum status read_pem(const char *path, char **ret, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	struct file_blob b;
	size_t len = 0;
	enum status st;

	if (!path)
		return ST_OK;
	text = calloc(1, PEM_MAX);
	st = text ? file_blob_open(&b, path, e) : err_nomem(e);
	if (st)
		return st;
	st = b.blob.read_at(&b.blob, 0, text, PEM_MAX - 1, &len, e);
	file_blob_deinit(&b);
	if (st || !strstr(text, "-----BEGIN "))
		return err_add(e, st ? st : err_set(e, ST_INPUT, "holds no PEM"), "%s", path);
	*ret = take_ptr(text);
	return ST_OK;
}

/* What the link is given leaves as slowly as --bwlimit wants it. */
static void count_sent(void *arg, size_t len)
{
	struct network *n = arg;
	uint64_t wait = bandwidth_take(&n->bandwidth, clock__mono_ns(), len);

	while (wait) {
		const uint64_t part = MIN(wait, NS_PER_SECOND / 2);

		nanosleep(&(const struct timespec){ .tv_nsec = (long)part }, NULL);
		wait -= part;
	}
}

/* Before anything was read nobody has a reason to wait. */
static bool wants_stop(void *arg)
{
	struct network *n = arg;

	if (interrupted() && !n->signalled)
		n->signalled = clock__mono_ns();
	return !n->began && interrupted();
}

enum status network_set_address(struct network *n, const char *address, struct err *e)
{
	char *shown = address_shown(address);

	free(n->shown);
	n->shown = shown;
	if (!shown)
		return err_nomem(e);
	if (replace_secret(&n->address, address, strlen(address), e))
		return err_add(e, ST_USAGE, "the address");
	n->remote.address = n->address.text;
	return ST_OK;
}

static enum status read_address(struct network *n, const struct network_options *o,
				const char *output, struct err *e)
{
	struct secret address = { 0 };
	enum status st = ST_OK;

	if (output)
		return network_set_address(n, output, e);
	st = secret_read(o->to, &address, e);
	if (!st && !is_address(address.text))
		st = err_set(e, ST_USAGE, "takes a file that holds an address such as https://...");
	if (!st)
		st = network_set_address(n, address.text, e);
	secret_wipe(&address);
	return st ? err_add(e, st, "--to") : ST_OK;
}

/* "@FILE", or what it says itself. */
static enum status read_proxy(struct network *n, const char *proxy, struct err *e)
{
	enum status st;

	if (!proxy)
		return ST_OK;
	st = proxy[0] == '@' ? secret_read(proxy, &n->proxy, e)
			     : secret_set(&n->proxy, proxy, strlen(proxy), e);
	return st ? err_add(e, st, "--proxy") : ST_OK;
}

static enum status read_network_options(struct network *n, const struct network_options *o,
					const char *output, struct err *e)
{
	enum status st = read_address(n, o, output, e);

	if (!st)
		st = read_keys(o->keys, &n->keys, e);
	if (!st)
		st = read_pem(o->ca, &n->ca, e);
	if (!st)
		st = read_pem(o->client_cert, &n->client_cert, e);
	if (!st)
		st = read_proxy(n, o->proxy, e);
	if (!st && o->client_key && secret_read(o->client_key, &n->client_key, e))
		st = err_add(e, ST_USAGE, "--client-key");
	return st;
}

static void fill_network(struct network *n, const struct network_options *o)
{
	n->bandwidth.bytes_per_s = o->bytes_per_s;
	n->remote.lock = o->lock;
	n->remote.keys = &n->keys;
	n->remote.identity = n->client_key.text ? &n->client_key : NULL;
	n->remote.http = (struct http_options){
		.pin = o->pin,
		.ca = n->ca,
		.proxy = n->proxy.text,
		.client_cert = n->client_cert,
		.client_key = n->client_key.text,
		.sent = o->bytes_per_s ? count_sent : NULL,
		.stop = wants_stop,
		.arg = n,
	};
	n->uploader.began = &n->began;
	n->uploader.signalled = &n->signalled;
	n->uploader.spool = (size_t)o->spool_size;
	n->uploader.spool_dir = o->spool;
	n->uploader.spool_dir_max = o->spool_max;
}

enum status network_create(const struct network_options *o, const char *output,
			   struct network **ret, struct err *e)
{
	struct network *n;
	enum status st;

	*ret = NULL;
	if (!o->to && !(output && is_address(output)))
		return ST_OK;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_nomem(e);
	n->uploader.state_path = o->state;
	st = read_network_options(n, o, o->to ? NULL : output, e);
	if (st) {
		network_destroy(n);
		return st;
	}
	fill_network(n, o);
	*ret = n;
	return ST_OK;
}

void network_destroy(struct network *n)
{
	if (!n)
		return;
	secret_wipe(&n->address);
	secret_wipe(&n->client_key);
	secret_wipe(&n->proxy);
	secret_wipe(&n->keys.id);
	secret_wipe(&n->keys.secret);
	secret_wipe(&n->keys.token);
	free(n->keys.region);
	free(n->keys.endpoint);
	free(n->shown);
	free(n->ca);
	free(n->client_cert);
	free(n);
}
