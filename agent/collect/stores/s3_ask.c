/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/s3_internal.h"

#include <string.h>

#include "agent/collect/stores/sigv4.h"
#include "agent/collect/wire/xml.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

/*
 * Where it is
 */

bool s3__is_region(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

/* A bucket is a label of the host's name, unless no certificate would fit that. */
static bool is_part_of_host(const struct s3 *s)
{
	return !s->endpoint && !s->kind->endpoint && !strchr(s->bucket, '.');
}

/* For free(). */
static char *make_base(const struct s3 *s, bool in_host)
{
	char *ret;
	int n;

	if (s->endpoint || s->kind->endpoint)
		return strdup(s->endpoint ? s->endpoint : s->kind->endpoint);
	if (in_host)
		n = asprintf(&ret, "https://%s.s3.%s.amazonaws.com", s->bucket, s->region);
	else
		n = asprintf(&ret, "https://s3.%s.amazonaws.com", s->region);
	return n < 0 ? NULL : ret;
}

enum status s3__locate(struct s3 *s, struct err *e)
{
	_cleanup_free_ char *key = uri_encode(s->key, true), *bucket = uri_encode(s->bucket, false);
	_cleanup_free_ char *folder = NULL;
	char *base, *path;
	const bool in_host = is_part_of_host(s);

	if (!key || !bucket || asprintf(&folder, "/%s", in_host ? "" : bucket) < 0)
		return err_nomem(e);
	base = make_base(s, in_host);
	if (!base)
		return err_nomem(e);
	if (asprintf(&path, "%s%s%s", folder, in_host ? "" : "/", key) < 0) {
		free(base);
		return err_nomem(e);
	}
	free(s->base);
	free(s->path);
	free(s->bucket_path);
	s->base = base;
	s->path = path;
	s->bucket_path = take_ptr(folder);
	return ST_OK;
}

/* As libcurl writes it into Host: the port only if it is not the scheme's own. */
static char *host_header_of(const char *base)
{
	const char *host = strstr(base, "://") + 3, *port = strrchr(host, ':');
	const bool own = port && !strcmp(port, strncmp(base, "https", 5) ? ":80" : ":443");

	return own ? text_copy(host, (size_t)(port - host)) : strdup(host);
}

/*
 * One request
 */

uint64_t s3__time(const struct s3 *s)
{
	return (uint64_t)((int64_t)(clock__wall_ns() / NS_PER_SECOND) + s->clock_ahead_s);
}

#define HEADERS_MAX 12

/* "host" goes first or second, is signed, and is libcurl's to send. */
static size_t without_host(const struct http_header *from, size_t n, struct http_header *ret)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		if (strcmp(from[i].name, "host") != 0)
			ret[used++] = from[i];
	return used;
}

static enum status send_request(struct s3 *s, const struct s3_request *r,
				const struct sigv4_request *sign, struct http_answer *ret,
				bool *again, struct err *e)
{
	struct http_header headers[HEADERS_MAX + 1];
	_cleanup_free_ char *authorization = NULL, *url = NULL;
	struct http_request ask = { .method = r->method,
				    .headers = headers,
				    .body = r->body,
				    .len = r->len,
				    .answer_s = r->last ? HTTP_COMMIT_S : 0,
				    .anew = r->last };
	enum status st = sigv4_authorization(sign, &s->o->keys->id, &s->o->keys->secret, s->region,
					     s->hash, &authorization, e);

	if (st)
		return st;
	if (asprintf(&url, "%s%s%s%s", s->base, sign->path, *r->query ? "?" : "", r->query) < 0) {
		url = NULL;
		return err_nomem(e);
	}
	ask.url = url;
	ask.n_headers = without_host(sign->headers, sign->n_headers, headers);
	headers[ask.n_headers++] = (struct http_header){ "authorization", authorization };
	return http_ask(s->http, &ask, ret, again, e);
}

/* Days begin anew with each try, whose clock may be another. */
static const char *s3_begin_lock(struct s3 *s, char ret_until[static LOCK_TIME_SIZE])
{
	static const char *const modes[] = {
		[LOCK_GOVERNANCE] = "GOVERNANCE", [LOCK_COMPLIANCE] = "COMPLIANCE"
	};

	s->remote.lock = s->o->lock;
	object_lock_begin(&s->remote.lock, s3__time(s));
	object_lock_time(s->remote.lock.until, ret_until);
	return modes[s->remote.lock.mode];
}

static enum status s3_ask_once(struct s3 *s, const struct s3_request *r, struct http_answer *ret,
			       bool *again, char *ret_sum, struct err *e)
{
	_cleanup_free_ char *host = host_header_of(s->base);
	char time[SIGV4_TIME_SIZE], hex[SHA256_HEX_SIZE], sum[STORE_SHA256_SIZE],
		md5[STORE_MD5_SIZE], until[LOCK_TIME_SIZE];
	uint8_t digest[SHA256_SIZE];
	const char *lock = r->locks ? s3_begin_lock(s, until) : NULL;
	const struct http_header all[] = {
		{ "content-md5", r->md5 ? md5 : NULL },
		{ "content-type", r->content_type },
		{ "host", host },
		{ "if-none-match", r->create_only ? "*" : NULL },
		{ "x-amz-checksum-algorithm", r->checksum_algorithm },
		{ "x-amz-checksum-sha256", r->sum ? sum : NULL },
		{ "x-amz-content-sha256", hex },
		{ "x-amz-date", time },
		{ "x-amz-object-lock-mode", lock },
		{ "x-amz-object-lock-retain-until-date", lock ? until : NULL },
		{ "x-amz-security-token", s->o->keys->token.text },
	};
	struct http_header headers[HEADERS_MAX];
	const struct sigv4_request sign = { .method = r->method,
					    .path = r->of_bucket ? s->bucket_path : s->path,
					    .query = r->query,
					    .headers = headers,
					    .n_headers =
						    store_headers(all, ARRAY_SIZE(all), headers),
					    .payload = hex };

	if (!host || (r->md5 && store_md5(r->body, r->len, md5, NULL)))
		return err_nomem(e);
	sigv4_time(s3__time(s), time);
	sha256_of(s->hash, r->body, r->len, digest);
	sha256_hex(digest, hex);
	store_sha256(digest, sum);
	if (ret_sum)
		memcpy(ret_sum, sum, sizeof(sum));
	return send_request(s, r, &sign, ret, again, e);
}

/*
 * Its answer
 */

/* What S3 calls errors (API Reference, "Error responses"), and what to do about them. */
static const struct store_error known[] = {
	{ "AccessDenied", REMOTE_NEVER, "the keys do not allow this" },
	{ "BadDigest", REMOTE_AGAIN, "it was damaged in transit" },
	{ "BucketNotFound", REMOTE_NEVER, "there is no such bucket" },
	{ "ConditionalRequestConflict", REMOTE_AGAIN, "somebody else is writing it" },
	{ "EntityTooSmall", REMOTE_NEVER, "the store wants larger parts" },
	{ "ExpiredToken", REMOTE_NEVER, "the session token has expired: get a new one" },
	{ "IncompleteBody", REMOTE_AGAIN, "it was cut off in transit" },
	{ "InternalError", REMOTE_AGAIN, "the store has a problem" },
	{ "InvalidAccessKeyId", REMOTE_NEVER, "the store does not know the access key" },
	{ "InvalidDigest", REMOTE_AGAIN, "it was damaged in transit" },
	{ "InvalidToken", REMOTE_NEVER, "the session token is wrong" },
	{ "NoSuchBucket", REMOTE_NEVER, "there is no such bucket" },
	{ "NoSuchUpload", REMOTE_NEVER, "the upload was removed there, or has been completed" },
	{ "OperationAborted", REMOTE_AGAIN, "somebody else is writing it" },
	{ "PreconditionFailed", REMOTE_NEVER,
	  "exists; choose another name, or --force replaces it" },
	{ "QuotaExceeded", REMOTE_NEVER, "the store is full" },
	{ "RequestTimeout", REMOTE_AGAIN, "it arrived too slowly" },
	{ "RequestTimeTooSkewed", REMOTE_NEVER,
	  "the clock of this machine or of the store is wrong" },
	{ "ServiceUnavailable", REMOTE_AGAIN, "the store has a problem" },
	{ "SignatureDoesNotMatch", REMOTE_NEVER, "the secret key is wrong" },
	{ "SlowDown", REMOTE_AGAIN, "the store is busy" },
	{ "XAmzContentSHA256Mismatch", REMOTE_AGAIN, "it was damaged in transit" },
};

/* What the status says alone: HEAD has no body. */
static const char *s3_status_advice(unsigned status)
{
	switch (status) {
	case 401:
	case 403:
		return "the keys do not allow this";
	case 404:
		return "there is no such bucket";
	case 411:
	case 413:
		return "the store does not accept parts of this size";
	case 412:
		return "exists; choose another name, or --force replaces it";
	default:
		return status >= 300 && status < 400
			       ? "the bucket is elsewhere: set AWS_REGION or AWS_ENDPOINT_URL"
			       : "";
	}
}

/* 200 with an error in its body is an error. */
static struct remote_result judge_s3_answer(const struct http_answer *a, const char *code,
					    struct err *e)
{
	if (a->status >= 200 && a->status < 300 && !*code)
		return (struct remote_result){ .end = REMOTE_DONE };
	return store_judge(a, code, known, ARRAY_SIZE(known), s3_status_advice(a->status), e);
}

/* A clock that is off by so much, and not a little less, is refused: 15 minutes. */
#define SKEW_S 300

/* Is the clock what is wrong? Then the store's own is taken. */
static bool take_clock(struct s3 *s, const struct http_answer *a, const char *code)
{
	const int64_t off = (int64_t)a->date - (int64_t)s3__time(s);

	if (!a->date || (off < SKEW_S && off > -SKEW_S))
		return false;
	if (a->status != 403 && strcmp(code, "RequestTimeTooSkewed") != 0)
		return false;
	s->clock_ahead_s += off;
	log_info("clock-differs", "%s: its clock is %lld s ahead of ours", s->remote.shown,
		 (long long)s->clock_ahead_s);
	return true;
}

/* Is it the region? Errors name the right one. */
static bool take_region(struct s3 *s, const struct http_answer *a)
{
	char region[S3_REGION_MAX];
	size_t len;
	const char *header = http_answer_header(a, "x-amz-bucket-region", &len);

	if (a->status != 301 && a->status != 307 && a->status != 400)
		return false;
	if (header && len < sizeof(region))
		snprintf(region, sizeof(region), "%.*s", (int)len, header);
	else if (!xml_find(a->body, a->len, "Region", region, sizeof(region)))
		return false;
	if (!s3__is_region(region) || !strcmp(region, s->region))
		return false;
	memcpy(s->region, region, sizeof(region));
	return !s3__locate(s, NULL);
}

struct remote_result s3__ask(struct s3 *s, const struct s3_request *r, struct http_answer *ret,
			     char ret_code[static S3_CODE_MAX], char *ret_sum, struct err *e)
{
	bool clock_taken = false, region_taken = false, again = false;

	for (;;) {
		const enum status st = s3_ask_once(s, r, ret, &again, ret_sum, e);

		ret_code[0] = '\0';
		if (st)
			return (struct remote_result){ .end = again ? REMOTE_AGAIN : REMOTE_NEVER };
		store_code(ret, ret_code);
		if (!clock_taken && take_clock(s, ret, ret_code))
			clock_taken = true;
		else if (!region_taken && take_region(s, ret))
			region_taken = true;
		else
			return judge_s3_answer(ret, ret_code, e);
		http_answer_deinit(ret);
	}
}
