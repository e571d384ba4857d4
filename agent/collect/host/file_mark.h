/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a file can change while it is read. A regular file that no process has open for writing
 * cannot, as far as the system tells; a device, a file of /proc, or one that a virtual machine
 * has as its memory can. file_mark_linux.c and file_mark_windows.c know how to ask.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_FILE_MARK_H
#define RAMSEAL_AGENT_COLLECT_HOST_FILE_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct file_mark {
	uint64_t size;
	int64_t written; /* when it was written last, in the system's own unit */
};

/*
 * True if it is an ordinary file that nobody is seen to have open for writing. Where the system
 * does not say who has it open (other people's files, some network file systems), nobody is seen.
 * Take it twice: equal marks say that the file was not written to in between.
 */
bool file_mark_take(const char *path, struct file_mark *ret);

#endif
