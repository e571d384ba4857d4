/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "s3://BUCKET/KEY": a multipart upload (Amazon S3 API Reference, CreateMultipartUpload to
 * CompleteMultipartUpload) to Amazon or to whatever AWS_ENDPOINT_URL names. All parts but the last
 * have one size, which Cloudflare R2 demands. What is there is completed, never aborted, unless it
 * is worth nothing.
 *
 * "gs://BUCKET/OBJECT" is the same at Google's Cloud Storage, whose XML API takes S3's requests and
 * signatures with HMAC keys (its documentation, "Simple migration from Amazon S3").
 */
#include <inttypes.h>
#include <string.h>

#include "agent/collect/stores/s3_internal.h"
#include "agent/collect/stores/sigv4.h"
#include "agent/collect/wire/xml.h"
#include "agent/shared/program/address.h"
#include "agent/shared/program/text.h"
#include "formats/base/array.h"

static struct s3 *s3_of(struct remote *r)
{
	return (struct s3 *)r;
}

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

static struct remote_result s3_no_memory(struct err *e)
{
	err_nomem(e);
	return never;
}

/*
 * Opening
 */

enum status s3__check_endpoint(const char *url, struct err *e)
{
	const char *host = strstr(url, "://");

	if (strncmp(url, "http", 4) != 0 || !host || address_is_secret(url) ||
	    strchr(host + 3, '/'))
		return err_set(e, ST_USAGE, "AWS_ENDPOINT_URL takes https://HOST[:PORT]");
	return ST_OK;
}

static enum status check_keys(const struct remote_options *o, struct err *e)
{
	if (!o->keys || !o->keys->id.text || !o->keys->secret.text)
		return err_set(e, ST_USAGE,
			       "%.2s: needs %skeys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
			       "or --keys",
			       o->address, *o->address == 'g' ? "HMAC " : "");
	return o->keys->endpoint ? s3__check_endpoint(o->keys->endpoint, e) : ST_OK;
}

static enum status s3_parse_address(struct s3 *s, const char *address, struct err *e)
{
	const char *bucket = address + strlen("s3://"), *slash = strchr(bucket, '/');

	if (!slash || slash == bucket || !slash[1])
		return err_set(e, ST_USAGE, "the address is not %s://BUCKET/KEY",
			       s->kind->ops->scheme);
	if (memchr(bucket, '@', (size_t)(slash - bucket)))
		return err_set(e, ST_USAGE, "%s: keys do not belong in the address: see --keys",
			       s->kind->ops->scheme);
	s->bucket = text_copy(bucket, (size_t)(slash - bucket));
	s->key = strdup(slash + 1);
	s->remote.shown = strdup(address);
	return s->bucket && s->key && s->remote.shown ? ST_OK : err_nomem(e);
}

static void s3_destroy(struct remote *r)
{
	struct s3 *s = s3_of(r);

	http_destroy(s->http);
	sha256_destroy(s->hash);
	free(s->remote.shown);
	free(s->endpoint);
	free(s->bucket);
	free(s->key);
	free(s->base);
	free(s->path);
	free(s->bucket_path);
	free(s->upload);
	free(s->parts);
	free(s);
}

static enum status open_s3(struct s3 *s, struct err *e)
{
	const char *region = s->kind->region ? s->kind->region : s->o->keys->region;
	enum status st = s3_parse_address(s, s->o->address, e);

	if (st)
		return st;
	if (region && strlen(region) >= sizeof(s->region))
		return err_set(e, ST_USAGE, "AWS_REGION is not a region");
	strcpy(s->region, region && *region ? region : "us-east-1");
	if (!s3__is_region(s->region))
		return err_set(e, ST_USAGE, "AWS_REGION is not a region");
	if (s->o->keys->endpoint && !(s->endpoint = strdup(s->o->keys->endpoint)))
		return err_nomem(e);
	st = s3__locate(s, e);
	if (!st)
		st = remote_check_url(s->base, &s->o->http, e);
	if (!st)
		st = sha256_create(&s->hash, e);
	return st ? st : http_create(&s->o->http, &s->http, e);
}

static enum status s3_open_kind(const struct s3_kind *kind, const struct remote_options *o,
				struct remote **ret, struct err *e)
{
	enum status st = check_keys(o, e);
	struct s3 *s;

	if (st)
		return st;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(e);
	s->remote.ops = kind->ops;
	s->kind = kind;
	s->o = o;
	st = open_s3(s, e);
	if (st)
		s3_destroy(&s->remote);
	else
		*ret = &s->remote;
	return st;
}

static enum status s3_open(const struct remote_options *o, struct remote **ret, struct err *e)
{
	static const struct s3_kind kind = { .ops = &remote_s3 };

	return s3_open_kind(&kind, o, ret, e);
}

static enum status gs_open(const struct remote_options *o, struct remote **ret, struct err *e)
{
	static const struct s3_kind kind = { .ops = &remote_gs,
					     .endpoint = "https://storage.googleapis.com",
					     .region = "auto",
					     .only_looks = true };

	return s3_open_kind(&kind, o, ret, e);
}

/*
 * Beginning
 */

struct remote_result s3__look(struct s3 *s, struct s3_seen *ret, struct err *e)
{
	const struct s3_request ask = { .method = "HEAD", .query = "" };
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r = s3__ask(s, &ask, &a, code, NULL, e);
	size_t len;
	const char *length = http_answer_header(&a, "content-length", &len);

	ret->there = r.end == REMOTE_DONE ? S3_THERE_OBJECT
		     : a.status == 404    ? S3_THERE_NOTHING
					  : S3_THERE_UNKNOWN;
	ret->size = length ? strtoull(length, NULL, 10) : 0;
	if (r.end == REMOTE_NEVER && a.status)
		r = done;
	http_answer_deinit(&a);
	return r;
}

static struct remote_result s3_name_taken(struct err *e)
{
	err_set(e, ST_OUTPUT, "exists; choose another name, or --force replaces it");
	return never;
}

static struct remote_result name_unseen(struct err *e)
{
	err_set(e, ST_OUTPUT,
		"the store can neither refuse to overwrite nor say whether the name exists; "
		"--force overwrites");
	return never;
}

/* 9,000 of 10,000 parts, whole MiB: what is expected may come out a little larger. */
static size_t part_size(uint64_t expected)
{
	const uint64_t mib = (uint64_t)1 << 20, least = (expected + 8999) / 9000;

	return (size_t)MAX(S3_PART_LEAST, (least + mib - 1) / mib * mib);
}

static struct remote_result take_upload(struct s3 *s, const struct http_answer *a, struct err *e)
{
	char id[XML_TEXT_MAX];
	size_t len;

	if (!xml_find(a->body, a->len, "UploadId", id, sizeof(id)) || !*id) {
		err_set(e, ST_OUTPUT, "the answer has no upload ID");
		return never;
	}
	free(s->upload);
	s->upload = uri_encode(id, false);
	s->checksums = http_answer_header(a, "x-amz-checksum-algorithm", &len);
	s->remote.piece_size = part_size(s->o->expected);
	return s->upload ? done : s3_no_memory(e);
}

/* These codes are for all that is wrong in a request, and this is what can be. */
static bool refuses_lock(const char *code)
{
	return !strcmp(code, "InvalidRequest") || !strcmp(code, "InvalidArgument") ||
	       !strcmp(code, "ObjectLockConfigurationNotFoundError");
}

static struct remote_result s3_begin(struct remote *remote, struct err *e)
{
	struct s3 *s = s3_of(remote);
	const struct s3_request ask = { .method = "POST",
					.query = "uploads=",
					.checksum_algorithm = s->kind->only_looks ? NULL : "SHA256",
					.locks = true };
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct s3_seen seen = { .there = S3_THERE_NOTHING };
	struct remote_result r = s->o->replace ? done : s3__look(s, &seen, e);

	if (r.end != REMOTE_DONE)
		return r;
	if (seen.there == S3_THERE_OBJECT)
		return s3_name_taken(e);
	if (seen.there == S3_THERE_UNKNOWN && s->kind->only_looks)
		return name_unseen(e);
	r = s3__ask(s, &ask, &a, code, NULL, e);
	if (r.end == REMOTE_DONE)
		r = take_upload(s, &a, e);
	else if (s->o->lock.mode && refuses_lock(code))
		err_set(e, ST_OUTPUT,
			"the store refused the lock (HTTP %u %s): enable Object Lock for the "
			"bucket, and choose a time in the future",
			a.status, code);
	http_answer_deinit(&a);
	return r;
}

/*
 * Parts
 */

char *s3__part_query(const struct s3 *s, uint64_t number)
{
	char *ret;

	if (asprintf(&ret, "partNumber=%" PRIu64 "&uploadId=%s", number, s->upload) < 0)
		return NULL;
	return ret;
}

/* Under a lock S3 wants one of both sums (API Reference, UploadPart, Content-MD5). */
struct s3_request s3__part_request(const struct s3 *s, const char *query, const void *p, size_t len)
{
	return (struct s3_request){
		.method = "PUT",
		.query = query,
		.body = p,
		.len = len,
		.sum = s->checksums,
		.md5 = !s->checksums && (s->remote.lock.mode || s->kind->only_looks),
	};
}

static char *upload_query(const struct s3 *s)
{
	char *ret;

	return asprintf(&ret, "uploadId=%s", s->upload) < 0 ? NULL : ret;
}

bool s3__keep_part(struct s3 *s, size_t index, const char *etag, size_t len, const char *sum)
{
	struct s3_part *p;

	while (index >= s->room) {
		p = array_grow(s->parts, &s->room, sizeof(*p));
		if (!p)
			return false;
		s->parts = p;
	}
	p = &s->parts[index];
	snprintf(p->etag, sizeof(p->etag), "%.*s", (int)len, etag);
	snprintf(p->sum, sizeof(p->sum), "%s", sum);
	s->n_parts = MAX(s->n_parts, index + 1);
	return true;
}

bool s3__is_etag(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || strchr("<>&", text[i]))
			return false;
	return len && len < S3_ETAG_MAX;
}

static struct remote_result note_part_stored(struct s3 *s, const struct remote_piece *p,
					     const struct http_answer *a, const char *sum,
					     struct err *e)
{
	size_t len = 0;
	const char *etag = http_answer_header(a, "etag", &len);

	if (!etag || !s3__is_etag(etag, len)) {
		err_set(e, ST_OUTPUT, "the answer to a part has no ETag");
		return (struct remote_result){ .end = REMOTE_AGAIN };
	}
	return s3__keep_part(s, (size_t)p->number, etag, len, sum) ? done : s3_no_memory(e);
}

static struct remote_result s3_put(struct remote *remote, const struct remote_piece *p,
				   uint64_t *acknowledged, struct err *e)
{
	struct s3 *s = s3_of(remote);
	_cleanup_free_ char *query = s3__part_query(s, p->number + 1);
	const struct s3_request ask = s3__part_request(s, query, p->at, p->len);
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX], sum[STORE_SHA256_SIZE];
	struct remote_result r;

	if (!query)
		return s3_no_memory(e);
	if (p->number >= S3_PARTS_MAX) {
		err_set(e, ST_OUTPUT, "more data than expected: all %d parts are used",
			S3_PARTS_MAX);
		return never;
	}
	r = s3__ask(s, &ask, &a, code, sum, e);
	if (r.end == REMOTE_DONE)
		r = note_part_stored(s, p, &a, sum, e);
	if (r.end == REMOTE_DONE)
		*acknowledged = p->offset + p->len;
	http_answer_deinit(&a);
	return r;
}

/*
 * The end
 */

/* All of a part's text has bounds: s3__is_etag(), base64. */
#define PART_TEXT_MAX (S3_ETAG_MAX + STORE_SHA256_SIZE + 128)

static char *completion(const struct s3 *s, size_t n, size_t *ret_len)
{
	char *ret = malloc(n * PART_TEXT_MAX + 100), *at = ret;

	if (!ret)
		return NULL;
	at += sprintf(at, "<CompleteMultipartUpload "
			  "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (size_t i = 0; i < n; i++) {
		at += sprintf(at, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag>", i + 1,
			      s->parts[i].etag);
		if (s->checksums && s->parts[i].sum[0])
			at += sprintf(at, "<ChecksumSHA256>%s</ChecksumSHA256>", s->parts[i].sum);
		at += sprintf(at, "</Part>");
	}
	at += sprintf(at, "</CompleteMultipartUpload>");
	*ret_len = (size_t)(at - ret);
	return ret;
}

/*
 * At a store that knows no create-only at this place, the next best. REMOTE_DONE if nothing has the
 * name; *ret_ours: or what was asked for before, and whose answer was lost.
 */
static struct remote_result look_first(struct s3 *s, uint64_t total, bool *ret_ours, struct err *e)
{
	struct s3_seen seen;
	struct remote_result r = s3__look(s, &seen, e);

	*ret_ours = false;
	if (r.end != REMOTE_DONE)
		return r;
	if (seen.there == S3_THERE_OBJECT && s->unsure) {
		r = s3__was_it_done(s, &seen, total, 412, s3_name_taken(e), e);
		*ret_ours = r.end == REMOTE_DONE;
		return r;
	}
	if (seen.there == S3_THERE_OBJECT)
		return s3_name_taken(e);
	return seen.there == S3_THERE_UNKNOWN ? name_unseen(e) : done;
}

static struct remote_result without_condition(struct s3 *s, uint64_t total, struct err *e)
{
	bool ours;
	const struct remote_result r = look_first(s, total, &ours, e);

	if (r.end != REMOTE_DONE || ours)
		return r;
	s->unconditional = true;
	err_set(e, ST_OUTPUT, "the store does not support creating without overwriting");
	return (struct remote_result){ .end = REMOTE_AGAIN };
}

/*
 * A status of 2xx was sent before it was tried, so that it says nothing; what comes with it may be
 * an error, or a page of something between us. The outermost element is the last to end.
 */
static bool is_completion(const struct http_answer *a)
{
	bool ret = false;
	struct xml x;

	xml_init(&x, a->body, a->len);
	while (xml_next(&x))
		ret = !strcmp(x.name, "CompleteMultipartUploadResult");
	return ret && !x.bad;
}

static struct remote_result ask_complete(struct s3 *s, const struct s3_request *ask, uint64_t total,
					 struct err *e)
{
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r = s3__ask(s, ask, &a, code, NULL, e);

	if (r.end == REMOTE_DONE && !is_completion(&a)) {
		err_set(e, ST_OUTPUT, "the store did not confirm that the upload is complete");
		r.end = REMOTE_AGAIN;
	}
	if (s->unsure && r.end == REMOTE_NEVER && (a.status == 404 || a.status == 412))
		r = s3__was_it_done(s, NULL, total, a.status, r, e);
	else if (ask->create_only && a.status == 501)
		r = without_condition(s, total, e);
	s->unsure |= r.end == REMOTE_AGAIN && a.status != 501;
	http_answer_deinit(&a);
	return r;
}

static struct remote_result s3_finish(struct remote *remote, uint64_t total, bool sealed,
				      struct err *e)
{
	struct s3 *s = s3_of(remote);
	const size_t n = (size_t)((total + s->remote.piece_size - 1) / s->remote.piece_size);
	_cleanup_free_ char *query = upload_query(s), *body = NULL;
	struct s3_request ask = { .method = "POST",
				  .query = query,
				  .content_type = "application/xml",
				  .create_only = !s->o->replace && !s->unconditional &&
						 !s->kind->only_looks,
				  .last = true };
	bool ours = false;
	struct remote_result r = done;

	if (n > s->n_parts) {
		err_set(e, ST_OUTPUT, "parts are missing");
		return never;
	}
	body = completion(s, n, &ask.len);
	if (!query || !body)
		return s3_no_memory(e);
	if (s->kind->only_looks && !s->o->replace)
		r = look_first(s, total, &ours, e);
	if (r.end != REMOTE_DONE || ours)
		return r;
	ask.body = body;
	return ask_complete(s, &ask, total, e);
}

static struct remote_result s3_abandon(struct remote *remote, struct err *e)
{
	struct s3 *s = s3_of(remote);
	_cleanup_free_ char *query = s->upload ? upload_query(s) : NULL;
	const struct s3_request ask = { .method = "DELETE", .query = query };
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r;

	if (!s->upload)
		return done;
	if (!query)
		return s3_no_memory(e);
	r = s3__ask(s, &ask, &a, code, NULL, e);
	if (a.status == 404)
		r = done;
	http_answer_deinit(&a);
	return r;
}

/*
 * A part of an upload that is aborted: whoever may create objects may send parts, too, and nothing
 * of it is ever an object. Each time another one, because a store may have to keep the one before.
 */
static struct remote_result s3_probe(struct remote *remote, const void *p, size_t len,
				     struct err *e)
{
	const uint64_t number = s3_of(remote)->n_parts;
	uint64_t acknowledged = 0;

	return s3_put(remote, &(struct remote_piece){ .number = number, .at = p, .len = len },
		      &acknowledged, e);
}

const struct remote_ops remote_s3 = {
	.scheme = "s3",
	.form = "s3://BUCKET/KEY",
	.help = "an object in Amazon S3, or in the compatible store at AWS_ENDPOINT_URL",
	.open = s3_open,
	.begin = s3_begin,
	.put = s3_put,
	.finish = s3_finish,
	.probe = s3_probe,
	.probe_is = "an upload that never becomes an object, with what was sent,",
	.lock = s3__lock,
	.abandon = s3_abandon,
	.state = s3__state,
	.resume = s3__resume,
	.destroy = s3_destroy,
};

const struct remote_ops remote_gs = {
	.scheme = "gs",
	.form = "gs://BUCKET/OBJECT",
	.help = "an object in Google Cloud Storage, with HMAC keys",
	.open = gs_open,
	.begin = s3_begin,
	.put = s3_put,
	.finish = s3_finish,
	.probe = s3_probe,
	.probe_is = "an upload that never becomes an object, with what was sent,",
	.abandon = s3_abandon,
	.state = s3__state,
	.resume = s3__resume,
	.destroy = s3_destroy,
};
