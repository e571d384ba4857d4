/* SPDX-License-Identifier: Apache-2.0 */
/* What pipe_sink.c and stdout_sink.c share: a descriptor that takes bytes, and nothing else. */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_STREAM_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_STREAM_SINK_H

#include "agent/shared/output/output_sink.h"
#include "agent/shared/output/output_target.h"

struct stream_output {
	struct output output;
	struct target target;
	struct fd_sink fd;
};

/* The descriptor of `t` is owned from now on, also after a failure. */
enum status stream__create(const struct output_ops *ops, const struct target *t,
			   struct output **ret, struct err *e);

enum status stream__write(struct output *o, const void *p, size_t len, struct err *e);
enum status stream__commit(struct output *o, struct err *e);
void stream__destroy(struct output *o);
const char *stream__path(const struct output *o);

#endif
