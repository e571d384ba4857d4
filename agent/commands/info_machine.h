/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of `ramseal info` that is about the machine whose memory it is: its facts, its kernel,
 * its address spaces.
 */
#ifndef RAMSEAL_AGENT_COMMANDS_INFO_MACHINE_H
#define RAMSEAL_AGENT_COMMANDS_INFO_MACHINE_H

#include "agent/shared/container/origin.h"
#include "formats/base/defs.h"

/* A line of text: a label, and what may be a stranger's. */
void print_row(const char *label, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Copies the keys that are there; `from` may be NULL, and `keys` ends with it. */
void info_copy_keys(json_t *to, const json_t *from, const char *const *keys);

/* Into the JSON document. `begin` may be NULL; `lines` has the "tables" lines. */
void info_put_machine(json_t *doc, const struct origin *o, const json_t *begin,
		      const json_t *lines);

/* The same document read aloud: whose memory it is, and what its kernel says. */
void info_print_host(const struct origin *o);
void info_print_kernel(const json_t *doc);
void info_print_spaces(const json_t *doc);

#endif
