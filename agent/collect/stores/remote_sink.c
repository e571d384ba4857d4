/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address: what is written goes to another machine, and no byte of it stays here but those that
 * wait in the uploader's spool. It cannot be taken back or read again. Whatever ends early is
 * completed there as far as it goes.
 */
#include "agent/collect/stores/remote_sink.h"

#include <string.h>

#include "agent/collect/stores/network_options.h"
#include "agent/shared/output/output_sink.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

struct remote_output {
	struct output output;
	struct uploader *uploader;
};

static struct uploader *uploader_of(const struct output *o)
{
	return ((const struct remote_output *)o)->uploader;
}

static enum status remote_write(struct output *o, const void *p, size_t len, struct err *e)
{
	return uploader_write(uploader_of(o), p, len, e);
}

static double remote_backlog(const struct output *o)
{
	return uploader_backlog(uploader_of(o));
}

static enum status remote_commit(struct output *o, struct err *e)
{
	return uploader_finish(uploader_of(o), true, e);
}

static enum status remote_keep(struct output *o, struct err *e)
{
	return uploader_finish(uploader_of(o), false, e);
}

static void remote_discard(struct output *o)
{
	uploader_abandon(uploader_of(o));
}

static void remote_destroy_output(struct output *o)
{
	uploader_destroy(uploader_of(o));
	free(o);
}

static bool remote_is_at(const struct output *o, const char *path)
{
	return !strcmp(uploader_shown(uploader_of(o)), path);
}

static const char *remote_path(const struct output *o)
{
	return uploader_shown(uploader_of(o));
}

/* As long as nothing was completed there, nobody can read it there. */
static bool remote_holds(const struct output *o)
{
	const enum uploader_end end = uploader_end(uploader_of(o));

	return end == UPLOAD_COMPLETE || end == UPLOAD_SHORT;
}

/* A store that cannot lock says so when all is there. */
static enum status remote_kept(const struct output *o, struct err *e)
{
	return uploader_locked(uploader_of(o), e);
}

static json_t *remote_json(const struct output *o)
{
	struct uploader_stats s;

	uploader_stats(uploader_of(o), &s);
	return json_fields(JSON_FIELDS(
		field_text("to", uploader_shown(uploader_of(o))), field_u64("sent", s.sent),
		field_u64("acknowledged", s.acknowledged), field_u64("waits", s.waits),
		field_u64("waited_ns", s.waited_ns), field_u64("retries", s.retries),
		field_u64("spool_bytes", s.memory), field_u64("spooled_most", s.spooled_most),
		field_json("object_lock", uploader_lock_json(uploader_of(o)))));
}

static const struct output_ops remote_sink = {
	.name = "remote",
	.write = remote_write,
	.backlog = remote_backlog,
	.commit = remote_commit,
	.keep = remote_keep,
	.discard = remote_discard,
	.destroy = remote_destroy_output,
	.is_at = remote_is_at,
	.path = remote_path,
	.holds = remote_holds,
	.kept = remote_kept,
	.json = remote_json,
};

/* Stores allow so many pieces, and a large machine needs large ones. */
static void tell_memory(const struct network *n, struct uploader *u)
{
	struct uploader_stats s;
	char size[TEXT_SIZE_MAX];

	uploader_stats(u, &s);
	text_size(s.memory, size);
	if (s.memory > n->uploader.spool)
		log_warning("spool-larger", "%s: two parts of such an upload take %s of memory",
			    n->shown, size);
}

static void tell_how_to_finish(const struct uploader *u)
{
	_cleanup_free_ char *how = uploader_how_to_finish(u);

	if (how)
		log_info("upload-begins", "%s: if ramseal is killed, %s completes what has arrived",
			 uploader_shown(u), how);
}

static enum status start_uploader(struct network *n, const struct output_options *options,
				  struct uploader **ret, struct err *e)
{
	struct remote *r = NULL;
	enum status st;

	n->remote.replace = options->force;
	n->remote.expected = options->need.most;
	n->remote.exactly = options->need.exactly;
	st = remote_open(&n->remote, &r, e);
	if (!st)
		st = uploader_create(r, &n->uploader, ret, e);
	if (!st)
		tell_memory(n, *ret);
	if (!st)
		tell_how_to_finish(*ret);
	return st;
}

enum status remote_sink_open(const struct output_options *options, struct output **ret,
			     struct err *e)
{
	struct remote_output *o = calloc(1, sizeof(*o));
	enum status st;

	if (!o)
		return err_nomem(e);
	output_init(&o->output, &remote_sink, NULL);
	st = start_uploader(options->network, options, &o->uploader, e);
	if (st)
		free(o);
	else
		*ret = &o->output;
	return st;
}
