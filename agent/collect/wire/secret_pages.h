/* SPDX-License-Identifier: Apache-2.0 */
/* Separate pages for secrets: secret_linux.c and secret_windows.c. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SECRET_PAGES_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SECRET_PAGES_H

#include <stddef.h>

/*
 * Zeroed pages, never swapped and not in core dumps if the system allows that; if not, that is not
 * a failure. NULL if out of memory.
 */
void *secret__pages(size_t len);
void secret__release(void *p, size_t len); /* `len` as requested */

#endif
