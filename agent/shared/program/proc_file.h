/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: small files in /proc, /sys and /etc, and the lines in them.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_PROC_FILE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_PROC_FILE_H

#include <jansson.h>

/* In front of every path that is read; a test sets it. */
extern const char *proc_file_root;

/*
 * The first 256 KiB of a file, NUL-terminated, for free(); NULL if it cannot be read. `ret_len` may
 * be NULL.
 */
char *proc_file_read(const char *path, size_t *ret_len);

/*
 * A process that leaves no core file owns its files in /proc no longer: root does (proc(5),
 * PR_SET_DUMPABLE in prctl(2)). Those that we read or write and that others may not open are opened
 * before, by who is not root; again in a process that was forked, before it has any secret.
 */
void proc_file_keep_own(void);
/* Before nothing can be opened any more, by whoever has not done so: cage.h. */
void proc_file_keep_rest(void);
/* One of them from its beginning, for close(); -1: open it by its path. */
int proc_file_own(const char *path);

/*
 * What stands behind `key` and `separator` on the line that begins with them: a slice of `text`,
 * without blanks at its ends; NULL if there is none.
 */
const char *proc_file_value(const char *text, const char *key, char separator, size_t *ret_len);

/* The same as a JSON text. */
json_t *proc_file_text(const char *text, const char *key, char separator);

/* "MemTotal:   16316412 kB" as bytes; NULL if there is no such line. */
json_t *proc_file_kib(const char *text, const char *key);

#endif
