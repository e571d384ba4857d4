/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that only this user may read: private_file_linux.c and private_file_windows.c. Paths are
 * UTF-8. All return -1 with errno.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_PRIVATE_FILE_H
#define RAMSEAL_AGENT_COLLECT_WIRE_PRIVATE_FILE_H

#include <sys/types.h>

#include "formats/base/defs.h"

/* A new one to write to. Nothing is replaced (EEXIST), and no link followed. */
int private_file_create(const char *path);

void private_file_remove(const char *path);

/* One to write to and read from, which is gone when it is closed, or when we are. */
int private_file_nameless(const char *folder);

/* Some of it at an offset: how many bytes. */
ssize_t private_file_put(int fd, const void *p, size_t len, uint64_t at);

#endif
