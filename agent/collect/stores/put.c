/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "https://HOST/PATH": one PUT (RFC 9110, 9.3.4), as a presigned URL and WebDAV take it. It cannot
 * be begun before the length is known, nor be gone on with where it broke. So it takes a file that
 * is there already. What is being acquired has no length yet, and servers do not take a PUT in
 * pieces (RFC 9110, 14.5: Content-Range in one is by "private agreement"): that is refused, rather
 * than kept on the disk until the end without having said so.
 */
#include <string.h>

#include "agent/collect/stores/put_proof.h"
#include "agent/collect/stores/remote.h"
#include "agent/shared/program/address.h"

struct put {
	struct remote remote;
	const struct remote_options *o;
	struct http *http;
	struct blob *from;
	bool looked; /* that nothing of the name is there */
	bool gone;   /* all of it went out once */
	bool unsure; /* and no answer said that it was taken, or that it never will be */
	bool exists; /* something does now, which may be ours */
};

static struct put *put_of(struct remote *r)
{
	return (struct put *)r;
}

static const struct remote_result done = { .end = REMOTE_DONE };

static void put_destroy(struct remote *r)
{
	http_destroy(put_of(r)->http);
	free(r->shown);
	free(r);
}

static enum status put_open(const struct remote_options *o, struct remote **ret, struct err *e)
{
	enum status st = remote_check_url(o->address, &o->http, e);
	struct put *p;

	if (st)
		return st;
	if (!o->exactly)
		return err_set(e, ST_USAGE,
			       "https: a PUT must know its length in advance; acquire into a file "
			       "and use 'ramseal upload', or acquire to s3:// or tls://");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(e);
	p->remote.ops = &remote_put;
	p->o = o;
	p->remote.shown = address_shown(o->address);
	st = p->remote.shown ? http_create(&o->http, &p->http, e) : err_nomem(e);
	if (st)
		put_destroy(&p->remote);
	else
		*ret = &p->remote;
	return st;
}

static const struct {
	unsigned status;
	const char *means;
} meanings[] = {
	{ 401, "the address does not allow this, or has expired" },
	{ 403, "the address does not allow this, or has expired" },
	{ 404, "there is no such directory" },
	{ 405, "the server does not accept PUT" },
	{ 409, "there is no such directory" },
	{ 411, "the server does not accept files of this size" },
	{ 412, "exists; choose another name, or --force replaces it" },
	{ 413, "the server does not accept files of this size" },
	{ 501, "the server does not accept PUT" },
	{ 507, "the server is full" },
};

/* That it misses a certificate, or takes no such, nginx says in the page of a 400 alone. */
static const char *meaning_otherwise(const struct http_answer *a)
{
	if (a->status >= 300 && a->status < 400)
		return "the server redirects to another address: use that one";
	if (a->status == 400 && a->len && strstr(a->body, "SSL certificate"))
		return "the server requires a client certificate that it trusts: see --client-cert";
	return "the server refuses";
}

static struct remote_result judge_put_answer(const struct http_answer *a, struct err *e)
{
	struct remote_result ret = { .end = REMOTE_NEVER };
	const char *means = meaning_otherwise(a);

	if (a->status == 200 || a->status == 201 || a->status == 204)
		return done;
	if (http_status_is_passing(a->status) && a->status != 507)
		ret.end = REMOTE_AGAIN;
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].status == a->status)
			means = meanings[i].means;
	if (a->retry_after_s > 0)
		ret.wait_ms = (unsigned)a->retry_after_s * 1000;
	err_set(e, ST_OUTPUT, "%s (HTTP %u)", means, a->status);
	return ret;
}

/* *ret: for http_answer_deinit(); without an answer its status is 0. */
static struct remote_result ask_for(struct put *p, const struct http_request *r,
				    struct http_answer *ret, struct err *e)
{
	bool again = false;

	if (http_ask(p->http, r, ret, &again, e))
		return (struct remote_result){ .end = again ? REMOTE_AGAIN : REMOTE_NEVER };
	p->remote.answered = true;
	return judge_put_answer(ret, e);
}

static struct remote_result put_ask(struct put *p, const struct http_request *r,
				    unsigned *ret_status, struct err *e)
{
	struct http_answer a = { 0 };
	const struct remote_result ret = ask_for(p, r, &a, e);

	*ret_status = a.status;
	http_answer_deinit(&a);
	return ret;
}

/*
 * Servers that know no If-None-Match would replace what is there, so it is looked; a URL that is
 * signed for PUT alone does not let us.
 */
static struct remote_result check_target_absent(struct put *p, struct err *e)
{
	const struct http_request head = { .method = "HEAD", .url = p->o->address };
	unsigned status;
	struct remote_result r = put_ask(p, &head, &status, e);

	if (r.end == REMOTE_AGAIN)
		return r;
	if (r.end == REMOTE_DONE) {
		err_set(e, ST_OUTPUT, "exists; choose another name, or --force replaces it");
		r.end = REMOTE_NEVER;
		return r;
	}
	if (!status)
		return r;
	p->looked = true;
	return done;
}

static bool read_blob(void *arg, uint64_t at, void *to, size_t len)
{
	struct put *p = arg;

	p->gone |= at + len == p->from->size;
	return !blob_read(p->from, at, to, len, NULL);
}

/*
 * It was not there, may have been taken when the answer was lost, and now something is. The length
 * alone only tells what is not ours.
 */
static struct remote_result is_it_ours(struct put *p, struct err *e)
{
	const struct http_request head = { .method = "HEAD", .url = p->o->address };
	struct http_answer a = { 0 };
	struct remote_result ret = ask_for(p, &head, &a, e);
	size_t len;
	const char *length = http_answer_header(&a, "content-length", &len);
	const bool there = ret.end == REMOTE_DONE;

	if (ret.end != REMOTE_AGAIN)
		ret.end = REMOTE_NEVER;
	if (there && length && strtoull(length, NULL, 10) != p->from->size)
		err_set(e, ST_OUTPUT, "exists; choose another name, or --force replaces it");
	else if (there && put_is_proven(&a, p->from, &p->o->http))
		ret = done;
	else if (a.status == 404)
		err_set(e, ST_OUTPUT,
			"was refused because the name existed, but it does not exist any more: "
			"send it again");
	else if (ret.end == REMOTE_NEVER && a.status)
		err_set(e, ST_OUTPUT,
			"exists, and may be this file, because an answer was lost: compare the "
			"SHA-256, or replace it with --force");
	http_answer_deinit(&a);
	return ret;
}

static struct remote_result put_whole(struct remote *remote, struct blob *from, struct err *e)
{
	static const struct http_header create_only = { "if-none-match", "*" };
	struct put *p = put_of(remote);
	const struct http_request request = { .method = "PUT",
					      .url = p->o->address,
					      .headers = &create_only,
					      .n_headers = !p->o->replace,
					      .read = read_blob,
					      .arg = p,
					      .len = (size_t)from->size,
					      .answer_s = HTTP_COMMIT_S,
					      .anew = true };
	struct remote_result r;
	unsigned status;

	p->from = from;
	if (p->exists)
		return is_it_ours(p, e);
	r = p->o->replace || p->looked ? done : check_target_absent(p, e);
	if (r.end != REMOTE_DONE)
		return r;
	r = put_ask(p, &request, &status, e);
	p->exists = p->unsure && status == 412;
	p->unsure |= p->gone && r.end == REMOTE_AGAIN;
	return p->exists ? is_it_ours(p, e) : r;
}

const struct remote_ops remote_put = {
	.scheme = "https",
	.form = "https://HOST/PATH",
	.help = "a web server or presigned URL that accepts PUT; for a finished file only, with "
		"'upload'",
	.open = put_open,
	.whole = put_whole,
	.destroy = put_destroy,
};

/* To this machine only: remote_check_url(). */
const struct remote_ops remote_put_plain = {
	.scheme = "http",
	.open = put_open,
	.whole = put_whole,
	.destroy = put_destroy,
};
