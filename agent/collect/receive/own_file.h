/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's own small files: its log, and what is beside an upload. Failures are ST_OUTPUT. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_OWN_FILE_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_OWN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"

/* How bytes reach the disk, go, and come back; -1 and errno. Tests have others. */
struct disk {
	int (*sync)(int fd);
	int (*truncate)(int fd, uint64_t len);
	ssize_t (*read)(int fd, void *p, size_t len, uint64_t offset); /* what is checked */
	/* How many bytes there is room for in the folder, if that is known; or NULL. */
	bool (*room)(const char *dir, uint64_t *ret);
};

extern const struct disk system_disk; /* os_sync() and so on */

/*
 * A new one with mode 0600 and this content. It is on the disk under its name, and so is the folder
 * as it is then. Nothing is replaced.
 */
enum status own_file_create(const char *path, const char *text, struct err *e);

/* An existing file, for reading and writing; no other process may use it until it is closed. */
enum status own_file_open(const char *path, int *ret, struct err *e);

#endif
