/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNICODE_STRING as it lies in memory (Microsoft, "UNICODE_STRING structure", ntdef.h): Length and
 * MaximumLength in bytes, 16 bits each, and Buffer, which on x64 is at offset 8.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_UNICODE_STRING_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_UNICODE_STRING_H

#include "agent/examine/virtual/memory_view.h"

/*
 * The text as UTF-8, to be released with free(). A lone surrogate becomes three bytes that are not
 * valid UTF-8. The text is not trusted and may hold any character but NUL, at which it ends. NULL:
 * the structure or its text can't be had or makes no sense (an odd length, or more than it has room
 * for), or there is no memory. `wide`: it belongs to a 64-bit process or to the kernel.
 */
char *unicode_string_read(const struct memory_view *m, uint64_t va, bool wide);

#endif
