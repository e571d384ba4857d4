/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can a file change while it is read? A regular file that no process has open for writing cannot,
 * as far as the system tells; a device, a file in /proc, or the memory file of a virtual machine
 * can. file_mark_linux.c and file_mark_windows.c ask the system.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_FILE_MARK_H
#define RAMSEAL_AGENT_COLLECT_HOST_FILE_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct file_mark {
	uint64_t size;
	int64_t written; /* when it was last written, in the system's own unit */
};

/*
 * True for a regular file that nobody seems to have open for writing. If the system does not say
 * who has it open (other users' files, some network file systems), nobody seems to. Take two marks:
 * if they are equal, the file was not written to in between.
 */
bool file_mark_take(const char *path, struct file_mark *ret);

#endif
