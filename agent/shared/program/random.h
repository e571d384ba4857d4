/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes from the operating system: random_linux.c, random_windows.c.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_RANDOM_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_RANDOM_H

#include "formats/base/err.h"

/* At most 256 bytes, all or ST_SYSTEM. */
enum status random_bytes(void *p, size_t len, struct err *e);

#endif
