/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bcrypt.dll, from System32 and nowhere else. It is not among the DLLs that Windows takes from
 * there whatever is asked (KnownDLLs), and so is not imported: the loader would take one that
 * somebody has put beside our file. Windows only.
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

/* The functions, for as long as the program runs. ST_SYSTEM. From any thread. */
enum status bcrypt_load(struct bcrypt *ret, struct err *e);

#endif
