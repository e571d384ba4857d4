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
 * A process that leaves no core file no longer owns its files in /proc: root does (proc(5),
 * PR_SET_DUMPABLE in prctl(2)). So, unless we are root, those that we need and that others may not
 * open are opened beforehand; a forked process does so again before it has any secret.
 */
void proc_file_keep_own(void);
/* To be called before the process can open nothing more (cage.h), if it has not kept its own. */
void proc_file_keep_rest(void);
/* One of these files, read from its beginning; to be closed. -1: open it by its path. */
int proc_file_own(const char *path);

/*
 * What follows `key` and `separator` on the line that begins with them: a slice of `text` without
 * blanks at its ends; NULL if there is no such line.
 */
const char *proc_file_value(const char *text, const char *key, char separator, size_t *ret_len);

/* The same as a JSON text. */
json_t *proc_file_text(const char *text, const char *key, char separator);

/* "MemTotal:   16316412 kB" as bytes; NULL if there is no such line. */
json_t *proc_file_kib(const char *text, const char *key);

#endif
