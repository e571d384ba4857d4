/* SPDX-License-Identifier: Apache-2.0 */
/* An address as an output: sends what is written to another machine (collect/stores/uploader.h). */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_REMOTE_SINK_H
#define RAMSEAL_AGENT_COLLECT_STORES_REMOTE_SINK_H

#include "agent/shared/output/output.h"

/* For output_options.open_address; `o->network` says how. */
enum status remote_sink_open(const struct output_options *o, struct output **ret, struct err *e);

#endif
