/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that only this user may read: private_file_linux.c and private_file_windows.c. Paths are
 * UTF-8. All return -1 with errno.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_PRIVATE_FILE_H
#define RAMSEAL_AGENT_COLLECT_WIRE_PRIVATE_FILE_H

#include <sys/types.h>

#include "formats/base/defs.h"

/* Creates a file for writing. Nothing is replaced (EEXIST), and no link is followed. */
int private_file_create(const char *path);

void private_file_remove(const char *path);

/* A file for reading and writing that disappears when it is closed or we end. */
int private_file_nameless(const char *folder);

/* Writes at an offset; returns how many bytes. */
ssize_t private_file_put(int fd, const void *p, size_t len, uint64_t at);

/*
 * The system's cache is part of what is acquired, so files of ours leave it. `begin` has the bytes
 * sent to the disk without waiting, `leave` waits for that and drops them, and `drop` drops what is
 * on the disk already. Whole pages only, and nothing where system or file system cannot do it.
 */
void private_file_begin_leave(int fd, uint64_t from, uint64_t len);
void private_file_leave_cache(int fd, uint64_t from, uint64_t len);
void private_file_drop_cache(int fd, uint64_t from, uint64_t len);

#endif
