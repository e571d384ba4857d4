/* SPDX-License-Identifier: Apache-2.0 */
/* "-": what the shell connected us to. From then on nothing else that is printed gets there. */
#include <string.h>

#include "agent/shared/output/stream_sink.h"

static bool stdout_is_at(const struct output *o, const char *path)
{
	return !strcmp(path, "-");
}

static enum status stdout_open(const struct output_options *options, struct output **ret,
			       struct err *e)
{
	struct target t;
	enum status st;

	if (strcmp(options->path, "-") != 0)
		return ST_NOT_MINE;
	st = target_open_stdout(&t, e);
	if (st) {
		target_deinit(&t);
		return st;
	}
	return stream__create(&stdout_sink, &t, ret, e);
}

const struct output_ops stdout_sink = {
	.name = "stdout",
	.open = stdout_open,
	.write = stream__write,
	.commit = stream__commit,
	.keep = stream__commit,
	.destroy = stream__destroy,
	.is_at = stdout_is_at,
	.path = stream__path,
};
