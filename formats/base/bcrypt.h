/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bcrypt.dll, only from System32. It is not among the DLLs that Windows always loads from there
 * (KnownDLLs), so it is not imported: the loader would accept one that somebody put beside our
 * file. Windows only.
 */
#ifndef RAMSEAL_BASE_BCRYPT_H
#define RAMSEAL_BASE_BCRYPT_H

#include <windows.h>

#include <bcrypt.h>

#include "formats/base/err.h"

#define BCRYPT_MAP(X)                                                                              \
	X(BCryptOpenAlgorithmProvider)                                                             \
	X(BCryptCloseAlgorithmProvider)                                                            \
	X(BCryptGetProperty)                                                                       \
	X(BCryptCreateHash)                                                                        \
	X(BCryptHashData)                                                                          \
	X(BCryptFinishHash)                                                                        \
	X(BCryptDestroyHash)                                                                       \
	X(BCryptGenRandom)

struct bcrypt {
#define X(name) __typeof__(&name) name;
	BCRYPT_MAP(X)
#undef X
};

/* The functions are valid as long as the program runs. ST_SYSTEM. Any thread. */
enum status bcrypt_load(struct bcrypt *ret, struct err *e);

#endif
