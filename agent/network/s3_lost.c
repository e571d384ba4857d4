/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a completion was done whose answer was lost. */
#include "agent/network/s3_internal.h"

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

/*
 * Is the upload gone? A part of one byte tells, behind all others, which no completion names: keys
 * that may only create are allowed to send one.
 */
static struct remote_result is_gone(struct s3 *s, bool *ret, struct err *e)
{
	_cleanup_free_ char *query = s3__part_query(s, S3_PARTS_MAX);
	struct s3_request ask = s3__part_request(s, query, "", 1);
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r;

	*ret = false;
	if (s->n_parts >= S3_PARTS_MAX - 1)
		return done;
	if (!query) {
		err_nomem(e);
		return never;
	}
	r = s3__ask(s, &ask, &a, code, NULL, e);
	*ret = a.status == 404;
	if (r.end == REMOTE_NEVER && a.status)
		r = done;
	http_answer_deinit(&a);
	return r;
}

static struct remote_result not_known(struct err *e)
{
	err_set(e, ST_OUTPUT,
		"the answer to its completion was lost, and the keys do not let us see whether it "
		"was done: look there");
	return never;
}

struct remote_result s3__was_it_done(struct s3 *s, uint64_t total, unsigned was,
				     struct remote_result r, struct err *e)
{
	struct err why = ERR_INIT;
	enum s3_there there;
	uint64_t size;
	bool gone = was == 404;
	struct remote_result looked = s3__look(s, &there, &size, &why);

	if (looked.end == REMOTE_DONE && was == 412)
		looked = is_gone(s, &gone, &why);
	if (looked.end != REMOTE_DONE) {
		*e = why;
		return looked;
	}
	if (!gone || there == S3_THERE_NOTHING || (there == S3_THERE_OBJECT && size != total))
		return r;
	return there == S3_THERE_UNKNOWN && was == 404 ? not_known(e) : done;
}
