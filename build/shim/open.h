/* SPDX-License-Identifier: Apache-2.0 */
/* For libhivex, in place of open(). */
#ifndef SHIM_OPEN_H
#define SHIM_OPEN_H

#include <fcntl.h>
#include <io.h>

/*
 * As open(), but `path` is UTF-8 whatever the code page is, and others may delete the file meanwhile:
 * a file that is to vanish when it is closed can be opened by its name.
 */
int shim_open(const char *path, int flags, ...);

#endif
