/* SPDX-License-Identifier: Apache-2.0 */
/* What `ramseal info` says about smear: info_smear.c, or info_left_out.c in ramseal-collect. */
#ifndef RAMSEAL_AGENT_COMMANDS_INFO_SMEAR_H
#define RAMSEAL_AGENT_COMMANDS_INFO_SMEAR_H

#include "agent/shared/container/container.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/container/sums.h"

/*
 * Puts "smear" into the document, if the container has both passes over the page tables or holds an
 * image. `lines`: the manifest's "begin", "tables", "file" and "end".
 */
enum status info_put_smear(json_t *doc, struct container *c, json_t *lines,
			   const struct container_sums *sums, const struct origin *o,
			   struct err *e);

#endif
