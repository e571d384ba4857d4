/* SPDX-License-Identifier: Apache-2.0 */
/* An input that stands on another one and decrypts it (formats/age/age.h). */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_AGE_INPUT_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_AGE_INPUT_H

#include "agent/shared/container/input.h"

/*
 * If *in is encrypted, replaces it by a decrypting input that owns it; unchanged after a failure.
 * Missing and damaged parts are logged.
 */
enum status age_input_put_on(struct input **in, const struct input_options *o, struct err *e);

#endif
