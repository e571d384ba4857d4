/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "https://HOST/PATH": one PUT (RFC 9110, 9.3.4), as a presigned URL and WebDAV take it. It cannot
 * be begun before the length is known, nor be gone on with where it broke. So it takes a file that
 * is there already. What is being acquired has no length yet, and servers do not take a PUT in
 * pieces (RFC 9110, 14.5: Content-Range in one is by "private agreement"): that is refused, rather
 * than kept on the disk until the end without having said so.
 */
#include <string.h>

#include "agent/network/remote.h"

struct put {
	struct remote remote;
	const struct remote_options *o;
	struct http *http;
	bool looked; /* that nothing of the name is there */
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
			       "https: a PUT must know its length beforehand; acquire into a file "
			       "and 'ramseal upload' that, or acquire to s3:// or tls://");
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
	{ 401, "the address does not allow this, or no longer" },
	{ 403, "the address does not allow this, or no longer" },
	{ 404, "there is no such folder" },
	{ 405, "the server takes no PUT" },
	{ 409, "there is no such folder" },
	{ 411, "the server takes no files of this size" },
	{ 412, "exists; --force replaces it" },
	{ 413, "the server takes no files of this size" },
	{ 501, "the server takes no PUT" },
	{ 507, "the server is full" },
};

static struct remote_result judge(const struct http_answer *a, struct err *e)
{
	struct remote_result ret = { .end = REMOTE_NEVER };
	const char *means = a->status >= 300 && a->status < 400
				    ? "the server sends us elsewhere: give it that address"
				    : "the server refuses";

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

static struct remote_result ask(struct put *p, const struct http_request *r, unsigned *ret_status,
				struct err *e)
{
	struct http_answer a = { 0 };
	bool again = false;
	struct remote_result ret = { .end = REMOTE_NEVER };

	*ret_status = 0;
	if (http_ask(p->http, r, &a, &again, e)) {
		ret.end = again ? REMOTE_AGAIN : REMOTE_NEVER;
		return ret;
	}
	*ret_status = a.status;
	ret = judge(&a, e);
	http_answer_deinit(&a);
	return ret;
}

/*
 * Servers that know no If-None-Match would replace what is there, so it is looked; a URL that is
 * signed for PUT alone does not let us.
 */
static struct remote_result look(struct put *p, struct err *e)
{
	const struct http_request head = { .method = "HEAD", .url = p->o->address };
	unsigned status;
	struct remote_result r = ask(p, &head, &status, e);

	if (r.end == REMOTE_AGAIN)
		return r;
	if (r.end == REMOTE_DONE) {
		err_set(e, ST_OUTPUT, "exists; --force replaces it");
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
	return !blob_read(arg, at, to, len, NULL);
}

static struct remote_result put_whole(struct remote *remote, struct blob *from, struct err *e)
{
	static const struct http_header create_only = { "if-none-match", "*" };
	struct put *p = put_of(remote);
	struct remote_result r = p->o->replace || p->looked ? done : look(p, e);
	const struct http_request request = { .method = "PUT",
					      .url = p->o->address,
					      .headers = &create_only,
					      .n_headers = !p->o->replace,
					      .read = read_blob,
					      .arg = from,
					      .len = (size_t)from->size,
					      .answer_s = HTTP_COMMIT_S };
	unsigned status;

	return r.end == REMOTE_DONE ? ask(p, &request, &status, e) : r;
}

const struct remote_ops remote_put = {
	.scheme = "https",
	.open = put_open,
	.whole = put_whole,
	.destroy = put_destroy,
};

/* To this machine only: remote_check_plain(). */
const struct remote_ops remote_put_plain = {
	.scheme = "http",
	.open = put_open,
	.whole = put_whole,
	.destroy = put_destroy,
};
