/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhivex opens files, by name. Built by build/windows it opens the memory instead that it was lent:
 * no file, and so nothing on a disk that may be evidence. Installed beside hivex.h.
 */
#ifndef HIVEX_MEMORY_H
#define HIVEX_MEMORY_H

#include <stddef.h>

/*
 * What hivex_open() takes for the file, whatever its name, until the next call; it must stay as long
 * as the handle. One thread at a time.
 */
void hivex_lend(const void *at, size_t size);

#endif
