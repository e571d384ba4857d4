/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this folder needs of the operating system besides readers: system_linux.c, system_windows.c.
 */
#ifndef RAMSEAL_TSK_EXTRACT_SYSTEM_H
#define RAMSEAL_TSK_EXTRACT_SYSTEM_H

#include "formats/base/err.h"
#include "tsk-extract/reader.h"

#define SYSTEM_PATH_MAX 1024

/*
 * A file that no one else sees and that is gone when its descriptor is closed, for libraries that
 * only read files by name. `path` names it as long as the descriptor is open.
 */
enum status system_anonymous_file(int *ret_fd, char path[static SYSTEM_PATH_MAX], struct err *e);

/* Linux. A swap area: never from the page cache, which knows nothing of what the kernel swaps out. */
enum status system_open_swap(const char *path, struct reader **ret, struct err *e);

#endif
