/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says whether a process lives: it holds a lock on the file, which the kernel takes
 * away when the process ends, however it ends. A process number alone says nothing, since the next
 * process may get it. lock_file_linux.c and lock_file_windows.c.
 *
 * Linux: a lock of fcntl(2) (F_SETLK), for which F_GETLK names the process that holds it, as we see
 * it; it is lost if this process closes another descriptor of the file, so that nothing else may
 * open it. Windows: the file is open for writing, and shared for reading only.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_LOCK_FILE_H
#define RAMSEAL_AGENT_COLLECT_HOST_LOCK_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct lock_file;

/*
 * Makes the file, mode 0600, if it is not there, and locks it. `text`, a path or nothing, is what
 * it then has, for people who wonder; a file with something else is no lock, and stays as it is.
 * ST_RUNNING if another process has the lock; ST_OUTPUT if there can be no such file, or it is a
 * link, or not ours.
 */
enum status lock_file_take(const char *path, const char *text, struct lock_file **ret,
			   struct err *e);
/* The file stays: to remove it would take away what the next one has locked. NULL is fine. */
void lock_file_release(struct lock_file *l);

/* Who holds a lock. */
struct lock_holder {
	bool lives;
	uint64_t pid; /* 0: not known, as on Windows, and of one in another PID namespace */
};

/*
 * Only looks, and so disturbs no one. No file means no holder. ST_INPUT if it cannot be
 * asked.
 */
enum status lock_file_look(const char *path, struct lock_holder *ret, struct err *e);

/*
 * Linux: sends SIGTERM to the process that holds the lock and is `pid`; to no other, even if that
 * ends meanwhile. ST_DIED: it has ended. ST_NO_PRIVILEGE. Elsewhere ST_SYSTEM.
 */
enum status lock_file_signal(const char *path, uint64_t pid, struct err *e);

#endif
