/* SPDX-License-Identifier: Apache-2.0 */
/* A container, opened to measure smear or to judge pages by the same rules. */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_INPUT_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_INPUT_H

#include "agent/examine/smear/smear.h"
#include "agent/shared/container/container.h"

struct smear_input {
	struct container container;
	json_t *lines; /* of the manifest: all that a plan's `manifest` needs */
};

/* As container_open(). Errors name the file; Call smear_input_close() only after ST_OK. */
enum status smear_input_open(const char *path, const struct age_identities *x,
			     struct smear_input *ret, struct err *e);
/* As container_open_outline(). */
enum status smear_input_open_outline(const char *path, const struct age_identities *x,
				     struct smear_input *ret, struct container_sums *sums,
				     struct err *e);
void smear_input_close(struct smear_input *i);

/* A plan to measure it. The input must not move while the plan is in use. */
struct smear_plan smear_input_plan(struct smear_input *i);

#endif
