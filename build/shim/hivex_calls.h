/* SPDX-License-Identifier: Apache-2.0 */
/* For libhivex, in front of every file of it: its calls for files end in hivex_memory.c. */
#ifndef SHIM_HIVEX_CALLS_H
#define SHIM_HIVEX_CALLS_H

/* Before their names are taken. */
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#include <unistd.h>

int shim_open(const char *path, int flags, ...);
int shim_fstat(int fd, struct stat *ret);
int shim_close(int fd);

#undef fstat
#define open          shim_open
#define fstat(fd, to) shim_fstat(fd, to)
#define close(fd)     shim_close(fd)

#endif
