/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the system from going to sleep while it is idle: Windows does not count reading memory and
 * writing it to a disk as use. Closing the lid or pressing the button still works. On Linux nothing
 * is done: automatic sleep there is the policy of another program (systemd-logind, a desktop),
 * whose bus we stay away from.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_STAY_AWAKE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_STAY_AWAKE_H

#include <stdbool.h>

/* From now on, as long as the calling thread lives. False: the system can't do that. */
bool stay_awake_begin(void);

/* To be called by the same thread; harmless without a beginning. */
void stay_awake_end(void);

/* True between the two. */
bool stay_awake_is_on(void);

#endif
