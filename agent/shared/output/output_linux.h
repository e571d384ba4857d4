/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by output_linux.c and output_set_linux.c. */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_LINUX_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_LINUX_H

#include "agent/shared/output/output_target.h"

/* ST_OUTPUT if another process is writing there: then this run is not a retry but a competitor. */
enum status target_check_idle(int directory, const char *name, struct err *e);

/* True if the file `name` in `directory` (AT_FDCWD: a path) is one of the inputs of output.h. */
bool target_is_input(int directory, const char *name, const char *const *inputs);

/* Free space for us on the file system of `fd`, if known. */
bool target_room_at(int fd, uint64_t *ret);

/* Syncs a directory; `path` is for the message. */
enum status target_sync_directory(int fd, const char *path, struct err *e);

/* rename() without replacing anything. Returns 0 or an errno. */
int target_rename_new(int from_directory, const char *from, int to_directory, const char *to);

/*
 * The same for file systems without RENAME_NOREPLACE (exFAT, some FUSE and
 * network ones): reserves the new name with an empty file, then renames over that. Used by
 * target_rename_new(); here for its test.
 */
int target__rename_reserved(int from_directory, const char *from, int to_directory, const char *to);

#endif
