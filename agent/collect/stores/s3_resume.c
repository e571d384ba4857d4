/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an upload that another run began: which one it is, says a state file, --upload-id, or
 * the store (ListMultipartUploads); what it has, the store alone (ListParts).
 */
#include <inttypes.h>
#include <string.h>

#include "agent/collect/stores/s3_internal.h"
#include "agent/collect/stores/sigv4.h"
#include "agent/collect/wire/xml.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

static struct remote_result s3_resume_no_memory(struct err *e)
{
	err_nomem(e);
	return never;
}

json_t *s3__state(const struct remote *remote)
{
	const struct s3 *s = (const struct s3 *)remote;

	return json_fields(JSON_FIELDS(field_text("endpoint", s->endpoint),
				       field_text("region", s->region),
				       field_text("upload", s->upload)));
}

/*
 * Its parts
 */

/* One <Part> of the list, as its elements come. */
struct listed {
	uint64_t number, size;
	char etag[S3_ETAG_MAX], sum[STORE_SHA256_SIZE];
};

/* What does not fit is wrong anyway. */
static void copy_fitting_text(char *to, size_t size, const char *text)
{
	const size_t len = strlen(text);

	memcpy(to, text, len < size ? len : 0);
	to[len < size ? len : 0] = '\0';
}

static bool note_part_field(struct listed *l, const struct xml *x)
{
	if (!strcmp(x->name, "PartNumber"))
		l->number = strtoull(x->text, NULL, 10);
	else if (!strcmp(x->name, "Size"))
		l->size = strtoull(x->text, NULL, 10);
	else if (!strcmp(x->name, "ETag"))
		copy_fitting_text(l->etag, sizeof(l->etag), x->text);
	else if (!strcmp(x->name, "ChecksumSHA256"))
		copy_fitting_text(l->sum, sizeof(l->sum), x->text);
	return !strcmp(x->name, "Part");
}

/*
 * True as long as it goes on without a gap: the next number, and a whole one before it. The first
 * one tells how large a whole one is: nobody else knows, and none is larger.
 */
static bool note_listed_part(struct s3 *s, const struct listed *l, uint64_t *has)
{
	if (!s->n_parts)
		s->remote.piece_size = (size_t)l->size;
	if (l->number != s->n_parts + 1 || l->number > S3_PARTS_MAX || !l->size ||
	    *has % s->remote.piece_size || l->size > s->remote.piece_size ||
	    !s3__is_etag(l->etag, strlen(l->etag)))
		return false;
	*has += l->size;
	s->checksums |= l->sum[0] != '\0';
	return s3__keep_part(s, s->n_parts, l->etag, strlen(l->etag), l->sum);
}

/* *ret_more: the list goes on. */
static bool take_list(struct s3 *s, const struct http_answer *a, uint64_t *has, bool *ret_more)
{
	struct listed l = { 0 };
	struct xml x;

	*ret_more = false;
	xml_init(&x, a->body, a->len);
	while (xml_next(&x)) {
		if (!strcmp(x.name, "IsTruncated"))
			*ret_more = !strcmp(x.text, "true");
		if (!note_part_field(&l, &x))
			continue;
		if (!note_listed_part(s, &l, has)) {
			*ret_more = false;
			return true;
		}
		l = (struct listed){ 0 };
	}
	return !x.bad;
}

static struct remote_result list_parts(struct s3 *s, uint64_t *has, struct err *e)
{
	struct remote_result r = done;
	bool more = true;

	s->n_parts = 0;
	s->checksums = false;
	while (more && r.end == REMOTE_DONE) {
		_cleanup_free_ char *query = NULL;
		struct s3_request ask = { .method = "GET" };
		struct http_answer a = { 0 };
		char code[S3_CODE_MAX];
		const size_t before = s->n_parts;

		if (asprintf(&query, "part-number-marker=%zu&uploadId=%s", before, s->upload) < 0) {
			query = NULL;
			return s3_resume_no_memory(e);
		}
		ask.query = query;
		r = s3__ask(s, &ask, &a, code, NULL, e);
		if (r.end == REMOTE_DONE && !take_list(s, &a, has, &more)) {
			err_set(e, ST_OUTPUT, "the list of parts is malformed");
			r = never;
		}
		more = more && s->n_parts > before;
		http_answer_deinit(&a);
	}
	return r;
}

/*
 * Which upload it is
 */

/* So many of one name are told apart; they come first, because the list is in order. */
#define UPLOADS_MAX 100

/* One <Upload> of the list, as its elements come. */
struct unfinished {
	char key[XML_TEXT_MAX], id[XML_TEXT_MAX], begun[40];
};

static bool note_upload(struct unfinished *u, const struct xml *x)
{
	if (!strcmp(x->name, "Key"))
		copy_fitting_text(u->key, sizeof(u->key), x->text);
	else if (!strcmp(x->name, "UploadId"))
		copy_fitting_text(u->id, sizeof(u->id), x->text);
	else if (!strcmp(x->name, "Initiated"))
		copy_fitting_text(u->begun, sizeof(u->begun), x->text);
	return !strcmp(x->name, "Upload");
}

/* Names it, so that --upload-id can: nothing that the store says is shown as it came. */
static void tell_upload(const struct s3 *s, const struct unfinished *u)
{
	_cleanup_free_ char *id = uri_encode(u->id, false);
	const bool is_time = strspn(u->begun, "0123456789-:.TZ") == strlen(u->begun);

	if (id)
		log_warning("unfinished-upload", "%s: unfinished since %s: --upload-id %s",
			    s->remote.shown, is_time && *u->begun ? u->begun : "?", id);
}

/* How many have the name; the last one is *ret. `tell`: says which. */
static bool take_uploads(const struct s3 *s, const struct http_answer *a, bool tell,
			 struct unfinished *ret, size_t *ret_n)
{
	struct unfinished u = { 0 };
	struct xml x;

	*ret_n = 0;
	xml_init(&x, a->body, a->len);
	while (xml_next(&x)) {
		if (!note_upload(&u, &x))
			continue;
		if (!strcmp(u.key, s->key) && u.id[0]) {
			if (tell)
				tell_upload(s, &u);
			*ret = u;
			++*ret_n;
		}
		u = (struct unfinished){ 0 };
	}
	return !x.bad;
}

static struct remote_result judge_uploads(struct s3 *s, const struct http_answer *a, struct err *e)
{
	struct unfinished u = { 0 };
	size_t n;

	if (!take_uploads(s, a, false, &u, &n)) {
		err_set(e, ST_OUTPUT, "the list of uploads is malformed");
		return never;
	}
	if (!n) {
		err_set(e, ST_OUTPUT,
			"there is no unfinished upload of this name: it was completed or removed, "
			"or never started");
		return never;
	}
	if (n > 1) {
		take_uploads(s, a, true, &u, &n);
		err_set(e, ST_OUTPUT,
			"there are %zu unfinished uploads of this name: choose one with "
			"--upload-id",
			n);
		return never;
	}
	s->upload = uri_encode(u.id, false);
	return s->upload ? done : s3_resume_no_memory(e);
}

static struct remote_result find_upload(struct s3 *s, struct err *e)
{
	_cleanup_free_ char *key = uri_encode(s->key, false), *query = NULL;
	struct s3_request ask = { .method = "GET", .of_bucket = true };
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r;

	if (!key || asprintf(&query, "max-uploads=%d&prefix=%s&uploads=", UPLOADS_MAX, key) < 0) {
		query = NULL;
		return s3_resume_no_memory(e);
	}
	ask.query = query;
	r = s3__ask(s, &ask, &a, code, NULL, e);
	if (r.end == REMOTE_DONE)
		r = judge_uploads(s, &a, e);
	http_answer_deinit(&a);
	return r;
}

/* As tell_upload() and the state have it, or as the store itself. */
static struct remote_result take_id(struct s3 *s, const char *id, struct err *e)
{
	static const char encoded[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-._~%";

	s->upload = strspn(id, encoded) == strlen(id) ? strdup(id) : uri_encode(id, false);
	return s->upload ? done : s3_resume_no_memory(e);
}

static struct remote_result s3_use_state(struct s3 *s, const json_t *state, struct err *e)
{
	const char *upload = json_string_value(json_object_get(state, "upload"));
	const char *region = json_string_value(json_object_get(state, "region"));
	const char *endpoint = json_string_value(json_object_get(state, "endpoint"));

	if ((endpoint && s3__check_endpoint(endpoint, NULL)) || !upload || !region ||
	    strlen(region) >= sizeof(s->region) || !s3__is_region(region)) {
		return (struct remote_result){
			.end = REMOTE_NEVER,
			.st = err_set(e, ST_INPUT, "the state file is not for an upload to s3"),
		};
	}
	if (!s->endpoint && endpoint && !(s->endpoint = strdup(endpoint)))
		return s3_resume_no_memory(e);
	strcpy(s->region, region);
	if (s3__locate(s, e))
		return s3_resume_no_memory(e);
	return remote_check_url(s->base, &s->o->http, e) ? never : take_id(s, upload, e);
}

struct remote_result s3__resume(struct remote *remote, const json_t *state, uint64_t *ret_has,
				struct err *e)
{
	struct s3 *s = (struct s3 *)remote;
	struct remote_result r;

	if (s->remote.lock.days && !s->remote.lock.until)
		return (struct remote_result){
			.end = REMOTE_NEVER,
			.st = err_set(e, ST_USAGE,
				      "--object-lock: days count from the upload that was cut off; "
				      "give a time instead"),
		};
	free(s->upload);
	s->upload = NULL;
	if (state)
		r = s3_use_state(s, state, e);
	else
		r = s->o->upload ? take_id(s, s->o->upload, e) : find_upload(s, e);
	*ret_has = 0;
	return r.end == REMOTE_DONE ? list_parts(s, ret_has, e) : r;
}
