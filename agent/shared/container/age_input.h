/* SPDX-License-Identifier: Apache-2.0 */
/* An input that stands on another one, and decrypts what that one has (formats/age/age.h). */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_AGE_INPUT_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_AGE_INPUT_H

#include "agent/shared/container/input.h"

/*
 * If *in is encrypted, it is now the upper one, and owns what it was; after a failure it is as
 * before. What of it is missing or damaged is logged.
 */
enum status age_input_put_on(struct input **in, const struct input_options *o, struct err *e);

#endif
