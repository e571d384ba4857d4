/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a completion was done whose answer was lost. */
#include "agent/collect/stores/s3_internal.h"

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

enum gone { GONE_NOT, GONE, GONE_UNKNOWN };

/*
 * Is the upload gone? A part of one byte tells, behind all others, which no completion names: keys
 * that may only create are allowed to send one. With as many parts as there can be there is none
 * behind them, and one of theirs must not be replaced.
 */
static struct remote_result is_gone(struct s3 *s, enum gone *ret, struct err *e)
{
	_cleanup_free_ char *query = s3__part_query(s, S3_PARTS_MAX);
	struct s3_request ask = s3__part_request(s, query, "", 1);
	struct http_answer a = { 0 };
	char code[S3_CODE_MAX];
	struct remote_result r;

	*ret = GONE_UNKNOWN;
	if (s->n_parts >= S3_PARTS_MAX)
		return done;
	if (!query) {
		err_nomem(e);
		return never;
	}
	r = s3__ask(s, &ask, &a, code, NULL, e);
	*ret = a.status == 404 ? GONE : GONE_NOT;
	if (r.end == REMOTE_NEVER && a.status)
		r = done;
	http_answer_deinit(&a);
	return r;
}

static struct remote_result completion_unknown(enum gone gone, struct err *e)
{
	err_set(e, ST_OUTPUT,
		"the answer to the completion was lost, and %s whether it succeeded: check there",
		gone == GONE_UNKNOWN ? "the store does not show"
				     : "the keys do not allow checking");
	return never;
}

struct remote_result s3__was_it_done(struct s3 *s, const struct s3_seen *seen, uint64_t total,
				     unsigned was, struct remote_result r, struct err *e)
{
	enum gone gone = was == 404 ? GONE : GONE_NOT;
	struct remote_result asked = done;
	struct err why = ERR_INIT;
	struct s3_seen now;

	if (!seen) {
		asked = s3__look(s, &now, &why);
		seen = &now;
	}
	if (asked.end == REMOTE_DONE && was == 412)
		asked = is_gone(s, &gone, &why);
	if (asked.end != REMOTE_DONE) {
		*e = why;
		return asked;
	}
	if (gone == GONE_NOT || seen->there == S3_THERE_NOTHING ||
	    (seen->there == S3_THERE_OBJECT && seen->size != total))
		return r;
	return gone == GONE_UNKNOWN || (seen->there == S3_THERE_UNKNOWN && was == 404)
		       ? completion_unknown(gone, e)
		       : done;
}
