/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by pipe_sink.c and stdout_sink.c: a descriptor that can only be written to. */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_STREAM_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_STREAM_SINK_H

#include "agent/shared/output/output_sink.h"
#include "agent/shared/output/output_target.h"

struct stream_output {
	struct output output;
	struct target target;
	struct fd_sink fd;
};

/* Owns the descriptor of `t` from now on, even after a failure. */
enum status stream__create(const struct output_ops *ops, const struct target *t,
			   struct output **ret, struct err *e);

enum status stream__write(struct output *o, const void *p, size_t len, struct err *e);
enum status stream__commit(struct output *o, struct err *e);
void stream__destroy(struct output *o);
const char *stream__path(const struct output *o);

#endif
