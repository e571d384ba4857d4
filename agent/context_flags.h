/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the bits that switch heap debugging on. */
#ifndef RAMSEAL_AGENT_CONTEXT_FLAGS_H
#define RAMSEAL_AGENT_CONTEXT_FLAGS_H

#include <jansson.h>
#include <stdint.h>

struct context_flag {
	uint32_t bit;     /* 0 ends a list */
	const char *name; /* GFlags' abbreviation and what it calls it */
};

extern const struct context_flag context_global_flags[], context_shutdown_flags[];

/* ["ust: user-mode stack trace database", "0x..." for the bits without a name]; NULL if out of memory. */
json_t *context_flag_names(uint64_t value, const struct context_flag *flags);

#endif
