/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's own small files: its log, and the state files of uploads. Failures are ST_OUTPUT.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_OWN_FILE_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_OWN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"

/*
 * How bytes are written to the disk, removed and read; -1 and errno on failure. Tests replace them.
 */
struct disk {
	int (*sync)(int fd);
	int (*truncate)(int fd, uint64_t len);
	ssize_t (*read)(int fd, void *p, size_t len, uint64_t offset); /* for checking */
	/* Free bytes in the folder, if known; or NULL. */
	bool (*room)(const char *dir, uint64_t *ret);
};

extern const struct disk system_disk; /* os_sync() and so on */

/* Creates a file with mode 0600 and this content, durable under its name. Nothing is replaced. */
enum status own_file_create(const char *path, const char *text, struct err *e);

/* An existing file, for reading and writing; no other process may use it until it is closed. */
enum status own_file_open(const char *path, int *ret, struct err *e);

#endif
