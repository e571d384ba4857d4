/* SPDX-License-Identifier: Apache-2.0 */
/* Is what is complete locked as it was asked for (Amazon S3 API Reference, GetObjectRetention)? */
#include <string.h>

#include "agent/collect/stores/s3_internal.h"
#include "agent/collect/wire/xml.h"

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

static bool take_retention(const struct http_answer *a, struct object_lock *ret, struct err *e)
{
	char mode[32], until[64];

	*ret = (struct object_lock){ 0 };
	if (!xml_find(a->body, a->len, "Mode", mode, sizeof(mode)) ||
	    !xml_find(a->body, a->len, "RetainUntilDate", until, sizeof(until)) ||
	    !object_lock_parse_time(until, &ret->until)) {
		err_set(e, ST_OUTPUT, "the store does not say how long it retains the object");
		return false;
	}
	if (!strcmp(mode, "COMPLIANCE"))
		ret->mode = LOCK_COMPLIANCE;
	else if (!strcmp(mode, "GOVERNANCE"))
		ret->mode = LOCK_GOVERNANCE;
	return true;
}

static struct remote_result judge_lock(struct s3 *s, const struct http_answer *a, struct err *e)
{
	struct object_lock there, *asked = &s->remote.lock;
	char until[LOCK_TIME_SIZE];

	asked->seen = LOCK_MISSING;
	if (!take_retention(a, &there, e))
		return never;
	if (there.mode >= asked->mode && there.until >= asked->until) {
		asked->seen = LOCK_SEEN;
		return done;
	}
	object_lock_time(there.until, until);
	err_set(e, ST_OUTPUT, "the store retains the object in %s mode only until %s",
		object_lock_mode(there.mode), until);
	return never;
}

/*
 * The lock began with the upload (CreateMultipartUpload). Stores that know none may have passed it
 * over, so it is asked for; keys that may only create are refused, and then nobody knows.
 */
struct remote_result s3__lock(struct remote *remote, struct err *e)
{
	static const struct s3_request ask = { .method = "GET", .query = "retention=" };
	struct s3 *s = (struct s3 *)remote;
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r;

	object_lock_begin(&s->remote.lock, s3__time(s)); /* where another run has begun */
	r = s3__ask(s, &ask, &a, code, NULL, e);
	if (r.end == REMOTE_DONE)
		r = judge_lock(s, &a, e);
	else if (r.end == REMOTE_NEVER && a.status == 403)
		r = done;
	else if (r.end == REMOTE_NEVER && a.status) {
		s->remote.lock.seen = LOCK_MISSING;
		err_set(e, ST_OUTPUT, "the store did not lock the object (HTTP %u %s)", a.status,
			code);
	}
	http_answer_deinit(&a);
	return r;
}
