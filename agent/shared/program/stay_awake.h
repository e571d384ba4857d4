/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the system from going to sleep while it is idle: reading memory and writing it to a
 * disk is no use that Windows counts. Who closes the lid or presses the button still gets what he
 * wants. On Linux nothing is done: what sleeps there by itself does so by a policy of its own
 * (systemd-logind, a desktop), whose bus is not ours to talk to.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_STAY_AWAKE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_STAY_AWAKE_H

#include <stdbool.h>

/* From now on, for as long as the calling thread lives; false: the system knows no such thing. */
bool stay_awake_begin(void);

/* Of the same thread. What is not begun is fine. */
void stay_awake_end(void);

/* True from the one to the other. */
bool stay_awake_is_on(void);

#endif
