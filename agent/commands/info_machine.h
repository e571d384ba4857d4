/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of `ramseal info` about the machine whose memory was acquired: its facts, kernel and
 * address spaces.
 */
#ifndef RAMSEAL_AGENT_COMMANDS_INFO_MACHINE_H
#define RAMSEAL_AGENT_COMMANDS_INFO_MACHINE_H

#include "agent/shared/container/origin.h"
#include "formats/base/defs.h"

/* One line of text: a label and a value, which may be untrusted. */
void print_row(const char *label, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Copies those of `keys` (ended by NULL) that `from` has. `from` may be NULL. */
void info_copy_keys(json_t *to, const json_t *from, const char *const *keys);

/* Into the JSON document. `begin` may be NULL; `lines` has the "tables" lines. */
void info_put_machine(json_t *doc, const struct origin *o, const json_t *begin,
		      const json_t *lines);

/* The same document as text. */
void info_print_host(const struct origin *o);
void info_print_kernel(const json_t *doc);
void info_print_spaces(const json_t *doc);

#endif
