/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that shows whether a process is alive: the process holds a lock on it, which the kernel
 * releases when the process ends, however it ends. A PID alone proves nothing, because another
 * process may get it. lock_file_linux.c and lock_file_windows.c.
 *
 * Linux: a lock of fcntl(2) (F_SETLK), whose holder F_GETLK names in our PID namespace. It is lost
 * if this process closes another descriptor of the file, so nothing else may open it. Windows: the
 * file is open for writing and shared only for reading.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_LOCK_FILE_H
#define RAMSEAL_AGENT_COLLECT_HOST_LOCK_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct lock_file;

/*
 * Creates the file with mode 0600 if necessary, locks it, and writes `text` into it: a path or
 * nothing, for people. A file with any other content is not a lock and is left alone. ST_RUNNING if
 * another process holds the lock; ST_OUTPUT if the file cannot be created, is a link or is not
 * ours.
 */
enum status lock_file_take(const char *path, const char *text, struct lock_file **ret,
			   struct err *e);
/* The file stays: removing it would remove what the next process has locked. NULL is fine. */
void lock_file_release(struct lock_file *l);

/* Who holds a lock. */
struct lock_holder {
	bool lives;
	uint64_t pid; /* 0: not known, as on Windows or in another PID namespace */
};

/* Only looks, so it disturbs no one. No file means no holder. ST_INPUT if that is not known. */
enum status lock_file_look(const char *path, struct lock_holder *ret, struct err *e);

/*
 * Linux: sends SIGTERM to the process that holds the lock and has this PID, and to no other, even
 * if that one ends meanwhile. ST_DIED: it has ended. ST_NO_PRIVILEGE. Elsewhere ST_SYSTEM.
 */
enum status lock_file_signal(const char *path, uint64_t pid, struct err *e);

#endif
