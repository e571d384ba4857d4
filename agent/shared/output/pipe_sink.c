/* SPDX-License-Identifier: Apache-2.0 */
/* A FIFO or a character device: whoever reads it has what was written, however it ends. */
#include "agent/shared/output/stream_sink.h"

enum status stream__create(const struct output_ops *ops, const struct target *t,
			   struct output **ret, struct err *e)
{
	struct stream_output *s = calloc(1, sizeof(*s));

	if (!s) {
		struct target unused = *t;

		target_deinit(&unused);
		return err_nomem(e);
	}
	output_init(&s->output, ops, NULL);
	s->target = *t;
	fd_sink_init(&s->fd, s->target.fd, s->target.path);
	*ret = &s->output;
	return ST_OK;
}

enum status stream__write(struct output *o, const void *p, size_t len, struct err *e)
{
	return sink_write(&((struct stream_output *)o)->fd.sink, p, len, e);
}

enum status stream__commit(struct output *o, struct err *e)
{
	return target_close(&((struct stream_output *)o)->target, e);
}

void stream__destroy(struct output *o)
{
	target_deinit(&((struct stream_output *)o)->target);
	free(o);
}

const char *stream__path(const struct output *o)
{
	return ((const struct stream_output *)o)->target.path;
}

static bool pipe_is_at(const struct output *o, const char *path)
{
	return target_is_device(&((const struct stream_output *)o)->target, path);
}

static enum status pipe_open(const struct output_options *options, struct output **ret,
			     struct err *e)
{
	struct target_facts facts;
	struct target t;
	enum status st = target_inspect(options->path, options->force, options->inputs, &facts, e);

	if (st || facts.is != PATH_IS_STREAM)
		return st ? st : ST_NOT_MINE;
	st = target_open_device(options->path, &facts, &t, e);
	if (st) {
		target_deinit(&t);
		return st;
	}
	return stream__create(&pipe_sink, &t, ret, e);
}

const struct output_ops pipe_sink = {
	.name = "pipe",
	.open = pipe_open,
	.write = stream__write,
	.commit = stream__commit,
	.keep = stream__commit,
	.destroy = stream__destroy,
	.is_at = pipe_is_at,
	.path = stream__path,
};
