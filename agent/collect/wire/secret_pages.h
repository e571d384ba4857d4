/* SPDX-License-Identifier: Apache-2.0 */
/* Where secrets lie: pages of their own, secret_linux.c and secret_windows.c. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_SECRET_PAGES_H
#define RAMSEAL_AGENT_COLLECT_WIRE_SECRET_PAGES_H

#include <stddef.h>

/*
 * Zeros, never swapped and in no core dump where the system allows that; it is no failure where it
 * does not. NULL if out of memory.
 */
void *secret__pages(size_t len);
void secret__release(void *p, size_t len); /* `len` as it was asked for */

#endif
