/* SPDX-License-Identifier: Apache-2.0 */
/* What to do where this machine has no source of memory that can be used. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_NEXT_STEP_H
#define RAMSEAL_AGENT_COLLECT_HOST_NEXT_STEP_H

#include <stdbool.h>

struct next_step_facts {
	bool in_container; /* or in a sandbox; false: nothing says so */
	bool locked_down;  /* Linux' lockdown is on */
};

/* A clause behind "next: ", as short as an error message needs it. Static. */
const char *next_step_text(const struct next_step_facts *f);

/* The same for this host. */
const char *host_next_step(void);

#endif
