/* SPDX-License-Identifier: Apache-2.0 */
/* Where tests put what they make. */
#ifndef RAMSEAL_TESTS_GEN_TEMPORARY_H
#define RAMSEAL_TESTS_GEN_TEMPORARY_H

#include <stdlib.h>

/* Room for that and a name in it. */
#ifdef _WIN32
#define TEMPORARY_MAX 256
#else
#define TEMPORARY_MAX 64
#endif

static inline const char *temporary_folder(void)
{
#ifdef _WIN32
	return getenv("TEMP") ? getenv("TEMP") : ".";
#else
	return "/tmp";
#endif
}

#endif
