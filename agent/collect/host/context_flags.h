/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the bits that switch heap debugging on, and of those of code integrity. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_CONTEXT_FLAGS_H
#define RAMSEAL_AGENT_COLLECT_HOST_CONTEXT_FLAGS_H

#include <jansson.h>
#include <stdint.h>

struct context_flag {
	uint32_t bit;     /* 0 ends a list */
	const char *name; /* for people; for GFlags, its abbreviation comes first */
};

extern const struct context_flag context_global_flags[], context_shutdown_flags[];

/* Bits of SystemCodeIntegrityInformation (context_flags.c) that we ask for by name. */
#define CODE_INTEGRITY_ENABLED    0x0001
#define CODE_INTEGRITY_TEST_SIGN  0x0002
#define CODE_INTEGRITY_UMCI       0x0004 /* for programs too: application control */
#define CODE_INTEGRITY_UMCI_AUDIT 0x0008
#define CODE_INTEGRITY_HVCI       0x0400 /* for the kernel, by the hypervisor */
#define CODE_INTEGRITY_HVCI_AUDIT 0x0800
#define CODE_INTEGRITY_WHQL       0x4000 /* only drivers that passed Microsoft's tests */
#define CODE_INTEGRITY_WHQL_AUDIT 0x8000

extern const struct context_flag context_code_integrity[];

/*
 * ["ust: user-mode stack trace database", "0x..." for the bits without a name]; NULL if out of
 * memory.
 */
json_t *context_flag_names(uint64_t value, const struct context_flag *flags);

#endif
